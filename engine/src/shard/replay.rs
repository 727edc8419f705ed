//! Playing a record under the rules: proof that it is a game, and its rows with the states that they belong to.

use super::{Ending, GameRecord, POLICY_TOTAL, RowRecord, TurnRecord};
use crate::rules::{
    Action, ActionSet, Game, Outcome, Phase, Position, Setup, Side, Square, Step, StepError,
    StepState, Steps, Turn, TurnError,
};
use arrayvec::ArrayVec;
use std::fmt;

/// One turn of a record, played.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayedTurn<'record> {
    /// The position before it.
    pub position: Position,
    /// The turn.
    pub turn: Turn,
    /// How often the position before it has stood in the game before: 0, 1 or 2.
    pub repetitions: u8,
    /// The search's value of the position: Gold's win probability.
    pub value: f32,
    /// The evaluator's own value of the position: Gold's win probability.
    pub network_value: f32,
    /// The visits that the search used.
    pub visits: u32,
    /// The step states to train on, by ascending step.
    pub rows: Vec<ReplayedRow<'record>>,
    /// How the whole game ended.
    pub ending: Ending,
}

/// One step state of a turn with its policy target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReplayedRow<'record> {
    /// The state: not over and not complete.
    pub state: StepState,
    /// Its legal actions.
    pub legal: ActionSet,
    /// The target over `legal`, in the order of [`ActionSet::in_index_order`] for the mover; the sum is [`POLICY_TOTAL`].
    pub policy: &'record [u16],
    /// The visits behind the target.
    pub visits: u32,
    /// The row's weight in training.
    pub weight: f32,
}

/// A turn's number and side: `2g` is Gold's first turn after the setups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnNumber {
    /// From 1, both sides' turns having the same.
    pub number: u32,
    /// Whose turn.
    pub side: Side,
}

impl TurnNumber {
    /// The number of a record's turn, counted from 0.
    pub fn of_index(index: usize) -> Self {
        Self {
            number: (index / 2 + 1) as u32,
            side: Side::ALL[index % 2],
        }
    }
}

impl fmt::Display for TurnNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.number, self.side.letter())
    }
}

/// Why a record is no game.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ReplayError {
    /// A turn is at fault.
    #[error("turn {turn}: {fault}")]
    Turn {
        /// Which one.
        turn: TurnNumber,
        /// What is wrong with it.
        fault: TurnFault,
    },
    /// A row is at fault.
    #[error("turn {turn}, row {row}: {fault}")]
    Row {
        /// The turn.
        turn: TurnNumber,
        /// Which of its rows, from 0.
        row: usize,
        /// What is wrong with it.
        fault: RowFault,
    },
    /// The game ended otherwise than the record says.
    #[error(transparent)]
    Ending(#[from] EndingFault),
}

/// How a record's ending differs from its game's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndingFault {
    /// The game is not over after the last turn.
    #[error("the record says that {recorded}, but the game is not over after its last turn")]
    NotOver {
        /// What the record says.
        recorded: Outcome,
    },
    /// The game is over, and the record calls it unfinished.
    #[error("the record says that the game is unfinished, but {played}")]
    Over {
        /// What happened.
        played: Outcome,
    },
    /// Another side won, or in another way.
    #[error("the record says that {recorded}, but {played}")]
    Other {
        /// What the record says.
        recorded: Outcome,
        /// What happened.
        played: Outcome,
    },
}

/// What is wrong with a turn.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TurnFault {
    /// The game was over before it.
    #[error("the game is over already: {0}")]
    GameOver(Outcome),
    /// A number that is no action's.
    #[error("action {action}: there is no action of index {index}")]
    NoAction {
        /// Which of the turn's actions, from 1.
        action: usize,
        /// The number.
        index: u16,
    },
    /// The end of the turn was recorded as an action.
    #[error("action {action}: the end of a turn is implied, not recorded")]
    EndRecorded {
        /// Which of the turn's actions, from 1.
        action: usize,
    },
    /// A step is illegal.
    #[error("action {action}: the step {step:?} is illegal: {error}")]
    Step {
        /// Which of the turn's actions, from 1.
        action: usize,
        /// The step.
        step: Step,
        /// Why.
        error: StepError,
    },
    /// A placement is illegal.
    #[error("action {action}: no piece can be placed on {square}")]
    Placement {
        /// Which of the turn's actions, from 1.
        action: usize,
        /// The square.
        square: Square,
    },
    /// The setup has too few placements.
    #[error("the setup has {count} placements instead of 8")]
    SetupIncomplete {
        /// How many it has.
        count: usize,
    },
    /// The turn can't end where it ends.
    #[error(transparent)]
    End(#[from] TurnError),
    /// A value is no probability.
    #[error("its {name} is {value}, which is no probability")]
    Value {
        /// Which value.
        name: &'static str,
        /// What it is.
        value: f32,
    },
}

