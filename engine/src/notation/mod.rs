//! Text in and out: steps, turns, positions, game records. What is legal is left to [`rules`](crate::rules).
//!
//! | what | read | write | looks like |
//! |---|---|---|---|
//! | step | | [`format_step`] | `Ed2n`, with what it loses `cb3e cc3x` |
//! | turn | [`parse_turn`] | [`format_turn`] | `Mb4e db3n cd3e ec3x Hd4s`, `Ra1 Rb1 …` |
//! | position | [`parse_position`] | [`format_position`] | `g [`, 64 characters, `]` |
//! | board picture | [`parse_board_picture`] | [`format_board_picture`] | ranks in a frame |
//! | game record | [`parse_record`] | [`format_record`] | one turn a line: `1g Ra1 …` |
//!
//! Directions are always seen from Gold's side, upper case is Gold. Whatever can't be read is a [`NotationError`], which names
//! the line, the column and the reason.

mod error;
mod picture;
mod position;
mod record;
mod token;
mod turn;

pub use error::{NotationError, NotationReason};
pub use picture::{format_board_picture, parse_board_picture};
pub(crate) use position::board_letters;
pub use position::{format_board, format_position, parse_board, parse_position};
pub use record::{TurnLabel, format_record, parse_record};
pub use turn::{captured, format_step, format_step_with_capture, format_turn, parse_turn};
