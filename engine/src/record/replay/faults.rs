//! What can be wrong with a record.

use super::super::game::StartFault;
use super::super::policy::POLICY_TOTAL;
use arimaa::notation::TurnLabel;
use arimaa::rules::{Outcome, Square, Step, StepError, TurnError};

/// Why a record is no game.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ReplayError {
    /// The position that the game starts from is none.
    #[error("start: {0}")]
    Start(#[from] StartFault),
    /// A turn is at fault.
    #[error("turn {turn}: {fault}")]
    Turn {
        /// Which one.
        turn: TurnLabel,
        /// What is wrong with it.
        fault: TurnFault,
    },
    /// A row is at fault.
    #[error("turn {turn}, row {row}: {fault}")]
    Row {
        /// The turn.
        turn: TurnLabel,
        /// Which of its rows, from 0.
        row: usize,
        /// What is wrong with it.
        fault: RowFault,
    },
    /// The game ended otherwise than the record says.
    #[error(transparent)]
    Ending(#[from] EndingFault),
    /// The record says that a side would have resigned after more turns than there are.
    #[error("a resignation was waived after {turn} turns of {turns}")]
    WaivedResignation {
        /// What the record says.
        turn: u32,
        /// The turns that there are.
        turns: usize,
    },
}

/// How a record's ending differs from its game's.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EndingFault {
    /// The game is not over after the last turn.
    #[error("the record says that {recorded}, but the game is not over after its last turn")]
    NotOver {
        /// What the record says.
        recorded: Outcome,
    },
    /// The game is over, and the record says that it was broken off.
    #[error("the record says that the game was broken off, but {played}")]
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
    /// The value of an unfinished game is no probability.
    #[error("the unfinished game's value is {value}, which is no probability")]
    Value {
        /// What it is.
        value: f32,
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
    /// The evaluator is not one of the record's.
    #[error("it names evaluator {evaluator} of {count}")]
    Evaluator {
        /// Its place, from 0.
        evaluator: u16,
        /// How many the record has.
        count: usize,
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
    /// A number must be finite and not below 0.
    #[error("the {name} is {value}")]
    Number {
        /// Which number.
        name: &'static str,
        /// What it is.
        value: f32,
    },
}
