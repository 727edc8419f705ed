//! Counting turns, and comparing the counts and the rules with what independent engines say: the program `perft` without its
//! arguments and files.
//!
//! [`count`] looks at one position, [`sequences`] at several turns in a row, and [`Case`] at whole facts about turns, ends and
//! games. The lines that they are read from and written to are described in `engine/arimaa/tests/data/oracle/README.md`.

mod cases;
mod count;

pub use cases::{Answer, Case, CountResult, EndResult, Found, GameReason, GameResult, TurnResult};
pub use count::{
    Count, FoundLine, PositionLine, PositionLineError, SequenceCounts, SideLetter, TurnCount,
    checksum, count, count_turns, sequences,
};