/// What is wrong with a row.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RowFault {
    /// The turn has no such state, or nothing is left to decide in it.
    #[error("there is nothing to decide after {step} actions of this turn")]
    NoState {
        /// How many actions come before it.
        step: u8,
    },
    /// Rows must ascend.
    #[error("it comes after {step} actions, not behind the row before it")]
    Order {
        /// How many actions come before it.
        step: u8,
    },
    /// The target is not one of the legal actions.
    #[error("the policy has {found} entries for {legal} legal actions")]
    PolicyLength {
        /// The target's length.
        found: usize,
        /// The number of legal actions.
        legal: usize,
    },
    /// The target is no distribution.
    #[error("the policy sums to {sum} instead of {POLICY_TOTAL}")]
    PolicySum {
        /// Its sum.
        sum: u32,
    },
    /// The weight can't be one.
    #[error("the weight is {weight}")]
    Weight {
        /// What it is.
        weight: f32,
    },
}

/// Plays a record from the empty board and checks all of it: that every action and the end of every turn is legal, that the
/// game ended as the record says, that every row belongs to a state of its turn and has a distribution over exactly the legal
/// actions there, and that values and weights are possible.
///
/// Twins of a setup may have been placed in either order.
pub fn replay(record: &GameRecord) -> Result<Vec<ReplayedTurn<'_>>, ReplayError> {
    let mut game = Game::new();
    let mut turns = Vec::with_capacity(record.turns.len());
    for (index, turn) in record.turns.iter().enumerate() {
        let replayed = replay_turn(&game, TurnNumber::of_index(index), turn, record.ending)?;
        game.play_unchecked(replayed.turn.clone());
        turns.push(replayed);
    }
    check_ending(record.ending, game.outcome())?;
    Ok(turns)
}

impl GameRecord {
    /// The record as a game of the rules; it is checked as by [`replay`].
    pub fn to_game(&self) -> Result<Game, ReplayError> {
        let mut game = Game::new();
        for replayed in replay(self)? {
            game.play_unchecked(replayed.turn);
        }
        Ok(game)
    }
}

fn check_ending(recorded: Ending, played: Option<Outcome>) -> Result<(), EndingFault> {
    match (recorded, played) {
        (Ending::Unfinished, None) => Ok(()),
        (Ending::Unfinished, Some(played)) => Err(EndingFault::Over { played }),
        (Ending::Won(recorded), None) => Err(EndingFault::NotOver { recorded }),
        (Ending::Won(recorded), Some(played)) if recorded == played => Ok(()),
        (Ending::Won(recorded), Some(played)) => Err(EndingFault::Other { recorded, played }),
    }
}

fn replay_turn<'record>(
    game: &Game,
    number: TurnNumber,
    record: &'record TurnRecord,
    ending: Ending,
) -> Result<ReplayedTurn<'record>, ReplayError> {
    let in_turn = |fault: TurnFault| ReplayError::Turn {
        turn: number,
        fault,
    };
    if let Some(outcome) = game.outcome() {
        return Err(in_turn(TurnFault::GameOver(outcome)));
    }
    check_values(record).map_err(in_turn)?;
    let (turn, states) = play_actions(game, &record.actions).map_err(in_turn)?;
    let mut rows: Vec<ReplayedRow> = Vec::with_capacity(record.rows.len());
    let mut next_step = 0;
    for (index, row) in record.rows.iter().enumerate() {
        rows.push(
            replay_row(row, next_step, &states).map_err(|fault| ReplayError::Row {
                turn: number,
                row: index,
                fault,
            })?,
        );
        next_step = row.step + 1;
    }
    let position = *game.position();
    Ok(ReplayedTurn {
        position,
        turn,
        // The history counts the present occurrence too.
        repetitions: game.history().count(&position).saturating_sub(1),
        value: record.value,
        network_value: record.network_value,
        visits: record.visits,
        rows,
        ending,
    })
}

