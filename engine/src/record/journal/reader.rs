//! Reading one file of a journal, which may have been cut anywhere.

use super::entry::{Entry, FileHeader, MAGIC, MARK, START_BYTES, read_frame};
use super::error::{JournalError, JournalFault};
use super::folder::JournalFile;
use super::games::{Beginning, Dropped, FORMAT_VERSION, GameInFlight};
use crate::encoding::{ENCODING_VERSION, READABLE_VERSIONS};
use crate::record::game::GameId;
use crate::record::shard::ShardName;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A file that is read frame by frame.
pub(super) struct FileReader<'bytes> {
    pub(super) header: FileHeader,
    /// What could not be read so far.
    pub(super) dropped: Vec<Dropped>,
    on_damage: OnDamage,
    path: &'bytes Path,
    bytes: &'bytes [u8],
    offset: usize,
}

/// What to do at a frame that was on the disk and was damaged since.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum OnDamage {
    /// Fail.
    #[default]
    Fail,
    /// Leave it out, and continue with the next whole frame.
    LeaveOut,
}

impl<'bytes> FileReader<'bytes> {
    /// Reads what every file begins with. It gets its name when that is on the disk, so that nothing of it may be missing.
    pub(super) fn new(
        path: &'bytes Path,
        bytes: &'bytes [u8],
        on_damage: OnDamage,
    ) -> Result<Self, JournalError> {
        let Some((start, behind)) = bytes.split_first_chunk::<{ START_BYTES as usize }>() else {
            return Err(JournalError::of_file(path, JournalFault::NotAJournal));
        };
        let [magic @ .., v0, v1, v2, v3] = *start;
        if magic != MAGIC {
            return Err(JournalError::of_file(path, JournalFault::NotAJournal));
        }
        let found = u32::from_le_bytes([v0, v1, v2, v3]);
        if found != FORMAT_VERSION {
            let offset = MAGIC.len() as u64;
            let fault = JournalFault::Version { found };
            return Err(JournalError::at(path, offset, fault));
        }
        let (header, length) =
            read_header(behind).map_err(|fault| JournalError::at(path, START_BYTES, fault))?;
        Ok(Self {
            header,
            dropped: Vec::new(),
            on_damage,
            path,
            bytes,
            offset: start.len() + length,
        })
    }

    /// The next entry and its first byte; none at the end of the whole frames.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Entry)>, JournalError> {
        while let Some(left @ [_, ..]) = self.bytes.get(self.offset..) {
            let at = self.offset as u64;
            let fault = match read_frame(left, at) {
                Ok((entry, length)) => {
                    self.offset += length;
                    return Ok(Some((at, entry)));
                }
                Err(fault) => fault,
            };
            // Of a content that can't be read the checksum is right: it was written so, and neither torn nor damaged.
            let is_content = matches!(fault, JournalFault::Content(_));
            let is_damage = !is_content && was_synced(self.bytes, self.offset);
            if is_content || is_damage && self.on_damage == OnDamage::Fail {
                return Err(JournalError::at(self.path, at, fault));
            }
            // Turns behind a missing one are of no use.
            let next = if is_damage {
                next_frame(self.bytes, self.offset + 1)
            } else {
                None
            };
            self.offset = next.unwrap_or(self.bytes.len());
            self.dropped.push(Dropped {
                path: self.path.to_owned(),
                offset: at,
                bytes: self.offset as u64 - at,
                reason: fault.to_string(),
                is_damage,
            });
        }
        Ok(None)
    }
}

/// The header's frame, and its length.
fn read_header(bytes: &[u8]) -> Result<(FileHeader, usize), JournalFault> {
    let (Entry::Header(header), length) = read_frame(bytes, START_BYTES)? else {
        return Err(JournalFault::Header);
    };
    if !READABLE_VERSIONS.contains(&header.encoding_version) {
        return Err(JournalFault::EncodingVersion {
            found: header.encoding_version,
            expected: ENCODING_VERSION,
        });
    }
    Ok((header, length))
}

