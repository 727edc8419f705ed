//! The running generators of a run, as they report themselves every 15 seconds.

use super::disk::Problems;
use engine::files::now_in;
use engine::run::{GeneratorPaths, GeneratorStatus};
use serde::Serialize;
use std::time::SystemTime;

/// A running generator.
#[derive(Debug, Serialize)]
pub(super) struct GeneratorReport {
    pub(super) generator: u32,
    /// The age of the report.
    pub(super) seconds_since: f64,
    #[serde(flatten)]
    pub(super) status: GeneratorStatus,
}

impl GeneratorReport {
    /// The reports of these generators. One that can't be read is a problem.
    pub(super) fn of(
        paths: &GeneratorPaths,
        at_work: &[u32],
        problems: &mut Problems,
    ) -> Vec<Self> {
        // By the clock of the files: another machine may have written them.
        let now = now_in(&paths.root).unwrap_or_else(|_| SystemTime::now());
        let reports = at_work.iter().filter_map(|&generator| {
            let status = problems.or_default(GeneratorStatus::read(paths, generator))?;
            let written =
                std::fs::metadata(paths.status(generator)).and_then(|about| about.modified());
            Some(Self {
                generator,
                seconds_since: now
                    .duration_since(written.ok()?)
                    .unwrap_or_default()
                    .as_secs_f64(),
                status,
            })
        });
        reports.collect()
    }
}
