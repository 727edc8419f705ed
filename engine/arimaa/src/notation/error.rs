//! What is wrong with a text, and where.

use crate::rules::{
    Outcome, Piece, PositionError, Reason, SetupError, SetupFault, Side, Square, SquareError,
    StepError, TurnError,
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
/// assert_eq!(error.to_string(), "line 2, column 1: `Q` is not a piece (RCDHME of Gold, rcdhme of Silver)");
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
    #[error("{what} was expected, not {found}")]
    Expected {
        /// What must stand here.
        what: Cow<'static, str>,
        /// What does: the text in backquotes, or the end of the line or the text.
        found: String,
    },
    /// A letter that is no side.
    #[error("`{0}` is not a side (g, s)")]
    Side(char),
    /// A letter that is no piece.
    #[error("`{0}` is not a piece (RCDHME of Gold, rcdhme of Silver)")]
    Piece(char),
    /// Text that names no square.
    #[error(transparent)]
    Square(#[from] SquareError),
    /// A letter that is no direction.
    #[error("`{0}` is not a direction (n, e, s, w)")]
    Direction(char),
    /// A step is written with the letter of another piece than the one that stands there.
    #[error("`{written}` is written, but `{found}` is on {square}")]
    OtherPiece {
        /// Where.
        square: Square,
        /// The piece in the text.
        written: Piece,
        /// The piece on the board.
        found: Piece,
    },
    /// A removal that did not happen in the steps before it, or that is named twice.
    #[error(
        "no `{piece}` was captured on {square} by the previous steps, or its capture is written twice"
    )]
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
    #[error("an x marks an empty trap, and {0} is not a trap")]
    NoTrap(Square),
    /// A record's turn has another number or side than the one that is due.
    #[error("turn {due} was expected, not {found}")]
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
    /// A source could not be read, for this reason. Nothing follows this error.
    #[error("{0}")]
    Io(String),
    /// A line or a game is too long to be one. It is passed over.
    #[error("the {what} has more than {limit} bytes")]
    TooLong {
        /// The line or the game.
        what: Cow<'static, str>,
        /// The most bytes that it may have.
        limit: usize,
    },
    /// The first line of an archive does not name these columns, which must be there.
    #[error("the first line names no column {0}")]
    MissingColumns(String),
    /// The first line of an archive names a column twice.
    #[error("the first line names the column {0} twice")]
    DoubleColumn(String),
    /// A line of an archive has more or fewer fields than there are columns.
    #[error("the line has {found} fields for {expected} columns")]
    FieldCount {
        /// The line's fields.
        found: usize,
        /// The columns.
        expected: usize,
    },
    /// The server itself distrusts the record.
    #[error("the archive marks the record as corrupt")]
    Corrupt,
    /// A game has no turn.
    #[error("the game has no turn")]
    NoTurns,
    /// There is no turn that could be taken back.
    #[error("there is no turn to take back")]
    NothingToTakeBack,
    /// Something follows the entry by which a side gave up.
    #[error("the game was resigned before this turn")]
    AfterConclusion,
    /// A side that gave up has won.
    #[error("{0} resigned in the last entry, but has won")]
    LoserWon(Side),
    /// The game is over by the rules, but the archive names another winner or another way.
    #[error("{played}, but the archive says that {} won by {termination}", name_of(.winner))]
    OtherEnding {
        /// What the turns say.
        played: Outcome,
        /// The winner by the archive.
        winner: Option<Side>,
        /// How the game ended by the archive.
        termination: String,
    },
    /// The archive says that the rules ended the game, but it is not over.
    #[error("the archive says that the game ended by {0}, but it is not over after its last turn")]
    NotOver(Reason),
}

fn name_of(winner: &Option<Side>) -> String {
    winner.map_or_else(|| "no side".to_owned(), |side| side.to_string())
}

impl From<SetupFault> for NotationReason {
    fn from(fault: SetupFault) -> Self {
        Self::Setup(fault.into())
    }
}
