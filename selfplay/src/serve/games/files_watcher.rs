//! The thread that follows a run's files.
//!
//! ```text
//! cache ── files ── look (scan) ── forget what is gone ── read what is new, the newest first ── publish ── cache
//!                    └──────────────────────── every second, until the index is dropped ────────────────┘
//! ```

use super::cache::Cache;
use super::entry::{FileKind, FoundFile, IndexedFile};
use super::matches::index_match;
use super::scan::Scan;
use super::shards::index_shard;
use super::snapshot::{Shared, Snapshot};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// The least time between two looks at the folders.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The most of the time that looking takes: one in so many.
const LOOKING_SHARE: u32 = 20;

/// The time between two states that are shown while files are read.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(500);

/// The time after which files are read again that could not be read.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// Follows the files of a run.
pub(super) struct FilesWatcher<'a> {
    shared: &'a Shared,
    cache: Cache,
    /// By path.
    files: BTreeMap<String, Arc<IndexedFile>>,
    /// What the last look has found to be wrong.
    problems: Vec<String>,
    /// Whether games or problems differ from those that were published.
    has_changed: bool,
    published: Instant,
    /// When files that could not be read were last tried.
    tried: Instant,
}

impl<'a> FilesWatcher<'a> {
    pub(super) fn new(shared: &'a Shared) -> Self {
        Self {
            shared,
            cache: Cache::new(&shared.run),
            files: BTreeMap::new(),
            problems: Vec::new(),
            has_changed: false,
            published: Instant::now(),
            tried: Instant::now(),
        }
    }

    /// Follows the files until the sender of requests is dropped. A request brings the next look forward, and is answered after it.
    pub(super) fn follow(mut self, requests: &Receiver<Sender<()>>) {
        for file in self.cache.load() {
            self.files.insert(file.file.path.clone(), Arc::new(file));
        }
        let mut request: Option<Sender<()>> = None;
        loop {
            let begun = Instant::now();
            let scan = Scan::of(&self.shared.run);
            let pause = POLL_INTERVAL.max(LOOKING_SHARE * begun.elapsed());
            self.update(scan);
            if let Some(request) = request {
                let _ = request.send(());
            }
            request = match requests.recv_timeout(pause) {
                Ok(request) => Some(request),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
        }
        self.cache.write_changes(self.files.values());
    }

    /// Brings the index up to what was found.
    fn update(&mut self, scan: Scan) {
        self.forget_missing(&scan);
        self.has_changed |= self.problems != scan.problems;
        self.problems = scan.problems;
        let bytes_of = |files: &[FoundFile]| files.iter().map(|file| file.key.bytes).sum::<u64>();
        let all = bytes_of(&scan.files);
        let due = self.due(scan.files);
        let mut left = bytes_of(&due);
        // What is soon read is not shown as missing.
        self.published = Instant::now();
        for file in due {
            left -= file.key.bytes;
            self.read(file);
            if self.shared.stop.load(Relaxed) {
                return;
            }
            if self.published.elapsed() >= PUBLISH_INTERVAL {
                self.publish(1.0 - left as f64 / all.max(1) as f64, false);
            }
        }
        let problem = self.cache.problem().cloned();
        self.cache.write_if_due(self.files.values());
        self.has_changed |= self.cache.problem() != problem.as_ref();
        self.publish(1.0, true);
    }

    fn forget_missing(&mut self, scan: &Scan) {
        let there: HashSet<&str> = scan.files.iter().map(|file| file.path.as_str()).collect();
        let is_unread = |path: &str| scan.unread.iter().any(|part| path.starts_with(part));
        let before = self.files.len();
        self.files
            .retain(|path, _| there.contains(path.as_str()) || is_unread(path));
        self.note_change(self.files.len() != before);
    }

    /// The files to read, the newest first.
    fn due(&mut self, found: Vec<FoundFile>) -> Vec<FoundFile> {
        let tries_again = self.tried.elapsed() >= RETRY_INTERVAL;
        if tries_again {
            self.tried = Instant::now();
        }
        let mut due = found;
        due.retain(|file| {
            let known = self.files.get(&file.path);
            known.is_none_or(|known| known.file != *file || known.may_recover && tries_again)
        });
        due.sort_by_key(|file| Reverse(file.key.time));
        due
    }

    /// Reads a file. One that is gone meanwhile is forgotten.
    fn read(&mut self, file: FoundFile) {
        let (root, stop) = (self.shared.run.root(), &self.shared.stop);
        let before = self.files.get(&file.path).map(Arc::as_ref);
        let indexed = match file.kind {
            FileKind::Shard => index_shard(root, &file, stop),
            FileKind::Results => index_match(root, &file, before, stop),
        };
        let has_changed = before != indexed.as_ref();
        match indexed {
            Some(indexed) => drop(self.files.insert(file.path, Arc::new(indexed))),
            None => drop(self.files.remove(&file.path)),
        }
        self.note_change(has_changed);
    }

    fn note_change(&mut self, has_changed: bool) {
        if has_changed {
            self.has_changed = true;
            self.cache.set_due();
        }
    }

    /// Shows the present state.
    fn publish(&mut self, indexed_share: f64, is_complete: bool) {
        let mut sources: BTreeMap<String, Vec<Arc<IndexedFile>>> = BTreeMap::new();
        for file in self.files.values() {
            let files = sources.entry(file.file.source.clone()).or_default();
            files.push(Arc::clone(file));
        }
        for files in sources.values_mut() {
            // Shards of one time by number.
            files.sort_by_key(|file| (file.file.key.time, file.file.path.len()));
        }
        let problems = self.problems.iter().chain(self.cache.problem());
        let snapshot = Snapshot {
            sources,
            problems: problems.cloned().collect(),
            is_complete,
            indexed_share,
        };
        let has_changed = std::mem::take(&mut self.has_changed);
        self.shared.publish(snapshot, has_changed);
        self.published = Instant::now();
    }
}