/// Whether a frame behind a bad one proves that the bad one had been on the disk: then it is no torn write.
fn was_synced(bytes: &[u8], bad: usize) -> bool {
    let mut offset = bad + 1;
    while let Some(found) = next_frame(bytes, offset) {
        let left = bytes.get(found..).unwrap_or_default();
        match read_frame(left, found as u64) {
            Ok((Entry::Synced { bytes }, _)) if bytes > bad as u64 => return true,
            Ok((_, length)) => offset = found + length,
            Err(_) => offset = found + 1,
        }
    }
    false
}

/// Where the next whole frame begins, at `from` or behind it.
fn next_frame(bytes: &[u8], from: usize) -> Option<usize> {
    let mut offset = from;
    while let Some(found) = find_mark(bytes, offset) {
        let left = bytes.get(found..).unwrap_or_default();
        if read_frame(left, found as u64).is_ok() {
            return Some(found);
        }
        offset = found + 1;
    }
    None
}

fn find_mark(bytes: &[u8], from: usize) -> Option<usize> {
    let behind = bytes.get(from..)?;
    behind
        .windows(MARK.len())
        .position(|window| window == MARK)
        .map(|distance| from + distance)
}

/// A game that has begun and is not known to be in a complete shard.
#[derive(Debug)]
pub(super) struct FoundGame {
    pub(super) game: GameInFlight,
    /// The shards that it was announced for, none of which is known to be complete.
    pub(super) shards: Vec<ShardName>,
    /// Where it begins, for messages.
    pub(super) path: PathBuf,
    pub(super) offset: u64,
}

/// What some files say.
#[derive(Debug, Default)]
pub(super) struct Games {
    /// The games that have begun and are not known to be in a complete shard.
    pub(super) found: BTreeMap<GameId, FoundGame>,
    /// By generator, the counter of its next game.
    pub(super) next_counters: BTreeMap<u32, u64>,
    /// By generator, the sequence number of its next shard.
    pub(super) next_shards: BTreeMap<u32, u32>,
    /// The games that are said to be in complete shards.
    pub(super) finished: u64,
    pub(super) dropped: Vec<Dropped>,
    /// By generator, the counters of the first file's header.
    pub(super) first: BTreeMap<u32, FileHeader>,
    /// All games that begin in the files.
    pub(super) begun: BTreeSet<GameId>,
    /// All shards that games were announced for.
    pub(super) announced: BTreeSet<ShardName>,
    /// The games of which entries are missing, because of damage.
    pub(super) damaged: BTreeSet<GameId>,
    on_damage: OnDamage,
}

impl Games {
    /// None yet.
    pub(super) fn new(on_damage: OnDamage) -> Self {
        Self {
            on_damage,
            ..Self::default()
        }
    }

    /// Reads files, which are in order.
    pub(super) fn of_files(
        files: &[JournalFile],
        on_damage: OnDamage,
    ) -> Result<Self, JournalError> {
        let mut games = Self::new(on_damage);
        for JournalFile { path, .. } in files {
            let bytes = fs::read(path).map_err(|error| JournalError::of_file(path, error))?;
            games.read(path, &bytes)?;
        }
        Ok(games)
    }

    /// Adds what a file says, which comes after all files read before.
    pub(super) fn read(&mut self, path: &Path, bytes: &[u8]) -> Result<(), JournalError> {
        let mut file = FileReader::new(path, bytes, self.on_damage)?;
        let header = file.header;
        self.first.entry(header.generator).or_insert(header);
        self.count_game(header.generator, header.next_counter);
        self.count_shard(header.generator, header.next_shard);
        while let Some((offset, entry)) = file.next()? {
            self.dropped.append(&mut file.dropped);
            self.apply(path, offset, entry)
                .map_err(|fault| JournalError::at(path, offset, fault))?;
        }
        self.dropped.extend(file.dropped);
        Ok(())
    }

    /// Whether entries are missing in the middle.
    pub(super) fn is_damaged(&self) -> bool {
        self.dropped.iter().any(|part| part.is_damage)
    }

