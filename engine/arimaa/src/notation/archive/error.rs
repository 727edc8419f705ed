//! What is wrong with an archive, and where.

use super::super::NotationReason;
use super::Termination;
use crate::rules::{Outcome, Side};
use std::fmt;

/// A fault in an archive, and where it is. The reader knows no file: who opened it names it.
#[derive(Debug, thiserror::Error)]
#[error("{}: {fault}", Place::new(*.line, *.game, .turn.as_deref()))]
pub struct ArchiveError {
    /// The line, from 1; the line with the columns' names counts.
    pub line: u64,
    /// The game's number on the server, where it could be read.
    pub game: Option<u64>,
    /// The turn at fault by its number and side as they are written, like `12w`, where one is.
    pub turn: Option<String>,
    /// What is wrong.
    pub fault: ArchiveFault,
}

impl ArchiveError {
    /// A fault of a line, of which no game is known.
    pub(super) fn of_line(line: u64, fault: ArchiveFault) -> Self {
        Self {
            line,
            game: None,
            turn: None,
            fault,
        }
    }
}

/// Where in an archive a fault is.
struct Place<'a> {
    line: u64,
    game: Option<u64>,
    turn: Option<&'a str>,
}

impl<'a> Place<'a> {
    fn new(line: u64, game: Option<u64>, turn: Option<&'a str>) -> Self {
        Self { line, game, turn }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        if let Some(game) = self.game {
            write!(f, ", game {game}")?;
        }
        if let Some(turn) = self.turn {
            write!(f, ", turn {turn}")?;
        }
        Ok(())
    }
}

/// What is wrong in an archive.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveFault {
    /// The archive could not be read. Nothing follows this error.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// There is not even a line with the columns' names.
    #[error("the archive is empty: its first line must name the columns")]
    Empty,
    /// The first line does not name all columns that must be there.
    #[error("the first line names no column {}", .0.join(", "))]
    MissingColumns(Vec<&'static str>),
    /// The first line names a column twice.
    #[error("the first line names the column {0} twice")]
    DoubleColumn(&'static str),
    /// The line is too long to be a game. What is in it is not kept.
    #[error("the line has more than {limit} bytes")]
    LineTooLong {
        /// What is allowed.
        limit: usize,
    },
    /// The lines of a game are too many to be one. They are passed over.
    #[error("the game has more than {limit} bytes")]
    GameTooLong {
        /// What is allowed.
        limit: usize,
    },
    /// The line has more or fewer fields than there are columns.
    #[error("the line has {found} fields for {expected} columns")]
    FieldCount {
        /// The line's fields.
        found: usize,
        /// The columns.
        expected: usize,
    },
    /// A field says nothing that its column could hold.
    #[error("the column {column} holds `{text}`, which is no {what}")]
    Field {
        /// The column.
        column: &'static str,
        /// The beginning of what stands there.
        text: String,
        /// What should.
        what: &'static str,
    },
    /// The server itself distrusts the record.
    #[error("the archive marks the record as corrupt")]
    Corrupt,
    /// There is no turn.
    #[error("the game has no turn")]
    NoTurns,
    /// A turn does not begin with a number and a side.
    #[error(
        "entry {entry} of the game begins with `{found}`, which is no turn's number and side (w, b, g, s)"
    )]
    Label {
        /// Which entry of the game, from 1.
        entry: usize,
        /// The beginning of what stands there.
        found: String,
    },
    /// Another turn is due.
    #[error("turn {due} is due here")]
    OtherTurn {
        /// The turn that is due, like `3g`.
        due: String,
    },
    /// There is no turn that could be taken back.
    #[error("there is no turn to take back")]
    NothingToTakeBack,
    /// Something follows the entry by which a side gave up.
    #[error("the game has been given up before this turn")]
    AfterConclusion,
    /// A turn can't be read or is illegal, or the position that a game starts from can't be read.
    #[error("column {column}: {reason}")]
    Turn {
        /// Where in the turn or line, in characters from 1, the turn's number and side included.
        column: usize,
        /// What is wrong there.
        reason: NotationReason,
    },
    /// A side that gave up has won.
    #[error("{0} has given up by the last entry, but has won")]
    LoserWon(Side),
    /// The game is over by the rules, and another side has won by the result, or in another way by the termination.
    #[error("{played}, but the archive says that {} won by {termination}", who(.winner))]
    OtherEnding {
        /// What happened.
        played: Outcome,
        /// Who won by the result.
        winner: Option<Side>,
        /// How, by the termination.
        termination: Termination,
    },
    /// The game is not over by the rules, but should be by the termination.
    #[error("the archive says that the game ended by {0}, but it is not over after its last turn")]
    NotOver(Termination),
}

fn who(winner: &Option<Side>) -> String {
    winner.map_or_else(|| "nobody".to_owned(), |side| side.to_string())
}
