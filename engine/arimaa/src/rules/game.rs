//! A game: its turns so far, the positions that have stood, and its end.

use super::{
    History, Outcome, Pending, Phase, Position, Reason, Square, Step, StepError, StepState, Turn,
};

/// Why a turn is illegal.
///
/// ```
/// use arimaa::rules::{History, Position, StepError, TurnError};
/// let position: Position = "s [r                                  Er                          R]".parse()?;
/// let error = position.after_turn(&"a8s e4e".parse()?, &History::default()).unwrap_err();
/// let frozen = StepError::Frozen("e4".parse()?);
/// assert_eq!(error, TurnError::Step { number: 2, step: "e4e".parse()?, error: frozen });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum TurnError {
    /// One of its steps is.
    #[error("step {number} ({step:?}) is illegal: {error}")]
    Step {
        /// Which one, from 1.
        number: usize,
        /// The step.
        step: Step,
        /// Why.
        error: StepError,
    },
    /// It has no step.
    #[error("a turn needs at least one step")]
    Empty,
    /// It ends inside a push.
    #[error("the turn ends inside a push: {0} must be filled")]
    PushNotCompleted(Square),
    /// It leaves everything as it was.
    #[error("the turn changes nothing")]
    NoChange,
    /// It makes a third occurrence.
    #[error("the turn makes a position that has stood twice already")]
    Repetition,
    /// Steps where a setup is due.
    #[error("the turn must be a setup")]
    SetupExpected,
    /// A setup where steps are due.
    #[error("the pieces are set up already")]
    SetupUnexpected,
    /// The game is over.
    #[error("the game is over: {0}")]
    GameOver(Outcome),
}

/// A game from its first position on.
///
/// ```
/// use arimaa::rules::{Game, Side};
/// let mut game = Game::new();
/// assert_eq!(game.position().side(), Side::Gold);
/// let turn = arimaa::notation::parse_turn("Ra1 Rb1 Rc1 Dd1 De1 Rf1 Rg1 Rh1 Ra2 Hb2 Cc2 Md2 Ee2 Cf2 Hg2 Rh2", game.position())?;
/// game.play(&turn)?;
/// assert_eq!(game.position().side(), Side::Silver);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Game {
    start: Position,
    turns: Vec<Turn>,
    position: Position,
    history: History,
    outcome: Option<Outcome>,
}

impl Default for Game {
    fn default() -> Self {
        Self::new()
    }
}

impl Game {
    /// A game before its first setup.
    pub fn new() -> Self {
        Self::from_position(Position::INITIAL)
    }

    /// A game that starts from a position, which counts as its first occurrence.
    pub fn from_position(start: Position) -> Self {
        let mut history = History::default();
        if start.phase() == Phase::Play {
            history.push(&start);
        }
        Self {
            start,
            turns: Vec::new(),
            position: start,
            outcome: start.outcome(&history),
            history,
        }
    }

    /// Where the game started.
    pub fn start(&self) -> &Position {
        &self.start
    }

    /// The turns played so far, setups included.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// The position now.
    pub fn position(&self) -> &Position {
        &self.position
    }

    /// The positions that have stood so far, the present one included.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// How the game ended, if it has.
    pub fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    /// Plays a turn if it is legal; otherwise nothing changes.
    pub fn play(&mut self, turn: &Turn) -> Result<(), TurnError> {
        if let Some(outcome) = self.outcome {
            return Err(TurnError::GameOver(outcome));
        }
        let next = self.position.after_turn(turn, &self.history)?;
        self.advance(turn.clone(), next);
        Ok(())
    }

    /// Plays a turn that is known to be legal.
    pub fn play_unchecked(&mut self, turn: Turn) {
        let next = self.position.after_turn_unchecked(&turn);
        self.advance(turn, next);
    }

    fn advance(&mut self, turn: Turn, next: Position) {
        self.turns.push(turn);
        self.position = next;
        self.history.push(&next);
        self.outcome = next.outcome(&self.history);
    }
}

impl Position {
    /// How the game has ended here, if it has; `history` holds the positions that have stood, this one among them.
    pub fn outcome(&self, history: &History) -> Option<Outcome> {
        if self.phase() == Phase::Setup {
            return None;
        }
        self.outcome_on_board().or_else(|| {
            StepState::new(self)
                .legal_actions(history)
                .is_empty()
                .then(|| Outcome {
                    winner: self.side().opponent(),
                    reason: Reason::Immobilization,
                })
        })
    }

    /// The position after a turn, if it is legal with this history. That the game is over here already is not checked.
    pub fn after_turn(&self, turn: &Turn, history: &History) -> Result<Position, TurnError> {
        let steps = match (turn, self.phase()) {
            (Turn::Setup(_), Phase::Setup) => return Ok(self.after_turn_unchecked(turn)),
            (Turn::Setup(_), Phase::Play) => return Err(TurnError::SetupUnexpected),
            (Turn::Steps(_), Phase::Setup) => return Err(TurnError::SetupExpected),
            (Turn::Steps(steps), Phase::Play) => steps,
        };
        let mut state = StepState::new(self);
        for (index, &step) in steps.iter().enumerate() {
            let fault = match state.check_step(step, history) {
                Ok(()) => None,
                // The turn's own last step is blamed on the turn, by the precise reason below.
                Err(StepError::DeadEnd) if index + 1 == steps.len() => None,
                Err(error) => Some(error),
            };
            if let Some(error) = fault {
                return Err(TurnError::Step {
                    number: index + 1,
                    step,
                    error,
                });
            }
            state = state.after_step(step);
        }
        state.check_end(history)?;
        Ok(state.end())
    }

    /// The position after a turn that is known to be legal.
    pub fn after_turn_unchecked(&self, turn: &Turn) -> Position {
        let state = StepState::new(self);
        match turn {
            Turn::Setup(setup) => setup
                .placements(self.side())
                .iter()
                .fold(state, |state, &square| state.after_placement(square))
                .end(),
            Turn::Steps(steps) => steps
                .iter()
                .fold(state, |state, &step| state.after_step(step))
                .end(),
        }
    }
}

impl StepState {
    /// Says why the turn can't end here; `Ok` where it can.
    pub fn check_end(&self, history: &History) -> Result<(), TurnError> {
        if self.can_end(history) {
            return Ok(());
        }
        Err(match self.pending() {
            _ if self.phase() == Phase::Setup => TurnError::SetupExpected,
            _ if self.steps_used() == 0 => TurnError::Empty,
            Pending::Push { square, .. } => TurnError::PushNotCompleted(square),
            _ if self.board() == self.start() => TurnError::NoChange,
            _ => TurnError::Repetition,
        })
    }
}
