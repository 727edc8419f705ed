//! Every type of the rules is read back as it was written, as text and in numbers, and what is no value of it is refused.

mod boards;

use arimaa::notation::{
    BoardPicture, NotationError, NotationReason, TurnLabel, parse_position, parse_turn,
};
use arimaa::rules::{
    Action, Bitboard, Board, Direction, EmptyCount, Faults, Game, History, Kind, NoFault, Outcome,
    Pending, Phase, Piece, PlayError, Position, PositionError, PositionFault, Reason, Setup,
    SetupError, SetupFault, Side, Square, SquareError, Step, StepError, StepState, Steps, Turn,
    TurnError,
};
use boards::{random_game, random_position, random_turn};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::IteratorRandom;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::fmt::Debug;

const NUMBERS: bincode::config::Configuration = bincode::config::standard();

fn numbers<T: Serialize>(value: &T) -> Vec<u8> {
    bincode::serde::encode_to_vec(value, NUMBERS).unwrap()
}

fn from_numbers<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    bincode::serde::decode_from_slice(bytes, NUMBERS)
        .map_err(|error| error.to_string())
        .and_then(|(value, used)| {
            if used == bytes.len() {
                Ok(value)
            } else {
                Err("more than a value".to_owned())
            }
        })
}

fn reads_back<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let text = serde_json::to_string(value).unwrap();
    assert_eq!(&serde_json::from_str::<T>(&text).unwrap(), value, "{text}");
    assert_eq!(from_numbers::<T>(&numbers(value)).as_ref(), Ok(value));
}

/// Reads back, and this is how it looks where people read the format.
fn looks_like<T>(value: &T, text: serde_json::Value)
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    reads_back(value);
    assert_eq!(serde_json::to_value(value).unwrap(), text);
}

/// What is wrong with a value where people read the format.
fn refused<T: DeserializeOwned + Debug>(text: serde_json::Value) -> String {
    serde_json::from_value::<T>(text).unwrap_err().to_string()
}

#[test]
fn small_types_read_back() {
    for square in Square::all() {
        looks_like(&square, json!(square.to_string()));
        assert_eq!(numbers(&square), [square.index() as u8]);
    }
    for direction in Direction::ALL {
        looks_like(&direction, json!(direction.letter()));
    }
    for side in Side::ALL {
        looks_like(&side, json!(side.to_string().to_lowercase()));
        for kind in Kind::ALL {
            looks_like(&kind, json!(kind.to_string()));
            let piece = Piece::new(side, kind);
            looks_like(&piece, json!(piece.letter()));
            assert_eq!(numbers(&piece), [piece.index() as u8]);
        }
    }
    for index in 0..Action::COUNT {
        let action = Action::from_index(index, Side::Gold).unwrap();
        looks_like(&action, json!(action.to_string()));
        if let Action::Step(step) = action {
            looks_like(&step, json!(format!("{step:?}")));
            assert_eq!(numbers(&step), [index as u8]);
        }
    }
    looks_like(&Phase::Setup, json!("setup"));
    looks_like(&Phase::Play, json!("play"));
    for reason in [Reason::Goal, Reason::Elimination, Reason::Immobilization] {
        looks_like(&reason, json!(reason.to_string()));
    }
    let outcome = Outcome {
        winner: Side::Gold,
        reason: Reason::Elimination,
    };
    looks_like(&outcome, json!({"winner": "gold", "reason": "elimination"}));
    looks_like(&Bitboard::TRAPS, json!(["c3", "f3", "c6", "f6"]));
}

#[test]
fn errors_read_back() {
    let c3: Square = "c3".parse().unwrap();
    let step: Step = "c3n".parse().unwrap();
    looks_like(&SquareError("c9".to_owned()), json!("c9"));
    looks_like(&StepError::Frozen(c3), json!({"frozen": "c3"}));
    let error = TurnError::Step {
        number: 2,
        step,
        error: StepError::DeadEnd,
    };
    looks_like(
        &error,
        json!({"step": {"number": 2, "step": "c3n", "error": "dead_end"}}),
    );
    reads_back::<PositionError>(&Faults::from(PositionFault::Unsupported {
        square: c3,
        piece: Piece::new(Side::Gold, Kind::Cat),
    }));
    reads_back::<SetupError>(&Setup::new([Kind::Cat; 16]).unwrap_err());
    assert_eq!(
        refused::<SetupError>(json!([])),
        "a refusal names at least one reason"
    );
    reads_back(&SetupFault::PlacedTwice(c3));
    looks_like(&NoFault, json!(null));
    looks_like(&EmptyCount { key: 7 }, json!({"key": 7}));
}

