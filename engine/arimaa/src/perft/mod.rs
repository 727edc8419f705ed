//! Counting turns, and comparing the counts and the rules with what independent engines say: the program `perft` without its
//! arguments and files.
//!
//! [`count`] looks at one position, [`sequences`] at several turns in a row, and [`Case`] at whole facts about turns, ends and
//! games. Files hold one JSON object a line.
//!
//! A line of a file of positions, a [`PositionLine`]:
//!
//! | key | value |
//! |---|---|
//! | `id` | the position's name |
//! | `position` | `[`, 64 characters from a8 to h8, then a7 and so on to h1, `]`; `RCDHME` Gold's pieces, `rcdhme` Silver's, a blank an empty square |
//! | `side` | `g` or `s`, at the start of its turn |
//! | `distinct_turns` | different boards at the end of a legal turn of 1 to 4 steps, the start excluded. Repetition is ignored, and decided boards count |
//! | `has_legal_turn` | whether there is any |
//! | `first_steps` | all legal first steps, sorted, without captures; a step of an enemy piece is the first half of a push |
//! | `turns_checksum` | 16 hexadecimal digits: the sum modulo 2⁶⁴ of FNV-1a-64 over the 64 characters of each distinct board |
//! | `source`, `tags` | where the position comes from, and what is in it |
//!
//! A line of a file of cases, a [`Case`], by its `kind`:
//!
//! | kind | given | expected |
//! |---|---|---|
//! | `turn` | `position`, `side`, `turn` | `legal`, and `result`: the board after it, or null |
//! | `count` | as a position | as a position; some of these boards are decided already |
//! | `end` | the board at the start of `side`'s turn | `winner`: `g`, `s` or null; `reason`: `goal`, `elimination`, `immobilization` or null |
//! | `game` | `moves` from the empty board | `winner`; `reason`: `g` goal, `e` elimination, `m` immobilization, `i` illegal turn, by the loser; `plies_played`, a rejected turn included |

mod cases;
mod count;

pub use cases::{Answer, Case, CountResult, EndResult, Found, GameReason, GameResult, TurnResult};
pub use count::{
    Count, FoundLine, PositionLine, PositionLineError, SequenceCounts, SideLetter, TurnCount,
    checksum, count, count_turns, sequences,
};