fn check_values(record: &TurnRecord) -> Result<(), TurnFault> {
    for (name, value) in [
        ("value", record.value),
        ("network value", record.network_value),
    ] {
        if !(0.0..=1.0).contains(&value) {
            return Err(TurnFault::Value { name, value });
        }
    }
    Ok(())
}

/// The states of a turn in which something is decided, with the legal actions: at most four, eight in a setup.
type States = ArrayVec<(StepState, ActionSet), 8>;

/// Plays the actions of one turn: what the turn is, and the states on its way.
fn play_actions(game: &Game, actions: &[u16]) -> Result<(Turn, States), TurnFault> {
    let position = game.position();
    let mut state = StepState::new(position);
    let mut states = States::new();
    let mut steps = Steps::new();
    let mut squares = ArrayVec::<Square, 8>::new();
    for (index, &action_index) in actions.iter().enumerate() {
        let number = index + 1;
        let legal = state.legal_actions(game.history());
        let action = check_action(game, &state, &legal, number, action_index)?;
        // Legal, so that the state is not complete, and there is room in all three.
        match action {
            Action::Step(step) => steps.push(step),
            Action::Place(square) => squares.push(square),
            Action::End => {}
        }
        states.push((state, legal));
        state = state.after(action);
    }
    if position.phase() == Phase::Setup {
        let count = squares.len();
        let setup = squares
            .into_inner()
            .ok()
            .and_then(|squares| Setup::from_placements(&squares, position.side()).ok());
        let setup = setup.ok_or(TurnFault::SetupIncomplete { count })?;
        return Ok((Turn::Setup(setup), states));
    }
    state.check_end(game.history())?;
    if !state.is_complete() {
        states.push((state, state.legal_actions(game.history())));
    }
    Ok((Turn::Steps(steps), states))
}

/// The action of a recorded index, if it is legal.
fn check_action(
    game: &Game,
    state: &StepState,
    legal: &ActionSet,
    number: usize,
    index: u16,
) -> Result<Action, TurnFault> {
    let action = match Action::from_index(index.into(), state.side()) {
        None => {
            return Err(TurnFault::NoAction {
                action: number,
                index,
            });
        }
        Some(Action::End) => return Err(TurnFault::EndRecorded { action: number }),
        Some(action) => action,
    };
    if legal.contains(action) {
        return Ok(action);
    }
    match action {
        Action::Step(step) => match state.check_step(step, game.history()) {
            Ok(()) => Ok(action),
            Err(error) => Err(TurnFault::Step {
                action: number,
                step,
                error,
            }),
        },
        Action::Place(square) => Err(TurnFault::Placement {
            action: number,
            square,
        }),
        Action::End => Err(TurnFault::EndRecorded { action: number }),
    }
}

fn replay_row<'record>(
    row: &'record RowRecord,
    next_step: u8,
    states: &States,
) -> Result<ReplayedRow<'record>, RowFault> {
    let step = row.step;
    let Some(&(state, legal)) = states.get(usize::from(step)) else {
        return Err(RowFault::NoState { step });
    };
    if step < next_step {
        return Err(RowFault::Order { step });
    }
    let (found, count) = (row.policy.len(), legal.count());
    if found != count {
        return Err(RowFault::PolicyLength {
            found,
            legal: count,
        });
    }
    let sum = row.policy.iter().map(|&part| u32::from(part)).sum();
    if sum != POLICY_TOTAL {
        return Err(RowFault::PolicySum { sum });
    }
    if !(row.weight.is_finite() && row.weight >= 0.0) {
        return Err(RowFault::Weight { weight: row.weight });
    }
    Ok(ReplayedRow {
        state,
        legal,
        policy: &row.policy,
        visits: row.visits,
        weight: row.weight,
    })
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
