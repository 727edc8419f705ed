//! Each kind of bad input has an error of its own, which names the place.

mod boards;

use arimaa::notation::{
    BoardPicture, NotationError, NotationReason, parse_position, parse_record, parse_turn,
};
use arimaa::rules::{
    Faults, Game, Kind, Piece, Position, PositionFault, SETUP_ORDER, Setup, SetupFault, Side,
    StepError, Turn, TurnError,
};
use boards::{board, position, square};

const GOLD: &str = "1g Ra1 Rb1 Rc1 Dd1 De1 Rf1 Rg1 Rh1 Ra2 Hb2 Cc2 Md2 Ee2 Cf2 Hg2 Rh2";
const SILVER: &str = "1s ra8 rb8 rc8 cd8 ce8 rf8 rg8 rh8 ra7 hb7 dc7 md7 ee7 df7 hg7 rh7";

fn fault<T: std::fmt::Debug>(read: Result<T, NotationError>) -> (usize, usize, NotationReason) {
    let error = read.unwrap_err();
    (error.line, error.column, error.reason)
}

/// What is wrong with the turns after the setups.
fn play(turns: &str) -> (usize, usize, NotationReason) {
    fault(parse_record(&format!("{GOLD}\n{SILVER}\n{turns}\n")))
}

/// What is wrong with a setup of Gold's.
fn set_up(changed: &str, to: &str) -> (usize, usize, NotationReason) {
    fault(parse_record(&GOLD.replace(changed, to)))
}

#[test]
fn too_many_pieces_and_pieces_alone_on_traps() {
    let too_many = |side, kind, count, limit| PositionFault::TooMany {
        side,
        kind,
        count,
        limit,
    };
    let alone = |name: &str, letter| PositionFault::Unsupported {
        square: square(name),
        piece: Piece::from_letter(letter).unwrap(),
    };
    let pieces = "Ea1 Eb1 Ec3 Cf6 Dc6 De1 Df1 ra8 rb8 rc8 rd8 re8 rf8 rg8 rh8 ra7 mf3 mh3";
    let faults = Position::new(board(pieces), Side::Silver).unwrap_err();
    let found: Vec<PositionFault> = faults.iter().copied().collect();
    assert_eq!(
        found,
        [
            too_many(Side::Gold, Kind::Dog, 3, 2),
            too_many(Side::Gold, Kind::Elephant, 3, 1),
            alone("c3", 'E'),
            alone("c6", 'D'),
            alone("f6", 'C'),
            too_many(Side::Silver, Kind::Rabbit, 9, 8),
            too_many(Side::Silver, Kind::Camel, 2, 1),
            alone("f3", 'm'),
        ]
    );
    // As text, the first of them shows the place: of three gold dogs, the one that comes last.
    let text = format!("s {}", board(pieces));
    let place = text.rfind('D').unwrap() + 1;
    assert_eq!(
        fault(parse_position(&text)),
        (1, place, NotationReason::Position(faults))
    );
}

#[test]
fn unknown_letters_wrong_lengths_and_sides() {
    let text = |letters: &str| format!("g [{letters}{}]", " ".repeat(64 - letters.len()));
    assert_eq!(
        fault(parse_position(&text("r  k"))),
        (1, 7, NotationReason::Piece('k'))
    );
    for length in [0, 63, 65, 1_000] {
        let text = format!("g [{}]", " ".repeat(length));
        let (line, column, reason) = fault(parse_position(&text));
        assert_eq!((line, column), (1, 4 + length.min(64)));
        assert_eq!(reason, NotationReason::SquareCount(length));
    }
    let text = text("").replace('g', "w");
    assert_eq!(
        fault(parse_position(&text)),
        (1, 1, NotationReason::Side('w'))
    );
    assert_eq!(play("2b Ee2n"), (3, 2, NotationReason::Side('b')));
    assert_eq!(play("2g Ke2n"), (3, 4, NotationReason::Piece('K')));
    assert_eq!(play("2g Ee2u"), (3, 7, NotationReason::Direction('u')));
    assert_eq!(
        fault("12w\n".parse::<BoardPicture>()),
        (1, 3, NotationReason::Side('w'))
    );
}

#[test]
fn setups_with_wrong_sets() {
    let wrong_count = |kind, count, limit| SetupFault::WrongCount { kind, count, limit };
    // In a text the piece that is one too many shows the place; what is missing shows at the end of reading.
    assert_eq!(
        set_up("Md2", "Ed2"),
        (1, 52, wrong_count(Kind::Elephant, 2, 1).into())
    );
    let missing = Faults::try_from(vec![
        wrong_count(Kind::Rabbit, 7, 8),
        wrong_count(Kind::Camel, 0, 1),
    ]);
    assert_eq!(set_up("Ra1 ", "").2, wrong_count(Kind::Rabbit, 7, 8).into());
    assert_eq!(
        fault(parse_record(&GOLD.replace("Ra1 ", "").replace("Md2 ", ""))),
        (1, 4, NotationReason::Setup(missing.unwrap()))
    );
    let kinds = Setup::new([Kind::Camel; 16]).unwrap_err();
    assert_eq!(kinds.len(), 6, "{kinds}");
    assert!(kinds.contains(&wrong_count(Kind::Camel, 16, 1)));
}

