//! Where games in flight are written down, turn by turn.

use super::disk::{WriteQueue, may_pass};
use anyhow::Result;
use engine::record::journal::{Beginning, JournalError, JournalFault};
use engine::record::{EvaluatorId, GameId, Start, TurnRecord};
use engine::run::Generator;
use std::fmt::{self, Debug};
use std::sync::Arc;

/// Keeps what a killed generator goes on from. What it has been given when a call returns is kept.
pub(crate) trait GameLog: Debug + Send + Sync {
    /// A game begins.
    fn begin(&self, id: GameId, seed: u64, start: Start) -> Result<()>;

    /// A game's turns from now on may name another evaluator: the next in its list.
    fn evaluator(&self, id: GameId, evaluator: &EvaluatorId) -> Result<()>;

    /// A turn of a game has been played: the one of this number, from 0.
    fn turn(&self, id: GameId, number: usize, turn: &TurnRecord) -> Result<()>;
}

/// Keeps nothing: for measurements.
#[derive(Debug)]
pub(crate) struct NoLog;

impl GameLog for NoLog {
    fn begin(&self, _: GameId, _: u64, _: Start) -> Result<()> {
        Ok(())
    }

    fn evaluator(&self, _: GameId, _: &EvaluatorId) -> Result<()> {
        Ok(())
    }

    fn turn(&self, _: GameId, _: usize, _: &TurnRecord) -> Result<()> {
        Ok(())
    }
}

/// Writes to a generator's journal. Where the disk is full it waits.
pub(crate) struct JournalLog {
    pub(crate) generator: Arc<Generator>,
    pub(crate) waiting_room: Arc<WriteQueue>,
}

impl Debug for JournalLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JournalLog")
            .field("generator", &self.generator.number())
            .finish_non_exhaustive()
    }
}

impl JournalLog {
    fn write(&self, write: impl FnMut() -> Result<(), JournalError>) -> Result<()> {
        self.waiting_room.write(
            write,
            |error| matches!(&error.fault, JournalFault::Io(error) if may_pass(error)),
        )
    }
}

impl GameLog for JournalLog {
    fn begin(&self, id: GameId, seed: u64, start: Start) -> Result<()> {
        let beginning = Beginning { id, seed, start };
        self.write(|| self.generator.journal().begin(beginning))
    }

    fn evaluator(&self, id: GameId, evaluator: &EvaluatorId) -> Result<()> {
        self.write(|| {
            self.generator
                .journal()
                .evaluator(id, evaluator)
                .map(|_| ())
        })
    }

    fn turn(&self, id: GameId, number: usize, turn: &TurnRecord) -> Result<()> {
        let number = u32::try_from(number)?;
        self.write(|| self.generator.journal().turn(id, number, turn))
    }
}
