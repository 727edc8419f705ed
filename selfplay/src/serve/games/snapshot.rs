//! The newest state of the index, which the thread publishes and requests read.

use super::entry::{GameEntry, IndexedFile, MAX_PROBLEMS};
use engine::record::GameId;
use engine::run::RunDirectory;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;
#[cfg(test)]
use std::time::Instant;

/// What the thread and the requests share.
pub(super) struct Shared {
    pub(super) run: RunDirectory,
    pub(super) stop: AtomicBool,
    snapshot: RwLock<Arc<Snapshot>>,
    revision: AtomicU64,
    rounds: Mutex<Rounds>,
    /// A round has ended or is wanted, or the index is to stop.
    changed: Condvar,
}

/// The looks at the folders, counted.
#[derive(Default)]
struct Rounds {
    begun: u64,
    completed: u64,
    /// Whether the next one must not wait.
    is_wanted: bool,
}

impl Shared {
    pub(super) fn new(run: &RunDirectory) -> Self {
        Self {
            run: run.clone(),
            stop: AtomicBool::new(false),
            snapshot: RwLock::default(),
            revision: AtomicU64::new(0),
            rounds: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn rounds(&self) -> MutexGuard<'_, Rounds> {
        self.rounds.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Ends the thread's rounds.
    pub(super) fn stop(&self) {
        self.stop.store(true, Relaxed);
        // Under the lock: the thread is either waiting or about to look.
        drop(self.rounds());
        self.changed.notify_all();
    }

    /// Waits until everything that is there now is indexed. False if that takes longer.
    #[cfg(test)]
    pub(super) fn wait_complete(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut rounds = self.rounds();
        // A round that has begun may have looked already.
        let due = rounds.begun + 1;
        while rounds.completed < due {
            rounds.is_wanted = true;
            self.changed.notify_all();
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.changed.wait_timeout(rounds, left);
            rounds = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    pub(super) fn begin_round(&self) {
        let mut rounds = self.rounds();
        rounds.begun += 1;
        rounds.is_wanted = false;
    }

    /// Ends a round and waits for the next one. False once the index is to stop.
    pub(super) fn end_round(&self, pause: Duration) -> bool {
        let mut rounds = self.rounds();
        rounds.completed = rounds.begun;
        self.changed.notify_all();
        let waits = |rounds: &mut Rounds| !rounds.is_wanted && !self.stop.load(Relaxed);
        let waited = self.changed.wait_timeout_while(rounds, pause, waits);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        !self.stop.load(Relaxed)
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
