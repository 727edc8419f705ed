//! Games on disk: the record of one self-play game, and the files that hold games.
//!
//! | module | what it does |
//! |---|---|
//! | `codec` | values to bytes and back |
//! | `game` | the record of one game |
//! | `policy` | policy targets as whole numbers |
//! | [`replay()`] | plays a record under the rules, and gives its rows |
//! | [`import()`] | makes a record of a game that was played elsewhere |
//! | [`shard`] | files of finished games |
//! | [`journal`] | files of games in flight |
//! | [`samples`] | random games for tests and measurements |
//!
//! A module uses only those above it. What a network makes of the rows is left to `encoding`.
//!
//! # Example
//!
//! ```
//! use engine::record::{EvaluatorId, GameId, Header, ShardName, ShardReader, ShardWriter, replay, samples};
//! let folder = tempfile::tempdir()?;
//! let header = Header {
//!     encoding_version: engine::encoding::ENCODING_VERSION,
//!     program_version: "0.1.0".into(),
//!     evaluator: EvaluatorId { name: "uniform".into(), identity: "uniform".into() },
//!     config_digest: engine::record::digest(b""),
//!     generator: 0,
//! };
//! let mut writer = ShardWriter::create(folder.path(), ShardName { generator: 0, sequence: 0 }, &header)?;
//! writer.push(&samples::random_game(GameId { generator: 0, counter: 0 }, 7, 30))?;
//! let path = writer.finish()?;
//!
//! let reader = ShardReader::open(&path)?;
//! for record in reader {
//!     let record = record?;
//!     for turn in replay(&record)? {
//!         assert!(turn.rows.iter().all(|row| row.policy.len() == row.legal.count()));
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod codec;
mod game;
mod import;
pub mod journal;
mod policy;
mod replay;
pub mod samples;
pub mod shard;

pub use codec::MAX_CONTENT_BYTES;
pub use game::{
    Ending, EvaluatorId, FORMAT_VERSION, GameId, GameRecord, Header, RowRecord, SearchKind,
    SearchRecord, Start, StartFault, StartPosition, TurnOrigin, TurnRecord, WaivedResignation,
    digest,
};
pub use import::{IMPORTED, ImportError, import};
pub use policy::{POLICY_TOTAL, PolicyError, quantize_policy};
pub use replay::{
    EndingFault, ReplayError, ReplayedRow, ReplayedTurn, RowFault, TurnFault, replay,
};
pub use shard::{
    FrameLocation, MAX_FRAME_BYTES, ShardError, ShardFault, ShardName, ShardReader, ShardWriter,
    list_shards, remove_unfinished,
};
