//! The change of the counters over a window of time, for rates.

use super::counters::{Counters, ratio, rounded};
use engine::run::DeviceUse;
use network::DeviceCounters;
use std::collections::VecDeque;
use std::time::Duration;

/// Samples kept of a window: it is longer than its length by at most one over this.
const STEPS: u32 = 30;

/// The counters at one time since the start.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Sample {
    pub(super) at: Duration,
    pub(super) counters: Counters,
}

/// The difference of two samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Change {
    earlier: Sample,
    later: Sample,
}

impl Change {
    pub(super) fn between(earlier: &Sample, later: &Sample) -> Self {
        Self {
            earlier: earlier.clone(),
            later: later.clone(),
        }
    }

    pub(super) fn seconds(&self) -> f64 {
        self.later.at.saturating_sub(self.earlier.at).as_secs_f64()
    }

    /// The rise of a number; 0 where it fell.
    pub(super) fn of(&self, number: fn(&Counters) -> u64) -> u64 {
        number(&self.later.counters).saturating_sub(number(&self.earlier.counters))
    }

    /// The rise a second; 0 where no time passed.
    pub(super) fn per_second(&self, number: fn(&Counters) -> u64) -> f64 {
        let rate = self.of(number) as f64 / self.seconds();
        if rate.is_finite() { rate } else { 0.0 }
    }

    /// Evaluations a batch; none without a batch.
    pub(super) fn mean_batch(&self) -> Option<f64> {
        ratio(self.of(|now| now.evaluations), self.of(|now| now.batches))
    }

    /// The use of the devices.
    pub(super) fn devices(&self) -> Vec<DeviceUse> {
        let (earlier, later) = (&self.earlier.counters, &self.later.counters);
        DeviceCounters::between(&earlier.devices, &later.devices)
            .iter()
            .map(|done| done.in_time(self.seconds()))
            .map(|used| DeviceUse {
                busy: rounded(used.busy),
                mean_batch: used.mean_batch.map(rounded),
                fill: used.fill.map(rounded),
                ..used
            })
            .collect()
    }
}

/// The latest samples. Their number is bounded, however often one is added.
#[derive(Debug)]
pub(super) struct Window {
    length: Duration,
    samples: VecDeque<Sample>,
}

impl Window {
    /// A window of a length, which begins with a sample.
    pub(super) fn new(length: Duration, first: Sample) -> Self {
        Self {
            length,
            samples: VecDeque::from([first]),
        }
    }

    /// The change from one length ago, or from the beginning if that is later, until now.
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
            counters: Counters {
                turns,
                ..Counters::default()
            },
        }
    }

    #[test]
    fn a_rate_is_over_the_last_window() {
        let mut window = Window::new(Duration::from_secs(15), Sample::default());
        let mut rate = |milliseconds, turns| {
            let change = window.until(sample(milliseconds, turns));
            change.per_second(|now| now.turns)
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
        assert_eq!(window.until(sample(1_000, 5)).of(|now| now.turns), 0);
    }
}
