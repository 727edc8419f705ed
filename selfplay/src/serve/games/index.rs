//! What is asked of the index, and the newest state that answers.

use super::detail::{GameDetail, GamesError};
use super::entry::{GameEntry, IndexedFile, MOST_PROBLEMS};
use super::follower::Follower;
use super::generations::{GenerationColumns, ShowGames};
use super::query::{GamesPage, GamesQuery};
use super::scan::{SELFPLAY, SHOW};
use anyhow::{Context, Result, ensure};
use engine::record::GameId;
use engine::run::{GameSpeed, RunDirectory};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
#[cfg(test)]
use std::time::Instant;
use std::time::{Duration, SystemTime};

/// The games of a run, followed by a thread until this is dropped.
pub(crate) struct GamesIndex {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl GamesIndex {
    /// Begins to index a run. The answers are incomplete until all files have been read.
    ///
    /// # Errors
    /// There is no such folder, or no thread can be started.
    pub(crate) fn open(run: &RunDirectory) -> Result<Self> {
        let root = run.root();
        ensure!(root.is_dir(), "{} is not a folder", root.display());
        let shared = Arc::new(Shared::new(run));
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("games-index".into())
            .spawn(move || Follower::new(&of_thread).follow())
            .context("can't start the thread that indexes games")?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// A page of a source's games. A source that is not there has none.
    pub(crate) fn page(&self, query: &GamesQuery) -> GamesPage {
        GamesPage::of(&self.shared.snapshot(), query)
    }

    /// One game, read and replayed.
    pub(crate) fn detail(&self, id: GameId, source: &str) -> Result<GameDetail, GamesError> {
        let snapshot = self.shared.snapshot();
        let (file, game) = snapshot
            .find(id, source)
            .ok_or_else(|| GamesError::NotFound {
                id,
                of: source.to_owned(),
            })?;
        GameDetail::read(self.shared.run.root(), file, game)
    }

    /// The number of a source's games.
    pub(crate) fn count(&self, source: &str) -> usize {
        let snapshot = self.shared.snapshot();
        let files = snapshot.files_of(source).iter();
        files.map(|file| file.games.len()).sum()
    }

    /// The speed at which self-play's games come.
    pub(crate) fn speed(&self) -> Option<GameSpeed> {
        let snapshot = self.shared.snapshot();
        let files = snapshot.files_of(SELFPLAY).iter();
        let shards = files.map(|file| {
            let written = SystemTime::UNIX_EPOCH + Duration::from_nanos(file.file.key.time);
            (written, file.games.len() as f64)
        });
        GameSpeed::of(&shards.collect::<Vec<_>>(), SystemTime::now())
    }

    /// The newest game to show of each network.
    pub(crate) fn show_games(&self) -> ShowGames {
        ShowGames::of(self.shared.snapshot().files_of(SHOW))
    }

    /// Self-play's games in numbers, for each network.
    pub(crate) fn generations(&self) -> GenerationColumns {
        GenerationColumns::of(self.shared.snapshot().files_of(SELFPLAY))
    }

    /// A number that grows whenever an answer may have changed.
    pub(crate) fn revision(&self) -> u64 {
        self.shared.revision.load(Relaxed)
    }

    /// Waits until everything that is there now is indexed. False if that takes longer.
    #[cfg(test)]
    pub(crate) fn wait_complete(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut rounds = self.shared.rounds();
        // A round that has begun may have looked already.
        let due = rounds.begun + 1;
        while rounds.completed < due {
            rounds.is_wanted = true;
            self.shared.changed.notify_all();
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.shared.changed.wait_timeout(rounds, left);
            rounds = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

impl Drop for GamesIndex {
    fn drop(&mut self) {
        self.shared.stop.store(true, Relaxed);
        // Under the lock: the thread is either waiting or about to look.
        drop(self.shared.rounds());
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It has nothing to say; a panic has been printed.
            let _ = thread.join();
        }
    }
}

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
    fn new(run: &RunDirectory) -> Self {
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

    fn snapshot(&self) -> Arc<Snapshot> {
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
    fn find(&self, id: GameId, source: &str) -> Option<(&IndexedFile, &GameEntry)> {
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
        more += problems.len().saturating_sub(MOST_PROBLEMS) as u64;
        problems.truncate(MOST_PROBLEMS);
        if more > 0 {
            problems.push(format!("and {more} more problems"));
        }
        problems
    }
}
