//! The state of a turn between two steps.

use super::{
    Action, Bitboard, Board, History, Kind, Phase, Piece, Position, Side, Square, Step, zobrist,
};

/// How many steps a turn may have.
pub const TURN_STEPS: u8 = 4;

/// The order in which a setup's pieces are placed; the rabbits fill what is left.
///
/// ```
/// use arimaa::rules::{SETUP_ORDER, Setup, Side};
/// let setup: Setup = "RHCEMCHR/RRRDDRRR".parse()?;
/// let placed = SETUP_ORDER.into_iter().zip(setup.placements(Side::Gold));
/// let words: Vec<String> = placed.map(|(kind, square)| format!("{}{square}", kind.letter())).collect();
/// assert_eq!(words, ["Ed2", "Me2", "Hb2", "Hg2", "Dd1", "De1", "Cc2", "Cf2"]);
/// # Ok::<(), arimaa::notation::NotationError>(())
/// ```
pub const SETUP_ORDER: [Kind; 8] = [
    Kind::Elephant,
    Kind::Camel,
    Kind::Horse,
    Kind::Horse,
    Kind::Dog,
    Kind::Dog,
    Kind::Cat,
    Kind::Cat,
];

/// What the last step has left open.
///
/// ```
/// use arimaa::rules::{Pending, Position, StepState};
/// let start: Position = "g [r                                  Er                          R]".parse()?;
/// let pushed = StepState::new(&start).after_step("e4n".parse()?);
/// let Pending::Push { square, pushers } = pushed.pending() else { panic!("no push") };
/// assert_eq!((square.to_string(), pushers.count()), ("e4".to_owned(), 1));
/// # Ok::<(), arimaa::notation::NotationError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Pending {
    /// Nothing.
    Nothing,
    /// An enemy piece was pushed off `square`: one of `pushers`, all of them able to, must step there now.
    Push {
        /// The square that the pushed piece left.
        square: Square,
        /// The own pieces that may step there.
        pushers: Bitboard,
    },
    /// An own piece left `square`: one of `pulled` may be pulled there now.
    Pull {
        /// The square that the puller left.
        square: Square,
        /// The enemy pieces that may follow; never empty.
        pulled: Bitboard,
    },
}

/// A position inside a turn: the board, whose turn it is, the steps used, what is pending, and the board at the turn's
/// start. In a setup a "step" is a placement.
///
/// ```
/// use arimaa::rules::{Action, History, Position, StepState};
/// let start: Position = "g [r                                  Er                          R]".parse()?;
/// let state = StepState::new(&start).after(Action::Step("d4n".parse()?));
/// assert_eq!((state.steps_used(), state.steps_left()), (1, 3));
/// assert!(state.can_end(&History::default()));
/// assert_eq!(state.end().to_string(), "s [r                          E        r                          R]");
/// # Ok::<(), arimaa::notation::NotationError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StepState {
    now: StateInTurn,
    start: Board,
}

/// A step state without the board at its turn's start. A search tree has one of these a node, and the start but once a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StateInTurn {
    board: Board,
    pending_pieces: Bitboard,
    pending_square: Square,
    pending_kind: PendingKind,
    side: Side,
    phase: Phase,
    used: u8,
}

const _: () = assert!(size_of::<StateInTurn>() == 64);

impl StateInTurn {
    /// The pieces as they stand now.
    #[inline]
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// Whose turn it is.
    #[inline]
    pub fn side(&self) -> Side {
        self.side
    }

    /// The steps made so far in this turn; in a setup, the pieces placed.
    #[inline]
    pub fn steps_used(&self) -> u8 {
        self.used
    }

