//! `generators/NNN/status.json`: what a generator reports about itself, every 15 seconds and at its end.
//!
//! `selfplay generate` writes more keys than are read here. A key that is missing has its default: another version may have written the
//! file.

use super::error::RunError;
use super::generators::{GeneratorPaths, list_numbers};
use super::io::read_file;
use crate::progress::grouped;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};
use std::time::Duration;

/// The most bytes of such a file.
const MAX_BYTES: u64 = 1 << 20;

/// A generator's status. Totals are of its last start, rates of its last 15 seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GeneratorStatus {
    /// The name of its worker.
    pub worker: String,
    /// The name of its machine.
    pub host: String,
    /// Its option `--device`.
    pub device: String,
    /// `running`, `waiting_for_disk`, `stopping` or `ended`.
    #[serde(skip_serializing)]
    pub state: String,
    /// Why it can't write to the disk.
    pub waiting_reason: Option<String>,
    /// Finished games.
    pub games: u64,
    /// The games to finish, if there is a limit.
    pub target_games: Option<u64>,
    /// Games in flight.
    pub games_in_flight: u64,
    /// Turns played.
    pub turns: u64,
    /// Evaluations taken.
    pub evaluations: u64,
    /// Turns a second.
    pub turns_per_second: f64,
    /// Evaluations a second.
    pub evaluations_per_second: f64,
    /// The name of the network that plays.
    pub network: String,
    /// Finished games without a winner.
    pub unfinished: u64,
    /// Gold's share of the games with a winner, 0 to 1.
    pub gold_share: Option<f64>,
    /// Turns of a finished game on average.
    pub mean_game_turns: Option<f64>,
    /// The estimated seconds until its first limit is reached.
    pub seconds_left: Option<f64>,
    /// Bytes that can still be written.
    pub disk_free_bytes: Option<u64>,
    /// The devices of its evaluation service.
    pub devices: Vec<DeviceUse>,
    /// Rows that wait for such a device.
    pub rows_waiting: Option<u64>,
    /// The workers' time in seconds, by use. In the file the keys end in `_seconds`.
    #[serde(flatten, skip_serializing)]
    pub times: WorkerTimes<f64>,
}

impl GeneratorStatus {
    /// Reads a generator's status; none before it has written one.
    ///
    /// # Errors
    ///
    /// A file that can't be read, has more than 1 MiB, or is no JSON of this form.
    pub fn read(paths: &GeneratorPaths, generator: u32) -> Result<Option<Self>, RunError> {
        let path = paths.status(generator);
        let Some(bytes) = read_file(&path, MAX_BYTES)? else {
            return Ok(None);
        };
        let status = serde_json::from_slice(&bytes).map(Some);
        status.map_err(|error| RunError::io("read", &path)(error.into()))
    }

    /// The readable statuses of a run's generators, by number. Those of generators that have ended are included.
    pub fn list(paths: &GeneratorPaths) -> BTreeMap<u32, Self> {
        let numbers = list_numbers(&paths.generators()).unwrap_or_default();
        let statuses = numbers
            .into_iter()
            .filter_map(|number| Some((number, Self::read(paths, number).ok()??)));
        statuses.collect()
    }
}

/// A worker's time by use, or shares of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerTimes<T = Duration>
where
    T: Default,
{
    /// Searches and rules, and taking answers.
    #[serde(alias = "search_seconds")]
    pub search: T,
    /// Making records, writing them to the journal, and sending finished games. If all cores are busy, the time may include the thread
    /// that receives a game.
    #[serde(alias = "records_seconds")]
    pub records: T,
    /// Sending queries to the evaluation service: input rows and legal masks.
    #[serde(alias = "encode_seconds")]
    pub encode: T,
    /// Waiting for the evaluation service.
    #[serde(alias = "wait_seconds")]
    pub wait: T,
    /// Evaluating in the worker's own thread, the encoding included.
    #[serde(alias = "device_seconds")]
    pub device: T,
}

