//! What can be wrong with a shard.

use crate::record::game::{FORMAT_VERSION, GameId};
use crate::record::replay::ReplayError;
use std::io::ErrorKind::{InvalidInput, UnexpectedEof};
use std::path::{Path, PathBuf};

/// A fault in a shard, and where it is.
#[derive(Debug, thiserror::Error)]
#[error("{}: {}{fault}", .path.display(), location(*.frame, *.offset))]
pub struct ShardError {
    /// The file or folder.
    pub path: PathBuf,
    /// The frame, where one is at fault: 0 is the header, games count from 1.
    pub frame: Option<u64>,
    /// The byte in the file where what is at fault begins.
    pub offset: u64,
    /// What is wrong.
    pub fault: ShardFault,
}

impl ShardError {
    /// A fault of a file as a whole.
    pub(super) fn of_file(path: &Path, fault: impl Into<ShardFault>) -> Self {
        Self::at(path, 0, fault)
    }

    /// A fault at a byte that is no frame's.
    pub(super) fn at(path: &Path, offset: u64, fault: impl Into<ShardFault>) -> Self {
        Self {
            path: path.to_owned(),
            frame: None,
            offset,
            fault: fault.into(),
        }
    }

    /// Whether the file could not be read, so that what it holds is unknown.
    pub fn is_unreadable(&self) -> bool {
        matches!(&self.fault, ShardFault::Io(error) if !matches!(error.kind(), InvalidInput | UnexpectedEof))
    }
}

/// Where in a file a fault is, as the beginning of a message; nothing for the file as a whole.
fn location(frame: Option<u64>, offset: u64) -> String {
    match (frame, offset) {
        (Some(frame), offset) => format!("frame {frame} at byte {offset}: "),
        (None, 0) => String::new(),
        (None, offset) => format!("byte {offset}: "),
    }
}

/// What is wrong with a shard.
#[derive(Debug, thiserror::Error)]
pub enum ShardFault {
    /// The file could not be read or written.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// A shard of this name is there already.
    #[error("the file exists already, and is not overwritten")]
    Exists,
    /// The name is not one that shards have.
    #[error("the name of a shard is like 000-000000.shard: generator and sequence number")]
    Name,
    /// The file begins with something else.
    #[error("this is not a shard: its first bytes differ")]
    NotAShard,
    /// The file is of another format version.
    #[error(
        "the shard has format version {found}; this program reads version {FORMAT_VERSION}: use the program that wrote it"
    )]
    Version {
        /// The file's version.
        found: u32,
    },
    /// The file's start names one format version, the header another.
    #[error(
        "the file begins as one of format version {start}, and its header is of version {header}"
    )]
    Versions {
        /// What stands before the first frame.
        start: u32,
        /// What the first frame says.
        header: u32,
    },
    /// The file stops before its end frame.
    #[error("the file is cut off: it has no end frame")]
    CutOff,
    /// A frame's length can't be true, so that it doesn't say where the next one begins.
    #[error("it claims {length} bytes, but at most {left} are left")]
    Length {
        /// The stated length of the payload, in bytes.
        length: u32,
        /// The bytes left in the file, or the most that a frame may have.
        left: u32,
    },
    /// The bytes are not those that were written.
    #[error("the checksum is {stored:08x}, but that of the bytes is {computed:08x}")]
    Checksum {
        /// What the file says.
        stored: u32,
        /// What the bytes give.
        computed: u32,
    },
    /// The payload can't be decompressed.
    #[error("the payload can't be decompressed: {0}")]
    Compression(String),
    /// The content is larger than any record may be.
    #[error("{bytes} bytes are too many; the limit is {limit}")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// What is allowed.
        limit: u64,
    },
    /// The content doesn't have the form of a frame's.
    #[error("the content can't be read: {0}")]
    Content(String),
    /// There is more in the frame than its content.
    #[error("{bytes} bytes follow the content")]
    LeftOver {
        /// How many.
        bytes: usize,
    },
    /// A frame of one kind stands where another is due.
    #[error("found a frame of kind {found}, expected kind {expected}")]
    Kind {
        /// The kind found.
        found: &'static str,
        /// What was due.
        expected: &'static str,
    },
    /// The end frame counts other games than there are.
    #[error("the shard says that it holds {stated} games, but there are {found}")]
    Count {
        /// What the end frame says.
        stated: u64,
        /// The game frames in the file, unreadable ones included.
        found: u64,
    },
    /// Bytes follow the end frame.
    #[error("{bytes} bytes follow the shard's end")]
    Trailing {
        /// How many.
        bytes: u64,
    },
    /// The search for the next whole frame ([`ShardReader::resync`](super::ShardReader::resync)) was given up.
    #[error("{bytes} bytes after it look like frames but are not; the rest is not searched")]
    Decoys {
        /// How many, those that stand in several of them counted as often.
        bytes: u64,
    },
    /// An earlier error left the unfinished file in an unknown state.
    #[error("an earlier write failed; the shard is abandoned")]
    GivenUp,
    /// The game breaks the rules, or its rows don't fit it.
    #[error("game: {0}")]
    Game(#[from] ReplayError),
    /// The game is there twice. One shard alone does not show that: only a reader of all of them finds it.
    #[error("game {id} is there already: {} at byte {offset}", .path.display())]
    Doubled {
        /// Which game.
        id: GameId,
        /// The shard in which it was found first.
        path: PathBuf,
        /// The first byte of its frame there.
        offset: u64,
    },
}

impl ShardFault {
    /// Whether the file is a shard that is damaged behind its start: other games of it may be good.
    pub fn is_damage(&self) -> bool {
        !matches!(
            self,
            Self::Io(_)
                | Self::Exists
                | Self::Name
                | Self::NotAShard
                | Self::Version { .. }
                | Self::Versions { .. }
                | Self::GivenUp
        )
    }
}
