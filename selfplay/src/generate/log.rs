//! Where games in flight are journalled, turn by turn.

use super::disk::WriteQueue;
use anyhow::Result;
use engine::record::journal::{Beginning, Journal, JournalError};
use engine::record::{EvaluatorId, GameId, TurnRecord};
use engine::run::Generator;
use std::sync::Arc;

/// Keeps what a killed generator resumes from. An entry is kept once its call returns. By default nothing is kept.
pub(crate) trait GameLog: Send + Sync {
    /// A game begins.
    fn begin(&self, _beginning: Beginning) -> Result<()> {
        Ok(())
    }

    /// A game's turns from now on may name another evaluator: the next in its list.
    fn evaluator(&self, _id: GameId, _evaluator: &EvaluatorId) -> Result<()> {
        Ok(())
    }

    /// A turn of a game has been played: the one of this number, from 0.
    fn turn(&self, _id: GameId, _number: usize, _turn: &TurnRecord) -> Result<()> {
        Ok(())
    }
}

/// Keeps nothing: for measurements.
pub(crate) struct NoLog;

impl GameLog for NoLog {}

/// Writes to a generator's journal. While the disk is full it waits.
pub(crate) struct JournalLog {
    pub(crate) generator: Arc<Generator>,
    pub(crate) write_queue: Arc<WriteQueue>,
}

impl JournalLog {
    fn write(&self, write: impl Fn(&Journal) -> Result<(), JournalError>) -> Result<()> {
        self.write_queue.write(
            || write(self.generator.journal()),
            JournalError::is_temporary,
        )
    }
}

impl GameLog for JournalLog {
    fn begin(&self, beginning: Beginning) -> Result<()> {
        self.write(|journal| journal.begin(beginning))
    }

    fn evaluator(&self, id: GameId, evaluator: &EvaluatorId) -> Result<()> {
        self.write(|journal| journal.evaluator(id, evaluator).map(drop))
    }

    fn turn(&self, id: GameId, number: usize, turn: &TurnRecord) -> Result<()> {
        let number = u32::try_from(number)?;
        self.write(|journal| journal.turn(id, number, turn))
    }
}
