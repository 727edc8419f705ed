//! Playing a record under the rules: proof that it is a game, and its rows with the states that they belong to.

mod faults;

pub use faults::{EndingFault, ReplayError, RowFault, TurnFault};

use super::game::{Ending, GameRecord, RowRecord, Start, StartFault, TurnOrigin, TurnRecord};
use super::policy::POLICY_TOTAL;
use arimaa::notation::TurnLabel;
use arimaa::rules::{Action, ActionSet, Game, Outcome, Phase, Position, Side, StepState, Turn};
use arrayvec::ArrayVec;

/// One turn of a record, played.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayedTurn<'record> {
    /// The position before it.
    pub position: Position,
    /// The turn.
    pub turn: Turn,
    /// How often the position before it has stood in the game before: 0, 1 or 2.
    pub repetitions: u8,
    /// How the turn was chosen.
    pub origin: TurnOrigin,
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
    /// How far the target is from the evaluator's own policy, in nats.
    pub surprise: f32,
    /// The row's weight in training.
    pub weight: f32,
}

/// Plays a record from its start and checks all of it. Every action and the end of every turn must be legal, and the game must end
/// as the record says. Every row must belong to a state of its turn and have a distribution over exactly the legal actions there.
/// Values, weights and the places of evaluators must be possible.
///
/// Twins of a setup may have been placed in either order.
pub fn replay(record: &GameRecord) -> Result<Vec<ReplayedTurn<'_>>, ReplayError> {
    let mut game = record.new_game()?;
    let mut turns = Vec::with_capacity(record.turns.len());
    for (index, turn) in record.turns.iter().enumerate() {
        let replayed = replay_turn(&game, record, index, turn)?;
        game.play_unchecked(replayed.turn.clone());
        turns.push(replayed);
    }
    check_ending(record.ending, game.outcome())?;
    match record.resignation_waived {
        Some(waived) if waived.turn as usize > turns.len() => Err(ReplayError::WaivedResignation {
            turn: waived.turn,
            turns: turns.len(),
        }),
        _ => Ok(turns),
    }
}

impl GameRecord {
    /// The record as a game of the rules; it is checked as by [`replay`].
    pub fn to_game(&self) -> Result<Game, ReplayError> {
        let mut game = self.new_game()?;
        for replayed in replay(self)? {
            game.play_unchecked(replayed.turn);
        }
        Ok(game)
    }

    /// The game before its first turn, those that were given included.
    pub fn new_game(&self) -> Result<Game, StartFault> {
        self.start.new_game()
    }

    /// The number and side of a turn, counted from 0. The setups are turn 1, and so a game from a position begins with turn 2.
    pub fn turn_number(&self, index: usize) -> TurnLabel {
        let (number, side) = match &self.start {
            Start::Position(start) => (2, start.side),
            Start::Empty | Start::Fork { .. } | Start::Opening => (1, Side::Gold),
        };
        TurnLabel { number, side }.after(index)
    }
}

impl TurnRecord {
    /// The turn, as the next of a game.
    ///
    /// # Errors
    /// An illegal action or end. Rows and values are not looked at.
    pub fn turn_in(&self, game: &Game) -> Result<Turn, TurnFault> {
        match game.outcome() {
            Some(outcome) => Err(TurnFault::GameOver(outcome)),
            None => play_actions(game, &self.actions).map(|(turn, _)| turn),
        }
    }
}

impl Start {
    /// The game before its first turn, those that were given included.
    pub fn new_game(&self) -> Result<Game, StartFault> {
        Ok(match self {
            Self::Empty | Self::Fork { .. } | Self::Opening => Game::new(),
            Self::Position(start) => Game::from_position(start.position()?),
        })
    }
}

fn check_ending(recorded: Ending, played: Option<Outcome>) -> Result<(), EndingFault> {
    match (recorded, played) {
        (Ending::Won(recorded), None) => Err(EndingFault::NotOver { recorded }),
        (Ending::Won(recorded), Some(played)) if recorded == played => Ok(()),
        (Ending::Won(recorded), Some(played)) => Err(EndingFault::Other { recorded, played }),
        (_, Some(played)) => Err(EndingFault::Over { played }),
        (Ending::Unfinished { value: Some(value) }, None) if !(0.0..=1.0).contains(&value) => {
            Err(EndingFault::Value { value })
        }
        _ => Ok(()),
    }
}