impl<T: Copy + Default> WorkerTimes<T> {
    /// Each part with its name.
    pub fn parts(&self) -> [(&'static str, T); 5] {
        [
            ("search", self.search),
            ("records", self.records),
            ("encode", self.encode),
            ("wait", self.wait),
            ("device", self.device),
        ]
    }

    /// The sum of all parts.
    pub fn total(&self) -> T
    where
        T: Sum,
    {
        self.parts().into_iter().map(|(_, part)| part).sum()
    }

    /// What a function makes of each part.
    pub fn map<U: Default>(self, of: impl Fn(T) -> U) -> WorkerTimes<U> {
        WorkerTimes {
            search: of(self.search),
            records: of(self.records),
            encode: of(self.encode),
            wait: of(self.wait),
            device: of(self.device),
        }
    }

    /// What a function makes of each part and another's.
    pub fn zip_with(self, other: Self, both: impl Fn(T, T) -> T) -> Self {
        Self {
            search: both(self.search, other.search),
            records: both(self.records, other.records),
            encode: both(self.encode, other.encode),
            wait: both(self.wait, other.wait),
            device: both(self.device, other.device),
        }
    }
}

impl<T: Copy + Default + Add<Output = T>> AddAssign for WorkerTimes<T> {
    fn add_assign(&mut self, other: Self) {
        *self = self.zip_with(other, |a, b| a + b);
    }
}

/// The shares in per cent.
impl fmt::Display for WorkerTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total().as_secs_f64().max(1e-9);
        write!(f, "workers:")?;
        for (what, time) in self.parts() {
            if !time.is_zero() {
                write!(f, " {what} {:.1}%", 100.0 * time.as_secs_f64() / total)?;
            }
        }
        Ok(())
    }
}

/// How a device was used in some time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceUse {
    /// Which.
    pub device: String,
    /// The share of the time in which at least one of its threads had a batch in hand.
    pub busy: f64,
    /// Rows in a batch on average, without padding; none without a batch.
    pub mean_batch: Option<f64>,
    /// The share of the computed rows that were requested; none without a batch.
    pub fill: Option<f64>,
}

impl DeviceUse {
    /// Several devices in a few words, as `cuda:0 93% busy, batches of 812 (97% full), 1,204 rows wait`: batches are those of all
    /// devices on average. Nothing without devices.
    pub fn in_words(devices: &[Self], rows_waiting: Option<u64>) -> Option<String> {
        let percent = |share: f64| format!("{:.0}%", 100.0 * share);
        let each = devices
            .iter()
            .map(|device| format!("{} {}", device.device, percent(device.busy)));
        let mut parts = vec![each.collect::<Vec<_>>().join(", ") + " busy"];
        let mean = |of: fn(&Self) -> Option<f64>| {
            let known: Vec<f64> = devices.iter().filter_map(of).collect();
            (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
        };
        if let (Some(batch), Some(fill)) = (mean(|it| it.mean_batch), mean(|it| it.fill)) {
            parts.push(format!("batches of {batch:.0} ({} full)", percent(fill)));
        }
        parts.extend(rows_waiting.map(|rows| format!("{} rows wait", grouped(rows))));
        (!devices.is_empty()).then(|| parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::RunDirectory;
    use std::fs;

    #[test]
    fn the_use_of_devices_in_words() {
        let device = |name: &str, busy: f64| DeviceUse {
            device: name.to_owned(),
            busy,
            mean_batch: Some(90.0),
            fill: Some(0.9),
        };
        let used = [device("cuda:0", 0.8), device("cuda:1", 0.2)];
        let idle = DeviceUse {
            mean_batch: None,
            fill: None,
            ..device("cuda:2", 0.0)
        };
        let in_words = |devices: &[DeviceUse]| DeviceUse::in_words(devices, Some(1_204));
        assert_eq!(
            in_words(&used[..1]).unwrap(),
            "cuda:0 80% busy, batches of 90 (90% full), 1,204 rows wait"
        );
        assert_eq!(
            in_words(&used).unwrap(),
            "cuda:0 80%, cuda:1 20% busy, batches of 90 (90% full), 1,204 rows wait"
        );
        assert_eq!(
            DeviceUse::in_words(&[idle], None).unwrap(),
            "cuda:2 0% busy"
        );
        assert_eq!(in_words(&[]), None);
    }

    #[test]
    fn a_status_has_defaults_for_missing_keys_and_unreadable_ones_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let paths = GeneratorPaths::from(&RunDirectory::new(folder.path()));
        assert_eq!(GeneratorStatus::read(&paths, 0).unwrap(), None);
        for (number, text) in [
            (0, r#"{"turns": 7, "wait_seconds": 1.5, "more": []}"#),
            (1, "{"),
        ] {
            fs::create_dir_all(paths.status(number).parent().unwrap()).unwrap();
            fs::write(paths.status(number), text).unwrap();
        }
        let mut expected = GeneratorStatus {
            turns: 7,
            ..GeneratorStatus::default()
        };
        expected.times.wait = 1.5;
        assert_eq!(
            GeneratorStatus::read(&paths, 0).unwrap(),
            Some(expected.clone())
        );
        assert_eq!(
            GeneratorStatus::list(&paths),
            BTreeMap::from([(0, expected)])
        );
        let message = GeneratorStatus::read(&paths, 1).unwrap_err().to_string();
        assert!(
            message.starts_with("can't read ") && message.contains("001/status.json"),
            "{message}"
        );
    }
}
