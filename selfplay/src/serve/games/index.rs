//! What is asked of the index, and the newest state that answers.

use super::detail::GameDetail;
use super::files_watcher::FilesWatcher;
use super::generations::{GenerationColumns, ShowGames};
use super::query::{GamesPage, GamesQuery};
use super::scan::{SELFPLAY, SHOW};
use super::snapshot::Shared;
use crate::serve::error::{ApiError, ApiResult};
use anyhow::{Context, Result, ensure};
use engine::record::GameId;
use engine::run::{GameSpeed, RunDirectory};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

/// The games of a run, followed by a thread until this is dropped.
pub(crate) struct GamesIndex {
    shared: Arc<Shared>,
    /// The thread, and what asks it for a look at once.
    thread: Option<(Sender<Sender<()>>, JoinHandle<()>)>,
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
        let (sender, requests) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("games-index".into())
            .spawn(move || FilesWatcher::new(&of_thread).follow(&requests))
            .context("can't start the thread that indexes games")?;
        Ok(Self {
            shared,
            thread: Some((sender, thread)),
        })
    }

    /// A page of a source's games. A source that is not there has none.
    pub(crate) fn page(&self, query: &GamesQuery) -> GamesPage {
        GamesPage::of(&self.shared.snapshot(), query)
    }

    /// One game, read and replayed.
    ///
    /// # Errors
    /// It is missing if it is not indexed, or those of [`GameDetail::read`].
    pub(crate) fn detail(&self, id: GameId, source: &str) -> ApiResult<GameDetail> {
        let snapshot = self.shared.snapshot();
        let (file, game) = snapshot.find(id, source).ok_or_else(|| {
            ApiError::missing(format!(
                "there is no game {id} in the source `{source}`, or it is not indexed yet"
            ))
        })?;
        GameDetail::read(self.shared.run.root(), file, game)
    }

    /// The number of a source's games.
    pub(crate) fn count(&self, source: &str) -> usize {
        let snapshot = self.shared.snapshot();
        let files = snapshot.files_of(source).iter();
        files.map(|file| file.games.len()).sum()
    }

    /// The speed at which self-play's games come, imported ones left aside.
    pub(crate) fn speed(&self, now: SystemTime) -> Option<GameSpeed> {
        let snapshot = self.shared.snapshot();
        let files = snapshot.files_of(SELFPLAY).iter();
        // Imported games have no networks.
        let played = files.filter(|file| file.networks.iter().any(|names| !names.is_empty()));
        let shards = played.map(|file| {
            let written = SystemTime::UNIX_EPOCH + Duration::from_nanos(file.file.key.time);
            (written, file.games.len() as f64)
        });
        GameSpeed::of(&shards.collect::<Vec<_>>(), now)
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
        self.shared.revision()
    }

    /// Waits until everything that is there now is indexed. False if that takes longer.
    #[cfg(test)]
    pub(crate) fn wait_complete(&self, timeout: Duration) -> bool {
        let (done, end) = mpsc::channel();
        if let Some((sender, _)) = &self.thread {
            let _ = sender.send(done);
        }
        end.recv_timeout(timeout).is_ok()
    }
}

impl Drop for GamesIndex {
    fn drop(&mut self) {
        self.shared.stop.store(true, Relaxed);
        if let Some((sender, thread)) = self.thread.take() {
            drop(sender);
            // It has nothing to say; a panic has been printed.
            let _ = thread.join();
        }
    }
}
