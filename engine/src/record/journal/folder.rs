//! The files of a folder of journals: their names, which of them count, and the locks.

use super::disk::Disk;
use super::error::{JournalError, JournalFault};
use crate::files::{self, FileLock};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where a generator's journal is, and what it is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalPlace {
    /// The folder of the run's journals, which is there.
    pub journal: PathBuf,
    /// The folder of the run's shards.
    pub shards: PathBuf,
    /// The generator's number.
    pub generator: u32,
    /// A new file is begun when the last one has more bytes than this and twice what it began with.
    pub large: u64,
    /// How often it is flushed to the disk while it is written: what a power cut may take.
    pub sync_every: Duration,
}

impl JournalPlace {
    /// A journal that is flushed every second, and whose files are large at 16 MiB: some 25,000 turns.
    pub fn new(journal: impl Into<PathBuf>, shards: impl Into<PathBuf>, generator: u32) -> Self {
        Self {
            journal: journal.into(),
            shards: shards.into(),
            generator,
            large: 16 << 20,
            sync_every: Duration::from_secs(1),
        }
    }
}

/// What there is of a generator's journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nothing: it has begun no game.
    Unused,
    /// A file of its own, which holds the games that it has begun.
    Begun,
    /// Only what it has taken over.
    Adopting,
}

/// A journal's file. The order is that of generators, then of sequence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct JournalFile {
    pub(super) generator: u32,
    pub(super) sequence: u32,
    /// Whether another generator wrote it. What a generator wrote itself makes its earlier files void.
    pub(super) adopted: bool,
    pub(super) path: PathBuf,
}

impl JournalFile {
    pub(super) fn new(folder: &Path, generator: u32, sequence: u32, adopted: bool) -> Self {
        let ending = if adopted { "adopted" } else { "journal" };
        Self {
            generator,
            sequence,
            adopted,
            path: folder.join(format!("{generator:03}-{sequence:06}.{ending}")),
        }
    }

    /// The file of a path that ends as journals do.
    fn of_path(path: &Path) -> Option<Self> {
        let adopted = match path.extension()?.to_str()? {
            "adopted" => true,
            "journal" => false,
            _ => return None,
        };
        let (generator, sequence) = path.file_stem()?.to_str()?.split_once('-')?;
        let (generator, sequence) = (generator.parse().ok()?, sequence.parse().ok()?);
        // Written back, so that each file has one name.
        Some(Self::new(path.parent()?, generator, sequence, adopted))
            .filter(|file| file.path == path)
    }
}

