//! The rules are the same in the mirror and with the colours exchanged, and keys and boards agree however they came about.

mod boards;

use arimaa::rules::{
    Action, ActionSet, Board, History, Phase, Position, Side, Step, StepState, Turn, distinct_turns,
};
use boards::{random_game, random_position};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::IteratorRandom;
use std::collections::{HashMap, HashSet};

/// A symmetry of the game: what becomes of positions, states, steps and sets of actions.
struct Symmetry {
    position: fn(&Position) -> Position,
    state: fn(&StepState) -> StepState,
    step: fn(Step) -> Step,
    actions: fn(&ActionSet) -> ActionSet,
}

const MIRROR: Symmetry = Symmetry {
    position: Position::mirror,
    state: StepState::mirror,
    step: |step| match Action::Step(step).mirror() {
        Action::Step(step) => step,
        other => panic!("{other:?}"),
    },
    actions: ActionSet::mirror,
};

const COLOURS: Symmetry = Symmetry {
    position: Position::swap_colours,
    state: StepState::swap_colours,
    step: |step| Step::new(step.from.flip(), step.direction.flip()),
    actions: |actions| actions.seen_by(Side::Silver),
};

/// Walks random turns from random positions beside their images. Some positions next to the start are forbidden, so that
/// repetition is met too.
fn commutes(symmetry: &Symmetry, seed: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut forbidden = 0;
    for number in 0..2_000 {
        let position = random_position(&mut rng);
        let image = (symmetry.position)(&position);
        let (mut history, mut image_history) = (History::default(), History::default());
        let first_steps = StepState::new(&position)
            .legal_actions(&history)
            .steps()
            .sample(&mut rng, 2);
        for step in first_steps {
            let end = StepState::new(&position).after_step(step).end();
            for _ in 0..2 {
                history.push(&end);
                image_history.push(&(symmetry.position)(&end));
            }
        }
        assert_eq!((symmetry.position)(&image), position, "twice is not at all");
        let winner =
            |outcome: arimaa::rules::Outcome| (outcome.winner == position.side(), outcome.reason);
        let image_winner =
            |outcome: arimaa::rules::Outcome| (outcome.winner == image.side(), outcome.reason);
        assert_eq!(
            position.outcome(&history).map(winner),
            image.outcome(&image_history).map(image_winner)
        );
        if number % 20 == 0 {
            let ends = |position, history| distinct_turns(position, history).into_iter();
            let images: HashSet<Position> = ends(&position, &history)
                .map(|(end, _)| (symmetry.position)(&end))
                .collect();
            assert_eq!(
                images,
                ends(&image, &image_history).map(|(end, _)| end).collect()
            );
        }
        let (mut state, mut image) = (StepState::new(&position), StepState::new(&image));
        loop {
            let legal = state.legal_actions(&history);
            assert_eq!(image, (symmetry.state)(&state));
            assert_eq!(
                image.legal_actions(&image_history),
                (symmetry.actions)(&legal),
                "{state:?}"
            );
            forbidden += usize::from(state.legal_actions(&History::default()) != legal);
            let Some(step) = legal.steps().choose(&mut rng) else {
                break;
            };
            state = state.after_step(step);
            image = image.after_step((symmetry.step)(step));
        }
    }
    assert!(forbidden > 500, "{forbidden}");
}

#[test]
fn the_mirror_commutes_with_the_rules() {
    commutes(&MIRROR, 11);
}

#[test]
fn exchanged_colours_commute_with_the_rules() {
    commutes(&COLOURS, 12);
}

/// The same board, put together piece by piece.
fn rebuilt(board: &Board) -> Board {
    board.iter().collect()
}

/// Plays random games; after every step the board and its key are those of the same pieces put down one by one, and no two
/// different states or positions of a game share a key. Returns how many pieces were lost, and how many steps were made.
fn compare_keys(seed: u64, games: usize) -> (u32, usize) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut captures, mut made) = (0, 0);
    for _ in 0..games {
        let game = random_game(60, &mut rng);
        let mut position = *game.start();
        let mut positions: HashMap<u64, Position> = HashMap::new();
        let mut states: HashMap<u64, StepState> = HashMap::new();
        for turn in game.turns() {
            if let Turn::Steps(steps) = turn {
                let mut state = StepState::new(&position);
                for &step in steps {
                    let before = *state.board();
                    state = state.after_step(step);
                    captures += compare_board(&before, step, state.board());
                    made += 1;
                    assert_eq!(*states.entry(state.key()).or_insert(state), state);
                }
                assert_eq!(position.after_turn_unchecked(turn), state.end());
            }
            position = position.after_turn_unchecked(turn);
            let anew = Position::new(rebuilt(position.board()), position.side()).unwrap();
            assert_eq!((anew, anew.key()), (position, position.key()));
            assert_eq!(
                *positions.entry(position.key()).or_insert(position),
                position
            );
        }
        assert_eq!(position, *game.position());
    }
    (captures, made)
}

