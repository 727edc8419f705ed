//! A position between two turns, and when the game is over in it.

use super::{Bitboard, Board, Faults, Kind, Piece, Side, Square, zobrist};
use std::fmt;

/// Whether a turn sets pieces up or moves them.
///
/// ```
/// use arimaa::rules::{Phase, Position};
/// assert_eq!(Position::INITIAL.phase(), Phase::Setup);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
#[repr(u8)]
pub enum Phase {
    /// The first turn of each side.
    Setup,
    /// All other turns.
    Play,
}

/// A board and the side to move, between two turns.
///
/// ```
/// use arimaa::rules::{History, Position, Side};
/// let position: Position = "g [r                                  Er                          R]".parse()?;
/// assert_eq!(position.side(), Side::Gold);
/// assert_eq!(position.board().occupied().count(), 4);
/// assert_eq!(position.outcome(&History::default()), None);
/// // The mirror, and the same game with the sides' names exchanged.
/// assert_eq!(position.mirror().to_string(), "g [       r                           rE                   R       ]");
/// assert_eq!(position.swap_colours().to_string(), "s [       r                   eR                           R       ]");
/// # Ok::<(), arimaa::notation::NotationError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    board: Board,
    side: Side,
    phase: Phase,
}

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
    /// The winner.
    pub winner: Side,
    /// How.
    pub reason: Reason,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} wins by {}", self.winner, self.reason)
    }
}

/// One reason why a board can't be a position.
///
/// ```
/// use arimaa::rules::{Board, Position, PositionFault, Side};
/// let alone_on_c3: Board = "[                                          C                     ]".parse()?;
/// let faults = Position::new(alone_on_c3, Side::Gold).unwrap_err();
/// let fault = PositionFault::Unsupported { square: "c3".parse()?, piece: "C".parse()? };
/// assert_eq!(faults.first(), &fault);
/// assert_eq!(fault.to_string(), "the cat of Gold on the trap c3 has no friend beside it");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum PositionFault {
    /// A side has more pieces of a kind than a game starts with.
    #[error("{side} has {count} {kind}s, but never has more than {limit}")]
    TooMany {
        /// Whose pieces.
        side: Side,
        /// Their kind.
        kind: Kind,
        /// How many there are.
        count: u32,
        /// How many there may be.
        limit: u32,
    },
    /// A piece stands on a trap without a friend beside it.
    #[error("the {} of {} on the trap {square} has no friend beside it", piece.kind, piece.side)]
    Unsupported {
        /// The trap.
        square: Square,
        /// What stands there.
        piece: Piece,
    },
}

/// Why a board can't be a position: all reasons at once. Those of Gold come first, for each side its numbers of pieces from
/// rabbits to elephants, then its traps from c3 to f6.
///
/// ```
/// use arimaa::rules::{Board, Position, PositionError, Side};
/// let board: Board = "[MM                                        c                     ]".parse()?;
/// let error: PositionError = Position::new(board, Side::Gold).unwrap_err();
/// assert_eq!(
///     error.iter().map(|fault| fault.to_string()).collect::<Vec<_>>(),
///     ["Gold has 2 camels, but never has more than 1", "the cat of Silver on the trap c3 has no friend beside it"]
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type PositionError = Faults<PositionFault>;

impl Default for Position {
    fn default() -> Self {
        Self::INITIAL
    }
}

impl Position {
    /// The empty board before Gold's setup.
    pub const INITIAL: Self = Self {
        board: Board::EMPTY,
        side: Side::Gold,
        phase: Phase::Setup,
    };

    /// A position for analysis. The empty board with Gold to move, and a whole gold setup alone with Silver to move, are the
    /// two setup turns; everything else is play.
    ///
    /// # Errors
    /// Every reason for which the board is impossible: too many pieces of a kind, pieces on traps without a friend beside them.
    pub fn new(board: Board, side: Side) -> Result<Self, PositionError> {
        Faults::refuse_any(Side::ALL.into_iter().flat_map(|of| faults(&board, of)))?;
        let gold_is_set_up = board.side(Side::Gold) == Bitboard::home(Side::Gold);
        let phase = match side {
            Side::Gold if board == Board::EMPTY => Phase::Setup,
            Side::Silver if gold_is_set_up && board.side(Side::Silver).is_empty() => Phase::Setup,
            _ => Phase::Play,
        };
        Ok(Self { board, side, phase })
    }

    /// A position of play on any board: neither the numbers of pieces nor unsupported pieces on traps are checked. For boards
    /// that come from elsewhere and only serve to ask what the rules say of them. (A step makes only the trap act that it
    /// concerns; what stands unsupported on another stays there. What is said of turns and goals holds for boards without such
    /// pieces.)
    pub fn in_play(board: Board, side: Side) -> Self {
        Self::from_parts(board, side, Phase::Play)
    }

    #[inline]
    pub(super) fn from_parts(board: Board, side: Side, phase: Phase) -> Self {
        Self { board, side, phase }
    }

    /// The pieces.
    #[inline]
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// The side to move.
    #[inline]
    pub fn side(&self) -> Side {
        self.side
    }

    /// Setup or play.
    #[inline]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The Zobrist key of board, side and phase: what repetition goes by.
    #[inline]
    pub fn key(&self) -> u64 {
        Self::key_of(self.board.key(), self.side, self.phase)
    }

    /// The key of a position whose board has the key `board`.
    #[inline]
    pub(super) fn key_of(board: u64, side: Side, phase: Phase) -> u64 {
        board ^ zobrist::side(side) ^ zobrist::setup(phase == Phase::Setup)
    }

    /// How the game has ended here by goal or elimination: everything but the search for a legal turn.
    #[inline]
    pub fn outcome_on_board(&self) -> Option<Outcome> {
        if self.phase == Phase::Setup {
            return None;
        }
        let (mover, next) = (self.side.opponent(), self.side);
        let rabbits = |side| self.board.pieces(side, Kind::Rabbit);
        let at_goal = |side| !(rabbits(side) & Bitboard::goal(side)).is_empty();
        let outcome = |winner, reason| Some(Outcome { winner, reason });
        if at_goal(mover) {
            outcome(mover, Reason::Goal)
        } else if at_goal(next) {
            outcome(next, Reason::Goal)
        } else if rabbits(next).is_empty() {
            outcome(mover, Reason::Elimination)
        } else if rabbits(mover).is_empty() {
            outcome(next, Reason::Elimination)
        } else {
            None
        }
    }

    /// East and west exchanged.
    pub fn mirror(&self) -> Self {
        Self {
            board: self.board.mirror(),
            ..*self
        }
    }

    /// The colours exchanged and the ranks flipped. Meant for play: Silver never sets up first.
    pub fn swap_colours(&self) -> Self {
        Self {
            board: self.board.swap_colours(),
            side: self.side.opponent(),
            phase: self.phase,
        }
    }
}

/// What is impossible about a side's pieces.
fn faults(board: &Board, side: Side) -> impl Iterator<Item = PositionFault> + '_ {
    let too_many = Kind::ALL.into_iter().filter_map(move |kind| {
        let (count, limit) = (board.pieces(side, kind).count(), kind.full_count());
        (count > limit).then_some(PositionFault::TooMany {
            side,
            kind,
            count,
            limit,
        })
    });
    let unsupported = board.unsupported(side).into_iter().filter_map(|square| {
        let piece = board.piece_at(square)?;
        Some(PositionFault::Unsupported { square, piece })
    });
    too_many.chain(unsupported)
}
