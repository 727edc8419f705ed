//! New networks of the run: found, loaded beside the one that plays, and handed to the workers.

use super::roster::{Fielded, Roster};
use crate::cache::EvaluationCache;
use crate::output::complain;
use crate::place::Place;
use crate::player::{Player, PlayerName};
use engine::run::{RunDirectory, RunError};
use std::collections::{BTreeMap, BTreeSet};
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
    /// What has been said already.
    pub(super) complaints: BTreeSet<String>,
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
            for (generation, path) in self.newer() {
                let is_due = failed
                    .get(&generation)
                    .is_none_or(|at| at.elapsed() >= RETRY);
                if !is_due {
                    continue;
                }
                match self.field(generation, path) {
                    Ok(()) => break,
                    // Said once: the network that plays goes on playing, or one before this one takes over.
                    Err(error) => {
                        if failed.insert(generation, Instant::now()).is_none() {
                            let playing = self.roster.newest();
                            complain(format_args!(
                                "{} plays on: the run's network {generation} can't be used: {error:#}",
                                playing.evaluator.name
                            ));
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

    /// The run's networks that are newer than the one that plays, the newest first. What can't be read for now is looked at again.
    fn newer(&mut self) -> Vec<(u32, PathBuf)> {
        let (mut networks, strays) = match self.run.find_networks() {
            Ok(found) => found,
            Err(error) => {
                self.complain_once(format!("new networks can't be looked for: {error}"));
                return Vec::new();
            }
        };
        for path in strays {
            self.complain_once(RunError::NetworkName { path }.to_string());
        }
        networks
            .retain(|(generation, _)| self.generation.is_none_or(|playing| *generation > playing));
        networks.reverse();
        networks
    }

    fn complain_once(&mut self, complaint: String) {
        if !self.complaints.contains(&complaint) {
            complain(format_args!("{complaint}"));
            self.complaints.insert(complaint);
        }
    }

    fn field(&mut self, generation: u32, path: PathBuf) -> anyhow::Result<()> {
        let player = Player::open(&PlayerName::of_file(path), &self.place)?;
        let fielded = Fielded::new(player, self.workers, self.cache.as_ref())?;
        self.roster.field(fielded);
        self.generation = Some(generation);
        self.loaded.fetch_add(1, Relaxed);
        Ok(())
    }
}