/// What was refused comes back with the reason.
#[test]
fn refused_steps_and_turns_read_back() {
    let start: Position = "g [r                                  Er                          R]"
        .parse()
        .unwrap();
    let history = History::default();
    let idle = parse_turn("Ed4n Ed5s", &start).unwrap();
    let refused_turn: PlayError<Position> = start.play(&idle, &history).unwrap_err();
    looks_like(
        &refused_turn,
        json!({"untouched": start, "reason": "no_change"}),
    );
    let refused_step: PlayError<StepState, StepError> = StepState::new(&start)
        .play_step("h1s".parse().unwrap(), &history)
        .unwrap_err();
    reads_back(&refused_step);
    reads_back(&Game::from_position(start).with_turn(idle).unwrap_err());
}

#[test]
fn errors_of_texts_read_back() {
    let c3: Square = "c3".parse().unwrap();
    let cat = Piece::new(Side::Gold, Kind::Cat);
    let step: Step = "c3n".parse().unwrap();
    let error: NotationError = "12x".parse::<TurnLabel>().unwrap_err();
    looks_like(
        &error,
        json!({"line": 1, "column": 3, "reason": {"side": "x"}}),
    );
    let error = "xy".parse::<Direction>().unwrap_err();
    looks_like(
        &error.reason,
        json!({"expected": {"what": "a direction, n, e, s or w,", "found": "`xy`"}}),
    );
    for reason in [
        NotationReason::Piece('Q'),
        NotationReason::Square(SquareError("c9".to_owned())),
        NotationReason::Direction('x'),
        NotationReason::OtherPiece {
            square: c3,
            written: cat,
            found: Piece::new(Side::Silver, Kind::Dog),
        },
        NotationReason::NotRemoved {
            piece: cat,
            square: c3,
        },
        NotationReason::SquareCount(63),
        NotationReason::NoTrap("a1".parse().unwrap()),
        NotationReason::OtherTurn {
            due: "3g".to_owned(),
            found: "3s".to_owned(),
        },
        NotationReason::from(SetupFault::PlacedTwice(c3)),
        NotationReason::Position(Faults::from(PositionFault::Unsupported {
            square: c3,
            piece: cat,
        })),
        NotationReason::Step(StepError::Frozen(c3)),
        NotationReason::Turn(TurnError::Step {
            number: 1,
            step,
            error: StepError::DeadEnd,
        }),
        NotationReason::Io("the disk is gone".to_owned()),
        NotationReason::TooLong {
            what: "line".into(),
            limit: 80,
        },
        NotationReason::MissingColumns("id, result".to_owned()),
        NotationReason::DoubleColumn("id".to_owned()),
        NotationReason::FieldCount {
            found: 2,
            expected: 3,
        },
        NotationReason::Corrupt,
        NotationReason::NoTurns,
        NotationReason::NothingToTakeBack,
        NotationReason::AfterConclusion,
        NotationReason::LoserWon(Side::Gold),
        NotationReason::OtherEnding {
            played: Outcome {
                winner: Side::Gold,
                reason: Reason::Goal,
            },
            winner: None,
            termination: "time".to_owned(),
        },
        NotationReason::NotOver(Reason::Goal),
    ] {
        reads_back(&NotationError {
            line: 2,
            column: 5,
            reason,
        });
    }
}

#[test]
fn labels_and_pictures_read_back() {
    for side in Side::ALL {
        for number in [1, 12, u32::MAX] {
            let label = TurnLabel { number, side };
            looks_like(&label, json!(label.to_string()));
        }
    }
    let mut rng = ChaCha8Rng::seed_from_u64(43);
    for turn_number in 1..100 {
        let picture = BoardPicture {
            turn_number,
            position: random_position(&mut rng),
        };
        looks_like(&picture, json!(picture.to_string()));
    }
}

