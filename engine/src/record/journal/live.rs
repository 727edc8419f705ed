//! The state that a journal's threads share: the file that is appended to, and the games that matter.

use super::disk::{Disk, Storage};
use super::entry::{Entry, FileHeader, JournalCounts, read_frame};
use super::error::{JournalError, JournalFault};
use super::folder::{JournalFile, JournalPlace, lock_path};
use super::reader::{FileReader, OnDamage};
use super::writer::{Appender, NewFile, RENEWAL, UNFINISHED};
use crate::files;
use crate::record::game::GameId;
use crate::record::shard::ShardName;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

pub(super) struct Shared {
    pub(super) place: JournalPlace,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) state: Mutex<State>,
    /// Held by the thread that flushes, and taken before the state. After a failed flush a second one of the same file would
    /// succeed although the bytes have not reached the disk. So no thread may begin one before the failure is known.
    pub(super) flushing: Mutex<()>,
    pub(super) wake: Condvar,
}

pub(super) struct State {
    pub(super) file: JournalFile,
    pub(super) appender: Appender,
    /// The games that have begun and are not known to be in a complete shard.
    pub(super) in_flight: BTreeMap<GameId, JournalCounts>,
    /// What is announced for shards that are not complete yet.
    pub(super) closing: BTreeMap<ShardName, Vec<GameId>>,
    /// The complete shards of which that is not known to be on the disk.
    pub(super) closed: BTreeSet<ShardName>,
    /// What the next file begins with.
    pub(super) header: FileHeader,
    /// A new file is begun beyond this length.
    pub(super) large: u64,
    /// The file can't be relied on: what was written since the last flush may be lost, or its name.
    pub(super) distrusted: bool,
    /// Files that are void and not removed yet.
    pub(super) void: Vec<PathBuf>,
    /// An error of the flushing thread that is not reported yet.
    pub(super) trouble: Option<JournalError>,
    pub(super) stopped: bool,
}

/// A file up to its present end, and which games it is about.
struct Snapshot {
    file: JournalFile,
    storage: Arc<dyn Storage>,
    /// So much of it has been flushed, and can be read.
    synced: u64,
    /// The rest.
    tail: Vec<u8>,
    in_flight: BTreeSet<GameId>,
    header: FileHeader,
}

impl Snapshot {
    fn length(&self) -> u64 {
        self.synced + self.tail.len() as u64
    }

    fn read(&self) -> Result<Vec<u8>, JournalError> {
        let path = &self.file.path;
        let mut bytes = fs::read(path).map_err(|error| {
            // What was flushed is nowhere else. A folder that is away for a while has no lock either.
            let lock = lock_path(files::folder_of(path), self.file.generator);
            match error.kind() {
                ErrorKind::NotFound if lock.exists() => {
                    JournalError::of_file(path, JournalFault::Gone)
                }
                _ => JournalError::of_file(path, error),
            }
        })?;
        if (bytes.len() as u64) < self.synced {
            let fault = JournalFault::Content("the file has become shorter".into());
            return Err(JournalError::at(path, bytes.len() as u64, fault));
        }
        // No longer than a file that could be read.
        bytes.truncate(self.synced as usize);
        bytes.extend(&self.tail);
        Ok(bytes)
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panicked did so between whole frames, or left a torn end that is cut.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_flushing(&self) -> MutexGuard<'_, ()> {
        self.flushing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Flushes without keeping others from appending.
    pub(super) fn sync(&self) -> Result<(), JournalError> {
        let _flushing = self.lock_flushing();
        let mut state = self.lock();
        if state.distrusted {
            // The new file is flushed before it gets its name.
            return state.begin_file(self);
        }
        let (storage, length) = (Arc::clone(&state.appender.storage), state.appender.length);
        if state.appender.synced == length {
            return Ok(());
        }
        drop(state);
        let synced = storage.sync();
        let mut state = self.lock();
        match synced {
            Ok(()) => {
                // Another file may have been begun meanwhile.
                if Arc::ptr_eq(&storage, &state.appender.storage) {
                    state.appender.has_synced(length);
                }
                Ok(())
            }
            Err(error) => {
                state.distrusted = true;
                Err(state.error(error))
            }
        }
    }

    /// Begins a new file if the present one is large. Others append meanwhile, but for the moment at the end.
    pub(super) fn renew_if_large(&self) -> Result<(), JournalError> {
        let _flushing = self.lock_flushing();
        let snapshot = {
            let state = self.lock();
            if state.distrusted || state.appender.length <= state.large {
                return Ok(());
            }
            state.snapshot()
        };
        let renewed = self.renew(&snapshot);
        if renewed.is_err() {
            // The present file is as good as ever: the next attempt comes a while later.
            let mut state = self.lock();
            state.large += state.large / 4;
        }
        renewed
    }

    fn renew(&self, snapshot: &Snapshot) -> Result<(), JournalError> {
        let (mut begun, file) = self.copy(snapshot, RENEWAL)?;
        begun.sync()?;
        let mut state = self.lock();
        // A flushing thread has been kept waiting, so that nothing of the tail is gone since.
        let mut offset = snapshot.length();
        let since = offset.checked_sub(state.appender.synced);
        let since = since.and_then(|since| state.appender.tail.get(since as usize..));
        let is_same = Arc::ptr_eq(&snapshot.storage, &state.appender.storage);
        let Some(mut since) = since.filter(|_| is_same) else {
            begun.discard(&*self.disk);
            return Ok(());
        };
        while !since.is_empty() {
            let (entry, length) = read_frame(since, offset).map_err(|fault| state.error(fault))?;
            // What has come since is about games that were in flight or have begun since.
            if !matches!(entry, Entry::Synced { .. }) {
                begun.push(&entry)?;
            }
            since = since.get(length..).unwrap_or_default();
            offset += length as u64;
        }
        begun.complete()?;
        state.continue_in(self, begun, file)
    }

    /// Writes what matters of a file into the next one. Left behind after an error, it is written over by the next attempt.
    fn copy(
        &self,
        snapshot: &Snapshot,
        ending: &str,
    ) -> Result<(NewFile, JournalFile), JournalError> {
        let JournalPlace {
            journal, generator, ..
        } = &self.place;
        let generator = *generator;
        let path = &snapshot.file.path;
        let sequence = snapshot.file.sequence.checked_add(1);
        let sequence = sequence
            .ok_or_else(|| JournalError::of_file(path, JournalFault::Full { generator }))?;
        let file = JournalFile::new(journal, generator, sequence, false);
        let bytes = snapshot.read()?;
        let mut reader = FileReader::new(path, &bytes, OnDamage::Fail)?;
        let mut begun = NewFile::create(&*self.disk, &file, ending, snapshot.header)?;
        while let Some((_, entry)) = reader.next()? {
            if let Some(entry) = for_games(entry, &snapshot.in_flight) {
                begun.push(&entry)?;
            }
        }
        match reader.dropped.pop() {
            None => Ok((begun, file)),
            // All of it had been written whole.
            Some(dropped) => {
                let fault = JournalFault::Content(dropped.reason);
                Err(JournalError::at(path, dropped.offset, fault))
            }
        }
    }

    pub(super) fn sync_until_stopped(&self) {
        let mut stopped = false;
        while !stopped {
            let state = self.lock();
            let waited = self
                .wake
                .wait_timeout_while(state, self.place.sync_every, |state| !state.stopped);
            stopped = waited.unwrap_or_else(PoisonError::into_inner).0.stopped;
            // After a failure the file is not relied on: the next append begins another, or fails.
            let done = if stopped {
                self.sync()
            } else {
                self.sync().and_then(|()| self.renew_if_large())
            };
            if let Err(error) = done {
                self.lock().trouble = Some(error);
            }
        }
    }
}

impl State {
    pub(super) fn error(&self, fault: impl Into<JournalFault>) -> JournalError {
        JournalError::of_file(&self.file.path, fault)
    }

