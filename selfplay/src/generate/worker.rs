//! The threads that play: each owns its games outright and has a line of its own to the evaluator.

use super::game::SelfplayGame;
use crate::batch::{Batcher, Tally};
use crate::cache::EvaluationCache;
use crate::player::Player;
use anyhow::Result;
use engine::config::Config;
use engine::shard::{GameId, GameRecord};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::Sender;

/// What all workers share.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) config: Config,
    pub(crate) player: Player,
    pub(crate) cache: Option<Arc<EvaluationCache>>,
    pub(crate) seed: u64,
    pub(crate) generator: u32,
    /// Games to play.
    pub(crate) games: u64,
    /// The next game's counter.
    pub(crate) next_game: AtomicU64,
    /// Set to make the workers return at once, their games unfinished.
    pub(crate) stop: AtomicBool,
    pub(crate) counts: Counts,
}

/// What has been done so far, by all workers.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) turns: AtomicU64,
    pub(crate) evaluations: AtomicU64,
    pub(crate) batches: AtomicU64,
}

/// What one worker leaves behind.
#[derive(Debug, Default)]
pub(crate) struct Worked {
    pub(crate) tally: Tally,
    /// Games that were in play when it was stopped.
    pub(crate) given_up: usize,
}

impl Work {
    /// `games` games of self-play, none of which has begun.
    pub(crate) fn new(
        config: Config,
        player: Player,
        seed: u64,
        generator: u32,
        games: u64,
    ) -> Self {
        Self {
            cache: EvaluationCache::new(config.selfplay.cache_mib).map(Arc::new),
            config,
            player,
            seed,
            generator,
            games,
            next_game: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            counts: Counts::default(),
        }
    }

    /// One worker's place, with room for `games_in_flight` games.
    pub(crate) fn batcher(&self, games_in_flight: usize) -> Result<Batcher<SelfplayGame>> {
        let lines = self.player.line(self.cache.as_ref())?.into_iter().collect();
        Ok(Batcher::new(lines, games_in_flight, self.groups()))
    }

    /// The groups that each worker's games are split into, if the configuration says.
    pub(crate) fn groups(&self) -> Option<usize> {
        let groups = self.config.selfplay.groups.number();
        groups.map(|groups| groups as usize)
    }

    /// Plays games until there are none left to begin, handing each to `finished` when it is over.
    pub(crate) fn run(
        &self,
        games_in_flight: usize,
        finished: &Sender<GameRecord>,
    ) -> Result<Worked> {
        let mut batcher = self.batcher(games_in_flight)?;
        while self.advance(&mut batcher, finished)? {}
        Ok(Worked {
            tally: *batcher.tally(),
            given_up: batcher.games().count(),
        })
    }

    /// Plays one group of games on. Whether there is more to do.
    pub(crate) fn advance(
        &self,
        batcher: &mut Batcher<SelfplayGame>,
        finished: &Sender<GameRecord>,
    ) -> Result<bool> {
        if self.stop.load(Relaxed) {
            return Ok(false);
        }
        let before = *batcher.tally();
        let evaluator = self.player.shard_evaluator();
        let mut is_heard = true;
        batcher.round(
            || {
                self.begin_game()
                    .map(|id| SelfplayGame::new(&self.config, &evaluator, self.seed, id))
                    .transpose()
            },
            |game| {
                // Nobody listens any more only where the program is ending with an error of its own.
                is_heard &= finished.send(game.into_record()).is_ok();
                Ok(())
            },
        )?;
        let done = batcher.tally().since(&before);
        self.counts.turns.fetch_add(done.turns, Relaxed);
        self.counts.evaluations.fetch_add(done.evaluations, Relaxed);
        self.counts.batches.fetch_add(done.batches, Relaxed);
        Ok(is_heard && batcher.games().next().is_some())
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