/// Compares the board after a step with the same board built anew; returns how many pieces the step cost.
fn compare_board(before: &Board, step: Step, after: &Board) -> u32 {
    let anew = rebuilt(after);
    assert_eq!(*after, anew);
    assert_eq!(after.key(), anew.key());
    assert!(after.difference(&anew).is_empty());
    let changed = before.difference(after).count();
    let lost = before.occupied().count() - after.occupied().count();
    // The piece leaves one square; it comes to another or is lost; or a third piece is.
    assert!(
        matches!((lost, changed), (0, 2) | (1, 1) | (1, 3)),
        "{before:?} {step:?}"
    );
    lost
}

#[test]
fn incremental_keys_are_those_from_scratch() {
    let (captures, steps) = compare_keys(13, 10_000);
    assert!(captures > 25_000 && steps > 500_000, "{captures} {steps}");
}

#[test]
fn equal_ends_of_different_orders_have_one_key() {
    let start = boards::position(Side::Gold, "Ed4 Cg2 Rh1 ra8");
    let one = boards::state_after(&start, "Ed4n Cg2n");
    let two = boards::state_after(&start, "Cg2n Ed4n");
    assert_eq!(one, two);
    assert_eq!(one.key(), two.key());
    // What is pending tells states apart, and so do the steps used.
    let next_to = boards::position(Side::Gold, "Ed4 rc4 Rh1 ra8");
    let pulling = boards::state_after(&next_to, "Ed4e");
    let moved = boards::state_after(&next_to, "Ed4n Ed5e Ee5s");
    assert_eq!(pulling.board(), moved.board());
    assert_ne!(pulling, moved);
    assert_ne!(pulling.key(), moved.key());
    assert_eq!(pulling.end().key(), moved.end().key());
    assert_ne!(
        start.key(),
        Position::new(*start.board(), Side::Silver).unwrap().key()
    );
}

#[test]
fn history_counts_and_forgets() {
    let position = boards::position(Side::Gold, "Ed4 Rh1 ra8");
    let other = boards::position(Side::Silver, "Ed4 Rh1 ra8");
    let mut history = History::default();
    assert_eq!(history.count(&position), 0);
    history.push(&position);
    assert!(!history.forbids_any());
    history.push(&position);
    assert_eq!((history.count(&position), history.count(&other)), (2, 0));
    assert!(history.forbids(&position) && history.forbids_any());
    assert!(!history.forbids(&other));
    history.pop(&position);
    assert!(!history.forbids_any());
    history.pop(&position);
    history.pop(&position);
    assert_eq!(history, History::default());
}

#[test]
fn keys_depend_on_what_is_pending() {
    let start: Position = "g [rr                              E  M    r  r            RR      ]"
        .parse()
        .unwrap();
    let after = |steps: [&str; 2]| {
        steps.iter().fold(StepState::new(&start), |state, step| {
            state.after_step(step.parse().unwrap())
        })
    };
    // The same steps in both orders: either the elephant or the camel can pull now.
    let (camel_last, elephant_last) = (after(["a4n", "d4n"]), after(["d4n", "a4n"]));
    assert_eq!(camel_last.board(), elephant_last.board());
    assert_ne!(camel_last.pending(), elephant_last.pending());
    assert_ne!(camel_last.key(), elephant_last.key());
}

#[test]
fn silver_sets_up_only_behind_a_whole_gold_setup() {
    let phase = |gold| {
        Position::new(boards::board(gold), Side::Silver)
            .unwrap()
            .phase()
    };
    let setup = "Ra1 Rb1 Rc1 Dd1 De1 Rf1 Rg1 Rh1 Ra2 Hb2 Cc2 Md2 Ee2 Cf2 Hg2 Rh2";
    assert_eq!(phase(setup), Phase::Setup);
    assert_eq!(phase("Ra1 Ee4"), Phase::Play);
}
