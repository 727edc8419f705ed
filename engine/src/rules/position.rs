//! A position between two turns, and when the game is over in it.

use super::{Bitboard, Board, History, Kind, Outcome, Reason, Side, Square, StepState, zobrist};

/// Whether a turn sets pieces up or moves them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Phase {
    /// The first turn of each side.
    Setup,
    /// All other turns.
    Play,
}

/// A board and the side to move, between two turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    board: Board,
    side: Side,
    phase: Phase,
}

/// Why a board can't be a position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PositionError {
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
    #[error("the {kind} of {side} on the trap {square} has no friend beside it")]
    Unsupported {
        /// Whose piece.
        side: Side,
        /// Its kind.
        kind: Kind,
        /// The trap.
        square: Square,
    },
}

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
    pub fn new(board: Board, side: Side) -> Result<Self, PositionError> {
        for of in Side::ALL {
            for kind in Kind::ALL {
                let (count, limit) = (board.pieces(of, kind).count(), kind.full_count());
                if count > limit {
                    return Err(PositionError::TooMany {
                        side: of,
                        kind,
                        count,
                        limit,
                    });
                }
            }
            if let Some(square) = board.unsupported(of).first()
                && let Some(piece) = board.piece_at(square)
            {
                return Err(PositionError::Unsupported {
                    side: of,
                    kind: piece.kind,
                    square,
                });
            }
        }
        let gold_is_set_up = board.side(Side::Gold) == Bitboard::home(Side::Gold);
        let phase = match side {
            Side::Gold if board == Board::EMPTY => Phase::Setup,
            Side::Silver if gold_is_set_up && board.side(Side::Silver).is_empty() => Phase::Setup,
            _ => Phase::Play,
        };
        Ok(Self { board, side, phase })
    }

    /// A position of play on any board: neither the numbers of pieces nor unsupported pieces on traps are checked. For boards
    /// that come from elsewhere and only serve to ask what the rules say of them.
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

    /// How the game has ended here, if it has; `history` holds the positions that have stood, this one among them.
    pub fn outcome(&self, history: &History) -> Option<Outcome> {
        if self.phase == Phase::Setup {
            return None;
        }
        self.outcome_on_board().or_else(|| {
            StepState::new(self)
                .legal_actions(history)
                .is_empty()
                .then(|| Outcome {
                    winner: self.side.opponent(),
                    reason: Reason::Immobilization,
                })
        })
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
