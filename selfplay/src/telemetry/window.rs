//! How the counters changed over the last while: what rates are computed from.

use super::counters::Counters;
use network::DeviceCounters;
use std::collections::VecDeque;
use std::time::Duration;

/// A window moves on in so many steps: it is this share longer than it was asked to be, at most.
const STEPS: u32 = 30;

/// The counters that rates are computed from, at one time since the start.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Sample {
    at: Duration,
    games: u64,
    turns: u64,
    evaluations: u64,
    batches: u64,
    cache_queries: u64,
    cache_hits: u64,
    disk_used: u64,
    devices: Vec<DeviceCounters>,
}

impl Sample {
    pub(super) fn new(counters: &Counters, at: Duration) -> Self {
        let cache = counters.cache.unwrap_or_default();
        Self {
            at,
            games: counters.games(),
            turns: counters.turns,
            evaluations: counters.evaluations,
            batches: counters.batches,
            cache_queries: cache.queries,
            cache_hits: cache.hits,
            disk_used: counters.disk_used,
            devices: counters.devices.clone(),
        }
    }
}

/// What came between two samples.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Change {
    pub(super) seconds: f64,
    pub(super) games: u64,
    pub(super) turns: u64,
    pub(super) evaluations: u64,
    pub(super) batches: u64,
    pub(super) cache_queries: u64,
    pub(super) cache_hits: u64,
    /// Bytes; 0 where there are fewer now.
    pub(super) disk_used: u64,
    pub(super) devices: Vec<DeviceCounters>,
}

impl Change {
    fn between(earlier: &Sample, later: &Sample) -> Self {
        Self {
            seconds: later.at.saturating_sub(earlier.at).as_secs_f64(),
            games: later.games.saturating_sub(earlier.games),
            turns: later.turns.saturating_sub(earlier.turns),
            evaluations: later.evaluations.saturating_sub(earlier.evaluations),
            batches: later.batches.saturating_sub(earlier.batches),
            cache_queries: later.cache_queries.saturating_sub(earlier.cache_queries),
            cache_hits: later.cache_hits.saturating_sub(earlier.cache_hits),
            disk_used: later.disk_used.saturating_sub(earlier.disk_used),
            devices: DeviceCounters::between(&earlier.devices, &later.devices),
        }
    }

    /// So much of something in this time, a second.
    pub(super) fn per_second(&self, amount: u64) -> f64 {
        ratio(amount as f64, self.seconds).unwrap_or(0.0)
    }
}

/// None where the whole is nothing.
pub(super) fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// The last while. Its memory is bounded, however often it is looked at.
#[derive(Debug)]
pub(super) struct Window {
    length: Duration,
    samples: VecDeque<Sample>,
}

impl Window {
    /// A window of a length that begins with a sample.
    pub(super) fn new(length: Duration, first: Sample) -> Self {
        Self {
            length,
            samples: VecDeque::from([first]),
        }
    }

    /// What changed from one length ago (or the beginning, if that is later) until now.
    pub(super) fn until(&mut self, now: Sample) -> Change {
        while self
            .samples
            .get(1)
            .is_some_and(|second| second.at + self.length <= now.at)
        {
            self.samples.pop_front();
        }
        let change = Change::between(self.samples.front().unwrap_or(&now), &now);
        let step = self.length / STEPS;
        if self
            .samples
            .back()
            .is_none_or(|last| last.at + step <= now.at)
        {
            self.samples.push_back(now);
        }
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(milliseconds: u64, turns: u64) -> Sample {
        Sample {
            at: Duration::from_millis(milliseconds),
            turns,
            ..Sample::default()
        }
    }

    #[test]
    fn a_rate_is_over_the_last_window() {
        let mut window = Window::new(Duration::from_secs(15), Sample::default());
        let mut rate = |milliseconds, turns| {
            let change = window.until(sample(milliseconds, turns));
            change.per_second(change.turns)
        };
        assert_eq!(rate(0, 0), 0.0);
        // The first window is as long as there was time.
        assert_eq!(rate(2_000, 20), 10.0);
        // Ten turns a second for a minute, then thirty: a window later nothing is left of the ten.
        for at in (2_200..=60_000).step_by(200) {
            assert!((rate(at, at / 100) - 10.0).abs() < 1e-9, "{at}");
        }
        let later = |at: u64| 600 + (at - 60_000) * 30 / 1_000;
        for at in (60_200..75_000).step_by(200) {
            let between = rate(at, later(at));
            assert!((10.0..30.0).contains(&between), "{at}: {between}");
        }
        assert!((rate(75_600, later(75_600)) - 30.0).abs() < 1e-9);
        // Nothing happens any more.
        for at in (75_800..92_000).step_by(200) {
            rate(at, later(75_600));
        }
        assert_eq!(rate(92_000, later(75_600)), 0.0);
    }

    #[test]
    fn memory_is_bounded() {
        let mut window = Window::new(Duration::from_secs(15), Sample::default());
        for at in 0..100_000 {
            window.until(sample(at, at));
        }
        assert!(window.samples.len() <= STEPS as usize + 2);
    }

    #[test]
    fn what_falls_has_not_risen() {
        let mut window = Window::new(Duration::from_secs(15), sample(0, 10));
        assert_eq!(window.until(sample(1_000, 5)).turns, 0);
    }
}
