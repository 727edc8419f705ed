//! The use of the devices while self-play was measured.

use crate::worker::player::Player;
use network::{DeviceCounters, DeviceUse, EvaluationService};
use std::time::{Duration, Instant};

/// The devices' totals at a moment.
pub(super) struct Moment {
    at: Instant,
    devices: Vec<DeviceCounters>,
}

impl Moment {
    /// Now; without devices where workers evaluate by themselves.
    pub(super) fn of(player: &Player) -> Self {
        let service = player.service();
        Self {
            at: Instant::now(),
            devices: service.map_or_else(Vec::new, EvaluationService::device_counters),
        }
    }
}

/// The devices' work in several slices of time together.
#[derive(Debug, Default)]
pub(super) struct DeviceWork {
    time: Duration,
    devices: Vec<DeviceCounters>,
}

impl DeviceWork {
    /// Adds the work between two moments.
    pub(super) fn add(&mut self, before: &Moment, now: &Moment) {
        self.time += now.at - before.at;
        let done = DeviceCounters::between(&before.devices, &now.devices);
        match self.devices.is_empty() {
            true => self.devices = done,
            false => self
                .devices
                .iter_mut()
                .zip(&done)
                .for_each(|(sum, more)| sum.add(more)),
        }
    }

    /// The share of the computed rows that were requested.
    pub(super) fn fill(&self) -> Option<f64> {
        let rows: u64 = self.devices.iter().map(|device| device.rows).sum();
        let padded: u64 = self.devices.iter().map(|device| device.padded_rows).sum();
        (padded > 0).then(|| rows as f64 / padded as f64)
    }

    pub(super) fn shares(&self) -> Vec<DeviceUse> {
        let seconds = self.time.as_secs_f64();
        let devices = self.devices.iter();
        devices.map(|device| device.in_time(seconds)).collect()
    }
}
