//! The player that plays now; the run's new networks replace it.
//!
//! ```text
//! watcher: networks/ ── load beside the old one ──> CurrentPlayer ──> every worker: a channel to it in a slot of its own
//! ```

use crate::worker::channel::EvaluationChannel;
use crate::worker::player::Player;
use anyhow::Result;
use engine::record::EvaluatorId;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The player that plays now, for all workers.
pub(crate) struct CurrentPlayer {
    newest: Mutex<Arc<LoadedPlayer>>,
    /// How often it has changed. Workers read it each round, without the lock.
    version: AtomicU64,
}

/// A player with channels for all workers.
pub(crate) struct LoadedPlayer {
    pub(crate) player: Player,
    /// Its name and identity in records.
    pub(crate) evaluator: EvaluatorId,
    /// Channels made in advance.
    channels: Mutex<Vec<Box<dyn EvaluationChannel>>>,
}

impl LoadedPlayer {
    /// A player with channels for so many workers.
    pub(crate) fn new(player: Player, workers: usize) -> Result<Self> {
        let mut channels = Vec::with_capacity(workers);
        for _ in 0..workers {
            channels.extend(player.channel()?);
        }
        Ok(Self {
            evaluator: player.shard_evaluator(),
            player,
            channels: Mutex::new(channels),
        })
    }

    /// A channel for one worker.
    pub(crate) fn channel(&self) -> Result<Option<Box<dyn EvaluationChannel>>> {
        match locked(&self.channels).pop() {
            Some(channel) => Ok(Some(channel)),
            None => self.player.channel(),
        }
    }
}

impl CurrentPlayer {
    pub(crate) fn new(first: LoadedPlayer) -> Self {
        Self {
            newest: Mutex::new(Arc::new(first)),
            version: AtomicU64::new(0),
        }
    }

    /// The player that plays now.
    pub(crate) fn newest(&self) -> Arc<LoadedPlayer> {
        Arc::clone(&locked(&self.newest))
    }

    /// The number of changes.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Acquire)
    }

    /// Another player plays from now on.
    pub(crate) fn replace(&self, player: LoadedPlayer) {
        *locked(&self.newest) = Arc::new(player);
        self.version.fetch_add(1, Release);
    }
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
