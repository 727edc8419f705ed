//! Random numbers and what is sampled with them: setups, turns and openings.

use crate::worker::batch::{Batcher, InPlay, Tally};
use crate::worker::player::Player;
use crate::worker::worker_pool;
use anyhow::{Context, Result, bail, ensure};
use arimaa::rules::{
    Action, Game, History, Kind, Phase, Position, Setup, Side, StepState, Steps, Turn,
};
use engine::search::{Evaluation, PolicySampler, Query};
use engine::stop::Stop;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{Rng, RngExt, SeedableRng};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The most draws of one opening: a draw whose game is over is repeated.
const MAX_TRIES: u32 = 1_000;

/// Openings that one thread draws at once.
const DRAWN_AT_ONCE: usize = 256;

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

/// A setup drawn uniformly from all arrangements of the sixteen pieces.
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

/// A random legal turn. Each action is drawn uniformly from the legal ones, which include the end of the turn; a setup is any
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

/// Random setups.
fn set_up(rng: &mut ChaCha8Rng) -> Game {
    let mut game = Game::new();
    for _ in Side::ALL {
        game.play_unchecked(Turn::Setup(random_setup(rng)));
    }
    game
}

/// Random setups and `turns` random turns, redrawn until the game is not over after them.
pub(super) fn random_opening(seed: u64, pair: u64, turns: u32) -> Result<Game> {
    let mut rng = opening_stream(seed, pair);
    for _ in 0..MAX_TRIES {
        let mut game = set_up(&mut rng);
        for _ in 0..turns {
            if game.outcome().is_none() {
                let turn = random_turn(game.position(), game.history(), &mut rng);
                game.play_unchecked(turn);
            }
        }
        if game.outcome().is_none() {
            return Ok(game);
        }
    }
    bail!("opening {pair}: after {turns} random turns every game is over")
}

/// Draws openings by pair: random setups, and `turns` turns from a player's policy at temperature 1. They depend only on the seed and
/// the pair. None if a stop is requested.
pub(super) fn draw_openings(
    player: &Player,
    seed: u64,
    turns: u32,
    pairs: Range<u64>,
    threads: usize,
    requested: &Stop,
) -> Result<Option<Vec<Game>>> {
    let stop = AtomicBool::new(false);
    let next = AtomicU64::new(pairs.start);
    let begin = || {
        let pair = next.fetch_add(1, Relaxed);
        let is_due = pairs.contains(&pair);
        is_due.then(|| Drawing::new(seed, pair, turns)).transpose()
    };
    let mut drawn = Vec::new();
    worker_pool::run(
        threads,
        &stop,
        requested,
        |finished| {
            let channel = player.channel()?;
            let channel = channel.context("a player without an evaluator has no policy")?;
            let mut batcher = Batcher::new(vec![Some(channel)], DRAWN_AT_ONCE, None);
            loop {
                batcher.round(&begin, |over: Drawing| {
                    Ok(finished.send((over.pair, over.game))?)
                })?;
                if stop.load(Relaxed) || batcher.games().next().is_none() {
                    return Ok(());
                }
            }
        },
        |opening| {
            drawn.extend(opening);
            Ok(())
        },
    )?;
    if requested.is_requested() {
        return Ok(None);
    }
    drawn.sort_by_key(|(pair, _)| *pair);
    Ok(Some(drawn.into_iter().map(|(_, game)| game).collect()))
}

/// An opening that is being drawn.
struct Drawing {
    pair: u64,
    rng: ChaCha8Rng,
    game: Game,
    sampler: PolicySampler,
    /// Turns to draw after the setups.
    turns: usize,
    tries: u32,
}

impl Drawing {
    fn new(seed: u64, pair: u64, turns: u32) -> Result<Self> {
        let mut rng = opening_stream(seed, pair);
        let game = set_up(&mut rng);
        Ok(Self {
            pair,
            rng,
            sampler: PolicySampler::new(game.position(), game.history(), 1.0)?,
            game,
            turns: turns as usize,
            tries: 1,
        })
    }

    /// Plays a drawn turn, and returns whether it was the last.
    fn play(&mut self, turn: &Turn) -> Result<bool> {
        self.game.play(turn)?;
        if self.game.outcome().is_some() {
            let Self { pair, turns, .. } = self;
            ensure!(
                self.tries < MAX_TRIES,
                "opening {pair}: after {turns} turns every game is over"
            );
            self.tries += 1;
            self.game = set_up(&mut self.rng);
        }
        let is_last = self.game.turns().len() >= self.turns + 2;
        if !is_last {
            let (position, history) = (self.game.position(), self.game.history());
            self.sampler.restart(position, history, 1.0)?;
        }
        Ok(is_last)
    }
}

impl InPlay for Drawing {
    fn next_queries(&mut self, _: &mut Tally) -> Result<Option<(usize, &[Query])>> {
        loop {
            let history = self.game.history();
            if !self.sampler.leaves(history, &mut self.rng).is_empty() {
                return Ok(Some((0, self.sampler.leaves(history, &mut self.rng))));
            }
            let drawn = self.sampler.decision();
            let drawn = drawn.context("the policy ended without a turn")?;
            let turn = drawn.turn.clone();
            if self.play(&turn)? {
                return Ok(None);
            }
        }
    }

    fn answer(&mut self, index: usize, evaluator: &str, evaluation: Evaluation<'_>) -> Result<()> {
        Ok(self.sampler.answer(index, evaluator, evaluation)?)
    }
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
