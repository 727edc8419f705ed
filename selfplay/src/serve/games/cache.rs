//! The index on the disk: `cache/games.index` in the run, so that a restart does not read every shard again.
//!
//! It is bincode with its BLAKE3 hash behind it: small, since all of it is in memory while it is written. Nothing depends on it: a file
//! that can't be read, is damaged or of another version counts as none.

use super::entry::IndexedFile;
use bincode::config::{Configuration, standard};
use engine::files::{read_whole, write_whole};
use engine::record::FORMAT_VERSION;
use engine::run::RunDirectory;
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// It changes with the form of what is kept, and with what is read from games.
const VERSION: u32 = 2;

const FORMAT: Configuration = standard();

/// The least time between two writes.
const INTERVAL: Duration = Duration::from_secs(600);

/// The most bytes of the file: a game takes about 25.
const MAX_BYTES: u64 = 1 << 30;

/// What the file holds; borrowed for writing, owned when read.
#[derive(Serialize, Deserialize)]
struct Kept<File> {
    version: u32,
    /// What is wrong with a shard depends on it.
    shard_format: u32,
    files: Vec<File>,
}

/// The file, and when it is due.
pub(super) struct Cache {
    path: PathBuf,
    /// Whether the index has changed since it was written or read.
    is_due: bool,
    not_before: Instant,
    /// Why it could not be written.
    problem: Option<String>,
}

impl Cache {
    pub(super) fn new(run: &RunDirectory) -> Self {
        Self {
            path: run.cache().join("games.index"),
            is_due: false,
            not_before: Instant::now(),
            problem: None,
        }
    }

    /// What was kept; nothing if there is no such file of this version.
    pub(super) fn load(&self) -> Vec<IndexedFile> {
        let read = || {
            let bytes = read_whole(&self.path, MAX_BYTES).ok()?;
            let (contents, hash) = bytes.split_last_chunk()?;
            if blake3::hash(contents) != *hash {
                return None;
            }
            let decoded = bincode::serde::decode_from_slice(contents, FORMAT);
            let (kept, _): (Kept<IndexedFile>, _) = decoded.ok()?;
            let is_current = (kept.version, kept.shard_format) == (VERSION, FORMAT_VERSION);
            is_current.then_some(kept.files)
        };
        read().unwrap_or_default()
    }

    /// Takes note that the index has changed.
    pub(super) fn set_due(&mut self) {
        self.is_due = true;
    }

    /// Writes the whole index, if it has changed and the last write is long enough ago.
    pub(super) fn write_if_due<'a>(&mut self, files: impl Iterator<Item = &'a Arc<IndexedFile>>) {
        if Instant::now() >= self.not_before {
            self.write_changes(files);
        }
    }

    /// Writes the whole index, if it has changed.
    pub(super) fn write_changes<'a>(&mut self, files: impl Iterator<Item = &'a Arc<IndexedFile>>) {
        if !self.is_due {
            return;
        }
        let begun = Instant::now();
        let written = self.write(files);
        self.is_due = written.is_err();
        self.problem = written.err().map(|error| {
            format!("cache/games.index: {error}; the games will be indexed again at the next start")
        });
        // A very large index takes at most a hundredth of the time.
        self.not_before = begun + INTERVAL.max(100 * begun.elapsed());
    }

    fn write<'a>(&self, files: impl Iterator<Item = &'a Arc<IndexedFile>>) -> io::Result<()> {
        let files = files.map(Arc::as_ref).filter(|file| !file.may_recover);
        let kept = Kept {
            version: VERSION,
            shard_format: FORMAT_VERSION,
            files: files.collect(),
        };
        let mut bytes = bincode::serde::encode_to_vec(&kept, FORMAT).map_err(io::Error::other)?;
        bytes.extend_from_slice(blake3::hash(&bytes).as_bytes());
        // The run's own folder is never made: it may have been moved away.
        match std::fs::create_dir(engine::files::folder_of(&self.path)) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        write_whole(&self.path, &bytes)
    }

    /// Why it could not be written.
    pub(super) fn problem(&self) -> Option<&String> {
        self.problem.as_ref()
    }
}
