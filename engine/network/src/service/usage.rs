//! What a service's devices do.

use crate::device::Device;
use engine::run::DeviceUse;
use std::time::Duration;

/// What a device has done so far, or in some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Which.
    pub device: Device,
    /// Batches that were evaluated.
    pub batches: u64,
    /// Rows that were requested.
    pub rows: u64,
    /// Rows with the padding.
    pub padded_rows: u64,
    /// The time in which at least one of its threads had a batch in hand: writing, computing, waiting for the device, reading. Never
    /// more than the time that passed.
    pub busy: Duration,
}

impl DeviceCounters {
    /// A device that has done nothing.
    pub fn new(device: Device) -> Self {
        Self {
            device,
            batches: 0,
            rows: 0,
            padded_rows: 0,
            busy: Duration::ZERO,
        }
    }

    /// What each device did between two moments; one that was not there before began then.
    pub fn between(before: &[Self], now: &[Self]) -> Vec<Self> {
        let mut done = now.to_vec();
        for (now, before) in done.iter_mut().zip(before) {
            now.batches = now.batches.saturating_sub(before.batches);
            now.rows = now.rows.saturating_sub(before.rows);
            now.padded_rows = now.padded_rows.saturating_sub(before.padded_rows);
            now.busy = now.busy.saturating_sub(before.busy);
        }
        done
    }

    /// Adds what the same device did in another time.
    pub fn add(&mut self, more: &Self) {
        self.batches += more.batches;
        self.rows += more.rows;
        self.padded_rows += more.padded_rows;
        self.busy += more.busy;
    }

    /// The same as shares and means of the time in which it was done, in seconds.
    pub fn in_time(&self, seconds: f64) -> DeviceUse {
        let ratio = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        DeviceUse {
            device: self.device.to_string(),
            busy: (self.busy.as_secs_f64() / seconds.max(1e-9)).min(1.0),
            mean_batch: ratio(self.rows, self.batches),
            fill: ratio(self.rows, self.padded_rows),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(batches: u64, busy: u64) -> DeviceCounters {
        DeviceCounters {
            batches,
            rows: 90 * batches,
            padded_rows: 100 * batches,
            busy: Duration::from_secs(busy),
            ..DeviceCounters::new(Device::Cuda(batches as u16 % 10))
        }
    }

    #[test]
    fn counters_become_shares_of_a_time() {
        let done = DeviceCounters::between(&[counters(10, 4)], &[counters(30, 12), counters(1, 2)]);
        assert_eq!(done[0].batches, 20);
        let used: Vec<DeviceUse> = done.iter().map(|done| done.in_time(10.0)).collect();
        assert_eq!(
            used[0],
            DeviceUse {
                device: "cuda:0".into(),
                busy: 0.8,
                mean_batch: Some(90.0),
                fill: Some(0.9)
            }
        );
        assert_eq!((used[1].busy, used[1].mean_batch), (0.2, Some(90.0)));
        let idle = DeviceCounters::new(Device::Cuda(2)).in_time(10.0);
        assert_eq!((idle.busy, idle.mean_batch, idle.fill), (0.0, None, None));
    }
}