#[test]
fn setups_on_wrong_squares_or_of_the_other_side() {
    let wrong_rank = |name: &str, side| SetupFault::WrongRank {
        square: square(name),
        side,
    };
    let other_side = SetupFault::OtherSide {
        square: square("a1"),
        piece: Piece::from_letter('r').unwrap(),
        side: Side::Gold,
    };
    let twice = SetupFault::PlacedTwice(square("a1"));
    let gold = Side::Gold;
    assert_eq!(set_up("Ra1", "Ra3"), (1, 4, wrong_rank("a3", gold).into()));
    assert_eq!(set_up("Ra1", "ra1"), (1, 4, other_side.into()));
    assert_eq!(set_up("Rb1", "Ra1"), (1, 8, twice.into()));
    // On a board all of it is named.
    let faults = Setup::from_board(&board("ra1 Ra3 Rb3"), gold).unwrap_err();
    assert!(faults.contains(&other_side));
    assert!(faults.contains(&wrong_rank("a3", gold)) && faults.contains(&wrong_rank("b3", gold)));
    assert!(faults.contains(&SetupFault::WrongCount {
        kind: Kind::Rabbit,
        count: 2,
        limit: 8
    }));
    assert_eq!(faults.len(), 3 + 6);
    let mut squares = SETUP_ORDER.map(|_| square("a1"));
    squares[7] = square("h7");
    let faults = Setup::from_placements(&squares, gold).unwrap_err();
    assert!(faults.contains(&twice) && faults.contains(&wrong_rank("h7", gold)));
    assert_eq!(faults.len(), 2, "the same square again is the same reason");
}

#[test]
fn turns_that_are_too_long_or_illegal_at_a_step() {
    assert_eq!(
        play("2g Ee2nn Ee4nn Md2n"),
        (3, 16, StepError::NoStepLeft.into())
    );
    let at_step = |number, step: &str, error| TurnError::Step {
        number,
        step: step.parse().unwrap(),
        error,
    };
    assert_eq!(
        play("2g Ee2nn Ra2ns"),
        (
            3,
            14,
            at_step(4, "a3s", StepError::RabbitBackward(square("a3"))).into()
        )
    );
    assert_eq!(
        play("2g Ee2n Ra5n"),
        (3, 9, StepError::NoPiece(square("a5")).into())
    );
}

#[test]
fn turns_that_end_inside_a_push_change_nothing_or_repeat() {
    let start = position(Side::Gold, "Ed4 ce4 Rh1 ra8 dd8");
    let mut game = Game::from_position(start);
    let record = |turns: &str| fault(parse_record(&format!("{start}\n{turns}")));
    assert_eq!(
        record("2g Rh1n ce4n"),
        (2, 9, TurnError::PushNotCompleted(square("e4")).into())
    );
    assert_eq!(record("2g Ed4n Ed5s"), (2, 4, TurnError::NoChange.into()));
    let mut turns = String::new();
    for (index, text) in ["Ed4n", "dd8w", "Ed5s", "dc8e"]
        .into_iter()
        .cycle()
        .enumerate()
    {
        let label = format!("{}{}", index / 2 + 2, ['g', 's'][index % 2]);
        let turn = parse_turn(text, game.position()).unwrap();
        let before = game.clone();
        turns.push_str(&format!("{label} {text}\n"));
        game = match game.with_turn(turn) {
            Ok(game) => game,
            Err(error) => {
                assert_eq!((index, error.reason()), (7, &TurnError::Repetition));
                assert_eq!(error.into_untouched(), before);
                break;
            }
        };
    }
    assert_eq!(record(&turns), (9, 4, TurnError::Repetition.into()));
}

#[test]
fn turns_of_the_wrong_sort() {
    assert_eq!(play("2g Ra1"), (3, 4, TurnError::SetupUnexpected.into()));
    assert_eq!(
        fault(parse_record("1g Ra1n")),
        (1, 4, StepError::InSetup.into())
    );
    let steps: Turn = "a1n".parse().unwrap();
    let refused = Game::new().with_turn(steps).unwrap_err();
    assert_eq!(refused.reason(), &TurnError::SetupExpected);
    assert_eq!(play("2g"), (3, 3, TurnError::Empty.into()));
}