#[test]
fn random_positions_states_and_turns_read_back() {
    let mut rng = ChaCha8Rng::seed_from_u64(41);
    for _ in 0..200 {
        let position = random_position(&mut rng);
        looks_like(&position, json!(position.to_string()));
        looks_like(position.board(), json!(position.board().to_string()));
        assert_eq!(numbers(position.board()).len(), 32);
        let mut history = History::default();
        history.push(&position);
        history.push(&position.mirror());
        history.push(&position.mirror());
        reads_back(&history);
        if let Some(turn) = random_turn(&position, &history, &mut rng) {
            looks_like(&turn, json!(turn.to_string()));
            if let Turn::Steps(steps) = turn {
                reads_back::<Steps>(&steps);
            }
        }
        let mut state = StepState::new(&position);
        loop {
            let legal = state.legal_actions(&History::default());
            reads_back(&state);
            reads_back(&legal);
            reads_back(&state.pending());
            let Some(step) = legal.steps().choose(&mut rng) else {
                break;
            };
            state = state.after_step(step);
        }
    }
}

#[test]
fn setups_and_games_read_back() {
    let mut rng = ChaCha8Rng::seed_from_u64(42);
    for turns in 0..30 {
        let game = random_game(turns, &mut rng);
        looks_like(&game, json!(game.to_string()));
        for turn in game.turns() {
            reads_back(turn);
        }
        let Some(Turn::Setup(setup)) = game.turns().first() else {
            continue;
        };
        looks_like(setup, json!(setup.to_string()));
        let placements = setup.placements(Side::Gold).into_iter();
        placements.fold(StepState::new(&Position::INITIAL), |state, square| {
            reads_back(&state);
            state.after_placement(square)
        });
    }
}

#[test]
fn invalid_texts_are_refused_with_their_reason() {
    let two_camels = format!("g [{}]", "m m".to_owned() + &" ".repeat(61));
    for (text, reason) in [
        (refused::<Square>(json!("i1")), "`i1` is not a square"),
        (refused::<Square>(json!(8)), "expected a square"),
        (refused::<Piece>(json!("x")), "`x` is not a piece"),
        (refused::<Direction>(json!("N")), "`N` is not a direction"),
        (refused::<Side>(json!("white")), "unknown variant `white`"),
        (refused::<Step>(json!("Ed2n")), "like `d2n`"),
        (refused::<Action>(json!("pass")), "a step, a square, or"),
        (refused::<Bitboard>(json!(["a0"])), "`a0` is not a square"),
        (refused::<Board>(json!("[]")), "a board has 64 squares"),
        (refused::<Position>(json!(two_camels)), "has 2 camels"),
        (
            refused::<Setup>(json!("RHCEECHR/RRRDDRRR")),
            "a setup has 1 camels, not 0; a setup has 1 elephants, not 2",
        ),
        (refused::<Turn>(json!("")), "at least one step"),
        (
            refused::<Turn>(json!("a1n a2n a3n a4n a5n")),
            "no more than four steps",
        ),
        (
            refused::<TurnLabel>(json!("0g")),
            "a turn's number and side",
        ),
        (refused::<BoardPicture>(json!("12g\n")), "the upper frame"),
        (refused::<Game>(json!("2g Ed2n")), "turn 1g was expected"),
        (
            refused::<History>(json!({"7": 0})),
            "position 7 occurred 0 times",
        ),
    ] {
        assert!(text.contains(reason), "{text}: {reason}");
    }
}

#[test]
fn invalid_numbers_are_refused() {
    let no = |refused: Result<(), String>| assert!(refused.is_err());
    no(from_numbers::<Square>(&[64]).map(drop));
    no(from_numbers::<Direction>(&[4]).map(drop));
    no(from_numbers::<Piece>(&[12]).map(drop));
    no(from_numbers::<Action>(&numbers(&321_u16)).map(drop));
    no(from_numbers::<TurnLabel>(&numbers(&(0_u32, Side::Gold))).map(drop));
    no(from_numbers::<BoardPicture>(&numbers(&(0_u32, Position::INITIAL))).map(drop));
    no(from_numbers::<Setup>(&numbers(&[Kind::Dog; 16])).map(drop));
    let mut thirteenth_piece = [0_u8; 32];
    thirteenth_piece[31] = 13 << 4;
    no(from_numbers::<Board>(&numbers(&thirteenth_piece)).map(drop));
    let elephants: Board = Square::all()
        .take(2)
        .map(|square| (square, Piece::new(Side::Gold, Kind::Elephant)))
        .collect();
    no(from_numbers::<Position>(&numbers(&(elephants, Side::Gold))).map(drop));
    no(from_numbers::<Turn>(&numbers(&(1_u32, Steps::new()))).map(drop));
    let start =
        parse_position("g [r                                  Er                          R]");
    let backward: Turn = "h1n h2s".parse().unwrap();
    let game = (start.unwrap(), vec![backward]);
    no(from_numbers::<Game>(&numbers(&game)).map(drop));
}

