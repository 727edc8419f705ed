//! The time that a run has generated and trained, and the games, evaluations and hours behind each of its networks: `clock.json`.
//!
//! The time counts while the loop's generator or its trainer works. Pauses of the loop don't count; matches count only while games
//! are generated beside them. It is saved every few seconds: a kill loses no more.

use super::json;
use crate::error::TrainError;
use engine::run::{Effort, RunClock, RunDirectory, write_file};
use network::{Network, Origin};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The time between two saves while the clock runs.
const INTERVAL: Duration = Duration::from_secs(10);

/// Reads a run's clock; none for a run without one.
fn load(run: &RunDirectory) -> Result<Option<RunClock>, TrainError> {
    let path = run.clock();
    let Some(record) = json::read::<RunClock>(&path, "times")? else {
        return Ok(None);
    };
    let efforts = record.networks.values().map(|effort| effort.seconds);
    let mut times = efforts.chain([record.seconds]).flatten();
    if times.all(|seconds| seconds.is_finite() && seconds >= 0.0) {
        Ok(Some(record))
    } else {
        Err(TrainError::Answer {
            what: path.display().to_string(),
            reason: "a time can't be negative".to_owned(),
        })
    }
}

/// What is behind the network before a generation's.
fn before(record: &RunClock, generation: u32) -> Effort {
    match generation.checked_sub(1) {
        None | Some(0) => Effort::NOTHING,
        Some(before) => record.networks.get(&before).copied().unwrap_or_default(),
    }
}

/// The games and time behind each network of a run, by generation; empty for a run without a clock.
pub(crate) fn efforts(run: &RunDirectory) -> Result<BTreeMap<u32, Effort>, TrainError> {
    let Some(record) = load(run)? else {
        return Ok(BTreeMap::new());
    };
    let mut efforts = record.networks;
    efforts.insert(0, Effort::NOTHING);
    Ok(efforts)
}

/// The clock of a running loop.
#[derive(Debug)]
pub(crate) struct TrainingClock {
    time: Arc<Mutex<Time>>,
    /// Ends the thread that saves, when it is dropped.
    end: Option<Sender<()>>,
    saver: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Time {
    path: PathBuf,
    record: RunClock,
    /// The start of the time that is not in the record yet.
    since: Option<Instant>,
}

impl Time {
    /// Adds the time since the last call to the record.
    fn take(&mut self) {
        if let Some(since) = &mut self.since {
            let now = Instant::now();
            if let Some(seconds) = &mut self.record.seconds {
                *seconds += now.duration_since(*since).as_secs_f64();
            }
            *since = now;
        }
    }

    fn save(&mut self) -> Result<(), TrainError> {
        self.take();
        let text = json::text(&self.record)?;
        Ok(write_file(&self.path, text.as_bytes())?)
    }
}

impl TrainingClock {
    /// Opens a run's clock, which is stopped at first. `trained` is the newest complete network.
    pub(crate) fn open(run: &RunDirectory, trained: u32) -> Result<Self, TrainError> {
        let new = || RunClock {
            // The time before the clock is unknown, and so is the sum.
            seconds: (trained == 0).then_some(0.0),
            networks: BTreeMap::new(),
        };
        let known = load(run)?;
        let is_new = known.is_none();
        let mut time = Time {
            path: run.clock(),
            record: known.unwrap_or_else(new),
            since: None,
        };
        if is_new {
            // The clock of a loop that is killed before the first save must exist too.
            time.save()?;
        }
        let time = Arc::new(Mutex::new(time));
        let (end, ended) = channel();
        let saved = Arc::clone(&time);
        let saver = std::thread::spawn(move || {
            while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let mut time = lock(&saved);
                if time.since.is_some() {
                    // A full disk is tried again, and is an error when a network is recorded.
                    let _ = time.save();
                }
            }
        });
        Ok(Self {
            time,
            end: Some(end),
            saver: Some(saver),
        })
    }

    /// Starts or stops the clock.
    pub(crate) fn run(&self, runs: bool) {
        let mut time = lock(&self.time);
        time.take();
        time.since = runs.then(Instant::now);
    }

    /// Records a new network, unless it is recorded; `new_games` are the games of its generation, and `new_evaluations` those of
    /// networks in them, if known.
    pub(crate) fn record(
        &self,
        generation: u32,
        new_games: Option<u64>,
        new_evaluations: Option<u64>,
    ) -> Result<(), TrainError> {
        let mut time = lock(&self.time);
        time.take();
        let before = before(&time.record, generation);
        // Without the previous network's time, this one's would cover both.
        let seconds = before.seconds.and(time.record.seconds);
        let sum = |before: Option<u64>, new: Option<u64>| before?.checked_add(new?);
        let effort = Effort {
            games: sum(before.games, new_games),
            evaluations: sum(before.evaluations, new_evaluations),
            seconds,
        };
        time.record.networks.entry(generation).or_insert(effort);
        time.save()
    }

    /// Whether the clock runs.
    pub(crate) fn runs(&self) -> bool {
        lock(&self.time).since.is_some()
    }

