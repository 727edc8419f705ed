//! One frame of a journal: an entry behind its mark, length and checksum.

use super::error::JournalFault;
use super::games::Beginning;
use crate::record::codec::{self, CodecError, MAX_CONTENT_BYTES};
use crate::record::game::{EvaluatorId, GameId, TurnRecord};
use crate::record::shard::ShardName;
use serde::{Deserialize, Serialize};

/// The first bytes of every file.
pub(super) const MAGIC: [u8; 8] = *b"TuskerJ\n";

/// Magic and format version, in bytes: where the header's frame begins.
pub(super) const START_BYTES: u64 = 12;

/// The first bytes of every frame, by which frames are found behind a damaged one.
pub(super) const MARK: [u8; 4] = *b"\xf7TJ\n";

/// The bytes of a frame before its payload: mark, length and checksum.
pub(super) const HEAD_BYTES: usize = 12;

/// A payload seldom has more bytes.
const USUAL_BYTES: usize = 1_024;

/// What a frame says; the turn is borrowed for writing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Entry<Turn = TurnRecord> {
    Header(FileHeader),
    Begin(Beginning),
    Evaluator {
        game: GameId,
        /// Its place in the game's list.
        place: u16,
        evaluator: EvaluatorId,
    },
    Turn {
        game: GameId,
        number: u32,
        turn: Turn,
    },
    Closing {
        shard: ShardName,
        games: Vec<GameId>,
    },
    Closed {
        shard: ShardName,
    },
    /// So many of the file's bytes had reached the disk before this was written.
    Synced {
        bytes: u64,
    },
}

/// What every file begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileHeader {
    /// The generator that began the file; another may have taken it over since.
    pub(super) generator: u32,
    pub(super) encoding_version: u32,
    /// The counter of the generator's next game: those below are used.
    pub(super) next_counter: u64,
    /// The sequence number of its next shard: those below may be used.
    pub(super) next_shard: u32,
}

/// How much there is of a game in flight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct JournalCounts {
    pub(super) turns: u32,
    pub(super) evaluators: u32,
}

impl<Turn: Serialize> Entry<Turn> {
    /// The frame's payload.
    pub(super) fn payload(&self) -> Result<Vec<u8>, JournalFault> {
        let mut payload = Vec::with_capacity(USUAL_BYTES);
        codec::encode(self, &mut payload)?;
        if payload.len() > MAX_CONTENT_BYTES {
            return Err(JournalFault::Length {
                length: payload.len() as u64,
                left: MAX_CONTENT_BYTES as u64,
            });
        }
        Ok(payload)
    }
}

/// Appends the frame of a payload that is to stand at a byte of its file.
pub(super) fn push_frame(payload: &[u8], offset: u64, frames: &mut Vec<u8>) {
    // At most `MAX_CONTENT_BYTES`.
    let length = payload.len() as u32;
    frames.extend(MARK);
    frames.extend(length.to_le_bytes());
    frames.extend(checksum(payload, length, offset).to_le_bytes());
    frames.extend(payload);
}

/// The entry of the frame that bytes begin with, which stand at `offset` of their file, and the frame's length in bytes.
pub(super) fn read_frame(bytes: &[u8], offset: u64) -> Result<(Entry, usize), JournalFault> {
    let too_short = |length: usize, left: usize| JournalFault::Length {
        length: length as u64,
        left: left as u64,
    };
    let Some((head, behind)) = bytes.split_first_chunk::<HEAD_BYTES>() else {
        return Err(too_short(HEAD_BYTES, bytes.len()));
    };
    let [m0, m1, m2, m3, l0, l1, l2, l3, c0, c1, c2, c3] = *head;
    if [m0, m1, m2, m3] != MARK {
        return Err(JournalFault::Mark);
    }
    let length = u32::from_le_bytes([l0, l1, l2, l3]);
    let most = behind.len().min(MAX_CONTENT_BYTES);
    if length as usize > most {
        return Err(too_short(length as usize, most));
    }
    let payload = &behind[..length as usize];
    let stored = u32::from_le_bytes([c0, c1, c2, c3]);
    let computed = checksum(payload, length, offset);
    if stored != computed {
        return Err(JournalFault::Checksum { stored, computed });
    }
    Ok((codec::decode(payload)?, HEAD_BYTES + payload.len()))
}

/// CRC-32C of the frame's place, its length and its payload: a frame is good only where it was written.
fn checksum(payload: &[u8], length: u32, offset: u64) -> u32 {
    let place = crc32c::crc32c(&offset.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c_append(place, &length.to_le_bytes()), payload)
}

impl From<CodecError> for JournalFault {
    fn from(error: CodecError) -> Self {
        match error {
            CodecError::Form(reason) => Self::Content(reason),
            CodecError::LeftOver(bytes) => Self::Content(format!("{bytes} bytes follow it")),
        }
    }
}
