//! What is wrong with a text, and where.

use crate::rules::{
    Piece, PositionError, SetupError, SetupFault, Square, SquareError, StepError, TurnError,
};
use std::borrow::Cow;

/// A text that can't be read: where, and why.
///
/// ```
/// use arimaa::notation::{NotationReason, parse_turn};
/// use arimaa::rules::Position;
/// let error = parse_turn("Ra1 Rb1\nQc1", &Position::INITIAL).unwrap_err();
/// assert_eq!((error.line, error.column), (2, 1));
/// assert_eq!(error.reason, NotationReason::Piece('Q'));
/// assert_eq!(error.to_string(), "line 2, column 1: `Q` is no piece (RCDHME of Gold, rcdhme of Silver)");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
#[error("line {line}, column {column}: {reason}")]
pub struct NotationError {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// What is wrong there.
    pub reason: NotationReason,
}

/// Why a text can't be read.
///
/// ```
/// use arimaa::notation::NotationReason;
/// use arimaa::rules::{Game, StepError, TurnError};
/// let record = "g [r                                  Er                          R]\n2g Ed4n Rh1s\n";
/// let error = record.parse::<Game>().unwrap_err();
/// assert_eq!(error.reason, NotationReason::Step(StepError::OffBoard("h1".parse()?)));
/// assert_eq!(error.reason.to_string(), "it leaves the board at h1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum NotationReason {
    /// Something else must stand here.
    #[error("{what} must stand here, not {found}")]
    Expected {
        /// What must stand here.
        what: Cow<'static, str>,
        /// What does: the text in backquotes, or the end of the line or the text.
        found: String,
    },
    /// A letter that is no side.
    #[error("`{0}` is no side (g, s)")]
    Side(char),
    /// A letter that is no piece.
    #[error("`{0}` is no piece (RCDHME of Gold, rcdhme of Silver)")]
    Piece(char),
    /// Text that names no square.
    #[error(transparent)]
    Square(#[from] SquareError),
    /// A letter that is no direction.
    #[error("`{0}` is no direction (n, e, s, w)")]
    Direction(char),
    /// A step is written with the letter of another piece than the one that stands there.
    #[error("`{written}` is written, but `{found}` stands on {square}")]
    OtherPiece {
        /// Where.
        square: Square,
        /// The piece in the text.
        written: Piece,
        /// The piece on the board.
        found: Piece,
    },
    /// A removal that did not happen in the steps before it, or that is named twice.
    #[error("no `{piece}` was lost on {square} by the steps before, or that has been said already")]
    NotRemoved {
        /// The piece in the text.
        piece: Piece,
        /// Where it should have been lost.
        square: Square,
    },
    /// A board does not have 64 squares.
    #[error("a board has 64 squares, not {0}")]
    SquareCount(usize),
    /// An `x` or `X` on a square that is no trap.
    #[error("an x marks an empty trap, and {0} is no trap")]
    NoTrap(Square),
    /// A record's turn has another number or side than the one that is due.
    #[error("turn {due} is due here, not {found}")]
    OtherTurn {
        /// The turn that is due, like `3g`.
        due: String,
        /// The turn in the text.
        found: String,
    },
    /// Pieces that are no setup: the one at fault where the text names it, else everything that is wrong with the set.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A board that is no position, with all that is wrong with it. The place is that of the first piece at fault.
    #[error(transparent)]
    Position(#[from] PositionError),
    /// A step that can't be made.
    #[error(transparent)]
    Step(#[from] StepError),
    /// A turn that can't be played.
    #[error(transparent)]
    Turn(#[from] TurnError),
}

impl From<SetupFault> for NotationReason {
    fn from(fault: SetupFault) -> Self {
        Self::Setup(fault.into())
    }
}
