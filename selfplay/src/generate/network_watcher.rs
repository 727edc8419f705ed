//! Finds the run's new networks, loads them beside the one that plays, and passes them to the workers.

use super::current_player::{CurrentPlayer, LoadedPlayer};
use crate::worker::parallel::said_by;
use anyhow::{Result, bail};
use engine::progress::say;
use engine::run::{RunDirectory, RunError};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Interval between checks of the run's networks.
const INTERVAL: Duration = Duration::from_secs(2);

/// Interval between attempts to load a network that failed.
const RETRY: Duration = Duration::from_secs(60);

/// Interval between checks of `stop`.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Watches a run's networks in a thread of its own.
pub(super) struct NetworkWatcher {
    pub(super) run: RunDirectory,
    /// Loads the network in a file.
    pub(super) load: Box<dyn FnMut(PathBuf) -> Result<LoadedPlayer> + Send>,
    pub(super) current_player: Arc<CurrentPlayer>,
    /// The generation that plays; none where there was no network yet.
    pub(super) generation: Option<u32>,
    pub(super) stop: Arc<AtomicBool>,
    /// Messages that were printed already.
    pub(super) complaints: BTreeSet<String>,
}

impl NetworkWatcher {
    /// It ends within this time after `stop` is set, unless it loads a network.
    pub(super) const NOTICE: Duration = CHECK_INTERVAL.saturating_mul(2);

    /// Starts the thread. It ends when `stop` is set.
    pub(super) fn start(mut self) -> std::io::Result<JoinHandle<()>> {
        let thread = std::thread::Builder::new().name("networks".into());
        thread.spawn(move || self.follow())
    }

    /// Checks that the thread runs, or was told to stop.
    ///
    /// # Errors
    /// It has ended for another reason: new networks would never play.
    pub(super) fn check(thread: Option<&JoinHandle<()>>, stop: &AtomicBool) -> Result<()> {
        let has_ended = thread.is_some_and(JoinHandle::is_finished);
        if has_ended && !stop.load(Relaxed) {
            bail!("the thread that loads networks has ended, and new ones would never play");
        }
        Ok(())
    }

    fn follow(&mut self) {
        let mut failed: BTreeMap<u32, Instant> = BTreeMap::new();
        while !self.stop.load(Relaxed) {
            self.look(&mut failed);
            let begun = Instant::now();
            while begun.elapsed() < INTERVAL && !self.stop.load(Relaxed) {
                std::thread::sleep(CHECK_INTERVAL);
            }
        }
    }

    /// Loads the newest network that can be used. `failed` are those that could not, with the time of the last attempt.
    fn look(&mut self, failed: &mut BTreeMap<u32, Instant>) {
        for (generation, path) in self.newer() {
            let is_due = failed
                .get(&generation)
                .is_none_or(|at| at.elapsed() >= RETRY);
            if !is_due {
                continue;
            }
            match self.load_network(generation, path) {
                Ok(()) => break,
                // Reported once. The current network continues to play, or an older new one takes over.
                Err(error) => {
                    if failed.insert(generation, Instant::now()).is_none() {
                        let playing = self.current_player.newest();
                        say(&format!(
                            "{} plays on: the run's network {generation} can't be used: {error:#}",
                            playing.evaluator.name
                        ));
                    }
                }
            }
        }
    }

    /// The run's networks that are newer than the one that plays, the newest first. A failed read is repeated later.
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
        if self.complaints.insert(complaint.clone()) {
            say(&complaint);
        }
    }

    fn load_network(&mut self, generation: u32, path: PathBuf) -> Result<()> {
        // The state of a load that panics is dropped.
        let loaded = catch_unwind(AssertUnwindSafe(|| (self.load)(path)));
        let loaded = loaded.unwrap_or_else(|panic| {
            bail!("loading it panicked: {}", said_by(panic.as_ref()));
        })?;
        self.current_player.replace(loaded);
        self.generation = Some(generation);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::devices::Devices;
    use crate::worker::player::{Player, PlayerName};
    use engine::config::Precision;
    use network::Device;

    fn loaded(name: &PlayerName) -> LoadedPlayer {
        let place = Devices::of(vec![Device::Cpu], Precision::Fp32);
        let player = Player::open(name, &place).unwrap();
        LoadedPlayer::new(player, 1).unwrap()
    }

    #[test]
    fn a_panic_while_loading_is_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path());
        std::fs::create_dir(run.networks()).unwrap();
        std::fs::write(run.network(3), "").unwrap();
        let mut loads = 0;
        let current_player = Arc::new(CurrentPlayer::new(loaded(&PlayerName::Uniform)));
        let mut watcher = NetworkWatcher {
            run,
            load: Box::new(move |_| {
                loads += 1;
                assert!(loads > 1, "a test's panic");
                Ok(loaded(&PlayerName::Material))
            }),
            current_player: Arc::clone(&current_player),
            generation: None,
            stop: Arc::default(),
            complaints: BTreeSet::new(),
        };
        let mut failed = BTreeMap::new();
        for _ in 0..2 {
            // It is not tried again at once.
            watcher.look(&mut failed);
            assert!(failed.contains_key(&3));
            assert_eq!(current_player.newest().evaluator.name, "uniform");
        }
        failed.insert(3, Instant::now() - RETRY);
        watcher.look(&mut failed);
        assert_eq!(current_player.newest().evaluator.name, "material");
        assert_eq!(watcher.generation, Some(3));
    }

    #[test]
    fn a_thread_that_ends_early_is_an_error() {
        let stop = AtomicBool::new(false);
        let ended = std::thread::spawn(|| panic!("a test's panic"));
        while !ended.is_finished() {
            std::thread::yield_now();
        }
        let error = NetworkWatcher::check(Some(&ended), &stop).unwrap_err();
        assert!(error.to_string().contains("that loads networks has ended"));
        assert!(NetworkWatcher::check(None, &stop).is_ok());
        stop.store(true, Relaxed);
        assert!(NetworkWatcher::check(Some(&ended), &stop).is_ok());
    }
}
