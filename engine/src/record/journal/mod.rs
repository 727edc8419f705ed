//! The journal of games in flight, from which a generator resumes after a kill or a full disk.
//!
//! Many threads append to one [`Journal`]. When a call returns, its data has reached the operating system: the end of the process,
//! however sudden, loses none of it. Once a second a thread of the journal flushes it to the disk: a power cut loses the last
//! second. [`Journal::open`] finds the games that had begun and are in no complete shard, and [`announced`] the shards that must
//! not be removed yet.
//!
//! A call that fails, on a full disk say, has changed nothing that matters: the caller waits and makes the same call again.
//!
//! # Layout
//!
//! In a folder `NNN-SSSSSS.journal` is a file that generator `NNN` wrote, `NNN-SSSSSS.adopted` one that it took over, and
//! `NNN.lock` the lock that it holds while it runs, empty until its journal is taken over. All numbers are little-endian. A file
//! is
//!
//! | bytes | what |
//! |---|---|
//! | 8 | magic: `TuskerJ` and the byte 10 |
//! | 4 | format version, `u32`: [`FORMAT_VERSION`] |
//! | … | frames up to the end of the file, a header first |
//!
//! and a frame is
//!
//! | bytes | what |
//! |---|---|
//! | 4 | mark: the bytes 247, `TJ`, 10 |
//! | 4 | length of the payload in bytes, `u32`, at most [`MAX_CONTENT_BYTES`](super::codec::MAX_CONTENT_BYTES) |
//! | 4 | CRC-32C of the frame's first byte in the file (`u64`), the length and the payload |
//! | length | payload: a choice, as in [shards](super::shard), without compression |
//!
//! | variant | entry | fields |
//! |---|---|---|
//! | 0 | header | `generator` u32, `encoding_version` u32, `next_counter` u64, `next_shard` u32 |
//! | 1 | begin | [`Beginning`]: `id` [`GameId`], `seed` u64, `start` [`Start`] |
//! | 2 | evaluator | `game` [`GameId`], `place` u16 in the game's list, [`EvaluatorId`] |
//! | 3 | turn | `game` [`GameId`], `number` u32 from 0, [`TurnRecord`] |
//! | 4 | closing | `shard` (`generator` u32, `sequence` u32), `games` list of [`GameId`] |
//! | 5 | closed | `shard` (`generator` u32, `sequence` u32) |
//! | 6 | synced | `bytes` u64: so much of this file was on the disk before |
//!
//! The parts have the fields that they have in shards of this program's version; the journal's version changes with theirs. A
//! turn takes what its record takes in a shard before compression, and 32 bytes: some 650 for a turn of five rows of 50 actions.
//!
//! # What is lost, and what is wrong
//!
//! A file is read up to the first frame that is not whole. If no later frame says that this one was on the disk, it was torn by a
//! power cut or a full disk: it and what follows is dropped and named ([`Dropped`]). (Pages of a file may reach the disk in any
//! order, so that whole frames may stand behind a hole. They are no proof of damage.)
//!
//! Otherwise it has been damaged since. The damage is left out and named, and the file is kept under another name. Games keep their
//! turns before a missing one ([`Recovery::cut`]). What is not known any more is which games have begun and which are in shards: so
//! all shards of the generator are read, and its counters that neither the file nor a shard knows are those of lost games
//! ([`Recovery::lost`]). A damaged beginning of a file is an error, and nothing is touched: it holds the counters. So are games
//! that break the rules.
//!
//! If a disk has lost what it had confirmed, a file may not know of a shard that is there: such shards are looked for, and their
//! games are done.
//!
//! # Files come and go
//!
//! A file is begun when a journal is opened, when the last one has grown large, and after a failed flush, for then it is unknown
//! what has reached the disk. It holds all that still matters, is flushed under a temporary name and then renamed: from then on
//! all files of the generator with lower numbers are void, whether or not they are removed. Files are only ever appended to by
//! the process that began them.
//!
//! A journal is adopted under its generator's lock. Its void files are removed. Its lock file is marked, so that the number, and
//! with it a game's identity, is never used again. The others are renamed to be the new generator's. A crash in between leaves
//! every file with one owner. Adopted files make nothing void.
//!
//! # From the journal to a shard
//!
//! 1. The games' last turns are appended, and the shard is written under its temporary name.
//! 2. [`Journal::closing`] says which games go into which shard, and is on the disk when it returns.
//! 3. [`ShardWriter::finish`](super::shard::ShardWriter::finish) flushes the shard and gives it its name.
//! 4. [`Journal::closed`] says that this has been done, and is on the disk when it returns. The games are forgotten.
//!
//! After a crash before 2 the shard has no name, and the games are in flight, with all their turns: they go into another shard.
//! The same holds between 2 and 3, for the shard isn't there. Between 3 and 4 it is there, and the games found in it are done.
//! After 4 the shard is needed no more: it may be pruned. A pruner lists the shards first and calls [`announced`] then.
//!
//! If step 3 fails, look whether the shard is there under its name. If so, resume 4; if not, with 1: the games may be announced for
//! another shard, and are done when any of their shards holds them.
//!
//! # What the file system must do
//!
//! Renaming is atomic, and a lock on an open file ([`File::try_lock`](std::fs::File::try_lock): `flock` on Unix) excludes every
//! other program that works on the run, those on other machines included. Local file systems do. Of shared ones NFS 4 does, and
//! NFS 3 with its lock service, but not when mounted with `nolock` or `local_lock`; Lustre does when mounted with `flock`, not
//! with `localflock`. Where locks are kept to one machine (`sshfs`, most object stores), a generator would adopt the journals of
//! living ones on other machines, and both would resume their games: use one such folder from one machine alone.

