//! Games of the archive, and how they ended.

use crate::rules::{Game, Reason, Side};
use std::fmt;

/// A game of the archive.
#[derive(Debug, Clone, PartialEq)]
pub struct ArchivedGame {
    /// The line that it stands in, from 1; the line with the columns' names counts.
    pub line: usize,
    /// Its number on the server.
    pub id: u64,
    /// The player of Gold.
    pub gold: ArchivedPlayer,
    /// The player of Silver.
    pub silver: ArchivedPlayer,
    /// What it was played for; may be empty.
    pub event: String,
    /// Whether it counted for the ratings, where that is known.
    pub is_rated: Option<bool>,
    /// The winner, by the rules or otherwise; none without one.
    pub winner: Option<Side>,
    /// How it ended, as it is written.
    pub termination: Termination,
    /// How it was lost, where the rules did not end it and a side won.
    pub conclusion: Option<Conclusion>,
    /// Its turns, from the setups on. Where they end the game by the rules, `winner` is the winner by them.
    pub game: Game,
}

/// How a game was lost that the rules did not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conclusion {
    /// The other side gave up.
    Resigned {
        /// The winner.
        winner: Side,
    },
    /// The other side lost by something outside the game: its clock, an illegal turn, a decision of the server.
    Forfeited {
        /// The winner.
        winner: Side,
    },
}

impl Conclusion {
    /// The winner.
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
