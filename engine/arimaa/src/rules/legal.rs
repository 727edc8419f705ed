//! Which actions are legal in a step state.

use super::{
    Action, ActionSet, Bitboard, Direction, History, Kind, Pending, Phase, Piece, Square, Step,
    StepState,
};

/// Why a step is illegal.
///
/// ```
/// use arimaa::rules::{History, Position, StepError, StepState};
/// let position: Position = "s [r                                  Er                          R]".parse()?;
/// let state = StepState::new(&position);
/// let error = state.check_step("e4e".parse()?, &History::default());
/// assert_eq!(error, Err(StepError::Frozen("e4".parse()?)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum StepError {
    /// Nothing stands there.
    #[error("there is no piece on {0}")]
    NoPiece(Square),
    /// The step leaves the board.
    #[error("it leaves the board at {0}")]
    OffBoard(Square),
    /// The way is blocked.
    #[error("{square} is occupied ({piece})")]
    Occupied {
        /// The square to step to.
        square: Square,
        /// What stands there.
        piece: Piece,
    },
    /// A frozen piece can't step.
    #[error("the piece on {0} is frozen")]
    Frozen(Square),
    /// Rabbits don't step backward.
    #[error("the rabbit on {0} can't step backward")]
    RabbitBackward(Square),
    /// An enemy piece moves only by push or pull.
    #[error(
        "no stronger piece stands next to the enemy piece on {0} to push it, and it is no pull"
    )]
    NoPusher(Square),
    /// All pieces that could push are frozen.
    #[error("every piece that could push the enemy piece on {0} is frozen")]
    PusherFrozen(Square),
    /// A push needs two steps.
    #[error("a push can't start on the last step")]
    PushOnLastStep,
    /// A push must be completed at once.
    #[error("the push off {0} must be completed first, by a stronger unfrozen piece next to it")]
    PushNotCompleted(Square),
    /// No legal turn resumes it.
    #[error(
        "no legal turn continues with it: the turn would change nothing or repeat a position a third time"
    )]
    DeadEnd,
    /// A turn has no more than four steps.
    #[error("a turn has no more than four steps")]
    NoStepLeft,
    /// The turn is a setup.
    #[error("the turn is a setup: pieces are placed, not moved")]
    InSetup,
}

impl StepState {
    /// All legal actions: exactly those with which at least one legal turn continues. A complete turn has none left.
    pub fn legal_actions(&self, history: &History) -> ActionSet {
        if self.phase() == Phase::Setup {
            let placements = match self.next_placement() {
                Some(_) => Bitboard::home(self.side()) & self.board().empty(),
                None => Bitboard::EMPTY,
            };
            return ActionSet {
                placements,
                ..ActionSet::default()
            };
        }
        if self.steps_left() == 0 {
            return ActionSet::default();
        }
        let mut actions = ActionSet {
            steps: self.moving_steps(),
            end: self.can_end(history),
            ..ActionSet::default()
        };
        let suspects = self.dead_end_squares(history);
        if !suspects.is_empty() {
            self.drop_dead_ends(&mut actions, suspects, history);
        }
        actions
    }

    /// The squares between which a step can be one with which no legal turn continues; mostly none.
    #[inline]
    fn dead_end_squares(&self, history: &History) -> Bitboard {
        if history.forbids_any() {
            return Bitboard::ALL;
        }
        // Without repetition a dead end needs the turn to be taken back: by the last step (then the two squares of this step
        // differ from the start now), or by a push in the last two steps that has no other completion (then its three do).
        // What a trap took never comes back.
        let changed = self.board().difference(self.start());
        let possible = match self.steps_left() {
            1 => changed.count() == 2,
            2 => changed.count() == 3,
            _ => false,
        };
        if possible && self.board().occupied().count() == self.start().occupied().count() {
            changed
        } else {
            Bitboard::EMPTY
        }
    }

    /// Takes out the steps between squares of a set with which no legal turn continues.
    #[cold]
    fn drop_dead_ends(&self, actions: &mut ActionSet, squares: Bitboard, history: &History) {
        for direction in Direction::ALL {
            let within = squares & squares.shift(direction.opposite());
            for from in actions.steps[direction.index()] & within {
                let step = Step::new(from, direction);
                if !self.after_step(step).can_finish(history) {
                    actions.remove(step);
                }
            }
        }
    }

    /// Whether a legal turn continues from here, or ends here.
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
        let into = |square: Bitboard, pieces: Bitboard| {
            Direction::ALL.map(|direction| square.shift(direction.opposite()) & pieces)
        };
        let mut steps = match self.pending() {
            Pending::Push { square, pushers } => return into(Bitboard::of(square), pushers),
            Pending::Pull { square, pulled } => into(Bitboard::of(square), pulled),
            Pending::Nothing => [Bitboard::EMPTY; 4],
        };
        let board = self.board();
        let able = self.able();
        let pushable = if self.steps_left() >= 2 {
            board.side(self.side().opponent()) & board.beside_stronger(able)
        } else {
            Bitboard::EMPTY
        };
        let backward = Direction::South.seen_by(self.side());
        let empty = board.empty();
        for direction in Direction::ALL {
            steps[direction.index()] |= (able | pushable) & empty.shift(direction.opposite());
        }
        // An own rabbit is never among the pulled.
        steps[backward.index()] &= !board.pieces(self.side(), Kind::Rabbit);
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
        if self.phase() == Phase::Setup {
            return StepError::InSetup;
        }
        if self.steps_left() == 0 {
            return StepError::NoStepLeft;
        }
        let Some(piece) = self.board().piece_at(step.from) else {
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
        if let Some(blocker) = self.board().piece_at(to) {
            return StepError::Occupied {
                square: to,
                piece: blocker,
            };
        }
        if self.moving_steps()[step.direction.index()].contains(step.from) {
            return StepError::DeadEnd;
        }
        if piece.side != self.side() {
            let strong = self.board().stronger(self.side(), piece.kind)
                & Bitboard::of(step.from).neighbours();
            return if strong.is_empty() {
                StepError::NoPusher(step.from)
            } else if self.steps_left() < 2 {
                StepError::PushOnLastStep
            } else {
                StepError::PusherFrozen(step.from)
            };
        }
        if self.board().frozen(self.side()).contains(step.from) {
            return StepError::Frozen(step.from);
        }
        StepError::RabbitBackward(step.from)
    }
}
