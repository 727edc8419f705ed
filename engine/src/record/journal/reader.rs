//! Reading one file of a journal, which may have been cut anywhere.

use super::entry::{Entry, FileHeader, MAGIC, MARK, START_BYTES, read_frame};
use super::error::{JournalError, JournalFault};
use super::folder::JournalFile;
use super::games::{Beginning, Dropped, FORMAT_VERSION, GameInFlight};
use crate::encoding::{ENCODING_VERSION, READABLE_VERSIONS};
use crate::record::game::GameId;
use crate::record::shard::ShardName;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A file that is read frame by frame.
pub(super) struct FileReader<'bytes> {
    pub(super) header: FileHeader,
    /// What could not be read at the end; known once the end is reached.
    pub(super) dropped: Option<Dropped>,
    path: &'bytes Path,
    bytes: &'bytes [u8],
    offset: usize,
}

impl<'bytes> FileReader<'bytes> {
    /// Reads what every file begins with. It gets its name when that is on the disk, so that nothing of it may be missing.
    pub(super) fn new(path: &'bytes Path, bytes: &'bytes [u8]) -> Result<Self, JournalError> {
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
            dropped: None,
            path,
            bytes,
            offset: start.len() + length,
        })
    }

    /// The next entry and its first byte; none at the end of the whole frames.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Entry)>, JournalError> {
        let left = self.bytes.get(self.offset..).unwrap_or_default();
        let at = self.offset as u64;
        if left.is_empty() || self.dropped.is_some() {
            return Ok(None);
        }
        match read_frame(left, at) {
            Ok((entry, length)) => {
                self.offset += length;
                Ok(Some((at, entry)))
            }
            // Written so, not torn: the checksum is right.
            Err(fault @ JournalFault::Content(_)) => Err(JournalError::at(self.path, at, fault)),
            Err(fault) if was_synced(self.bytes, self.offset) => {
                Err(JournalError::at(self.path, at, fault))
            }
            Err(fault) => {
                self.dropped = Some(Dropped {
                    path: self.path.to_owned(),
                    offset: at,
                    bytes: left.len() as u64,
                    reason: fault.to_string(),
                });
                Ok(None)
            }
        }
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
    while let Some(found) = find_mark(bytes, offset) {
        let left = bytes.get(found..).unwrap_or_default();
        match read_frame(left, found as u64) {
            Ok((Entry::Synced { bytes }, _)) if bytes > bad as u64 => return true,
            Ok((_, length)) => offset = found + length,
            Err(_) => offset = found + 1,
        }
    }
    false
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
}

impl Games {
    /// Reads files, which are in order.
    pub(super) fn of_files(files: &[JournalFile]) -> Result<Self, JournalError> {
        let mut games = Self::default();
        for JournalFile { path, .. } in files {
            let bytes = fs::read(path).map_err(|error| JournalError::of_file(path, error))?;
            games.read(path, &bytes)?;
        }
        Ok(games)
    }

    /// Adds what a file says, which comes after all files read before.
    pub(super) fn read(&mut self, path: &Path, bytes: &[u8]) -> Result<(), JournalError> {
        let mut file = FileReader::new(path, bytes)?;
        let header = file.header;
        self.count_game(header.generator, header.next_counter);
        self.count_shard(header.generator, header.next_shard);
        while let Some((offset, entry)) = file.next()? {
            self.apply(path, offset, entry)
                .map_err(|fault| JournalError::at(path, offset, fault))?;
        }
        self.dropped.extend(file.dropped);
        Ok(())
    }

    fn count_game(&mut self, generator: u32, next: u64) {
        let counter = self.next_counters.entry(generator).or_default();
        *counter = next.max(*counter);
    }

    fn count_shard(&mut self, generator: u32, next: u32) {
        let sequence = self.next_shards.entry(generator).or_default();
        *sequence = next.max(*sequence);
    }

    fn apply(&mut self, path: &Path, offset: u64, entry: Entry) -> Result<(), JournalFault> {
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
                let turns = &mut self.in_flight(game)?.game.turns;
                check_order("turn", game, number, turns.len())?;
                turns.push(turn);
            }
            Entry::Closing { shard, games } => {
                self.count_shard(shard.generator, shard.sequence.saturating_add(1));
                // What was announced for a shard of this name before did not come to be.
                for found in self.found.values_mut() {
                    found.shards.retain(|name| *name != shard);
                }
                for game in games {
                    self.in_flight(game)?.shards.push(shard);
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
    match found as usize == expected {
        true => Ok(()),
        false => Err(JournalFault::Order {
            what,
            game,
            found,
            expected: expected as u32,
        }),
    }
}
