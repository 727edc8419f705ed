//! Games of others: in the archive of the game's official server ([`ArchiveReader`]), or as texts that stand one after another
//! ([`RecordReader`]).
//!
//! # The archive
//! One game a line, in columns that are separated by tabs. The first line names them, in any order; unknown ones are ignored.
//! Every line has as many fields as the first. A line that is no UTF-8 is read as Latin-1.
//!
//! | column | what | where it is missing or empty |
//! |---|---|---|
//! | `id` | the game's number on the server | an error |
//! | `result` | who won: `w` or `g` for Gold, `b` or `s` for Silver; nobody: `d`, `n`, `u`, or empty | an error without the column |
//! | `termination` | how it ended, see [`Termination`] | an error without the column |
//! | `movelist` | the turns, see below | an error |
//! | `wusername`, `busername` | the names of Gold and Silver | empty |
//! | `wrating`, `brating` | their ratings then | none |
//! | `event` | what the game was played for | empty |
//! | `rated` | `1` where the game counted for the ratings, `0` where not | not known |
//! | `corrupt` | `1` where the server itself distrusts the record, which is refused | trusted |
//!
//! The turns are separated by a backslash and an `n`. A record is refused whose turns break the rules, or whose result or
//! termination is not what the rules say of them. So a game that was played under the older rules of the server, which ended
//! otherwise, is no game here.
//!
//! # Texts
//! One turn a line. A game begins with the turn `1g` or `1w`, or, if it did not start with the setups, with its first position
//! in the short form, and is then numbered from 2. Blank lines, lines that begin with `#`, and lines whose first word ends with
//! a colon (as tags do: `Gold: anna`) say nothing. So every text of [`format_record`](super::format_record) is one, and so are
//! several of them one behind the other; [`format_concluded_record`] adds how a game was lost that the rules did not end.
//!
//! # Turns
//! Each begins with its number and side, `w` and `b` before August 2008, `g` and `s` since: `12w Ed4n …`. The placements of `1w`
//! and `1b` and the steps are those of [`parse_turn`](super::parse_turn), lost pieces with `x` included. What else stands behind
//! a number and side:
//!
//! - nothing: the turn was due when the game ended. It plays nothing.
//! - `takeback`: the turn before it is taken back, and due again. What is taken back is not played, hence not checked.
//! - `resigns`, `resign`, `resigned`: the side gave up; `lost`: it lost otherwise. No turn follows. Usually the side is to move;
//!   if not, this stands behind its next turn's number.

mod error;
mod movelist;
mod reader;
#[cfg(test)]
mod tests;
mod text;

pub use error::{ArchiveError, ArchiveFault};
pub use movelist::{SideLetters, format_movelist};
pub use reader::{ArchiveColumns, ArchiveLine, ArchiveReader, MAX_LINE_BYTES};
pub(super) use text::is_note;
pub use text::{RecordReader, RecordText, WrittenGame, format_concluded_record};

use crate::rules::{Game, Reason, Side};
use std::fmt;

/// A game of the archive.
#[derive(Debug, Clone, PartialEq)]
pub struct ArchivedGame {
    /// The line that it stands in, from 1; the line with the columns' names counts.
    pub line: u64,
    /// Its number on the server.
    pub id: u64,
    /// Who played Gold.
    pub gold: ArchivedPlayer,
    /// Who played Silver.
    pub silver: ArchivedPlayer,
    /// What it was played for; may be empty.
    pub event: String,
    /// Whether it counted for the ratings, where that is known.
    pub is_rated: Option<bool>,
    /// Who won, by the rules or otherwise; none where nobody did.
    pub winner: Option<Side>,
    /// How it ended, as it is written.
    pub termination: Termination,
    /// How it was lost, where the rules did not end it and somebody won.
    pub conclusion: Option<Conclusion>,
    /// Its turns, from the setups on. Where they end the game by the rules, `winner` is who won by them.
    pub game: Game,
}

/// How a game was lost that the rules did not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conclusion {
    /// The other side gave up.
    Resigned {
        /// Who won.
        winner: Side,
    },
    /// The other side lost by something outside the game: its clock, an illegal turn, a decision of the server.
    Forfeited {
        /// Who won.
        winner: Side,
    },
}

impl Conclusion {
    /// Who won.
    pub fn winner(self) -> Side {
        match self {
            Self::Resigned { winner } | Self::Forfeited { winner } => winner,
        }
    }
}

/// A player of a game of the archive.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ArchivedPlayer {
    /// The name on the server; may be empty.
    pub name: String,
    /// The rating when the game was played, in Elo points of the server; finite.
    pub rating: Option<f64>,
}

/// How a game of the archive ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Termination {
    /// By the rules: `g` goal, `e` elimination, `m` immobilization.
    Rules(Reason),
    /// `r`: a side gave up.
    Resignation,
    /// `t`: a side ran out of time.
    Time,
    /// `s`: the time for the game was up, and the score decided.
    Score,
    /// `f`: a side forfeited.
    Forfeit,
    /// `i`: a side made an illegal turn.
    IllegalTurn,
    /// `p`: a side repeated a position, which once lost the game.
    Repetition,
    /// `a`: the game was abandoned.
    Abandoned,
    /// Anything else, as it is written; often empty.
    Other(String),
}

impl Termination {
    /// Reads a code of the archive. Those that are not known are kept: they say nothing that could be checked.
    pub fn from_code(code: &str) -> Self {
        match code {
            "g" => Self::Rules(Reason::Goal),
            "e" => Self::Rules(Reason::Elimination),
            "m" => Self::Rules(Reason::Immobilization),
            "r" => Self::Resignation,
            "t" => Self::Time,
            "s" => Self::Score,
            "f" => Self::Forfeit,
            "i" => Self::IllegalTurn,
            "p" => Self::Repetition,
            "a" => Self::Abandoned,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// In words: `goal`, `resignation`.
impl fmt::Display for Termination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rules(reason) => return reason.fmt(f),
            Self::Resignation => "resignation",
            Self::Time => "time",
            Self::Score => "score",
            Self::Forfeit => "forfeit",
            Self::IllegalTurn => "an illegal turn",
            Self::Repetition => "repetition",
            Self::Abandoned => "abandonment",
            Self::Other(code) => return write!(f, "`{code}`"),
        })
    }
}