/// What no legal turn goes through is no step state.
#[test]
fn unreachable_states_are_refused() {
    let start =
        parse_position("g [r                                  Er                          R]");
    let start = start.unwrap();
    let state = StepState::new(&start).after_step("e4n".parse().unwrap());
    let written = serde_json::to_value(state).unwrap();
    assert_eq!(
        written,
        json!({
            "start": start,
            "board": state.board(),
            "steps_used": 1,
            "pending": {"push": {"square": "e4", "pushers": ["d4"]}},
        })
    );
    reads_back(&state);
    let changed = |key: &str, value: serde_json::Value| {
        let mut changed = written.clone();
        changed[key] = value;
        refused::<StepState>(changed)
    };
    for error in [
        changed("steps_used", json!(0)),
        changed("steps_used", json!(2)),
        changed("steps_used", json!(5)),
        changed("steps_used", json!(255)),
        changed("pending", json!("nothing")),
        changed(
            "pending",
            json!(Pending::Push {
                square: "e4".parse().unwrap(),
                pushers: Bitboard::ALL,
            }),
        ),
        changed("board", json!(start.board())),
        changed("board", json!(Board::EMPTY)),
        changed("start", json!(Position::INITIAL)),
    ] {
        assert!(error.contains("don't lead from"), "{error}");
    }
    let placed = StepState::new(&Position::INITIAL).after_placement("a1".parse().unwrap());
    reads_back(&placed);
    let mut written = serde_json::to_value(placed).unwrap();
    written["steps_used"] = json!(9);
    refused::<StepState>(written.clone());
    written["steps_used"] = json!(0);
    refused::<StepState>(written);
    // An unknown field.
    let mut more = serde_json::to_value(state).unwrap();
    more["more"] = json!(1);
    refused::<StepState>(more);
}

/// How a value is written: its JSON, and its bytes in bincode as hexadecimal digits.
fn written<T>(value: &T) -> (String, String)
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    reads_back(value);
    let bytes = numbers(value).into_iter();
    (
        serde_json::to_string(value).unwrap(),
        bytes.map(|byte| format!("{byte:02x}")).collect(),
    )
}

/// Files hold these forms, so they must not change between versions.
#[test]
fn the_forms_of_every_type_are_fixed() {
    let e4: Square = "e4".parse().unwrap();
    let position: Position = "g [r                                  Er                          R]"
        .parse()
        .unwrap();
    let setup: Setup = "RHCEMCHR/RRRDDRRR".parse().unwrap();
    let steps: Turn = "d4n d5n".parse().unwrap();
    let mut game = Game::from_position(position);
    game.play(&steps).unwrap();
    let state = StepState::new(&position).after_step("e4n".parse().unwrap());
    let found = [
        written(&Side::Silver),
        written(&Kind::Camel),
        written(&Piece::new(Side::Silver, Kind::Camel)),
        written(&e4),
        written(&Direction::West),
        written(&Step::new(e4, Direction::West)),
        written(&Action::Place(e4)),
        written(&Action::End),
        written(&Phase::Play),
        written(&Bitboard::TRAPS),
        written(position.board()),
        written(&position),
        written(&setup),
        written(&Turn::Setup(setup)),
        written(&steps),
        written(&game),
        written(&state),
        written(&state.pending()),
        written(&StepState::new(&position).legal_actions(&History::default())),
        written(game.history()),
        written(&Outcome {
            winner: Side::Silver,
            reason: Reason::Elimination,
        }),
        written(&TurnLabel::due(&game)),
        written(&BoardPicture {
            turn_number: 300,
            position,
        }),
        written(&"12x".parse::<TurnLabel>().unwrap_err()),
    ];
    let expected = include_str!("data/serialised.txt");
    let lines: Vec<String> = found.map(|(json, bytes)| format!("{json}\n{bytes}")).into();
    assert_eq!(lines.join("\n") + "\n", expected);
}