fn replay_turn<'record>(
    game: &Game,
    of: &GameRecord,
    index: usize,
    record: &'record TurnRecord,
) -> Result<ReplayedTurn<'record>, ReplayError> {
    let number = of.turn_number(index);
    let in_turn = |fault: TurnFault| ReplayError::Turn {
        turn: number,
        fault,
    };
    if let Some(outcome) = game.outcome() {
        return Err(in_turn(TurnFault::GameOver(outcome)));
    }
    check_origin(&record.origin, of.evaluators.len()).map_err(in_turn)?;
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
        origin: record.origin,
        rows,
        ending: of.ending,
    })
}

fn check_origin(origin: &TurnOrigin, evaluators: usize) -> Result<(), TurnFault> {
    let probability = |name, value| {
        if (0.0..=1.0).contains(&value) {
            Ok(())
        } else {
            Err(TurnFault::Value { name, value })
        }
    };
    match *origin {
        TurnOrigin::Given => {}
        TurnOrigin::Policy { network_value, .. } => probability("network value", network_value)?,
        TurnOrigin::Search(search) => {
            probability("value", search.value)?;
            probability("network value", search.network_value)?;
        }
    }
    match origin.evaluator() {
        Some(evaluator) if usize::from(evaluator) >= evaluators => Err(TurnFault::Evaluator {
            evaluator,
            count: evaluators,
        }),
        _ => Ok(()),
    }
}

/// The states of a turn in which something is decided, with the legal actions: at most four, eight in a setup.
type States = ArrayVec<(StepState, ActionSet), 8>;

/// Plays the actions of one turn: what the turn is, and the states in flight.
fn play_actions(game: &Game, actions: &[u16]) -> Result<(Turn, States), TurnFault> {
    let position = game.position();
    let mut state = StepState::new(position);
    let mut states = States::new();
    let mut played = ArrayVec::<Action, 8>::new();
    for (index, &action_index) in actions.iter().enumerate() {
        let number = index + 1;
        let legal = state.legal_actions(game.history());
        let action = check_action(game, &state, &legal, number, action_index)?;
        // Legal, so that the state is not complete, and there is room in both.
        played.push(action);
        states.push((state, legal));
        state = state.after(action);
    }
    let turn = Turn::from_actions(&played, position);
    let turn = turn.ok_or(TurnFault::SetupIncomplete {
        count: played.len(),
    })?;
    if position.phase() == Phase::Play {
        state.check_end(game.history())?;
        if !state.is_complete() {
            states.push((state, state.legal_actions(game.history())));
        }
    }
    Ok((turn, states))
}

/// The action of a recorded index, if it is legal.
fn check_action(
    game: &Game,
    state: &StepState,
    legal: &ActionSet,
    number: usize,
    index: u16,
) -> Result<Action, TurnFault> {
    let found = Action::from_index(index.into(), state.side());
    let action = found.ok_or(TurnFault::NoAction {
        action: number,
        index,
    })?;
    Err(match action {
        Action::End => TurnFault::EndRecorded { action: number },
        _ if legal.contains(action) => return Ok(action),
        Action::Place(square) => TurnFault::Placement {
            action: number,
            square,
        },
        Action::Step(step) => match state.check_step(step, game.history()) {
            Ok(()) => return Ok(action),
            Err(error) => TurnFault::Step {
                action: number,
                step,
                error,
            },
        },
    })
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
    for (name, value) in [("surprise", row.surprise), ("weight", row.weight)] {
        if !(0.0..=f32::MAX).contains(&value) {
            return Err(RowFault::Number { name, value });
        }
    }
    Ok(ReplayedRow {
        state,
        legal,
        policy: &row.policy,
        visits: row.visits,
        surprise: row.surprise,
        weight: row.weight,
    })
}

#[cfg(test)]
mod tests;
