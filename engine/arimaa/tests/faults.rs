//! Each way in which a step or a turn can be illegal is told apart.

mod boards;

use arimaa::notation::{captured, format_step_with_capture, parse_turn};
use arimaa::rules::{
    Direction, Game, History, Kind, Outcome, Piece, Position, Reason, Side, Step, StepError,
    StepState, Turn, TurnError,
};
use boards::{position, square, state_after};

fn step(text: &str) -> Step {
    let direction = text.chars().last().unwrap();
    Step::new(
        square(&text[..2]),
        Direction::from_letter(direction).unwrap(),
    )
}

#[test]
fn illegal_steps_name_their_fault() {
    let silver_camel = Piece::new(Side::Silver, Kind::Camel);
    for (pieces, before, wrong, error) in [
        ("Ed4", "", "e4n", StepError::NoPiece(square("e4"))),
        ("Eh4", "", "h4e", StepError::OffBoard(square("h4"))),
        (
            "Ed4 me4",
            "",
            "d4e",
            StepError::Occupied {
                square: square("e4"),
                piece: silver_camel,
            },
        ),
        ("Dd4 me4", "", "d4n", StepError::Frozen(square("d4"))),
        ("Rd4", "", "d4s", StepError::RabbitBackward(square("d4"))),
        ("Ed4 mg4", "", "g4n", StepError::NoPusher(square("g4"))),
        ("Cd4 ce4", "", "e4n", StepError::NoPusher(square("e4"))),
        (
            "Hd4 ce4 md5",
            "",
            "e4n",
            StepError::PusherFrozen(square("e4")),
        ),
        (
            "Ed4 ce4",
            "Rh1n Rh2n Rh3n",
            "e4n",
            StepError::PushOnLastStep,
        ),
        (
            "Ed4 ce4",
            "ce4n",
            "h1n",
            StepError::PushNotCompleted(square("e4")),
        ),
        ("Ed4", "Ed4n Ed5e Ee5s", "e4w", StepError::DeadEnd),
        ("Ed4", "Rh1n Rh2n Rh3n Rh4n", "d4n", StepError::NoStepLeft),
    ] {
        let pieces = format!("{pieces} Rh1 ra8");
        let state = state_after(&position(Side::Gold, &pieces), before);
        let found = state.check_step(step(wrong), &History::default());
        assert_eq!(found, Err(error), "{pieces}: {before} {wrong}");
    }
    assert_eq!(
        StepState::new(&Position::INITIAL).check_step(step("e4w"), &History::default()),
        Err(StepError::InSetup)
    );
}

#[test]
fn illegal_turns_name_their_fault() {
    let start = position(Side::Gold, "Ed4 ce4 Rh1 ra8");
    let setup = "Ra1 Rb1 Rc1 Rd1 De1 Df1 Rg1 Rh1 Ra2 Hb2 Cc2 Ed2 Me2 Cf2 Hg2 Rh2";
    let setup = parse_turn(setup, &Position::INITIAL).unwrap();
    let refused = |position: &Position, turn: &Turn| {
        position.after_turn(turn, &History::default()).unwrap_err()
    };
    let refused_text = |text: &str| refused(&start, &parse_turn(text, &start).unwrap());
    assert_eq!(
        refused_text("Rh1n Rh2s"),
        TurnError::Step {
            number: 2,
            step: step("h2s"),
            error: StepError::RabbitBackward(square("h2")),
        }
    );
    let empty = Turn::Steps(arimaa::rules::Steps::new());
    assert_eq!(refused(&start, &empty), TurnError::Empty);
    assert_eq!(
        refused_text("Rh1n ce4n"),
        TurnError::PushNotCompleted(square("e4"))
    );
    assert_eq!(refused_text("Ed4n Ed5s"), TurnError::NoChange);
    assert_eq!(
        refused_text("ce4n Ed4e Ee4w ce5s"),
        TurnError::NoChange,
        "a push, and the pull that takes it back"
    );
    assert_eq!(
        refused(&Position::INITIAL, &empty),
        TurnError::SetupExpected
    );
    assert_eq!(refused(&start, &setup), TurnError::SetupUnexpected);
}

#[test]
fn a_game_refuses_third_occurrences_and_turns_after_its_end() {
    let mut game = Game::from_position(position(Side::Gold, "Ed4 Rh1 ra8 cb8"));
    let mut play = |text: &str| {
        let turn = parse_turn(text, game.position()).unwrap();
        let before = game.clone();
        let played = game.play(&turn);
        if played.is_err() {
            assert_eq!(game, before, "a refused turn changes nothing");
        }
        played
    };
    for text in [
        "Ed4n", "cb8e", "Ed5s", "cc8w", // the start stands for the second time
        "Ed4n", "cb8e", "Ed5s",
    ] {
        assert_eq!(play(text), Ok(()), "{text}");
    }
    assert_eq!(play("cc8w"), Err(TurnError::Repetition));
    assert_eq!(play("cc8w cb8s"), Ok(()));
    assert_eq!(play("Rh1nnnn"), Ok(()));
    assert_eq!(play("cb7n"), Ok(()));
    assert_eq!(play("Rh5nnn"), Ok(()));
    let outcome = Outcome {
        winner: Side::Gold,
        reason: Reason::Goal,
    };
    assert_eq!(play("cb8e"), Err(TurnError::GameOver(outcome)));
}

#[test]
fn captures_are_found() {
    let state = StepState::new(&position(Side::Gold, "Ec4 cb3 Rh1 ra8"));
    assert_eq!(captured(step("b3n"), &state), None);
    assert_eq!(
        captured(step("b3e"), &state),
        Some((square("c3"), Piece::new(Side::Silver, Kind::Cat)))
    );
    assert_eq!(format_step_with_capture(step("b3e"), &state), "cb3e cc3x");
    assert_eq!(format_step_with_capture(step("e5e"), &state), "?e5e");
}
