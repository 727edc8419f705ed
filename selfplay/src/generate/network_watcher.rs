//! New networks of the run: found, loaded beside the one that plays, and handed to the workers.

use super::current_player::{CurrentPlayer, LoadedPlayer};
use crate::output::complain;
use crate::worker::parallel::said_by;
use anyhow::{Result, bail};
use engine::run::{RunDirectory, RunError};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
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
pub(super) struct NetworkWatcher {
    pub(super) run: RunDirectory,
    /// Loads the network in a file.
    pub(super) load: Box<dyn FnMut(PathBuf) -> Result<LoadedPlayer> + Send>,
    pub(super) roster: Arc<CurrentPlayer>,
    /// The generation that plays; none where there was no network yet.
    pub(super) generation: Option<u32>,
    pub(super) loaded: Arc<AtomicU64>,
    pub(super) stop: Arc<AtomicBool>,
    /// What has been said already.
    pub(super) complaints: BTreeSet<String>,
}

impl NetworkWatcher {
    /// Within this time it ends when it is to, unless it loads a network.
    pub(super) const NOTICE: Duration = LOOK.saturating_mul(2);

    /// Starts to follow. It ends when `stop` is set.
    pub(super) fn start(mut self) -> std::io::Result<JoinHandle<()>> {
        let thread = std::thread::Builder::new().name("networks".into());
        thread.spawn(move || self.follow())
    }

    /// Whether such a thread still follows, or has ended because it was to stop.
    ///
    /// # Errors
    /// It has ended for another reason: new networks would not be noticed.
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
                std::thread::sleep(LOOK);
            }
        }
    }

    /// Takes the newest network that can be used. `failed` are those that could not, and when they were last tried.
    fn look(&mut self, failed: &mut BTreeMap<u32, Instant>) {
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

    fn field(&mut self, generation: u32, path: PathBuf) -> Result<()> {
        // What a load that panics leaves half done is dropped with it.
        let loaded = catch_unwind(AssertUnwindSafe(|| (self.load)(path)));
        let fielded = loaded.unwrap_or_else(|panic| {
            bail!("loading it panicked: {}", said_by(panic.as_ref()));
        })?;
        self.roster.field(fielded);
        self.generation = Some(generation);
        self.loaded.fetch_add(1, Relaxed);
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

    fn fielded(name: &PlayerName) -> LoadedPlayer {
        let place = Devices::of(vec![Device::Cpu], Precision::Fp32);
        let player = Player::open(name, &place).unwrap();
        LoadedPlayer::new(player, 1).unwrap()
    }

    #[test]
    fn a_load_that_panics_is_a_failure_like_any_other() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path());
        std::fs::create_dir(run.networks()).unwrap();
        std::fs::write(run.network(3), "").unwrap();
        let mut loads = 0;
        let roster = Arc::new(CurrentPlayer::new(fielded(&PlayerName::Uniform)));
        let mut watcher = NetworkWatcher {
            run,
            load: Box::new(move |_| {
                loads += 1;
                assert!(loads > 1, "as it was told");
                Ok(fielded(&PlayerName::Material))
            }),
            roster: Arc::clone(&roster),
            generation: None,
            loaded: Arc::default(),
            stop: Arc::default(),
            complaints: BTreeSet::new(),
        };
        let mut failed = BTreeMap::new();
        for _ in 0..2 {
            // It is not tried again at once.
            watcher.look(&mut failed);
            assert!(failed.contains_key(&3));
            assert_eq!(roster.newest().evaluator.name, "uniform");
        }
        failed.insert(3, Instant::now() - RETRY);
        watcher.look(&mut failed);
        assert_eq!(roster.newest().evaluator.name, "material");
        assert_eq!(watcher.generation, Some(3));
    }

    #[test]
    fn a_thread_that_ends_before_it_is_to_is_an_error() {
        let stop = AtomicBool::new(false);
        let ended = std::thread::spawn(|| panic!("as it was told"));
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