mod disk;
mod entry;
mod error;
mod folder;
mod games;
mod live;
mod reader;
mod recovery;
mod writer;

#[cfg(test)]
mod tests;

pub use error::{JournalError, JournalFault};
pub use folder::JournalPlace;
pub(crate) use folder::{Standing, lock_path};
pub use games::{Beginning, Dropped, FORMAT_VERSION, GameInFlight};
pub(crate) use recovery::generators_in;
pub use recovery::{Recovery, announced, files_in_use, games_in};

#[cfg(doc)]
use super::game::Start;
use super::game::{EvaluatorId, GameId, TurnRecord};
use super::shard::ShardName;
use crate::encoding::ENCODING_VERSION;
use disk::{Disk, FileSystem};
use entry::{Entry, FileHeader, JournalCounts};
use folder::{JournalFile, Lock, Owned};
use live::{Shared, State};
use reader::FoundGame;
use recovery::Loaded;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use writer::{NewFile, UNFINISHED};

/// A generator's journal. Shared by all its threads.
pub struct Journal {
    shared: Arc<Shared>,
    syncing: Option<JoinHandle<()>>,
    _lock: Lock,
}

impl Journal {
    /// Takes a generator's journal and those of all generators that have ended, and begins a new file with the games that are in
    /// flight.
    ///
    /// # Errors
    ///
    /// Another program that holds the lock, a number that has been taken over, a damaged beginning of an own file, a game that
    /// breaks the rules, and what the disk says. The files are then as they were, or another generator's have become this one's,
    /// and the journal can be opened again.
    pub fn open(place: JournalPlace) -> Result<(Self, Recovery), JournalError> {
        let generator = place.generator;
        let locked = || {
            let path = lock_path(&place.journal, generator);
            JournalError::of_file(&path, JournalFault::Locked { generator })
        };
        let lock = Lock::take(&place.journal, generator)?.ok_or_else(locked)?;
        let lock = lock.check_own()?;
        Self::open_locked(place, lock, Arc::new(FileSystem), &|_| true)
    }

