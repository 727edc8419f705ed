//! Which actions are legal in a step state.

use super::{
    Action, ActionSet, Bitboard, Direction, History, Kind, Pending, Phase, Step, StepError,
    StepState,
};

impl StepState {
    /// All legal actions: exactly those with which at least one legal turn goes on. A complete turn has none left.
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

    /// The squares between which a step can be one with which no legal turn goes on; mostly none.
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

    /// Takes out the steps between squares of a set with which no legal turn goes on.
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