/// All files in a folder that end as journals do, in order. One that is not named as a journal is an error.
pub(super) fn list_files(folder: &Path) -> Result<Vec<JournalFile>, JournalError> {
    let mut list = Vec::new();
    for path in entries(folder)? {
        let ending = path.extension().and_then(|ending| ending.to_str());
        if matches!(ending, Some("journal" | "adopted")) {
            match JournalFile::of_path(&path) {
                Some(file) => list.push(file),
                None => return Err(JournalError::of_file(&path, JournalFault::Name)),
            }
        }
    }
    list.sort();
    Ok(list)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, JournalError> {
    files::entries(folder).map_err(|error| JournalError::of_file(folder, error))
}

/// A generator's files: those that are void, because a later one holds all that mattered in them, and those that count.
#[derive(Debug, Default)]
pub(super) struct Owned {
    pub(super) void: Vec<JournalFile>,
    pub(super) current: Vec<JournalFile>,
}

impl Owned {
    /// Reads the folder anew. What was left under a temporary name is void.
    pub(super) fn list(folder: &Path, generator: u32) -> Result<Self, JournalError> {
        let mut void = list_files(folder)?;
        void.retain(|file| file.generator == generator);
        let mut owned = Self::of_files(void);
        owned.void.extend(list_temporary(folder, generator)?);
        Ok(owned)
    }

    /// Parts one generator's files, which are in order.
    pub(super) fn of_files(mut void: Vec<JournalFile>) -> Self {
        let first = void.iter().rposition(|file| !file.adopted).unwrap_or(0);
        let current = void.split_off(first);
        Self { void, current }
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.void.is_empty() && self.current.is_empty()
    }

    /// What they say about the generator.
    pub(super) fn standing(&self) -> Standing {
        if self.current.iter().any(|file| !file.adopted) {
            Standing::Begun
        } else if self.current.is_empty() {
            Standing::Unused
        } else {
            Standing::Adopting
        }
    }

    /// All files, the void ones first.
    pub(super) fn all(self) -> Vec<JournalFile> {
        self.void.into_iter().chain(self.current).collect()
    }

    /// The number of the generator's next file.
    pub(super) fn next_sequence(&self, folder: &Path, generator: u32) -> Result<u32, JournalError> {
        let last = self.current.last().map(|file| file.sequence);
        last.map_or(Some(0), |last| last.checked_add(1))
            .ok_or_else(|| JournalError::of_file(folder, JournalFault::Full { generator }))
    }

    /// Removes the void files, for good once this returns.
    pub(super) fn remove_void(
        &mut self,
        disk: &dyn Disk,
        folder: &Path,
    ) -> Result<(), JournalError> {
        for file in self.void.drain(..) {
            disk.remove(&file.path)
                .map_err(|error| JournalError::of_file(&file.path, error))?;
        }
        disk.sync_folder_of(&folder.join("any"))
            .map_err(|error| JournalError::of_file(folder, error))
    }
}

/// The files that a killed generator had not completed.
fn list_temporary(folder: &Path, generator: u32) -> Result<Vec<JournalFile>, JournalError> {
    let mut list = Vec::new();
    for path in entries(folder)? {
        if path.extension().is_some_and(|ending| ending == "tmp") {
            let mut name = path.with_extension("");
            if name.extension().is_some_and(|ending| ending == "renewal") {
                name.set_extension("");
            }
            let target = JournalFile::of_path(&name);
            let target = target.filter(|target| target.generator == generator);
            list.extend(target.map(|target| JournalFile { path, ..target }));
        }
    }
    Ok(list)
}

/// The file of the lock of a generator's journal.
pub(crate) fn lock_path(folder: &Path, generator: u32) -> PathBuf {
    folder.join(format!("{generator:03}.lock"))
}

/// The lock of a generator's journal, `NNN.lock`.
#[derive(Debug)]
pub(super) struct Lock {
    lock: FileLock,
    path: PathBuf,
    generator: u32,
}

impl Lock {
    /// Takes a lock, or none if another holds it for longer than a moment: a generator that adopts a journal holds its lock so long.
    pub(super) fn take(folder: &Path, generator: u32) -> Result<Option<Self>, JournalError> {
        let path = lock_path(folder, generator);
        match FileLock::take_soon(&path) {
            Ok(lock) => Ok(lock.map(|lock| Self {
                lock,
                path,
                generator,
            })),
            Err(error) => Err(JournalError::of_file(&path, error)),
        }
    }

    /// The lock, unless its generator's journal was taken over.
    pub(super) fn check_own(mut self) -> Result<Self, JournalError> {
        let generator = self.generator;
        if self.is_taken_over()? {
            Err(self.error(JournalFault::TakenOver { generator }))
        } else {
            Ok(self)
        }
    }

    fn is_taken_over(&mut self) -> Result<bool, JournalError> {
        let mut text = Vec::new();
        match self.lock.as_file().take(64).read_to_end(&mut text) {
            Ok(_) => Ok(!text.is_empty()),
            Err(error) => Err(self.error(error)),
        }
    }

    /// Makes the number unusable: its counters would not be known any more, and a game's identity is never used twice.
    pub(super) fn mark_taken_over(&mut self, by: u32) -> Result<(), JournalError> {
        if !self.is_taken_over()? {
            let text = format!("generator {} was taken over by {by:03}\n", self.generator);
            let written = files::write_all(self.lock.as_file(), text.as_bytes());
            written
                .and_then(|()| files::sync(self.lock.as_file()))
                .map_err(|error| self.error(error))?;
        }
        Ok(())
    }

    fn error(&self, fault: impl Into<JournalFault>) -> JournalError {
        JournalError::of_file(&self.path, fault)
    }
}
