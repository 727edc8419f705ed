//! Step states for tests: hand-made ones, and those of random games.

use arimaa::rules::{Action, ActionSet, Board, History, Piece, Position, Side, Square, StepState};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::IteratorRandom;

/// A step state with its legal actions and repetitions.
pub(crate) struct Sample {
    pub(crate) state: StepState,
    pub(crate) legal: ActionSet,
    pub(crate) repetitions: u8,
}

/// A turn's start from pieces like `Ed2 rh7`.
pub(crate) fn state(side: Side, pieces: &str) -> StepState {
    let board: Board = pieces
        .split_whitespace()
        .map(|text| {
            let piece = Piece::from_letter(text.chars().next().unwrap()).unwrap();
            let square: Square = text[1..].parse().unwrap();
            (square, piece)
        })
        .collect();
    StepState::new(&Position::new(board, side).unwrap())
}

/// Step states of random games, setups included, until there are `count`.
pub(crate) fn random_states(seed: u64, count: usize) -> Vec<Sample> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut samples = Vec::with_capacity(count);
    while samples.len() < count {
        play_randomly(&mut random, count, &mut samples);
    }
    samples
}

fn play_randomly(random: &mut ChaCha8Rng, count: usize, samples: &mut Vec<Sample>) {
    let mut history = History::default();
    let mut position = Position::INITIAL;
    while position.outcome(&history).is_none() {
        let repetitions = history.count(&position).saturating_sub(1);
        let mut state = StepState::new(&position);
        while !state.is_complete() {
            if samples.len() == count {
                return;
            }
            let legal = state.legal_actions(&history);
            samples.push(Sample {
                state,
                legal,
                repetitions,
            });
            match legal.in_index_order(state.side()).choose(random) {
                None | Some(Action::End) => break,
                Some(action) => state = state.after(action),
            }
        }
        position = state.end();
        history.push(&position);
    }
}
