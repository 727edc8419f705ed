//! New networks of the run: found, loaded beside the one that plays, and handed to the workers.

use super::roster::{Fielded, Roster};
use crate::cache::EvaluationCache;
use crate::output::complain;
use crate::place::Place;
use crate::player::{Player, PlayerName};
use engine::run::RunDirectory;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two looks at the run's networks.
const INTERVAL: Duration = Duration::from_secs(2);

/// Between two attempts at a network that could not be loaded.
const RETRY: Duration = Duration::from_secs(60);

/// Between two looks at whether to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Follows a run's networks in a thread of its own.
pub(super) struct Follower {
    pub(super) run: RunDirectory,
    pub(super) place: Place,
    pub(super) workers: usize,
    pub(super) cache: Option<Arc<EvaluationCache>>,
    pub(super) roster: Arc<Roster>,
    /// The generation that plays; none where there was no network yet.
    pub(super) generation: Option<u32>,
    pub(super) loaded: Arc<AtomicU64>,
    pub(super) stop: Arc<AtomicBool>,
}

impl Follower {
    /// Within this time it ends when it is to, unless it loads a network.
    pub(super) const NOTICE: Duration = LOOK.saturating_mul(2);

    /// Starts to follow. It ends when `stop` is set.
    pub(super) fn start(mut self) -> std::io::Result<JoinHandle<()>> {
        let thread = std::thread::Builder::new().name("networks".into());
        thread.spawn(move || self.follow())
    }

    fn follow(&mut self) {
        let mut failed: BTreeMap<u32, Instant> = BTreeMap::new();
        while !self.stop.load(Relaxed) {
            if let Some((generation, path)) = self.newer() {
                let is_due = failed
                    .get(&generation)
                    .is_none_or(|at| at.elapsed() >= RETRY);
                if is_due {
                    match self.field(generation, path) {
                        Ok(()) => failed.clear(),
                        Err(error) => {
                            // Said once: the network that plays goes on playing.
                            if failed.insert(generation, Instant::now()).is_none() {
                                let playing = self.roster.newest();
                                complain(format_args!(
                                    "{} plays on: the run's newest network can't be used: {error:#}",
                                    playing.evaluator.name
                                ));
                            }
                        }
                    }
                }
            }
            let begun = Instant::now();
            while begun.elapsed() < INTERVAL && !self.stop.load(Relaxed) {
                std::thread::sleep(LOOK);
            }
        }
    }

    /// The run's newest network, if it is newer than the one that plays. A folder that can't be read for now is looked at again.
    fn newer(&self) -> Option<(u32, PathBuf)> {
        let newest = self.run.list_networks().ok()?.pop()?;
        (self.generation.is_none_or(|playing| newest.0 > playing)).then_some(newest)
    }

    fn field(&mut self, generation: u32, path: PathBuf) -> anyhow::Result<()> {
        let player = Player::open(&PlayerName::Network(path), &self.place)?;
        let fielded = Fielded::new(player, self.workers, self.cache.as_ref())?;
        self.roster.field(fielded);
        self.generation = Some(generation);
        self.loaded.fetch_add(1, Relaxed);
        Ok(())
    }
}
