//! How step states are serialised, and how what is read is held against the rules.

use crate::rules::{
    Action, Board, History, Pending, Phase, Position, SETUP_ORDER, StepState, TURN_STEPS,
};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What a step state is made of. Some legal steps must lead from the start to the board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StateForm {
    /// The position at the turn's start.
    start: Position,
    /// The pieces as they stand now.
    board: Board,
    /// The steps made, or the pieces placed.
    steps_used: u8,
    /// What the last step has left open.
    pending: Pending,
}

impl StateForm {
    fn of(state: &StepState) -> Self {
        Self {
            start: state.start_position(),
            board: *state.board(),
            steps_used: state.steps_used(),
            pending: state.pending(),
        }
    }

    /// The state of this form, if there is one.
    fn state(&self) -> Option<StepState> {
        let start = StepState::new(&self.start);
        match self.start.phase() {
            Phase::Setup => self.placed(start),
            Phase::Play if self.steps_used > TURN_STEPS => None,
            Phase::Play => self.reached(start),
        }
    }

    /// The state after the placements that lead from a setup's start to the board.
    fn placed(&self, start: StepState) -> Option<StepState> {
        let history = History::default();
        let mut state = start;
        for kind in SETUP_ORDER.iter().take(usize::from(self.steps_used)) {
            let missing = self.board.pieces(state.side(), *kind) & state.board().empty();
            let placement = Action::Place(missing.first()?);
            if !state.legal_actions(&history).contains(placement) {
                return None;
            }
            state = state.after(placement);
        }
        (Self::of(&state) == *self).then_some(state)
    }

    /// The state after steps that lead from a state to this one.
    fn reached(&self, state: StepState) -> Option<StepState> {
        // A step changes three squares at most: two by moving, and a trap.
        let left = self.steps_used - state.steps_used();
        if state.board().difference(&self.board).count() > 3 * u32::from(left) {
            return None;
        }
        if left == 0 {
            return (Self::of(&state) == *self).then_some(state);
        }
        state
            .legal_actions(&History::default())
            .steps()
            .find_map(|step| self.reached(state.after_step(step)))
    }
}

/// The turn's start, the board, the steps used, and what is pending.
impl Serialize for StepState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        StateForm::of(self).serialize(serializer)
    }
}

/// Refuses a state that no legal turn goes through.
impl<'de> Deserialize<'de> for StepState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = StateForm::deserialize(deserializer)?;
        form.state().ok_or_else(|| {
            D::Error::custom(format!(
                "{} legal steps of the side to move don't lead from {} to {} with {:?} pending",
                form.steps_used, form.start, form.board, form.pending
            ))
        })
    }
}
