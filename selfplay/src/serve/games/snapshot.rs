//! The newest state of the index, which the thread publishes and requests read.

use super::entry::{GameEntry, IndexedFile, MAX_PROBLEMS};
use engine::record::GameId;
use engine::run::RunDirectory;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

/// What the thread and the requests share.
pub(super) struct Shared {
    pub(super) run: RunDirectory,
    pub(super) stop: AtomicBool,
    snapshot: RwLock<Arc<Snapshot>>,
    revision: AtomicU64,
}

impl Shared {
    pub(super) fn new(run: &RunDirectory) -> Self {
        Self {
            run: run.clone(),
            stop: AtomicBool::new(false),
            snapshot: RwLock::default(),
            revision: AtomicU64::new(0),
        }
    }

    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        let snapshot = self.snapshot.read();
        Arc::clone(&snapshot.unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the state that answers. `has_changed` says whether games or problems differ.
    pub(super) fn publish(&self, snapshot: Snapshot, has_changed: bool) {
        let mut current = self
            .snapshot
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let has_changed = has_changed || current.is_complete != snapshot.is_complete;
        *current = Arc::new(snapshot);
        drop(current);
        if has_changed {
            self.revision.fetch_add(1, Relaxed);
        }
    }

    /// A number that grows whenever an answer may have changed.
    pub(super) fn revision(&self) -> u64 {
        self.revision.load(Relaxed)
    }
}

/// The state of the index at one time.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    /// The files of each source, the oldest first.
    pub(super) sources: BTreeMap<String, Vec<Arc<IndexedFile>>>,
    /// What is wrong with the run as a whole.
    pub(super) problems: Vec<String>,
    /// Whether all files have been read.
    pub(super) is_complete: bool,
    /// How much of the files' bytes has been read, 0 to 1.
    pub(super) indexed_share: f64,
}

impl Snapshot {
    /// The files of a source, the oldest first.
    pub(super) fn files_of(&self, source: &str) -> &[Arc<IndexedFile>] {
        self.sources.get(source).map_or(&[], Vec::as_slice)
    }

    /// A game by its id: of several the first.
    pub(super) fn find(&self, id: GameId, source: &str) -> Option<(&IndexedFile, &GameEntry)> {
        let mut files = self.files_of(source).iter();
        files.find_map(|file| {
            let game = file.games.iter().find(|game| game.id == id)?;
            Some((file.as_ref(), game))
        })
    }

    /// What is wrong with the run as a whole and with a source.
    pub(super) fn problems_of(&self, source: &str) -> Vec<String> {
        let mut problems = self.problems.clone();
        let mut more = 0;
        for file in self.files_of(source) {
            let (kept, not_kept) = file.problems();
            problems.extend_from_slice(kept);
            more += not_kept;
        }
        more += problems.len().saturating_sub(MAX_PROBLEMS) as u64;
        problems.truncate(MAX_PROBLEMS);
        if more > 0 {
            problems.push(format!("and {more} more problems"));
        }
        problems
    }
}
