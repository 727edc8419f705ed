//! What can be wrong with a journal.

use super::games::FORMAT_VERSION;
use crate::encoding::READABLE_VERSIONS;
use crate::record::game::{GameId, StartFault};
use crate::record::replay::ReplayError;
use crate::record::shard::{ShardError, ShardName};
use std::path::{Path, PathBuf};

/// A fault in a journal, and where it is.
#[derive(Debug, thiserror::Error)]
#[error("{}: {}{fault}", .path.display(), .offset.map_or(String::new(), |offset| format!("byte {offset}: ")))]
pub struct JournalError {
    /// The file or folder.
    pub path: PathBuf,
    /// The byte in the file where what is at fault begins, where it is not the file as a whole.
    pub offset: Option<u64>,
    /// What is wrong.
    pub fault: JournalFault,
}

impl JournalError {
    /// A fault of a file as a whole.
    pub(super) fn of_file(path: &Path, fault: impl Into<JournalFault>) -> Self {
        Self {
            path: path.to_owned(),
            offset: None,
            fault: fault.into(),
        }
    }

    /// Whether the disk may be at fault, and writing may succeed later.
    pub fn is_temporary(&self) -> bool {
        matches!(&self.fault, JournalFault::Io(error) if crate::files::is_temporary(error))
    }

    /// A fault at a byte of a file.
    pub(super) fn at(path: &Path, offset: u64, fault: impl Into<JournalFault>) -> Self {
        Self {
            offset: Some(offset),
            ..Self::of_file(path, fault)
        }
    }
}

/// What is wrong with a journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalFault {
    /// The file or folder could not be read or written.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The file is not there any more.
    #[error(
        "the journal is gone: it was removed, or another generator has taken it over; the games in flight can't be kept"
    )]
    Gone,
    /// The thread that flushes the journal has ended before the journal was closed.
    #[error(
        "the thread that flushes the journal to the disk has ended: a power cut would take more than the last second"
    )]
    NotFlushed,
    /// Another program holds the generator's lock.
    #[error("another program works as generator {generator}: it holds this lock")]
    Locked {
        /// The generator's number.
        generator: u32,
    },
    /// The generator's games were taken over, and its number is not used again.
    #[error("generator {generator} has been taken over by another; claim a new number")]
    TakenOver {
        /// The generator's number.
        generator: u32,
    },
    /// The name is not one that journals have.
    #[error("the name of a journal is like 000-000000.journal or 000-000000.adopted")]
    Name,
    /// The generator has used up the numbers of its files.
    #[error("there is no number left for another file of generator {generator}")]
    Full {
        /// The generator's number.
        generator: u32,
    },
    /// The file begins with something else.
    #[error("this is not a journal: its first bytes differ")]
    NotAJournal,
    /// The file is of another format version.
    #[error("the journal has format version {found}; this program reads version {FORMAT_VERSION}")]
    Version {
        /// The file's version.
        found: u32,
    },
    /// The action indices in the file mean something else.
    #[error(
        "the journal has encoding version {found}; this program resumes games of versions {} to {expected}",
        READABLE_VERSIONS.start()
    )]
    EncodingVersion {
        /// The file's encoding version.
        found: u32,
        /// This program's.
        expected: u32,
    },
    /// A frame does not begin with its mark.
    #[error("no frame begins here")]
    Mark,
    /// The file ends before its frame does, or the frame's length can't be true.
    #[error("the frame claims {length} bytes, but at most {left} are left")]
    Length {
        /// The stated length of the payload, in bytes.
        length: u64,
        /// The bytes left in the file, or the most that a frame may have.
        left: u64,
    },
    /// The bytes are not those that were written.
    #[error("the checksum is {stored:08x}, but that of the bytes is {computed:08x}")]
    Checksum {
        /// What the file says.
        stored: u32,
        /// What the bytes give.
        computed: u32,
    },
    /// The content doesn't have the form of a frame's.
    #[error("the content can't be read: {0}")]
    Content(String),
    /// A frame stands where a header is due, or a header where none is.
    #[error("a journal has one header, and it comes first")]
    Header,
    /// A game begins a second time.
    #[error("game {0} begins again")]
    BeginsAgain(GameId),
    /// Something is said of a game that has not begun, or has ended.
    #[error("game {0} is not in flight")]
    NotInFlight(GameId),
    /// A turn or evaluator does not follow the one before it.
    #[error("{what} {found} of game {game} comes where {what} {expected} is due")]
    Order {
        /// What comes.
        what: &'static str,
        /// The game.
        game: GameId,
        /// The number found, from 0.
        found: u32,
        /// The number that was due.
        expected: u32,
    },
    /// A game's start is no position.
    #[error("game {game}: start: {error}")]
    Start {
        /// The game.
        game: GameId,
        /// What is wrong with it.
        error: StartFault,
    },
    /// A turn names an evaluator that its game doesn't have.
    #[error("a turn of game {game} names evaluator {evaluator} of {count}")]
    Evaluator {
        /// The game.
        game: GameId,
        /// The place that the turn names, from 0.
        evaluator: u16,
        /// How many the game has.
        count: u32,
    },
    /// A game has as many evaluators as turns can name.
    #[error("game {0} has no place left for another evaluator")]
    Evaluators(GameId),
    /// A game stands in the journals of two generators.
    #[error("game {0} is also in another generator's journal")]
    Twice(GameId),
    /// The files were renamed and replaced by other programs all the time while they were read.
    #[error("the files of this folder changed while they were read")]
    Changing,
    /// A shard is called complete that no game was to be in.
    #[error("shard {0} was not announced")]
    NotAnnounced(ShardName),
    /// The turns break the rules, or their rows don't fit them.
    #[error("game {game}: {error}")]
    Game {
        /// The game.
        game: GameId,
        /// What is wrong with it.
        error: Box<ReplayError>,
    },
    /// A shard that may hold games of the journal can't be read.
    #[error("a shard that may hold its games can't be read: {0}")]
    Shard(Box<ShardError>),
}
