//! The games that a journal tells of, and what was found when it was opened.

use super::reader::{Games, Told};
use super::{JournalError, recovery};
use crate::record::game::{EvaluatorId, GameId, Start, TurnRecord};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

/// How a game begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beginning {
    /// Which game it is.
    pub id: GameId,
    /// The run's seed.
    pub seed: u64,
    /// Where it starts. Turns that are given are appended as any others.
    pub start: Start,
}

/// A game to resume.
#[derive(Debug, Clone, PartialEq)]
pub struct GameInFlight {
    /// How it began.
    pub beginning: Beginning,
    /// Those who judge its step states; turns name them by their place here.
    pub evaluators: Vec<EvaluatorId>,
    /// Its turns so far: legal, and perhaps the last one has ended the game.
    pub turns: Vec<TurnRecord>,
}

/// The end of a file that could not be read, and was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// The file, by the name that it had.
    pub path: PathBuf,
    /// The first byte that was dropped.
    pub offset: u64,
    /// How many were.
    pub bytes: u64,
    /// What is wrong with the frame there.
    pub reason: String,
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            offset,
            bytes,
            reason,
        } = self;
        let path = path.display();
        write!(
            f,
            "{path}: the last {bytes} bytes, from byte {offset} on, were never flushed and are dropped: {reason}"
        )
    }
}

/// The games that one file tells of, checked as when a journal is opened, and what could not be read at its end. Some may be in
/// a shard that has been announced: no shard is looked at.
pub fn games_in(
    path: &Path,
    bytes: &[u8],
) -> Result<(Vec<GameInFlight>, Option<Dropped>), JournalError> {
    let mut games = Games::default();
    games.read(path, bytes)?;
    recovery::check_all(&games)?;
    let dropped = games.dropped.pop();
    let games = games.told.into_values().map(GameInFlight::from);
    Ok((games.collect(), dropped))
}

/// What was found when a journal was opened.
#[derive(Debug, Default)]
pub struct Recovery {
    /// The games to resume, by id. They are in the new journal already.
    pub games: Vec<GameInFlight>,
    /// The counter of the generator's next game.
    pub next_counter: u64,
    /// The sequence number of the generator's next shard: above all that it has announced.
    pub next_shard: u32,
    /// The generators whose journals were taken over, by number.
    pub adopted: Vec<u32>,
    /// Games in the files that a complete shard holds.
    pub finished: u64,
    /// Torn ends of files.
    pub dropped: Vec<Dropped>,
    /// Journals of other generators that are unlocked and can't be read: they stay as they are.
    pub left: Vec<JournalError>,
}

impl From<Told> for GameInFlight {
    fn from(told: Told) -> Self {
        Self {
            beginning: told.beginning,
            evaluators: told.evaluators,
            turns: told.turns,
        }
    }
}
