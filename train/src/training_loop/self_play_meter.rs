//! The speed of self-play.

use crate::trainer::metrics::SelfPlayMeasurements;
use engine::files::read_whole;
use engine::run::{GeneratorPlaces, RunDirectory};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

/// The most bytes of a generator's status.
const LARGEST_STATUS: u64 = 1 << 20;

/// Measures the self-play of all generators of a run, by the totals that they report every 15 seconds and at their end.
#[derive(Debug)]
pub(super) struct SelfPlayMeter {
    since: Instant,
    totals: BTreeMap<u32, Totals>,
}

/// The totals in a generator's status: of its last start.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Totals {
    turns: f64,
    evaluations: f64,
    search_seconds: f64,
    records_seconds: f64,
    encode_seconds: f64,
    wait_seconds: f64,
    device_seconds: f64,
}

impl Totals {
    fn map_with(self, other: Self, both: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            turns: both(self.turns, other.turns),
            evaluations: both(self.evaluations, other.evaluations),
            search_seconds: both(self.search_seconds, other.search_seconds),
            records_seconds: both(self.records_seconds, other.records_seconds),
            encode_seconds: both(self.encode_seconds, other.encode_seconds),
            wait_seconds: both(self.wait_seconds, other.wait_seconds),
            device_seconds: both(self.device_seconds, other.device_seconds),
        }
    }

    /// What came since earlier totals; all of it if the generator has started again.
    fn since(self, earlier: Self) -> Self {
        match self.turns < earlier.turns {
            true => self,
            false => self.map_with(earlier, |now, then| (now - then).max(0.0)),
        }
    }
}

impl SelfPlayMeter {
    /// Starts with what the generators have reported.
    pub(super) fn start(run: &RunDirectory) -> Self {
        Self {
            since: Instant::now(),
            totals: totals(run),
        }
    }

    /// The self-play since the start or the last reading; none if none is reported, and the next reading covers this time too.
    /// `games` are new.
    pub(super) fn read(&mut self, run: &RunDirectory, games: u64) -> Option<SelfPlayMeasurements> {
        let now = Self::start(run);
        let seconds = (now.since - self.since).as_secs_f64();
        let done = now
            .totals
            .iter()
            .map(|(number, now)| now.since(self.totals.get(number).copied().unwrap_or_default()));
        let done = done.fold(Totals::default(), |a, b| a.map_with(b, |a, b| a + b));
        if done.turns == 0.0 {
            return None;
        }
        *self = now;
        let parts = [
            done.search_seconds,
            done.records_seconds,
            done.encode_seconds,
            done.wait_seconds,
            done.device_seconds,
        ];
        let workers: f64 = parts.iter().sum();
        let shares = parts.map(|part| (workers > 0.0).then(|| part / workers));
        let [search, records, encode, wait, device] = shares;
        let per_second = |number: f64| (seconds > 0.0).then(|| number / seconds);
        Some(SelfPlayMeasurements {
            games,
            seconds,
            turns_per_second: per_second(done.turns),
            evaluations_per_second: per_second(done.evaluations),
            search,
            records,
            encode,
            wait,
            device,
        })
    }
}

/// The totals of each generator of a run. A status that can't be read is left out: the games don't depend on it.
fn totals(run: &RunDirectory) -> BTreeMap<u32, Totals> {
    let places = GeneratorPlaces::from(run);
    let folders = fs::read_dir(run.root().join("generators"));
    let names = folders.into_iter().flatten().flatten();
    let numbers = names.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let totals = numbers.filter_map(|number| {
        let status = read_whole(&places.status(number), LARGEST_STATUS).ok()?;
        Some((number, serde_json::from_slice(&status).ok()?))
    });
    totals.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn self_play_is_measured_by_what_the_generators_report() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path());
        let report = |number: u32, turns: u64, search: f64, device: f64| {
            let path = GeneratorPlaces::from(&run).status(number);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let status = serde_json::json!({
                "turns": turns, "evaluations": 10 * turns, "search_seconds": search, "device_seconds": device, "network": "a",
            });
            fs::write(path, status.to_string()).unwrap();
        };
        assert!(totals(&run).is_empty());
        report(0, 100, 9.0, 9.0);
        let mut meter = SelfPlayMeter::start(&run);
        // The first has continued, the second is new, the third can't be read.
        report(0, 150, 10.0, 10.0);
        report(1, 50, 1.0, 5.0);
        fs::create_dir_all(run.root().join("generators/002")).unwrap();
        fs::write(run.root().join("generators/002/status.json"), "{").unwrap();
        let done = meter.read(&run, 7).unwrap();
        assert_eq!(done.games, 7);
        assert_eq!((done.search, done.device), (Some(0.25), Some(0.75)));
        let (turns, evaluations) = (done.turns_per_second, done.evaluations_per_second);
        assert!((turns.unwrap() * done.seconds - 100.0).abs() < 1e-6);
        assert!((evaluations.unwrap() * done.seconds - 1_000.0).abs() < 1e-6);
        // A generator that was started again counts from 0.
        report(1, 20, 1.0, 1.0);
        let done = meter.read(&run, 0).unwrap();
        assert!((done.turns_per_second.unwrap() * done.seconds - 20.0).abs() < 1e-6);
        let since = meter.since;
        assert_eq!(meter.read(&run, 0), None);
        assert_eq!(meter.since, since);
    }
}
