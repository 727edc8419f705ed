//! The threads that play: each owns its games outright and evaluates their leaves in batches of its own.

use super::game::SelfplayGame;
use crate::batch::Batcher;
use crate::player::Player;
use anyhow::Result;
use engine::config::Config;
use engine::shard::{GameId, GameRecord};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::Sender;

/// What all workers share.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) config: Config,
    pub(super) player: Player,
    pub(super) seed: u64,
    pub(super) generator: u32,
    /// Games to play.
    pub(super) games: u64,
    /// Games that each worker plays at once.
    pub(super) games_in_flight: usize,
    /// The next game's counter.
    pub(super) next_game: AtomicU64,
    /// Set to make the workers return at once, their games unfinished.
    pub(super) stop: AtomicBool,
    pub(super) counts: Counts,
}

/// What has been done so far, by all workers.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) turns: AtomicU64,
    pub(super) evaluations: AtomicU64,
    pub(super) batches: AtomicU64,
}

impl Work {
    /// Plays games until there are none left to begin, handing each to `finished` when it is over. Returns how many were given
    /// up because of `stop`.
    pub(super) fn run(&self, finished: &Sender<GameRecord>) -> Result<usize> {
        let mut evaluators: Vec<_> = self.player.evaluator()?.into_iter().collect();
        let mut batcher = Batcher::default();
        let mut games: Vec<SelfplayGame> = Vec::new();
        loop {
            while games.len() < self.games_in_flight
                && let Some(id) = self.begin_game()
            {
                games.push(SelfplayGame::new(&self.config, self.seed, id)?);
            }
            if games.is_empty() || self.stop.load(Relaxed) {
                return Ok(games.len());
            }
            let turns_before: usize = games.iter().map(SelfplayGame::turns).sum();
            let evaluations = batcher.round(&mut games, &mut evaluators)?;
            let turns_after: usize = games.iter().map(SelfplayGame::turns).sum();
            self.counts
                .turns
                .fetch_add((turns_after - turns_before) as u64, Relaxed);
            self.counts
                .evaluations
                .fetch_add(evaluations as u64, Relaxed);
            self.counts
                .batches
                .fetch_add(u64::from(evaluations > 0), Relaxed);
            for game in games.extract_if(.., |game| game.is_over()) {
                // Nobody listens any more only where the program is ending with an error of its own.
                if finished.send(game.into_record()).is_err() {
                    return Ok(0);
                }
            }
        }
    }

    fn begin_game(&self) -> Option<GameId> {
        if self.stop.load(Relaxed) {
            return None;
        }
        let counter = self.next_game.fetch_add(1, Relaxed);
        (counter < self.games).then_some(GameId {
            generator: self.generator,
            counter,
        })
    }
}
