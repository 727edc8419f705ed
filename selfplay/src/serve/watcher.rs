//! Tells streams of events which parts of a run have changed.

use super::games::GamesIndex;
use anyhow::{Context, Result};
use engine::run::RunDirectory;
use serde::Serialize;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};
use tokio::sync::watch;

/// The time between two looks.
const LOOK_TIME: Duration = Duration::from_secs(1);

/// The time between two looks at whether to end.
const END_TIME: Duration = Duration::from_millis(100);

/// The parts that have changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Changes {
    what: Vec<&'static str>,
}

/// Looks at a run's files while a stream waits for changes.
pub(super) struct Watcher {
    changes: Arc<watch::Sender<Changes>>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    pub(super) fn start(run: RunDirectory, games: Arc<GamesIndex>) -> Result<Self> {
        let changes = Arc::new(watch::Sender::new(Changes::default()));
        let ends = Arc::new(AtomicBool::new(false));
        let (sender, end) = (Arc::clone(&changes), Arc::clone(&ends));
        let thread = std::thread::Builder::new()
            .name("run-watcher".into())
            .spawn(move || watch_run(&run, &games, &sender, &end))
            .context("can't start the thread that watches the run")?;
        Ok(Self {
            changes,
            ends,
            thread: Some(thread),
        })
    }

    pub(super) fn changes(&self) -> watch::Receiver<Changes> {
        self.changes.subscribe()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.ends.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn watch_run(
    run: &RunDirectory,
    games: &GamesIndex,
    changes: &watch::Sender<Changes>,
    ends: &AtomicBool,
) {
    let mut before = Seen::default();
    while !ends.load(Relaxed) {
        if changes.receiver_count() > 0 {
            let now = Seen::of(run, games);
            let what = now.changed_since(&before);
            if !what.is_empty() {
                changes.send_replace(Changes { what });
            }
            before = now;
        }
        let mut slept = Duration::ZERO;
        while slept < LOOK_TIME && !ends.load(Relaxed) {
            std::thread::sleep(END_TIME);
            slept += END_TIME;
        }
    }
}

/// The times of what was last seen.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    run: Vec<Option<SystemTime>>,
    log: Option<SystemTime>,
    games: u64,
}

impl Seen {
    fn of(run: &RunDirectory, games: &GamesIndex) -> Self {
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

    fn changed_since(&self, before: &Self) -> Vec<&'static str> {
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
