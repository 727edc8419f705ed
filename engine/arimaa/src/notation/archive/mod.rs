//! Games of others: in the archive of the game's official server ([`ArchiveReader`]), or as texts that stand one after another
//! ([`RecordReader`]).
//!
//! # The archive
//! One game a line, in columns that are separated by tabs. The first line names them, in any order; unknown ones are ignored.
//! Every line has as many fields as the first. A line that is no UTF-8 is read as Latin-1.
//!
//! | column | what | where it is missing or empty |
//! |---|---|---|
//! | `id` | the game's number on the server | an error |
//! | `result` | the winner: `w` or `g` for Gold, `b` or `s` for Silver; no winner: `d`, `n`, `u`, or empty | an error without the column |
//! | `termination` | how it ended, see [`Termination`] | an error without the column |
//! | `movelist` | the turns, see below | an error |
//! | `wusername`, `busername` | the names of Gold and Silver | empty |
//! | `wrating`, `brating` | their ratings then | none |
//! | `event` | what the game was played for | empty |
//! | `rated` | `1` where the game counted for the ratings, `0` where not | not known |
//! | `corrupt` | `1` where the server itself distrusts the record, which is refused | trusted |
//!
//! The turns are separated by a backslash and an `n`. A record is refused whose turns break the rules, or whose result or
//! termination is not what the rules say of them. So a game that was played under the older rules of the server, which ended
//! otherwise, is no game here.
//!
//! # Texts
//! One turn a line. A game begins with the turn `1g` or `1w`, or, if it did not start with the setups, with its first position
//! in the short form, and is then numbered from 2. Blank lines, lines that begin with `#`, and lines whose first word ends with
//! a colon (as tags do: `Gold: anna`) say nothing. So every text of [`format_record`](super::format_record) is one, and so are
//! several of them one behind the other; [`format_concluded_record`] adds how a game was lost that the rules did not end.
//!
//! # Turns
//! Each begins with its number and side, `w` and `b` before August 2008, `g` and `s` since: `12w Ed4n …`. The placements of `1w`
//! and `1b` and the steps are those of [`parse_turn`](super::parse_turn), lost pieces with `x` included. What else stands behind
//! a number and side:
//!
//! - nothing: the turn was due when the game ended. It plays nothing.
//! - `takeback`: the turn before it is taken back, and due again. What is taken back is not played, hence not checked.
//! - `resigns`, `resign`, `resigned`: the side gave up; `lost`: it lost otherwise. No turn follows. Usually the side is to move;
//!   if not, this stands behind its next turn's number.

mod game;
mod lines;
mod movelist;
mod reader;
#[cfg(test)]
mod tests;
mod text;

pub use game::{ArchivedGame, ArchivedPlayer, Conclusion, Termination};
pub use lines::{ArchiveLine, MAX_LINE_BYTES};
pub use movelist::{SideLetters, format_movelist};
pub use reader::{ArchiveColumns, ArchiveReader};
pub use text::{RecordReader, RecordText, WrittenGame, format_concluded_record};
