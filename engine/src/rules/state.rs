//! The state of a turn between two steps, and which steps are legal in it.

use super::{
    Action, ActionSet, Bitboard, Board, Direction, History, Kind, Phase, Piece, Position, Side,
    Square, Step, StepError, zobrist,
};

/// How many steps a turn may have.
pub const TURN_STEPS: u8 = 4;

/// The order in which a setup's pieces are placed; the rabbits fill what is left.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StepState {
    board: Board,
    start: Board,
    pending_pieces: Bitboard,
    pending_square: Square,
    pending_kind: PendingKind,
    side: Side,
    phase: Phase,
    used: u8,
}

// A search tree holds one of these a node.
const _: () = assert!(size_of::<StepState>() <= 160);

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
            board: *position.board(),
            start: *position.board(),
            pending_pieces: Bitboard::EMPTY,
            pending_square: Square::wrapping(0),
            pending_kind: PendingKind::Nothing,
            side: position.side(),
            phase: position.phase(),
            used: 0,
        }
    }

    /// The pieces as they stand now.
    #[inline]
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// The pieces as they stood at the start of the turn.
    #[inline]
    pub fn start(&self) -> &Board {
        &self.start
    }

    /// Whose turn it is.
    #[inline]
    pub fn side(&self) -> Side {
        self.side
    }

    /// Setup or play.
    #[inline]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The steps made so far in this turn; in a setup, the pieces placed.
    #[inline]
    pub fn steps_used(&self) -> u8 {
        self.used
    }

    /// The steps left in this turn, 0 to 4; in a setup, the pieces of [`SETUP_ORDER`] still to place.
    #[inline]
    pub fn steps_left(&self) -> u8 {
        match self.phase {
            Phase::Setup => SETUP_ORDER.len() as u8 - self.used,
            Phase::Play => TURN_STEPS - self.used,
        }
    }

    /// The position at the turn's start.
    #[inline]
    pub fn start_position(&self) -> Position {
        Position::from_parts(self.start, self.side, self.phase)
    }

    /// The position, where no step of the turn has been made yet.
    #[inline]
    pub fn turn_start(&self) -> Option<Position> {
        (self.used == 0).then(|| self.start_position())
    }

    /// What the last step has left open.
    #[inline]
    pub fn pending(&self) -> Pending {
        match self.pending_kind {
            PendingKind::Nothing => Pending::Nothing,
            PendingKind::Push => Pending::Push {
                square: self.pending_square,
                pushers: self.pending_pieces,
            },
            PendingKind::Pull => Pending::Pull {
                square: self.pending_square,
                pulled: self.pending_pieces,
            },
        }
    }

    /// The kind of the next piece that a setup places.
    #[inline]
    pub fn next_placement(&self) -> Option<Kind> {
        match self.phase {
            Phase::Setup => SETUP_ORDER.get(self.used as usize).copied(),
            Phase::Play => None,
        }
    }

    /// A 64-bit key of everything that decides what can follow: phase, board, side, steps used, the turn's start, and what
    /// is pending.
    #[inline]
    pub fn key(&self) -> u64 {
        let mut small = self.used as u64 | (self.side as u64) << 8 | (self.phase as u64) << 16;
        let mut pieces = 0;
        if self.pending_kind != PendingKind::Nothing {
            small |= (self.pending_kind as u64) << 24 | (self.pending_square.index() as u64) << 32;
            pieces = zobrist::mix(self.pending_pieces.0 ^ 0x5bd1_e995);
        }
        self.board.key()
            ^ zobrist::mix(self.start.key().wrapping_add(1))
            ^ zobrist::mix(small ^ 0xa5a5 << 48)
            ^ pieces
    }

    /// Whether the turn may end here. (After its last step it ends without being asked.)
    #[inline]
    pub fn can_end(&self, history: &History) -> bool {
        match self.phase {
            Phase::Setup => self.steps_left() == 0,
            Phase::Play => {
                self.used > 0
                    && self.pending_kind != PendingKind::Push
                    && self.board != self.start
                    && !history.forbids_key(self.end_key())
            }
        }
    }

    /// The key of the position that follows if the turn ends here.
    #[inline]
    fn end_key(&self) -> u64 {
        Position::key_of(&self.board, self.side.opponent(), Phase::Play)
    }

    /// Whether the turn is complete: no step or placement is left, and it ends without being asked.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.steps_left() == 0
    }

    /// The position after the turn ends here; whether it may is not asked ([`can_end`](Self::can_end)). A setup's rabbits fill
    /// what is left of the home ranks.
    pub fn end(&self) -> Position {
        let mut board = self.board;
        let mut phase = self.phase;
        if phase == Phase::Setup {
            for square in Bitboard::home(self.side) & board.empty() {
                board.put(square, Piece::new(self.side, Kind::Rabbit));
            }
            if self.side == Side::Silver {
                phase = Phase::Play;
            }
        }
        Position::from_parts(board, self.side.opponent(), phase)
    }

    /// The state after an own or enemy piece's step; whether it is legal is not asked.
    #[inline]
    pub fn after_step(&self, step: Step) -> Self {
        let Some(to) = step.to() else { return *self };
        let Some(piece) = self.board.piece_at(step.from) else {
            return *self;
        };
        let mut next = *self;
        next.board.step(step.from, to);
        next.used += 1;
        next.pending_kind = PendingKind::Nothing;
        next.pending_pieces = Bitboard::EMPTY;
        next.pending_square = Square::wrapping(0);
        let around = Bitboard::of(step.from).neighbours();
        if piece.side != self.side {
            let pulled = self.pending_kind == PendingKind::Pull
                && self.pending_square == to
                && self.pending_pieces.contains(step.from);
            if !pulled {
                let able =
                    next.board.stronger(self.side, piece.kind) & !next.board.frozen(self.side);
                next.set_pending(PendingKind::Push, step.from, able & around);
            }
        } else if self.pending_kind != PendingKind::Push && next.used < TURN_STEPS {
            let weaker = self.board.weaker(self.side.opponent(), piece.kind) & around;
            if !weaker.is_empty() {
                next.set_pending(PendingKind::Pull, step.from, weaker);
            }
        }
        next
    }

    #[inline]
    fn set_pending(&mut self, kind: PendingKind, square: Square, pieces: Bitboard) {
        self.pending_kind = kind;
        self.pending_square = square;
        self.pending_pieces = pieces;
    }

    /// The state after the next piece of a setup is placed; whether that is legal is not asked.
    #[inline]
    pub fn after_placement(&self, square: Square) -> Self {
        let mut next = *self;
        if let Some(kind) = self.next_placement() {
            next.board.put(square, Piece::new(self.side, kind));
            next.used += 1;
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

    /// All legal actions: exactly those with which at least one legal turn goes on. A complete turn has none left.
    pub fn legal_actions(&self, history: &History) -> ActionSet {
        if self.phase == Phase::Setup {
            let placements = match self.next_placement() {
                Some(_) => Bitboard::home(self.side) & self.board.empty(),
                None => Bitboard::EMPTY,
            };
            return ActionSet {
                placements,
                ..ActionSet::default()
            };
        }
        let steps_left = self.steps_left();
        if steps_left == 0 {
            return ActionSet::default();
        }
        let mut actions = ActionSet {
            steps: self.moving_steps(),
            end: self.can_end(history),
            ..ActionSet::default()
        };
        if history.forbids_any() {
            self.drop_dead_ends(&mut actions, history);
        } else if steps_left <= 2 {
            // Without repetition a dead end needs the turn to be taken back: by the last step (then two squares differ from
            // the start now), or by a push in the last two steps that has no other completion (then three do).
            let changed = self.board.difference(&self.start).count();
            if changed == if steps_left == 1 { 2 } else { 3 } {
                self.drop_dead_ends(&mut actions, history);
            }
        }
        actions
    }

    /// Takes out the steps with which no legal turn goes on.
    fn drop_dead_ends(&self, actions: &mut ActionSet, history: &History) {
        for step in actions.steps() {
            if !self.after_step(step).can_finish(history) {
                actions.remove(step);
            }
        }
    }

    /// Whether a legal turn goes on from here, or ends here.
    fn can_finish(&self, history: &History) -> bool {
        self.can_end(history)
            || (self.steps_left() > 0 && {
                let actions = ActionSet {
                    steps: self.moving_steps(),
                    ..ActionSet::default()
                };
                actions
                    .steps()
                    .any(|step| self.after_step(step).can_finish(history))
            })
    }

    /// The steps that the pieces can make, by direction: everything of the rules but the demand that the turn can be
    /// finished legally.
    #[inline]
    fn moving_steps(&self) -> [Bitboard; 4] {
        let empty = self.board.empty();
        let mut steps = [Bitboard::EMPTY; 4];
        match self.pending() {
            Pending::Push { square, pushers } => {
                for direction in Direction::ALL {
                    steps[direction.index()] =
                        Bitboard::of(square).shift(direction.opposite()) & pushers;
                }
                return steps;
            }
            Pending::Pull { square, pulled } => {
                for direction in Direction::ALL {
                    steps[direction.index()] =
                        Bitboard::of(square).shift(direction.opposite()) & pulled;
                }
            }
            Pending::Nothing => {}
        }
        let enemy_side = self.side.opponent();
        let able = self.board.side(self.side) & !self.board.frozen(self.side);
        let backward = match self.side {
            Side::Gold => Direction::South,
            Side::Silver => Direction::North,
        };
        let mut pushable = Bitboard::EMPTY;
        if self.steps_left() >= 2 {
            let mut reach = Bitboard::EMPTY;
            let mut strong = Bitboard::EMPTY;
            for kind in Kind::ALL.into_iter().rev() {
                pushable |= self.board.pieces(enemy_side, kind) & reach;
                strong |= able & self.board.kind(kind);
                reach = strong.neighbours();
            }
        }
        for direction in Direction::ALL {
            let free = empty.shift(direction.opposite());
            let mut movers = able | pushable;
            if direction == backward {
                movers &= !self.board.pieces(self.side, Kind::Rabbit);
            }
            steps[direction.index()] |= movers & free;
        }
        steps
    }

    /// Says why a step is illegal here; `Ok` for a legal one.
    pub fn check_step(&self, step: Step, history: &History) -> Result<(), StepError> {
        if self.legal_actions(history).contains(Action::Step(step)) {
            return Ok(());
        }
        Err(self.fault(step))
    }

    /// What is wrong with an illegal step.
    fn fault(&self, step: Step) -> StepError {
        if self.phase == Phase::Setup {
            return StepError::InSetup;
        }
        if self.steps_left() == 0 {
            return StepError::NoStepLeft;
        }
        let Some(piece) = self.board.piece_at(step.from) else {
            return StepError::NoPiece(step.from);
        };
        let Some(to) = step.to() else {
            return StepError::OffBoard(step.from);
        };
        if let Pending::Push { square, pushers } = self.pending()
            && !(to == square && pushers.contains(step.from))
        {
            return StepError::PushNotCompleted(square);
        }
        if let Some(blocker) = self.board.piece_at(to) {
            return StepError::Occupied {
                square: to,
                piece: blocker,
            };
        }
        if self.moving_steps()[step.direction.index()].contains(step.from) {
            return StepError::DeadEnd;
        }
        if piece.side != self.side {
            let strong =
                self.board.stronger(self.side, piece.kind) & Bitboard::of(step.from).neighbours();
            return if strong.is_empty() {
                StepError::NoPusher(step.from)
            } else if self.steps_left() < 2 {
                StepError::PushOnLastStep
            } else {
                StepError::PusherFrozen(step.from)
            };
        }
        if self.board.frozen(self.side).contains(step.from) {
            return StepError::Frozen(step.from);
        }
        StepError::RabbitBackward(step.from)
    }

    /// East and west exchanged.
    pub fn mirror(&self) -> Self {
        Self {
            board: self.board.mirror(),
            start: self.start.mirror(),
            pending_pieces: self.pending_pieces.mirror(),
            pending_square: match self.pending_kind {
                PendingKind::Nothing => self.pending_square,
                _ => self.pending_square.mirror(),
            },
            ..*self
        }
    }

    /// The colours exchanged and the ranks flipped: the same game with the sides' names exchanged.
    pub fn swap_colours(&self) -> Self {
        Self {
            board: self.board.swap_colours(),
            start: self.start.swap_colours(),
            pending_pieces: self.pending_pieces.flip(),
            pending_square: match self.pending_kind {
                PendingKind::Nothing => self.pending_square,
                _ => self.pending_square.flip(),
            },
            side: self.side.opponent(),
            ..*self
        }
    }
}