    /// Records all of a run's networks that are not recorded.
    pub(crate) fn record_new(&self, run: &RunDirectory) -> Result<(), TrainError> {
        let trained = run.newest_trained()?;
        for generation in self.missing(trained.map_or(0, |(generation, _)| generation)) {
            let places = [
                run.network(generation),
                run.candidate(generation),
                run.rejected_network(generation),
            ];
            let origin = match places.iter().find(|path| path.exists()) {
                Some(path) => Network::load(path)?.origin,
                None => Origin::default(),
            };
            let number = |key: &str| origin.get(key)?.parse().ok();
            self.record(generation, number("new_games"), number("new_evaluations"))?;
        }
        Ok(())
    }

    /// The generations up to `trained` that are not recorded.
    fn missing(&self, trained: u32) -> Vec<u32> {
        let time = lock(&self.time);
        let known = &time.record.networks;
        (1..=trained).filter(|it| !known.contains_key(it)).collect()
    }
}

impl Drop for TrainingClock {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(saver) = self.saver.take() {
            // It can't fail.
            let _ = saver.join();
        }
        let mut time = lock(&self.time);
        if time.since.is_some() {
            // The last seconds are lost where the disk refuses them.
            let _ = time.save();
        }
    }
}

/// No holder of the lock leaves half a record.
fn lock(time: &Mutex<Time>) -> MutexGuard<'_, Time> {
    time.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> (tempfile::TempDir, RunDirectory) {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path());
        (folder, run)
    }

    /// Lets the clock think that it has run so much longer.
    fn pass(clock: &TrainingClock, seconds: f64) {
        let mut time = lock(&clock.time);
        if time.since.is_some() {
            *time.record.seconds.as_mut().unwrap() += seconds;
        }
    }

    #[test]
    fn time_and_games_add_up_over_restarts() {
        let (_folder, run) = run();
        assert_eq!(efforts(&run).unwrap(), BTreeMap::new());
        let clock = TrainingClock::open(&run, 0).unwrap();
        pass(&clock, 1e6);
        clock.run(true);
        pass(&clock, 3600.0);
        clock.record(1, Some(300), Some(9_000)).unwrap();
        clock.run(false);
        pass(&clock, 1e6);
        clock.run(true);
        pass(&clock, 1800.0);
        drop(clock);
        let clock = TrainingClock::open(&run, 1).unwrap();
        assert_eq!(clock.missing(3), [2, 3]);
        clock.run(true);
        pass(&clock, 1800.0);
        clock.record(2, Some(50), Some(1_000)).unwrap();
        // Once more, as after a kill.
        pass(&clock, 1800.0);
        clock.record(2, Some(50), Some(1_000)).unwrap();
        let found = efforts(&run).unwrap();
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [0, 1, 2]);
        let games = found.values().map(|effort| effort.games.unwrap());
        assert_eq!(games.collect::<Vec<_>>(), [0, 300, 350]);
        let evaluations = found.values().map(|effort| effort.evaluations.unwrap());
        assert_eq!(evaluations.collect::<Vec<_>>(), [0, 9_000, 10_000]);
        for (generation, hours) in [(0, 0.0), (1, 1.0), (2, 2.0)] {
            let found = found[&generation].hours().unwrap();
            assert!((found - hours).abs() < 0.05, "{generation}: {found}");
        }
    }

    #[test]
    fn time_before_the_clock_is_unknown() {
        let (_folder, run) = run();
        let clock = TrainingClock::open(&run, 2).unwrap();
        clock.run(true);
        assert_eq!(clock.missing(2), [1, 2]);
        clock.record(1, Some(10), Some(400)).unwrap();
        clock.record(2, None, Some(400)).unwrap();
        clock.record(3, Some(10), Some(400)).unwrap();
        let found = efforts(&run).unwrap();
        assert_eq!(found[&1].games, Some(10));
        assert_eq!((found[&2].games, found[&3].games), (None, None));
        assert_eq!(found[&3].evaluations, Some(1_200));
        assert!(
            found
                .iter()
                .all(|(generation, effort)| *generation == 0 || effort.seconds.is_none())
        );
    }

    #[test]
    fn a_kill_before_the_first_saving_leaves_a_clock() {
        let (_folder, run) = run();
        let clock = TrainingClock::open(&run, 0).unwrap();
        clock.run(true);
        // As if killed: nothing of it is saved.
        std::mem::forget(clock);
        let clock = TrainingClock::open(&run, 1).unwrap();
        clock.record(1, Some(10), Some(400)).unwrap();
        assert!(efforts(&run).unwrap()[&1].hours().is_some());
    }

    #[test]
    fn a_damaged_file_is_named() {
        let (_folder, run) = run();
        for text in ["{", "{\"seconds\": -5, \"networks\": {}}", "[]"] {
            std::fs::write(run.clock(), text).unwrap();
            let message = efforts(&run).unwrap_err().to_string();
            assert!(message.contains("clock.json"), "{message}");
            assert!(TrainingClock::open(&run, 0).is_err());
        }
    }
}