    /// Counts a game as begun: the next one of its generator has a higher counter.
    pub(super) fn count_game(&mut self, generator: u32, next: u64) {
        let counter = self.next_counters.entry(generator).or_default();
        *counter = next.max(*counter);
    }

    /// Counts a shard as written, likewise.
    pub(super) fn count_shard(&mut self, generator: u32, next: u32) {
        let sequence = self.next_shards.entry(generator).or_default();
        *sequence = next.max(*sequence);
    }

    /// Applies an entry. What follows a missing entry of its game is left out.
    fn apply(&mut self, path: &Path, offset: u64, entry: Entry) -> Result<(), JournalFault> {
        match self.apply_whole(path, offset, entry) {
            Err(JournalFault::NotInFlight(game) | JournalFault::Order { game, .. })
                if self.is_damaged() =>
            {
                self.damaged.insert(game);
                Ok(())
            }
            applied => applied,
        }
    }

    fn apply_whole(&mut self, path: &Path, offset: u64, entry: Entry) -> Result<(), JournalFault> {
        match entry {
            Entry::Header(_) => return Err(JournalFault::Header),
            Entry::Begin(beginning) => self.begin(path, offset, beginning)?,
            Entry::Evaluator {
                game,
                place,
                evaluator,
            } => {
                let evaluators = &mut self.in_flight(game)?.game.evaluators;
                check_order("evaluator", game, place.into(), evaluators.len())?;
                evaluators.push(evaluator);
            }
            Entry::Turn { game, number, turn } => {
                let is_damaged = self.is_damaged();
                let found = &mut self.in_flight(game)?.game;
                check_order("turn", game, number, found.turns.len())?;
                let evaluators = found.evaluators.len();
                let evaluator = turn.origin.evaluator().map(usize::from);
                if is_damaged && evaluator.is_some_and(|place| place >= evaluators) {
                    self.damaged.insert(game);
                } else {
                    found.turns.push(turn);
                }
            }
            Entry::Closing { shard, games } => {
                self.announced.insert(shard);
                self.count_shard(shard.generator, shard.sequence.saturating_add(1));
                // What was announced for a shard of this name before did not come to be.
                for found in self.found.values_mut() {
                    found.shards.retain(|name| *name != shard);
                }
                let mut missing = BTreeSet::new();
                for game in games {
                    match self.found.get_mut(&game) {
                        Some(found) => found.shards.push(shard),
                        None => drop(missing.insert(game)),
                    }
                }
                match missing.first() {
                    Some(&game) if !self.is_damaged() => {
                        return Err(JournalFault::NotInFlight(game));
                    }
                    _ => self.damaged.extend(missing),
                }
            }
            Entry::Closed { shard } => {
                let before = self.found.len();
                self.found.retain(|_, found| !found.shards.contains(&shard));
                self.finished += (before - self.found.len()) as u64;
            }
            Entry::Synced { .. } => {}
        }
        Ok(())
    }

    fn begin(
        &mut self,
        path: &Path,
        offset: u64,
        beginning: Beginning,
    ) -> Result<(), JournalFault> {
        let id = beginning.id;
        if self.found.contains_key(&id) {
            return Err(JournalFault::BeginsAgain(id));
        }
        self.begun.insert(id);
        self.count_game(id.generator, id.counter.saturating_add(1));
        let game = GameInFlight {
            beginning,
            evaluators: Vec::new(),
            turns: Vec::new(),
        };
        let found = FoundGame {
            game,
            shards: Vec::new(),
            path: path.to_owned(),
            offset,
        };
        self.found.insert(id, found);
        Ok(())
    }

    fn in_flight(&mut self, game: GameId) -> Result<&mut FoundGame, JournalFault> {
        self.found
            .get_mut(&game)
            .ok_or(JournalFault::NotInFlight(game))
    }
}

/// Whether something of a game is the next of its kind.
pub(super) fn check_order(
    what: &'static str,
    game: GameId,
    found: u32,
    expected: usize,
) -> Result<(), JournalFault> {
    if found as usize == expected {
        Ok(())
    } else {
        Err(JournalFault::Order {
            what,
            game,
            found,
            expected: expected as u32,
        })
    }
}
