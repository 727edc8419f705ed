//! What is left to chance: streams of random numbers, random setups, random turns.

use arimaa::rules::{Action, History, Kind, Phase, Position, Setup, StepState, Steps, Turn};
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{Rng, RngExt, SeedableRng};

/// The stream of the opening of a pair. A pairing's pairs count from 0, so that all pairings have the same openings.
pub(super) fn opening_stream(seed: u64, pair: u64) -> ChaCha8Rng {
    stream(seed, pair * 3)
}

/// The stream of a game, by its number in the match.
pub(super) fn game_stream(seed: u64, number: u64) -> ChaCha8Rng {
    stream(seed, number / 2 * 3 + 1 + number % 2)
}

fn stream(seed: u64, number: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(number);
    rng
}

/// Any arrangement of the sixteen pieces is as likely as any other.
pub(super) fn random_setup<R: Rng>(rng: &mut R) -> Setup {
    let mut kinds = [Kind::Rabbit; 16];
    let full = Kind::ALL
        .into_iter()
        .flat_map(|kind| std::iter::repeat_n(kind, kind.full_count() as usize));
    for (slot, kind) in kinds.iter_mut().zip(full) {
        *slot = kind;
    }
    kinds.shuffle(rng);
    Setup::new(kinds).unwrap_or_else(|error| unreachable!("the full set was shuffled: {error}"))
}

/// Any legal turn, drawn action by action, each uniformly from the legal ones, the end of the turn among them; of a setup any
/// arrangement.
pub(super) fn random_turn<R: Rng>(position: &Position, history: &History, rng: &mut R) -> Turn {
    if position.phase() == Phase::Setup {
        return Turn::Setup(random_setup(rng));
    }
    let mut state = StepState::new(position);
    let mut steps = Steps::new();
    while !state.is_complete() {
        let legal = state.legal_actions(history);
        let Some(drawn) = (legal.count() > 0).then(|| rng.random_range(0..legal.count())) else {
            break;
        };
        match legal.in_index_order(state.side()).nth(drawn) {
            Some(Action::Step(step)) => {
                steps.push(step);
                state = state.after_step(step);
            }
            _ => break,
        }
    }
    Turn::Steps(steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arimaa::rules::Game;

    #[test]
    fn random_turns_are_legal_from_the_first_setup_on() {
        let mut rng = game_stream(1, 0);
        for _ in 0..20 {
            let mut game = Game::new();
            while game.outcome().is_none() && game.turns().len() < 60 {
                let turn = random_turn(game.position(), game.history(), &mut rng);
                game.play(&turn).unwrap();
            }
        }
    }

    #[test]
    fn openings_and_games_never_share_a_stream() {
        let first = |mut rng: ChaCha8Rng| rng.next_u64();
        let mut seen = std::collections::BTreeSet::new();
        for number in 0..20 {
            assert!(seen.insert(first(game_stream(7, number))));
        }
        for pair in 0..10 {
            assert!(seen.insert(first(opening_stream(7, pair))));
        }
    }
}
