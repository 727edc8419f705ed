//! What a journal holds of a game, and what may be lost of a file.

use crate::record::game::{EvaluatorId, GameId, Start, TurnRecord};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// The version of the format that this program writes and reads.
pub const FORMAT_VERSION: u32 = 2;

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
    /// The evaluators of its step states; turns name them by their place here.
    pub evaluators: Vec<EvaluatorId>,
    /// Its turns so far: legal, and perhaps the last one has ended the game.
    pub turns: Vec<TurnRecord>,
}

/// A part of a file that could not be read, and was lost.
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
    /// Whether it had been on the disk, and was damaged since. Otherwise it is the end of the file, and was never flushed.
    pub is_damage: bool,
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            offset,
            bytes,
            reason,
            is_damage,
        } = self;
        let path = path.display();
        if *is_damage {
            write!(
                f,
                "{path}: {bytes} bytes from byte {offset} on are damaged and left out: {reason}"
            )
        } else {
            write!(
                f,
                "{path}: the last {bytes} bytes, from byte {offset} on, were never flushed and are dropped: {reason}"
            )
        }
    }
}
