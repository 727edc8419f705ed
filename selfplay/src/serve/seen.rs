//! What has changed in a run since a look at its files.

use super::games::GamesIndex;
use engine::run::RunDirectory;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

/// The times of what was last seen.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Seen {
    run: Vec<Option<SystemTime>>,
    log: Option<SystemTime>,
    games: u64,
}

impl Seen {
    pub(super) fn of(run: &RunDirectory, games: &GamesIndex) -> Self {
        let generators = run.generators();
        let status = fs::read_dir(&generators).into_iter().flatten().flatten();
        let status = status.flat_map(|entry| {
            ["status.json", "done"].map(|name| modified(&entry.path().join(name)))
        });
        let files = [
            run.networks(),
            run.ratings(),
            run.clock(),
            run.config(),
            run.pit(),
            generators.clone(),
        ];
        Self {
            run: files
                .iter()
                .map(|path| modified(path))
                .chain(status)
                .collect(),
            log: modified(&run.train_log()),
            games: games.revision(),
        }
    }

    /// The names of the parts that differ.
    pub(super) fn changed_since(&self, before: &Self) -> Vec<&'static str> {
        let parts = [
            ("run", self.run != before.run || self.log != before.log),
            (
                "series",
                self.log != before.log || self.games != before.games,
            ),
            ("games", self.games != before.games),
        ];
        let changed = parts.iter().filter(|(_, has_changed)| *has_changed);
        changed.map(|(name, _)| *name).collect()
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}
