//! How long a run has generated and trained, and what stands behind each of its networks: `clock.json`.
//!
//! The time is that in which the loop's generator or its trainer worked. Pauses of the loop don't count, and neither do matches,
//! unless games are generated beside them. It is saved every few seconds: a kill loses no more.

use super::json;
use crate::error::TrainError;
use engine::run::{RunDirectory, write_file};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two savings while the time runs.
const INTERVAL: Duration = Duration::from_secs(10);

/// What stands behind a network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Effort {
    /// The games that were generated for it and for those before it; none where a network before it doesn't say.
    pub(crate) games: Option<u64>,
    /// The seconds that went into generating them and into training; none for what was made before the time was taken.
    pub(crate) seconds: Option<f64>,
}

impl Effort {
    /// Of the first network.
    const NOTHING: Self = Self {
        games: Some(0),
        seconds: Some(0.0),
    };

    /// The time in hours.
    pub(crate) fn hours(&self) -> Option<f64> {
        self.seconds.map(|seconds| seconds / 3600.0)
    }
}

/// `clock.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Record {
    /// The time so far; none where it was not taken from the beginning.
    seconds: Option<f64>,
    /// By generation, from 1 on.
    networks: BTreeMap<u32, Effort>,
}

impl Record {
    fn load(run: &RunDirectory) -> Result<Option<Self>, TrainError> {
        let path = run.clock();
        let Some(record) = json::read::<Self>(&path, "times")? else {
            return Ok(None);
        };
        let efforts = record.networks.values().map(|effort| effort.seconds);
        let mut times = efforts.chain([record.seconds]).flatten();
        match times.all(|seconds| seconds.is_finite() && seconds >= 0.0) {
            true => Ok(Some(record)),
            false => Err(TrainError::Answer {
                what: path.display().to_string(),
                reason: "a time can't be negative".to_owned(),
            }),
        }
    }

    fn before(&self, generation: u32) -> Effort {
        match generation.checked_sub(1) {
            None | Some(0) => Effort::NOTHING,
            Some(before) => self.networks.get(&before).copied().unwrap_or_default(),
        }
    }
}

/// What stands behind each network of a run, by generation; nothing is known of a run that was made without a clock.
pub(crate) fn efforts(run: &RunDirectory) -> Result<BTreeMap<u32, Effort>, TrainError> {
    let Some(record) = Record::load(run)? else {
        return Ok(BTreeMap::new());
    };
    let mut efforts = record.networks;
    efforts.insert(0, Effort::NOTHING);
    Ok(efforts)
}

/// The clock of a loop that works.
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
    record: Record,
    /// Since when it runs, as far as that is not in the record yet.
    since: Option<Instant>,
}

impl Time {
    /// Takes into the record what has run.
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
    /// Goes on with a run's clock, which stands still at first. `trained` is the newest network that is complete.
    pub(crate) fn open(run: &RunDirectory, trained: u32) -> Result<Self, TrainError> {
        let new = || Record {
            // What came before a clock is not known, and so is the sum.
            seconds: (trained == 0).then_some(0.0),
            networks: BTreeMap::new(),
        };
        let known = Record::load(run)?;
        let is_new = known.is_none();
        let mut time = Time {
            path: run.clock(),
            record: known.unwrap_or_else(new),
            since: None,
        };
        if is_new {
            // A loop that is killed before the first saving has had a clock all the same.
            time.save()?;
        }
        let time = Arc::new(Mutex::new(time));
        let (end, ended) = channel();
        let saved = Arc::clone(&time);
        let saver = std::thread::spawn(move || {
            while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let mut time = lock(&saved);
                if time.since.is_some() {
                    // What a full disk refuses is tried again, and complained of when a network is recorded.
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

    /// Lets the time run, or stand still.
    pub(crate) fn run(&self, runs: bool) {
        let mut time = lock(&self.time);
        time.take();
        time.since = runs.then(Instant::now);
    }

    /// Records that a network is there, unless that is done; `new_games` are those of its generation, as far as is known.
    pub(crate) fn record(&self, generation: u32, new_games: Option<u64>) -> Result<(), TrainError> {
        let mut time = lock(&self.time);
        time.take();
        let before = time.record.before(generation);
        // Where the one before has no time, this one's would stand for both.
        let seconds = before.seconds.and(time.record.seconds);
        let games = before
            .games
            .zip(new_games)
            .and_then(|(before, new)| before.checked_add(new));
        let effort = Effort { games, seconds };
        time.record.networks.entry(generation).or_insert(effort);
        time.save()
    }

    /// The generations up to `trained` that are not recorded.
    pub(crate) fn missing(&self, trained: u32) -> Vec<u32> {
        let time = lock(&self.time);
        let known = &time.record.networks;
        (1..=trained).filter(|it| !known.contains_key(it)).collect()
    }
}

impl Drop for TrainingClock {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(saver) = self.saver.take() {
            // It has no way to fail.
            let _ = saver.join();
        }
        let mut time = lock(&self.time);
        if time.since.is_some() {
            // The last seconds are lost where the disk refuses them.
            let _ = time.save();
        }
    }
}

/// Nothing that holds the lock leaves half a record.
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
        clock.record(1, Some(300)).unwrap();
        clock.run(false);
        pass(&clock, 1e6);
        clock.run(true);
        pass(&clock, 1800.0);
        drop(clock);
        let clock = TrainingClock::open(&run, 1).unwrap();
        assert_eq!(clock.missing(3), [2, 3]);
        clock.run(true);
        pass(&clock, 1800.0);
        clock.record(2, Some(50)).unwrap();
        // Once more, as after a kill.
        pass(&clock, 1800.0);
        clock.record(2, Some(50)).unwrap();
        let found = efforts(&run).unwrap();
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [0, 1, 2]);
        let games = found.values().map(|effort| effort.games.unwrap());
        assert_eq!(games.collect::<Vec<_>>(), [0, 300, 350]);
        for (generation, hours) in [(0, 0.0), (1, 1.0), (2, 2.0)] {
            let found = found[&generation].hours().unwrap();
            assert!((found - hours).abs() < 0.05, "{generation}: {found}");
        }
    }

    #[test]
    fn what_came_before_the_clock_is_not_made_up() {
        let (_folder, run) = run();
        let clock = TrainingClock::open(&run, 2).unwrap();
        clock.run(true);
        assert_eq!(clock.missing(2), [1, 2]);
        clock.record(1, Some(10)).unwrap();
        clock.record(2, None).unwrap();
        clock.record(3, Some(10)).unwrap();
        let found = efforts(&run).unwrap();
        assert_eq!(found[&1].games, Some(10));
        assert_eq!((found[&2].games, found[&3].games), (None, None));
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
        clock.record(1, Some(10)).unwrap();
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
