//! Shards: files that hold many games.
//!
//! [`ShardWriter`] writes a shard. [`ShardReader`] reads one and trusts nothing in it. Damage costs the games that it hits:
//! [`ShardReader::resync`] finds those behind it.
//!
//! # Layout
//!
//! All numbers are little-endian. A shard is
//!
//! | bytes | what |
//! |---|---|
//! | 8 | magic: `Tusker` and the bytes 13, 10 |
//! | 4 | format version, `u32`: [`FORMAT_VERSION`] |
//! | … | frames up to the end of the file: one header, one for each game, one end |
//!
//! and a frame is
//!
//! | bytes | what |
//! |---|---|
//! | 4 | length of the payload in bytes, `u32`, at most [`MAX_FRAME_BYTES`] |
//! | 4 | CRC-32C of the payload, `u32` |
//! | length | payload: one zstd frame that states its content size, at most [`MAX_CONTENT_BYTES`] |
//!
//! The content of a payload is one value, written field after field without padding. Integers and IEEE floats have their full
//! width. A list is its count (`u64`) and its items, a text its count of bytes (`u64`) and its UTF-8 bytes. A choice is the number
//! of its variant (`u32`) and the variant's fields. An option is a byte (0 none, 1 some) and the value, if there is one. The
//! content is a choice of
//!
//! | variant | kind | fields |
//! |---|---|---|
//! | 0 | header | format version `u32` (again, under the checksum), then [`Header`]: `encoding_version` u32, `program_version` text, `evaluator` [`EvaluatorId`], `config_digest` text, `generator` u32 |
//! | 1 | game | [`GameRecord`]: `id` [`GameId`], `seed` u64, `start` [`Start`], `evaluators` list of [`EvaluatorId`], `turns` list of [`TurnRecord`], `ending` [`Ending`], `resignation_waived` option of [`WaivedResignation`] |
//! | 2 | end | count of the games in this shard, `u64` |
//!
//! with these parts:
//!
//! | part | fields |
//! |---|---|
//! | [`GameId`] | `generator` u32, `counter` u64 |
//! | [`EvaluatorId`] | `name` text, `identity` text |
//! | [`Start`] | 0 empty; 1 fork: `game` [`GameId`]; 2 opening; 3 position: `pieces` 12 u64, `side` [`Side`] |
//! | [`Side`] | 0 Gold; 1 Silver |
//! | [`TurnRecord`] | `actions` list of u16, `origin` [`TurnOrigin`], `rows` list of [`RowRecord`] |
//! | [`TurnOrigin`] | 0 given; 1 policy: `evaluator` u16, `network_value` f32; 2 search: [`SearchRecord`] |
//! | [`SearchRecord`] | `evaluator` u16, `kind` choice (0 full, 1 fast), `budget` u32, `evaluations` u32, `visits` u32, `value` f32, `network_value` f32 |
//! | [`RowRecord`] | `step` u8, `visits` u32, `policy` list of u16, `surprise` f32, `weight` f32 |
//! | [`Ending`] | 0 won: `winner` [`Side`], `reason` choice (0 goal, 1 elimination, 2 immobilization); 1 unfinished: `value` option of f32; 2 resigned: `winner` [`Side`]; 3 forfeited: `winner` [`Side`] |
//! | [`WaivedResignation`] | `turn` u32, `loser` [`Side`] |
//!
//! A list of u16 or f32 has no padding either. The fields in this order are the whole game: its seed, its start, its evaluators,
//! its turns and its end. A turn says how it was chosen, and has a policy target over all legal actions for each recorded step
//! state.
//!
//! # Versions
//!
//! The format version changes whenever any of this does, a new field at the end included. A reader refuses a file of another
//! version by both numbers; it never guesses. What the numbers in `actions` and the order of
//! `policy` mean is the encoding's: it has its own version, which the header carries.

mod error;
mod frame;
mod name;
mod reader;
mod writer;

#[cfg(doc)]
use super::codec::MAX_CONTENT_BYTES;
#[cfg(doc)]
use super::game::{
    Ending, EvaluatorId, FORMAT_VERSION, GameId, GameRecord, Header, RowRecord, SearchRecord,
    Start, TurnOrigin, TurnRecord, WaivedResignation,
};
#[cfg(doc)]
use arimaa::rules::Side;

#[cfg(test)]
mod tests;

pub use error::{ShardError, ShardFault};
pub use frame::MAX_FRAME_BYTES;
pub(super) use frame::{ContentToWrite, MAGIC, Packer, frame_of};
pub use name::{ShardName, list_shards};
pub use reader::{FrameLocation, ShardReader};
pub use writer::{ShardWriter, remove_unfinished};
