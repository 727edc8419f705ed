//! The worked cases of the rules, by their numbers.

mod boards;

use arimaa::notation::{format_board, format_turn, parse_turn};
use arimaa::rules::{
    Action, Bitboard, Game, History, Pending, Position, Reason, Side, StepError, StepState,
    TurnError,
};
use boards::{board, play, position, square, state_after};

/// The names of the legal steps in a state.
fn legal_steps(state: &StepState) -> Vec<String> {
    let mut steps: Vec<String> = state
        .legal_actions(&History::default())
        .steps()
        .map(|step| arimaa::notation::format_step(step, state))
        .collect();
    steps.sort();
    steps
}

/// Whether a step is legal after others.
fn follows(position: &Position, before: &str, step: &str) -> bool {
    legal_steps(&state_after(position, before)).contains(&step.to_owned())
}

fn start_steps(position: &Position) -> Vec<String> {
    legal_steps(&StepState::new(position))
}

/// Asserts that a turn is legal, and what the board is after it.
fn ends_on(position: &Position, turn: &str, pieces: &str) {
    let end = play(position, turn).unwrap();
    assert_eq!(
        format_board(end.board()),
        format_board(&board(pieces)),
        "{turn}"
    );
}

#[test]
fn case_1() {
    let start = position(Side::Gold, "Eg7 Rh6 Mb4 Hd4 rh7 db3 ec3 cd3");
    let turn = parse_turn("Mb4e db3n cd3e Hd4s", &start).unwrap();
    ends_on(&start, "Mb4e db3n cd3e Hd4s", "Eg7 Rh6 Mc4 Hd3 rh7 db4 ce3");
    assert_eq!(
        format_turn(&turn, &start),
        "Mb4e db3n cd3e ec3x Hd4s",
        "the elephant is lost with the third step"
    );
    assert!(matches!(
        state_after(&start, "Mb4e").pending(),
        Pending::Pull { square: at, .. } if at == square("b4")
    ));
    assert_eq!(
        state_after(&start, "Mb4e db3n").pending(),
        Pending::Nothing,
        "the second step completes a pull"
    );
    let push = state_after(&start, "Mb4e db3n cd3e");
    assert!(
        matches!(push.pending(), Pending::Push { square: at, .. } if at == square("d3")),
        "the third starts a push"
    );
    assert_eq!(push.board().piece_at(square("c3")), None);

    let mut game = Game::from_position(start);
    let goal = parse_turn("Eg7s rh7w Rh6n Rh7n", &start).unwrap();
    game.play(&goal).unwrap();
    let outcome = game.outcome().unwrap();
    assert_eq!((outcome.winner, outcome.reason), (Side::Gold, Reason::Goal));
}

#[test]
fn case_2() {
    let pieces = "Da6 Rb7 ra7 db6 ed5 Hd6 re6 Rh1 rh8";
    let start = position(Side::Gold, pieces);
    let frozen = |side| start.board().frozen(side);
    let squares = |names: &[&str]| names.iter().map(|name| square(name)).collect::<Bitboard>();
    assert_eq!(
        frozen(Side::Gold),
        squares(&["b7", "d6"]),
        "neither dog is frozen"
    );
    assert_eq!(
        frozen(Side::Silver),
        squares(&["a7", "e6"]),
        "the frozen horse freezes the rabbit"
    );
    let mut game = Game::from_position(start);
    game.play(&parse_turn("ra7n Da6n Rb7n", &start).unwrap())
        .unwrap();
    let outcome = game.outcome().unwrap();
    assert_eq!((outcome.winner, outcome.reason), (Side::Gold, Reason::Goal));
    assert_eq!(
        play(&start, "Rb7n"),
        Err(TurnError::Step {
            number: 1,
            step: "b7n".parse_step(),
            error: StepError::Frozen(square("b7")),
        })
    );
}

#[test]
fn case_3() {
    let start = position(Side::Silver, "ed5 Hd6 Rh1 ra8");
    ends_on(&start, "ed5w Hd6s", "ec5 Hd5 Rh1 ra8");
    ends_on(&start, "ed5e Hd6s", "ee5 Hd5 Rh1 ra8");
    ends_on(&start, "ed5s Hd6s", "ed4 Hd5 Rh1 ra8");
    for step in ["ed5w", "ed5e", "ed5s"] {
        assert!(follows(&start, step, "Hd6s"), "{step}");
    }
    ends_on(&start, "Hd6w Hc6x ed5n", "ed6 Rh1 ra8");
    for friend in ["Cb6", "Cc7", "Cc5"] {
        let pieces = format!("ed5 Hd6 Rh1 ra8 {friend}");
        let start = position(Side::Silver, &pieces);
        let end = format!("ed6 Hc6 Rh1 ra8 {friend}");
        ends_on(&start, "Hd6w ed5n", &end);
    }
}

