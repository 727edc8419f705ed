//! The running generators of a run, as they report themselves every 15 seconds.

use super::disk::Problems;
use engine::files::{now_in, read_whole};
use engine::run::GeneratorPlaces;
use network::DeviceUse;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::SystemTime;

/// A running generator.
#[derive(Debug, Serialize)]
pub(super) struct GeneratorReport {
    pub(super) generator: u32,
    /// The age of the report.
    pub(super) seconds_since: f64,
    #[serde(flatten)]
    pub(super) status: Status,
}

/// The reported part of its status; rates are of its last 15 seconds.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Status {
    #[serde(default)]
    pub(super) worker: String,
    #[serde(default)]
    pub(super) host: String,
    /// Its option `--device`.
    #[serde(default)]
    pub(super) device: String,
    /// `running`, `waiting_for_disk` or `stopping`.
    pub(super) state: String,
    pub(super) waiting_reason: Option<String>,
    /// Since it started.
    pub(super) games: u64,
    pub(super) games_in_flight: u64,
    pub(super) turns_per_second: f64,
    pub(super) evaluations_per_second: f64,
    /// The network that plays.
    pub(super) network: String,
    /// Of its evaluation service.
    pub(super) devices: Vec<DeviceUse>,
    pub(super) rows_waiting: Option<u64>,
}

impl GeneratorReport {
    /// The reports of these generators. One that can't be read is a problem.
    pub(super) fn of(
        places: &GeneratorPlaces,
        at_work: &[u32],
        problems: &mut Problems,
    ) -> Vec<Self> {
        // By the clock of the files: another machine may have written them.
        let now = now_in(&places.root).unwrap_or_else(|_| SystemTime::now());
        let reports = at_work.iter().filter_map(|&generator| {
            let path = places.status(generator);
            match read(&path, now) {
                Ok((status, seconds_since)) => Some(Self {
                    generator,
                    seconds_since,
                    status,
                }),
                Err(error) => {
                    problems.add_unless_gone(&path, &error);
                    None
                }
            }
        });
        reports.collect()
    }
}

fn read(path: &Path, now: SystemTime) -> std::io::Result<(Status, f64)> {
    let bytes = read_whole(path, 1 << 20)?;
    let written = std::fs::metadata(path)?.modified()?;
    let since = now.duration_since(written);
    Ok((
        serde_json::from_slice(&bytes)?,
        since.unwrap_or_default().as_secs_f64(),
    ))
}
