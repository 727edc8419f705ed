//! Whole turns: a setup, or one to four steps.

use super::action::{Action, Step};
use super::bitboard::Bitboard;
use super::board::Board;
use super::faults::Faults;
use super::piece::{Kind, Piece, Side};
use super::position::{Phase, Position};
use super::square::Square;
use super::state::{SETUP_ORDER, TURN_STEPS};
use arrayvec::ArrayVec;

/// Where a side's sixteen pieces stand at the start: [`Kind`]s on its home rank from a to h, then on the rank before it.
///
/// ```
/// use arimaa::rules::{Kind, Setup, Side};
/// // The rank in front, then the home rank, as text.
/// let setup: Setup = "RHCEMCHR/RRRDDRRR".parse()?;
/// assert_eq!(setup.kinds()[3..5], [Kind::Dog, Kind::Dog]);
/// let words = setup.pieces(Side::Silver).map(|(square, piece)| format!("{piece}{square}"));
/// assert_eq!(words.take(4).collect::<Vec<_>>(), ["ra8", "rb8", "rc8", "dd8"]);
/// # Ok::<(), arimaa::notation::NotationError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Setup {
    kinds: [Kind; 16],
}

/// One reason why pieces are no setup.
///
/// ```
/// use arimaa::rules::{Board, Setup, SetupFault, Side};
/// let wrong: Board = "[                                E               RHC MCHRRRRDDRRR]".parse()?;
/// let faults = Setup::from_board(&wrong, Side::Gold).unwrap_err();
/// assert_eq!(faults.first(), &SetupFault::WrongRank { square: "a4".parse()?, side: Side::Gold });
/// assert_eq!(faults.to_string(), "Gold does not set up on a4");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum SetupFault {
    /// A wrong number of pieces of a kind.
    #[error("a setup has {limit} {kind}s, not {count}")]
    WrongCount {
        /// The kind.
        kind: Kind,
        /// How many there are.
        count: u32,
        /// How many there must be.
        limit: u32,
    },
    /// A piece beyond the side's two ranks.
    #[error("{side} does not set up on {square}")]
    WrongRank {
        /// Where.
        square: Square,
        /// The side that sets up.
        side: Side,
    },
    /// Two pieces on a square.
    #[error("a piece is placed on {0} already")]
    PlacedTwice(Square),
    /// A piece of the side that doesn't set up.
    #[error("`{piece}` on {square} is not of {side}, the side that sets up")]
    OtherSide {
        /// Where.
        square: Square,
        /// What stands there.
        piece: Piece,
        /// The side that sets up.
        side: Side,
    },
}

/// Why pieces are no setup: all reasons at once. Squares come first, from a1 to h8, then wrong numbers, from rabbits to
/// elephants.
///
/// ```
/// use arimaa::rules::{Kind, Setup, SetupFault};
/// let faults = Setup::new([Kind::Rabbit; 16]).unwrap_err();
/// assert_eq!(faults.len(), 6);
/// assert_eq!(faults.first(), &SetupFault::WrongCount { kind: Kind::Rabbit, count: 16, limit: 8 });
/// ```
pub type SetupError = Faults<SetupFault>;

impl Setup {
    /// A setup of sixteen kinds: the home rank (1 or 8) from a to h, then the rank before it (2 or 7).
    ///
    /// # Errors
    /// Every kind of which there is a wrong number.
    pub fn new(kinds: [Kind; 16]) -> Result<Self, SetupError> {
        let count = |kind| kinds.iter().filter(|&&other| other == kind).count() as u32;
        Faults::refuse_any(wrong_counts(count))?;
        Ok(Self { kinds })
    }