#[test]
fn case_4() {
    let start = position(Side::Gold, "Ed3 Cd1 rd2 rc3 rc4 hc2 Rh1 ra8");
    let pushes: Vec<String> = start_steps(&start)
        .into_iter()
        .filter(|step| step.starts_with("rd2"))
        .collect();
    assert_eq!(pushes, ["rd2e"]);
    ends_on(&start, "rd2e Ed3s", "Ed2 Cd1 re2 rc3 rc4 hc2 Rh1 ra8");
    assert!(!follows(&start, "rd2e Ed3s", "rc3e"));
    assert_eq!(
        play(&start, "rd2e Ed3s rc3e"),
        Err(TurnError::Step {
            number: 3,
            step: "c3e".parse_step(),
            error: StepError::NoPusher(square("c3")),
        })
    );
}

#[test]
fn case_5() {
    let start = position(Side::Silver, "hf2 Rf1 ra8");
    ends_on(&start, "hf2n", "Rf1 ra8");
    ends_on(&start, "hf2n hf3x Rf1n", "Rf2 ra8");
}

#[test]
fn case_6() {
    let start = position(Side::Gold, "Ee2 Rh1 ra8");
    assert_eq!(play(&start, "Ee2n Ee3s"), Err(TurnError::NoChange));
    ends_on(&start, "Ee2n", "Ee3 Rh1 ra8");
}

#[test]
fn case_7() {
    let start = position(Side::Gold, "Ed3 De2 cd4 re3 Rh1 ra8");
    let before = "cd4n Ed3n";
    assert!(follows(&start, before, "re3w"), "as the start of a push");
    let pushed = state_after(&start, "cd4n Ed3n re3w");
    assert_eq!(
        pushed.pending(),
        Pending::Push {
            square: square("e3"),
            pushers: Bitboard::of(square("e2")),
        }
    );
    assert_eq!(legal_steps(&pushed), ["De2n"]);
    assert_eq!(
        play(&start, "cd4n Ed3n re3w"),
        Err(TurnError::PushNotCompleted(square("e3")))
    );
    ends_on(&start, "cd4n Ed3n re3w De2n", "Ed4 De3 cd5 rd3 Rh1 ra8");
}

#[test]
fn case_8() {
    let start = position(Side::Gold, "Ca1 Cb1 Rh1 ra8");
    assert_eq!(
        play(&start, "Ca1n Cb1w Ca2e Cb2s"),
        Err(TurnError::NoChange)
    );
    let last = state_after(&start, "Ca1n Cb1w Ca2e");
    assert!(!legal_steps(&last).contains(&"Cb2s".to_owned()));
    assert!(
        !last
            .legal_actions(&History::default())
            .contains(Action::Step("b2s".parse_step()))
    );
}

#[test]
fn case_9() {
    let start = position(Side::Silver, "hf2 rf4 Rf1 ra8");
    ends_on(&start, "rf4e hf2n hf3x Rf1n", "rg4 Rf2 ra8");
    // Before the rabbit leaves f4, the horse is safe on f3.
    ends_on(&start, "hf2n Rf1n", "hf3 rf4 Rf2 ra8");
}

/// Steps by their square and direction.
trait ParseStep {
    fn parse_step(&self) -> arimaa::rules::Step;
}

impl ParseStep for str {
    fn parse_step(&self) -> arimaa::rules::Step {
        let (from, direction) = self.split_at(2);
        let direction = direction.chars().next().unwrap();
        arimaa::rules::Step::new(
            square(from),
            arimaa::rules::Direction::from_letter(direction).unwrap(),
        )
    }
}

/// Zobrist keys of a cycle of turns cancel out.
#[test]
fn forbidden_positions_of_a_cycle_have_a_key() {
    let cycle = [
        position(Side::Gold, "Ra1 Eb2 eg7 rh8"),
        position(Side::Silver, "Ra1 Eb3 eg7 rh8"),
        position(Side::Gold, "Ra1 Eb3 eg6 rh8"),
        position(Side::Silver, "Ra1 Eb2 eg6 rh8"),
    ];
    assert_eq!(cycle.iter().fold(0, |all, of| all ^ of.key()), 0);
    let key = |positions: &[Position]| {
        let mut history = History::default();
        for position in positions {
            history.push(position);
            history.push(position);
        }
        let again: History = std::collections::BTreeMap::from(history.clone())
            .try_into()
            .unwrap();
        assert_eq!(again, history);
        history.forbidden_key()
    };
    assert_ne!(key(&cycle), key(&[]));
    assert_ne!(key(&cycle[..2]), key(&cycle[2..]));
}