    /// As [`open`](Self::open), but only if the lock is free, the number has not been taken over, and
    /// `is_wanted`, called under the lock, accepts what there is of the journal. Of the generators that have ended, the journals of
    /// those are taken over that `may_adopt` accepts by their numbers.
    pub(crate) fn try_open(
        place: JournalPlace,
        may_adopt: &dyn Fn(u32) -> bool,
        is_wanted: impl FnOnce(Standing) -> bool,
    ) -> Result<Option<(Self, Recovery)>, JournalError> {
        let Some(lock) = Lock::take(&place.journal, place.generator)? else {
            return Ok(None);
        };
        let lock = match lock.check_own() {
            Ok(lock) => lock,
            Err(error) if matches!(error.fault, JournalFault::TakenOver { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let standing = Owned::list(&place.journal, place.generator)?.standing();
        if is_wanted(standing) {
            Self::open_locked(place, lock, Arc::new(FileSystem), may_adopt).map(Some)
        } else {
            Ok(None)
        }
    }

    fn open_locked(
        place: JournalPlace,
        lock: Lock,
        disk: Arc<dyn Disk>,
        may_adopt: &dyn Fn(u32) -> bool,
    ) -> Result<(Self, Recovery), JournalError> {
        let mut owned = Owned::list(&place.journal, place.generator)?;
        let mut own = recovery::load(&place, &owned)?;
        let mut sequence = owned.next_sequence(&place.journal, place.generator)?;
        let (adopted, left) = recovery::adopt(&place, &*disk, may_adopt, &mut own, &mut sequence)?;
        let Loaded { games, cut, lost } = own;
        // The adopted are files of this generator now, and void as soon as the new one is there.
        owned.void = Owned::list(&place.journal, place.generator)?.all();
        let next_counter = games.next_counters.get(&place.generator).copied();
        let next_shard = games.next_shards.get(&place.generator).copied();
        let header = FileHeader {
            generator: place.generator,
            encoding_version: ENCODING_VERSION,
            next_counter: next_counter.unwrap_or(0),
            next_shard: next_shard.unwrap_or(0),
        };

        let file = JournalFile::new(&place.journal, place.generator, sequence, false);
        let mut begun = NewFile::create(&*disk, &file, UNFINISHED, header)?;
        for found in games.found.values() {
            begun.push_game(&found.game)?;
        }
        begun.complete()?;
        let (appender, settled) = begun.name(&*disk)?;
        settled?;
        owned.remove_void(&*disk, &place.journal)?;

        let counts = |found: &FoundGame| JournalCounts {
            turns: found.game.turns.len() as u32,
            evaluators: found.game.evaluators.len() as u32,
        };
        let in_flight = games.found.iter().map(|(&id, found)| (id, counts(found)));
        let state = State {
            large: place.large.max(2 * appender.length),
            file,
            appender,
            in_flight: in_flight.collect(),
            closing: BTreeMap::new(),
            closed: BTreeSet::new(),
            header,
            distrusted: false,
            void: Vec::new(),
            trouble: None,
            stopped: false,
        };
        let recovery = Recovery {
            games: games.found.into_values().map(|found| found.game).collect(),
            next_counter: header.next_counter,
            next_shard: header.next_shard,
            adopted,
            finished: games.finished,
            dropped: games.dropped,
            cut: cut.into_iter().collect(),
            lost: lost.into_iter().collect(),
            left,
        };
        Ok((Self::start(place, disk, lock, state)?, recovery))
    }

    fn start(
        place: JournalPlace,
        disk: Arc<dyn Disk>,
        lock: Lock,
        state: State,
    ) -> Result<Self, JournalError> {
        let shared = Arc::new(Shared {
            place,
            disk,
            state: Mutex::new(state),
            flushing: Mutex::new(()),
            wake: Condvar::new(),
        });
        let syncing = {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name("journal".into());
            thread.spawn(move || shared.sync_until_stopped())
        };
        let syncing =
            syncing.map_err(|error| JournalError::of_file(&shared.place.journal, error))?;
        Ok(Self {
            shared,
            syncing: Some(syncing),
            _lock: lock,
        })
    }

    /// A game begins.
    pub fn begin(&self, beginning: Beginning) -> Result<(), JournalError> {
        let Beginning { id, start, .. } = beginning;
        let valid_start = start.new_game().map(|_| ());
        let entry: Entry = Entry::Begin(beginning);
        let mut state = self.shared.lock();
        valid_start.map_err(|error| state.error(JournalFault::Start { game: id, error }))?;
        if state.in_flight.contains_key(&id) {
            return Err(state.error(JournalFault::BeginsAgain(id)));
        }
        state.append(&self.shared, &entry)?;
        state.in_flight.insert(id, JournalCounts::default());
        if id.generator == self.shared.place.generator {
            let next = &mut state.header.next_counter;
            *next = (*next).max(id.counter.saturating_add(1));
        }
        Ok(())
    }

    /// Adds an evaluator to the list of a game in flight; its place there.
    pub fn evaluator(&self, game: GameId, evaluator: &EvaluatorId) -> Result<u16, JournalError> {
        let mut state = self.shared.lock();
        let mut counts = state.counts(game)?;
        let place = u16::try_from(counts.evaluators)
            .map_err(|_| state.error(JournalFault::Evaluators(game)))?;
        let evaluator = evaluator.clone();
        let entry: Entry = Entry::Evaluator {
            game,
            place,
            evaluator,
        };
        state.append(&self.shared, &entry)?;
        counts.evaluators += 1;
        state.in_flight.insert(game, counts);
        Ok(place)
    }

    /// A turn of a game in flight has been played: the one of this number, from 0. The evaluator that it names is in the game's
    /// list.
    ///
    /// Nothing is flushed, unless an earlier flush has failed.
    pub fn turn(&self, game: GameId, number: u32, turn: &TurnRecord) -> Result<(), JournalError> {
        // Written as bytes before the lock is taken.
        let payload = Entry::Turn { game, number, turn }.payload();
        let mut state = self.shared.lock();
        let payload = payload.map_err(|fault| state.error(fault))?;
        let mut counts = state.counts(game)?;
        reader::check_order("turn", game, number, counts.turns as usize)
            .map_err(|fault| state.error(fault))?;
        let count = counts.evaluators;
        match turn.origin.evaluator() {
            Some(evaluator) if u32::from(evaluator) >= count => {
                return Err(state.error(JournalFault::Evaluator {
                    game,
                    evaluator,
                    count,
                }));
            }
            _ => {}
        }
        state.append_payload(&self.shared, &payload)?;
        counts.turns += 1;
        state.in_flight.insert(game, counts);
        Ok(())
    }

    /// The games are written to a shard that is about to get its name. On the disk when this returns.
    pub fn closing(&self, shard: ShardName, games: &[GameId]) -> Result<(), JournalError> {
        let mut state = self.shared.lock();
        for &game in games {
            state.counts(game)?;
        }
        if state.closing.get(&shard).is_none_or(|known| known != games) {
            let entry: Entry = Entry::Closing {
                shard,
                games: games.to_vec(),
            };
            state.append(&self.shared, &entry)?;
            state.closing.insert(shard, games.to_vec());
            if shard.generator == self.shared.place.generator {
                let next = &mut state.header.next_shard;
                *next = (*next).max(shard.sequence.saturating_add(1));
            }
        }
        drop(state);
        self.sync()
    }

    /// The shard has its name, and its games are no more in flight. On the disk when this returns.
    pub fn closed(&self, shard: ShardName) -> Result<(), JournalError> {
        let mut state = self.shared.lock();
        if state.closing.contains_key(&shard) {
            let entry: Entry = Entry::Closed { shard };
            state.append(&self.shared, &entry)?;
            state.forget(shard);
            state.closed.insert(shard);
        } else if !state.closed.contains(&shard) {
            return Err(state.error(JournalFault::NotAnnounced(shard)));
        }
        drop(state);
        self.sync()?;
        self.shared.lock().closed.remove(&shard);
        Ok(())
    }

    /// Flushes to the disk what has been appended.
    pub fn sync(&self) -> Result<(), JournalError> {
        self.shared.sync()
    }

    /// The games in flight, those included that are written to a shard without its name.
    pub fn games(&self) -> usize {
        self.shared.lock().in_flight.len()
    }

    /// The last failure to flush the journal in the background since the last call, if there was one. The flush is tried
    /// again; what has been appended is safe from the end of the process, but not from a power cut.
    pub fn trouble(&self) -> Option<JournalError> {
        self.shared.lock().trouble.take()
    }

    /// Whether it is still flushed in the background.
    ///
    /// # Errors
    ///
    /// The thread that does so has ended. What has been appended is safe from the end of the process, and [`sync`](Self::sync)
    /// still flushes it.
    pub fn check_flushing(&self) -> Result<(), JournalError> {
        match &self.syncing {
            Some(syncing) if !syncing.is_finished() => Ok(()),
            _ => Err(self.shared.lock().error(JournalFault::NotFlushed)),
        }
    }

    /// The generator's number.
    pub fn generator(&self) -> u32 {
        self.shared.place.generator
    }

    /// Whether its present file is still there under its name, as far as the system says. If it was removed, the games in flight
    /// can't be resumed.
    pub fn is_there(&self) -> bool {
        // Others append while a server is asked.
        let path = self.shared.lock().file.path.clone();
        path.try_exists().unwrap_or(true)
    }

    /// The folder that it is in.
    pub fn folder(&self) -> &Path {
        &self.shared.place.journal
    }

    /// The bytes in the present file.
    pub fn bytes(&self) -> u64 {
        self.shared.lock().appender.length
    }
}

impl Drop for Journal {
    /// Flushes what can be flushed and frees the lock; [`sync`](Journal::sync) says whether it could.
    fn drop(&mut self) {
        self.shared.lock().stopped = true;
        self.shared.wake.notify_all();
        if let Some(syncing) = self.syncing.take() {
            // `check_flushing` reports a panic; a dropped journal can't report it.
            let _ = syncing.join();
        }
    }
}
