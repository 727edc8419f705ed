//! The speed of self-play.

use crate::trainer::metrics::SelfPlayMeasurements;
use engine::run::{GeneratorPaths, GeneratorStatus, RunDirectory};
use std::collections::BTreeMap;
use std::time::Instant;

/// Measures the self-play of all generators of a run, by the totals that they report every 15 seconds and at their end.
#[derive(Debug)]
pub(super) struct SelfPlayMeter {
    since: Instant,
    /// By generator. A status that can't be read is left out: the games don't depend on it.
    reported: BTreeMap<u32, GeneratorStatus>,
}

impl SelfPlayMeter {
    /// Starts with what the generators have reported.
    pub(super) fn start(run: &RunDirectory) -> Self {
        Self {
            since: Instant::now(),
            reported: GeneratorStatus::list(&GeneratorPaths::from(run)),
        }
    }

    /// The self-play since the start or the last reading; none if none is reported, and the next reading covers this time too.
    /// `games` are new.
    pub(super) fn read(&mut self, run: &RunDirectory, games: u64) -> Option<SelfPlayMeasurements> {
        let now = Self::start(run);
        let seconds = (now.since - self.since).as_secs_f64();
        let mut done = GeneratorStatus::default();
        for (number, now) in &now.reported {
            let before = self.reported.get(number).cloned();
            // A generator that has started again counts from 0.
            let before = before.filter(|before| before.turns <= now.turns);
            let before = before.unwrap_or_default();
            done.turns += now.turns - before.turns;
            done.evaluations += now.evaluations.saturating_sub(before.evaluations);
            done.times += now.times.zip_with(before.times, |a, b| (a - b).max(0.0));
        }
        if done.turns == 0 {
            return None;
        }
        *self = now;
        let workers = done.times.total();
        let per_second = |number: u64| (seconds > 0.0).then(|| number as f64 / seconds);
        Some(SelfPlayMeasurements {
            games,
            seconds,
            turns_per_second: per_second(done.turns),
            evaluations_per_second: per_second(done.evaluations),
            shares: done
                .times
                .map(|part| (workers > 0.0).then(|| part / workers)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn self_play_is_measured_by_what_the_generators_report() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path());
        let report = |number: u32, turns: u64, search: f64, device: f64| {
            let path = GeneratorPaths::from(&run).status(number);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let status = serde_json::json!({
                "turns": turns, "evaluations": 10 * turns, "search_seconds": search, "device_seconds": device, "network": "a",
            });
            fs::write(path, status.to_string()).unwrap();
        };
        assert!(SelfPlayMeter::start(&run).reported.is_empty());
        report(0, 100, 9.0, 9.0);
        let mut meter = SelfPlayMeter::start(&run);
        // The first has continued, the second is new, the third can't be read.
        report(0, 150, 10.0, 10.0);
        report(1, 50, 1.0, 5.0);
        fs::create_dir_all(run.root().join("generators/002")).unwrap();
        fs::write(run.root().join("generators/002/status.json"), "{").unwrap();
        let done = meter.read(&run, 7).unwrap();
        assert_eq!(done.games, 7);
        assert_eq!(
            (done.shares.search, done.shares.device),
            (Some(0.25), Some(0.75))
        );
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
