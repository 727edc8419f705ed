//! Who won, and how.

use super::Side;
use std::fmt;

/// How a game ended.
///
/// ```
/// use arimaa::rules::Reason;
/// assert_eq!(Reason::Immobilization.to_string(), "immobilization");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Reason {
    /// A rabbit stands on its goal rank at the end of a turn.
    Goal,
    /// A side has no rabbits left.
    Elimination,
    /// The side to move has no legal turn.
    Immobilization,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Goal => "goal",
            Self::Elimination => "elimination",
            Self::Immobilization => "immobilization",
        })
    }
}

/// The end of a game. There are no draws.
///
/// ```
/// use arimaa::rules::{History, Position};
/// let position: Position = "s [   R                                r                           ]".parse()?;
/// let outcome = position.outcome(&History::default());
/// assert_eq!(outcome.map(|outcome| outcome.to_string()).as_deref(), Some("Gold wins by goal"));
/// # Ok::<(), arimaa::notation::NotationError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Outcome {
    /// Who won.
    pub winner: Side,
    /// How.
    pub reason: Reason,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} wins by {}", self.winner, self.reason)
    }
}