    /// The whole step state, of a turn that started from `start`.
    #[inline]
    pub fn with_start(&self, start: &Board) -> StepState {
        StepState {
            now: *self,
            start: *start,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
enum PendingKind {
    Nothing,
    Push,
    Pull,
}

impl StepState {
    /// The state at the start of a turn.
    #[inline]
    pub fn new(position: &Position) -> Self {
        Self {
            now: StateInTurn {
                board: *position.board(),
                pending_pieces: Bitboard::EMPTY,
                pending_square: Square::wrapping(0),
                pending_kind: PendingKind::Nothing,
                side: position.side(),
                phase: position.phase(),
                used: 0,
            },
            start: *position.board(),
        }
    }

    /// The state but for the board at the turn's start.
    #[inline]
    pub fn in_turn(&self) -> StateInTurn {
        self.now
    }

    /// The pieces as they stand now.
    #[inline]
    pub fn board(&self) -> &Board {
        &self.now.board
    }

    /// The pieces as they stood at the start of the turn.
    #[inline]
    pub fn start(&self) -> &Board {
        &self.start
    }

    /// Whose turn it is.
    #[inline]
    pub fn side(&self) -> Side {
        self.now.side
    }

    /// Setup or play.
    #[inline]
    pub fn phase(&self) -> Phase {
        self.now.phase
    }

    /// The steps made so far in this turn; in a setup, the pieces placed.
    #[inline]
    pub fn steps_used(&self) -> u8 {
        self.now.used
    }

    /// The steps left in this turn, 0 to 4; in a setup, the pieces of [`SETUP_ORDER`] still to place.
    #[inline]
    pub fn steps_left(&self) -> u8 {
        match self.now.phase {
            Phase::Setup => (SETUP_ORDER.len() as u8).saturating_sub(self.now.used),
            Phase::Play => TURN_STEPS.saturating_sub(self.now.used),
        }
    }

    /// The position at the turn's start.
    #[inline]
    pub fn start_position(&self) -> Position {
        Position::from_parts(self.start, self.now.side, self.now.phase)
    }

    /// The position, where no step of the turn has been made yet.
    #[inline]
    pub fn turn_start(&self) -> Option<Position> {
        (self.now.used == 0).then(|| self.start_position())
    }

    /// What the last step has left open.
    #[inline]
    pub fn pending(&self) -> Pending {
        match self.now.pending_kind {
            PendingKind::Nothing => Pending::Nothing,
            PendingKind::Push => Pending::Push {
                square: self.now.pending_square,
                pushers: self.now.pending_pieces,
            },
            PendingKind::Pull => Pending::Pull {
                square: self.now.pending_square,
                pulled: self.now.pending_pieces,
            },
        }
    }

    /// The kind of the next piece that a setup places.
    #[inline]
    pub fn next_placement(&self) -> Option<Kind> {
        match self.now.phase {
            Phase::Setup => SETUP_ORDER.get(self.now.used as usize).copied(),
            Phase::Play => None,
        }
    }

    /// A 64-bit key of everything that decides what can follow: phase, board, side, steps used, the turn's start, and what
    /// is pending.
    #[inline]
    pub fn key(&self) -> u64 {
        let mut small =
            self.now.used as u64 | (self.now.side as u64) << 8 | (self.now.phase as u64) << 16;
        let mut pieces = 0;
        if self.now.pending_kind != PendingKind::Nothing {
            small |= (self.now.pending_kind as u64) << 24
                | (self.now.pending_square.index() as u64) << 32;
            pieces = zobrist::mix(self.now.pending_pieces.0 ^ 0x5bd1_e995);
        }
        self.now.board.key()
            ^ zobrist::mix(self.start.key().wrapping_add(1))
            ^ zobrist::mix(small ^ 0xa5a5 << 48)
            ^ pieces
    }

    /// Whether the turn may end here. (After its last step it ends by itself.)
    #[inline]
    pub fn can_end(&self, history: &History) -> bool {
        match self.now.phase {
            Phase::Setup => self.steps_left() == 0,
            Phase::Play => {
                self.now.used > 0
                    && self.now.pending_kind != PendingKind::Push
                    && self.now.board != self.start
                    && !history.forbids_key(self.end_key())
            }
        }
    }

    /// The key of the position that follows if the turn ends here.
    #[inline]
    fn end_key(&self) -> u64 {
        Position::key_of(self.now.board.key(), self.now.side.opponent(), Phase::Play)
    }

    /// Whether the turn is complete: no step or placement is left, and it ends by itself.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.steps_left() == 0
    }

    /// The position after the turn ends here; whether it may is not checked ([`can_end`](Self::can_end)). A setup's rabbits fill
    /// what is left of the home ranks.
    pub fn end(&self) -> Position {
        let mut board = self.now.board;
        let mut phase = self.now.phase;
        if phase == Phase::Setup {
            for square in Bitboard::home(self.now.side) & board.empty() {
                board.put(square, Piece::new(self.now.side, Kind::Rabbit));
            }
            if self.now.side == Side::Silver {
                phase = Phase::Play;
            }
        }
        Position::from_parts(board, self.now.side.opponent(), phase)
    }

    /// The state after an own or enemy piece's step; whether it is legal is not checked.
    #[inline]
    pub fn after_step(&self, step: Step) -> Self {
        let (Some(to), Some(piece)) = (step.to(), self.now.board.piece_at(step.from)) else {
            return *self;
        };
        let mut next = *self;
        next.now.used += 1;
        next.set_pending(PendingKind::Nothing, Square::wrapping(0), Bitboard::EMPTY);
        next.now.board.move_piece(step.from, to, piece);
        let around = Bitboard::around(step.from);
        if piece.side != self.now.side {
            let pulled = self.now.pending_kind == PendingKind::Pull
                && self.now.pending_square == to
                && self.now.pending_pieces.contains(step.from);
            if !pulled {
                let pushers =
                    next.able() & next.now.board.stronger(self.now.side, piece.kind) & around;
                next.set_pending(PendingKind::Push, step.from, pushers);
            }
        } else if self.now.pending_kind != PendingKind::Push && next.now.used < TURN_STEPS {
            let pulled = self.now.board.weaker(self.now.side.opponent(), piece.kind) & around;
            if !pulled.is_empty() {
                next.set_pending(PendingKind::Pull, step.from, pulled);
            }
        }
        next
    }

    /// The pieces of the side to move that are not frozen.
    #[inline]
    pub(super) fn able(&self) -> Bitboard {
        self.now.board.side(self.now.side) & !self.now.board.frozen(self.now.side)
    }

    #[inline]
    fn set_pending(&mut self, kind: PendingKind, square: Square, pieces: Bitboard) {
        self.now.pending_kind = kind;
        self.now.pending_square = square;
        self.now.pending_pieces = pieces;
    }

    /// The state after the next piece of a setup is placed; whether that is legal is not checked.
    #[inline]
    pub fn after_placement(&self, square: Square) -> Self {
        let mut next = *self;
        if let Some(kind) = self.next_placement() {
            next.now.board.put(square, Piece::new(self.now.side, kind));
            next.now.used += 1;
        }
        next
    }

    /// The state after a step or a placement; [`Action::End`] changes nothing.
    #[inline]
    pub fn after(&self, action: Action) -> Self {
        match action {
            Action::Step(step) => self.after_step(step),
            Action::Place(square) => self.after_placement(square),
            Action::End => *self,
        }
    }

    /// The state with its boards, sets and squares exchanged for others.
    fn map(
        &self,
        board: impl Fn(&Board) -> Board,
        set: impl Fn(Bitboard) -> Bitboard,
        square: impl Fn(Square) -> Square,
    ) -> Self {
        let now = self.now;
        let pending_square = match now.pending_kind {
            PendingKind::Nothing => now.pending_square,
            _ => square(now.pending_square),
        };
        Self {
            now: StateInTurn {
                board: board(&now.board),
                pending_pieces: set(now.pending_pieces),
                pending_square,
                ..now
            },
            start: board(&self.start),
        }
    }

    /// East and west exchanged.
    pub fn mirror(&self) -> Self {
        self.map(Board::mirror, Bitboard::mirror, Square::mirror)
    }

    /// The colours exchanged and the ranks flipped: the same game with the sides' names exchanged.
    pub fn swap_colours(&self) -> Self {
        let mut swapped = self.map(Board::swap_colours, Bitboard::flip, Square::flip);
        swapped.now.side = self.now.side.opponent();
        swapped
    }
}
