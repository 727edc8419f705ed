//! Writing one file of a journal: whole under a temporary name, then at its end, at frame borders only.

use super::disk::{Disk, Storage};
use super::entry::{Entry, FileHeader, MAGIC, push_frame};
use super::error::JournalError;
use super::folder::JournalFile;
use super::games::{FORMAT_VERSION, GameInFlight};
use crate::record::game::TurnRecord;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A new file is written in pieces of at least so many bytes.
const PIECE_BYTES: usize = 1 << 20;

/// The end of a file, where whole frames are added.
pub(super) struct Appender {
    pub(super) storage: Arc<dyn Storage>,
    /// The bytes of the whole frames.
    pub(super) length: u64,
    /// The bytes that are known to be on the disk.
    pub(super) synced: u64,
    /// The bytes behind those. What a failed flush leaves of them in the file is unknown.
    pub(super) tail: Vec<u8>,
    /// What a frame in the file says of `synced`.
    stated_synced: u64,
    /// Whether a failed write may have left part of a frame behind the whole ones.
    torn: bool,
}

impl Appender {
    /// The end of a file that is on the disk up to its end, and says so.
    fn new(storage: Arc<dyn Storage>, length: u64) -> Self {
        Self {
            storage,
            length,
            synced: length,
            tail: Vec::new(),
            stated_synced: length,
            torn: false,
        }
    }

    /// Adds the frame of a payload: it has reached the operating system when this returns, or it doesn't count and the file
    /// ends where it ended before, or will once the next call can cut it.
    pub(super) fn append(&mut self, payload: &[u8]) -> io::Result<()> {
        if self.torn {
            // What is written next may be shorter.
            self.storage.truncate(self.length)?;
            self.torn = false;
        }
        let before = self.tail.len();
        if self.synced > self.stated_synced {
            let bytes = self.synced;
            let entry: Entry = Entry::Synced { bytes };
            // A payload of 12 bytes has room.
            if let Ok(payload) = entry.payload() {
                push_frame(&payload, self.length, &mut self.tail);
            }
        }
        let offset = self.length + (self.tail.len() - before) as u64;
        push_frame(payload, offset, &mut self.tail);
        let frames = &self.tail[before..];
        match self.storage.write_at(self.length, frames) {
            Ok(()) => {
                self.length += frames.len() as u64;
                self.stated_synced = self.synced;
                Ok(())
            }
            Err(error) => {
                self.tail.truncate(before);
                self.torn = self.storage.truncate(self.length).is_err();
                Err(error)
            }
        }
    }

    /// The first so many bytes are on the disk now.
    pub(super) fn has_synced(&mut self, length: u64) {
        let more = length.saturating_sub(self.synced);
        // What has been synced had been appended.
        self.tail.drain(..(more as usize).min(self.tail.len()));
        self.synced += more;
    }
}

/// A new file of a journal, under a temporary name.
pub(super) struct NewFile {
    storage: Arc<dyn Storage>,
    /// The bytes that have been written.
    written: u64,
    /// Those that are to be written next.
    piece: Vec<u8>,
    path: PathBuf,
    target: PathBuf,
}

impl NewFile {
    /// Begins the file that is to be `target`, under a name with an ending of its own: [`UNFINISHED`] or [`RENEWAL`]. Only the holder of
    /// the generator's lock does so.
    pub(super) fn create(
        disk: &dyn Disk,
        target: &JournalFile,
        ending: &str,
        header: FileHeader,
    ) -> Result<Self, JournalError> {
        let path = temporary(&target.path, ending);
        let storage = disk
            .create(&path)
            .map_err(|error| JournalError::of_file(&path, error))?;
        let mut begun = Self {
            storage,
            written: 0,
            piece: [&MAGIC[..], &FORMAT_VERSION.to_le_bytes()].concat(),
            path,
            target: target.path.clone(),
        };
        begun.push(&Entry::<TurnRecord>::Header(header))?;
        Ok(begun)
    }

    pub(super) fn push<Turn: serde::Serialize>(
        &mut self,
        entry: &Entry<Turn>,
    ) -> Result<(), JournalError> {
        let payload = entry
            .payload()
            .map_err(|fault| JournalError::of_file(&self.path, fault))?;
        push_frame(&payload, self.length(), &mut self.piece);
        if self.piece.len() < PIECE_BYTES {
            Ok(())
        } else {
            self.write()
        }
    }

    /// Adds a game and its turns so far.
    pub(super) fn push_game(&mut self, game: &GameInFlight) -> Result<(), JournalError> {
        let id = game.beginning.id;
        self.push::<TurnRecord>(&Entry::Begin(game.beginning))?;
        for (place, evaluator) in (0..).zip(&game.evaluators) {
            self.push::<TurnRecord>(&Entry::Evaluator {
                game: id,
                place,
                evaluator: evaluator.clone(),
            })?;
        }
        for (number, turn) in (0..).zip(&game.turns) {
            self.push(&Entry::Turn {
                game: id,
                number,
                turn,
            })?;
        }
        Ok(())
    }

    fn length(&self) -> u64 {
        self.written + self.piece.len() as u64
    }

    fn write(&mut self) -> Result<(), JournalError> {
        let written = self.storage.write_at(self.written, &self.piece);
        written.map_err(|error| JournalError::of_file(&self.path, error))?;
        self.written = self.length();
        self.piece.clear();
        Ok(())
    }

    /// Flushes what there is so far.
    pub(super) fn sync(&mut self) -> Result<(), JournalError> {
        self.write()?;
        let synced = self.storage.sync();
        synced.map_err(|error| JournalError::of_file(&self.path, error))
    }

    /// Says in the file that all of it is on the disk, which is true once it has its name, and sees to it.
    pub(super) fn complete(&mut self) -> Result<(), JournalError> {
        let bytes = self.length();
        self.push(&Entry::<TurnRecord>::Synced { bytes })?;
        self.sync()
    }

    /// Gives the file up: another took its place. Where it can't be removed, the generator's next start does so.
    pub(super) fn discard(self, disk: &dyn Disk) {
        let _ = disk.remove(&self.path);
    }

    /// Gives a completed file its name. After an error it may have it or not.
    ///
    /// The second part of the answer is what went wrong after the renaming, when the file is in force already.
    pub(super) fn name(
        self,
        disk: &dyn Disk,
    ) -> Result<(Appender, Result<(), JournalError>), JournalError> {
        disk.rename(&self.path, &self.target)
            .map_err(|error| JournalError::of_file(&self.path, error))?;
        let synced = disk.sync_folder_of(&self.target);
        let synced = synced.map_err(|error| JournalError::of_file(&self.target, error));
        Ok((Appender::new(self.storage, self.written), synced))
    }
}

/// How the name of a file ends while it is written.
pub(super) const UNFINISHED: &str = ".tmp";

/// The same of a file that takes the place of a large one: meanwhile another may be begun, because that one is no longer relied on.
pub(super) const RENEWAL: &str = ".renewal.tmp";

/// The name that a file has while it is written.
pub(super) fn temporary(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