    pub(super) fn append(&mut self, shared: &Shared, entry: &Entry) -> Result<(), JournalError> {
        let payload = entry.payload().map_err(|fault| self.error(fault))?;
        self.append_payload(shared, &payload)
    }

    pub(super) fn append_payload(
        &mut self,
        shared: &Shared,
        payload: &[u8],
    ) -> Result<(), JournalError> {
        if self.distrusted {
            self.begin_file(shared)?;
        }
        let appended = self.appender.append(payload);
        appended.map_err(|error| {
            self.distrusted |= error.kind() == ErrorKind::StaleNetworkFileHandle;
            self.error(error)
        })
    }

    /// How much there is of a game in flight.
    pub(super) fn counts(&self, game: GameId) -> Result<JournalCounts, JournalError> {
        let counts = self.in_flight.get(&game).copied();
        counts.ok_or_else(|| self.error(JournalFault::NotInFlight(game)))
    }

    /// The shard's games are no more in flight.
    pub(super) fn forget(&mut self, shard: ShardName) {
        for game in self.closing.remove(&shard).unwrap_or_default() {
            self.in_flight.remove(&game);
        }
        // A shard that they were announced for before has come to nothing.
        let in_flight = &self.in_flight;
        self.closing
            .retain(|_, games| games.iter().any(|id| in_flight.contains_key(id)));
    }

    /// Begins a new file with all that matters of the present one, which becomes void.
    pub(super) fn begin_file(&mut self, shared: &Shared) -> Result<(), JournalError> {
        let (mut begun, file) = shared.copy(&self.snapshot(), UNFINISHED)?;
        begun.complete()?;
        self.continue_in(shared, begun, file)
    }

    /// Names a new file and continues in it.
    fn continue_in(
        &mut self,
        shared: &Shared,
        begun: NewFile,
        file: JournalFile,
    ) -> Result<(), JournalError> {
        let named = begun.name(&*shared.disk);
        // It may have its name for all that, and the present file would be void.
        self.distrusted |= named.is_err();
        let (appender, settled) = named?;
        self.void.push(std::mem::replace(&mut self.file, file).path);
        self.appender = appender;
        self.large = shared.place.large.max(2 * self.appender.length);
        // A name that a power cut may take back is no place to append to.
        self.distrusted = settled.is_err();
        settled?;
        // Those that stay are void in any case.
        self.void.retain(|path| shared.disk.remove(path).is_err());
        Ok(())
    }

    /// The present file as it is now.
    fn snapshot(&self) -> Snapshot {
        Snapshot {
            file: self.file.clone(),
            storage: Arc::clone(&self.appender.storage),
            synced: self.appender.synced,
            tail: self.appender.tail.clone(),
            in_flight: self.in_flight.keys().copied().collect(),
            header: self.header,
        }
    }
}

/// What an entry says of these games.
fn for_games(entry: Entry, in_flight: &BTreeSet<GameId>) -> Option<Entry> {
    match entry {
        Entry::Begin(ref beginning) => in_flight.contains(&beginning.id).then_some(entry),
        Entry::Evaluator { game, .. } | Entry::Turn { game, .. } => {
            in_flight.contains(&game).then_some(entry)
        }
        Entry::Closing { shard, mut games } => {
            games.retain(|id| in_flight.contains(id));
            (!games.is_empty()).then_some(Entry::Closing { shard, games })
        }
        Entry::Header(_) | Entry::Closed { .. } | Entry::Synced { .. } => None,
    }
}
