//! What the threads that own devices did while self-play was measured.

use super::report::DeviceShares;
use crate::place::Place;
use engine::network::ThreadCounters;

/// What the threads that own the devices did, all threads of a device together.
#[derive(Debug, Clone, Default)]
pub(super) struct DeviceThreads {
    devices: Vec<ThreadCounters>,
}

impl DeviceThreads {
    /// What they have done so far; nothing where workers evaluate by themselves.
    pub(super) fn of(place: &Place) -> Self {
        let mut devices: Vec<ThreadCounters> = Vec::new();
        let threads = place.running_service().map(|service| service.counters());
        for thread in threads.unwrap_or_default() {
            match devices
                .iter_mut()
                .find(|other| other.device == thread.device)
            {
                Some(device) => add_counters(device, &thread),
                None => devices.push(thread),
            }
        }
        Self { devices }
    }

    /// Adds what was done between two moments.
    pub(super) fn add_since(&mut self, mut now: Self, before: &Self) {
        for (now, before) in now.devices.iter_mut().zip(&before.devices) {
            now.batches -= before.batches;
            now.rows -= before.rows;
            now.padded_rows -= before.padded_rows;
            now.busy = now.busy.saturating_sub(before.busy);
            now.waiting = now.waiting.saturating_sub(before.waiting);
        }
        if self.devices.is_empty() {
            *self = now;
            return;
        }
        for (sum, more) in self.devices.iter_mut().zip(&now.devices) {
            add_counters(sum, more);
        }
    }

    /// The share of the computed rows that somebody asked for.
    pub(super) fn fill(&self) -> Option<f64> {
        let rows: u64 = self.devices.iter().map(|device| device.rows).sum();
        let padded: u64 = self.devices.iter().map(|device| device.padded_rows).sum();
        (padded > 0).then(|| rows as f64 / padded as f64)
    }

    pub(super) fn shares(&self) -> Vec<DeviceShares> {
        let shares = self.devices.iter().map(|device| {
            let busy = device.busy.as_secs_f64();
            DeviceShares {
                device: device.device.to_string(),
                busy: busy / (busy + device.waiting.as_secs_f64()).max(1e-9),
                mean_batch: device.rows as f64 / device.batches.max(1) as f64,
            }
        });
        shares.collect()
    }
}

fn add_counters(sum: &mut ThreadCounters, more: &ThreadCounters) {
    sum.batches += more.batches;
    sum.rows += more.rows;
    sum.padded_rows += more.padded_rows;
    sum.busy += more.busy;
    sum.waiting += more.waiting;
}
