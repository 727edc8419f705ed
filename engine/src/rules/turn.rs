//! Whole turns: a setup, or one to four steps.

use super::{Bitboard, Kind, Piece, SETUP_ORDER, Side, Square, Step, TURN_STEPS};
use arrayvec::ArrayVec;

/// Where a side's sixteen pieces stand at the start: [`Kind`]s on its home rank from a to h, then on the rank before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Setup {
    kinds: [Kind; 16],
}

/// Why pieces are no setup.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a setup has {limit} {kind}s, not {count}")]
pub struct SetupError {
    /// The kind with a wrong number of pieces.
    pub kind: Kind,
    /// How many there are.
    pub count: u32,
    /// How many there must be.
    pub limit: u32,
}

impl Setup {
    /// A setup of sixteen kinds: the home rank (1 or 8) from a to h, then the rank before it (2 or 7).
    pub fn new(kinds: [Kind; 16]) -> Result<Self, SetupError> {
        for kind in Kind::ALL {
            let count = kinds.iter().filter(|&&other| other == kind).count() as u32;
            if count != kind.full_count() {
                return Err(SetupError {
                    kind,
                    count,
                    limit: kind.full_count(),
                });
            }
        }
        Ok(Self { kinds })
    }

    /// The kinds on the home rank (1 or 8) from a to h, then on the rank before it (2 or 7).
    pub fn kinds(&self) -> &[Kind; 16] {
        &self.kinds
    }

    /// The pieces with their squares, home rank first.
    pub fn pieces(&self, side: Side) -> impl Iterator<Item = (Square, Piece)> + '_ {
        self.kinds.iter().enumerate().map(move |(index, &kind)| {
            (
                Square::wrapping(index as u8).seen_by(side),
                Piece::new(side, kind),
            )
        })
    }

    /// The eight squares on which the pieces of [`SETUP_ORDER`] are placed; of twins, the one with the lower square index as
    /// the side sees the board comes first.
    pub fn placements(&self, side: Side) -> ArrayVec<Square, 8> {
        let mut free = Bitboard::home(Side::Gold);
        let mut squares = ArrayVec::new();
        for kind in SETUP_ORDER {
            if let Some(square) = free
                .into_iter()
                .find(|square| self.kinds[square.index()] == kind)
            {
                free &= !Bitboard::of(square);
                squares.push(square.seen_by(side));
            }
        }
        squares
    }

    /// The setup that eight placements in the order of [`SETUP_ORDER`] make, rabbits filling the rest; none where a square is
    /// used twice or no home square of the side.
    pub fn from_placements(squares: &[Square; 8], side: Side) -> Option<Self> {
        let mut kinds = [Kind::Rabbit; 16];
        for (kind, square) in SETUP_ORDER.into_iter().zip(squares) {
            let slot = kinds.get_mut(square.seen_by(side).index())?;
            if *slot != Kind::Rabbit {
                return None;
            }
            *slot = kind;
        }
        Some(Self { kinds })
    }

    /// East and west exchanged.
    pub fn mirror(&self) -> Self {
        let mut kinds = self.kinds;
        kinds[..8].reverse();
        kinds[8..].reverse();
        Self { kinds }
    }
}

/// The steps of one turn of play.
pub type Steps = ArrayVec<Step, { TURN_STEPS as usize }>;

/// One side's turn.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Turn {
    /// The first turn of each side.
    Setup(Setup),
    /// One to four steps.
    Steps(Steps),
}

impl Turn {
    /// East and west exchanged.
    pub fn mirror(&self) -> Self {
        match self {
            Self::Setup(setup) => Self::Setup(setup.mirror()),
            Self::Steps(steps) => Self::Steps(
                steps
                    .iter()
                    .map(|step| Step {
                        from: step.from.mirror(),
                        direction: step.direction.mirror(),
                    })
                    .collect(),
            ),
        }
    }
}