    /// The setup of a side that stands on a board without enemy pieces.
    ///
    /// # Errors
    /// Every piece of the other side, every piece beyond the side's two ranks, and every kind of which there is a wrong number.
    pub fn from_board(board: &Board, side: Side) -> Result<Self, SetupError> {
        let wrong_squares = board.iter().filter_map(|(square, piece)| {
            if piece.side != side {
                Some(SetupFault::OtherSide {
                    square,
                    piece,
                    side,
                })
            } else if !Bitboard::home(side).contains(square) {
                Some(SetupFault::WrongRank { square, side })
            } else {
                None
            }
        });
        let count = |kind| board.pieces(side, kind).count();
        Faults::refuse_any(wrong_squares.chain(wrong_counts(count)))?;
        let mut kinds = [Kind::Rabbit; 16];
        for (square, piece) in board.iter() {
            if let Some(slot) = kinds.get_mut(square.seen_by(side).index()) {
                *slot = piece.kind;
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

    /// The setup that eight placements in the order of [`SETUP_ORDER`] make, rabbits filling the rest.
    ///
    /// # Errors
    /// Every square that is used twice or is no home square of the side.
    pub fn from_placements(squares: &[Square; 8], side: Side) -> Result<Self, SetupError> {
        let mut kinds = [Kind::Rabbit; 16];
        let mut faults = ArrayVec::<SetupFault, 8>::new();
        for (kind, &square) in SETUP_ORDER.into_iter().zip(squares) {
            match kinds.get_mut(square.seen_by(side).index()) {
                Some(slot) if *slot == Kind::Rabbit => *slot = kind,
                Some(_) => faults.push(SetupFault::PlacedTwice(square)),
                None => faults.push(SetupFault::WrongRank { square, side }),
            }
        }
        Faults::refuse_any(faults)?;
        Ok(Self { kinds })
    }

    /// East and west exchanged.
    pub fn mirror(&self) -> Self {
        let mut kinds = self.kinds;
        kinds[..8].reverse();
        kinds[8..].reverse();
        Self { kinds }
    }
}

/// The kinds of which there is a wrong number for a setup.
fn wrong_counts(count: impl Fn(Kind) -> u32) -> impl Iterator<Item = SetupFault> {
    Kind::ALL.into_iter().filter_map(move |kind| {
        let (count, limit) = (count(kind), kind.full_count());
        (count != limit).then_some(SetupFault::WrongCount { kind, count, limit })
    })
}

/// The steps of one turn of play.
///
/// ```
/// use arimaa::rules::{Step, Steps};
/// let steps: Steps = ["d2n".parse::<Step>()?, "d3n".parse()?].into_iter().collect();
/// assert_eq!(steps.last().map(|step| step.from.to_string()), Some("d3".to_owned()));
/// # Ok::<(), arimaa::notation::NotationError>(())
/// ```
pub type Steps = ArrayVec<Step, { TURN_STEPS as usize }>;

/// One side's turn.
///
/// Its own text says no more than it knows, for the pieces stand on a board: steps by their squares, or a setup. The notation
/// of games, `Ed2n Ed3n`, is [`format_turn`](crate::notation::format_turn) and [`parse_turn`](crate::notation::parse_turn).
///
/// ```
/// use arimaa::rules::Turn;
/// let turn: Turn = "d2n d3n".parse()?;
/// assert_eq!(turn.mirror().to_string(), "e2n e3n");
/// assert!(matches!("RHCEMCHR/RRRDDRRR".parse()?, Turn::Setup(_)));
/// # Ok::<(), arimaa::notation::NotationError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Turn {
    /// The first turn of each side.
    Setup(Setup),
    /// One to four steps.
    Steps(Steps),
}

impl Turn {
    /// The turn that actions from a position make, if they are as many as a turn has: placements in the order of [`SETUP_ORDER`] in
    /// a setup, else steps. An explicit end adds nothing. Whether the turn is legal is not checked.
    ///
    /// ```
    /// use arimaa::rules::{Action, Position, Side, Turn};
    /// let position: Position = "g [r                                  Er                          R]".parse()?;
    /// let turn: Turn = "d4n d5n".parse()?;
    /// let mut actions = turn.actions(Side::Gold);
    /// actions.push(Action::End);
    /// assert_eq!(Turn::from_actions(&actions, &position), Some(turn));
    /// assert_eq!(Turn::from_actions(&actions, &Position::INITIAL), None);
    /// # Ok::<(), arimaa::notation::NotationError>(())
    /// ```
    pub fn from_actions(actions: &[Action], position: &Position) -> Option<Self> {
        let mut squares = ArrayVec::<Square, 8>::new();
        let mut steps = Steps::new();
        for action in actions {
            match *action {
                Action::Place(square) => squares.try_push(square).ok()?,
                Action::Step(step) => steps.try_push(step).ok()?,
                Action::End => {}
            }
        }
        match position.phase() {
            Phase::Setup => {
                let squares = squares.into_inner().ok()?;
                let setup = Setup::from_placements(&squares, position.side()).ok()?;
                Some(Self::Setup(setup))
            }
            Phase::Play => Some(Self::Steps(steps)),
        }
    }

    /// The actions of a side's turn: its steps, or a setup's [`placements`](Setup::placements). The end of the turn is not among
    /// them.
    pub fn actions(&self, side: Side) -> ArrayVec<Action, 8> {
        match self {
            Self::Setup(setup) => {
                let squares = setup.placements(side).into_iter();
                squares.map(Action::Place).collect()
            }
            Self::Steps(steps) => steps.iter().copied().map(Action::Step).collect(),
        }
    }

    /// East and west exchanged.
    pub fn mirror(&self) -> Self {
        match self {
            Self::Setup(setup) => Self::Setup(setup.mirror()),
            Self::Steps(steps) => Self::Steps(steps.iter().map(|step| step.mirror()).collect()),
        }
    }
}
