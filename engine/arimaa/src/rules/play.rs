//! Playing by value: what is refused comes back untouched.

use super::{Game, History, Position, Step, StepError, StepState, Turn, TurnError};

/// A refused step or turn: why it is illegal, and what it was to be played in, untouched.
///
/// ```
/// use arimaa::rules::{Game, Position, Steps, Turn, TurnError};
/// let game = Game::from_position("s [r                                  Er                          R]".parse()?);
/// let error = game.clone().with_turn(Turn::Steps(Steps::new())).unwrap_err();
/// assert_eq!(error.reason(), &TurnError::Empty);
/// assert_eq!(error.into_untouched(), game);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
#[error("{reason}")]
pub struct PlayError<P, E = TurnError> {
    untouched: Box<P>,
    reason: E,
}

impl<P, E> PlayError<P, E> {
    fn new(untouched: P, reason: E) -> Self {
        Self {
            untouched: Box::new(untouched),
            reason,
        }
    }

    /// Why the step or turn is illegal.
    pub fn reason(&self) -> &E {
        &self.reason
    }

    /// What it was to be played in, as it was.
    pub fn untouched(&self) -> &P {
        &self.untouched
    }

    /// Gives back what it was to be played in, as it was.
    pub fn into_untouched(self) -> P {
        *self.untouched
    }
}

impl Position {
    /// The position after a turn, if it is legal with this history; the error hands this one back. That the game is over here
    /// already is not checked.
    ///
    /// ```
    /// use arimaa::notation::parse_turn;
    /// use arimaa::rules::{History, Position, TurnError};
    /// let start: Position = "g [r                                  Er                          R]".parse()?;
    /// let history = History::default();
    /// let end = start.play(&parse_turn("Ed4n", &start)?, &history)?;
    /// assert_eq!(end.to_string(), "s [r                          E        r                          R]");
    /// let refused = start.play(&parse_turn("Ed4n Ed5s", &start)?, &history).unwrap_err();
    /// assert_eq!(refused.reason(), &TurnError::NoChange);
    /// assert_eq!(refused.into_untouched(), start);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn play(self, turn: &Turn, history: &History) -> Result<Self, PlayError<Self>> {
        self.after_turn(turn, history)
            .map_err(|reason| PlayError::new(self, reason))
    }
}

impl StepState {
    /// The state after a step, if it is legal with this history; the error hands this one back.
    ///
    /// ```
    /// use arimaa::rules::{History, Position, StepError, StepState};
    /// let start: Position = "g [r                                  Er                          R]".parse()?;
    /// let state = StepState::new(&start).play_step("d4n".parse()?, &History::default())?;
    /// let refused = state.play_step("h1s".parse()?, &History::default()).unwrap_err();
    /// assert_eq!(refused.reason(), &StepError::OffBoard("h1".parse()?));
    /// assert_eq!(refused.into_untouched(), state);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn play_step(
        self,
        step: Step,
        history: &History,
    ) -> Result<Self, PlayError<Self, StepError>> {
        match self.check_step(step, history) {
            Ok(()) => Ok(self.after_step(step)),
            Err(reason) => Err(PlayError::new(self, reason)),
        }
    }
}

impl Game {
    /// The game with one more turn, if it is legal; the error hands this one back.
    ///
    /// ```
    /// use arimaa::rules::{Game, Setup, Turn};
    /// let setup = Turn::Setup("RHCMECHR/RRRDDRRR".parse()?);
    /// let game = [setup.clone(), setup].into_iter().try_fold(Game::new(), Game::with_turn)?;
    /// assert_eq!(game.turns().len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_turn(mut self, turn: Turn) -> Result<Self, PlayError<Self>> {
        match self.play(&turn) {
            Ok(()) => Ok(self),
            Err(reason) => Err(PlayError::new(self, reason)),
        }
    }
}
