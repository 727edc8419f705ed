//! Text in and out: steps, turns, positions, game records. What is legal is left to [`rules`](crate::rules).
//!
//! | what | read | write | looks like |
//! |---|---|---|---|
//! | step on a board | | [`format_step`] | `Ed2n`, with what it loses `cb3e cc3x` |
//! | turn on a board | [`parse_turn`] | [`format_turn`] | `Mb4e db3n cd3e ec3x Hd4s`, `Ra1 Rb1 …` |
//! | position | [`parse_position`] | [`format_position`] | `g [`, 64 characters, `]` |
//! | board | [`parse_board`] | [`format_board`] | `[`, 64 characters, `]` |
//! | board picture | [`parse_board_picture`] | [`format_board_picture`] | ranks in a frame |
//! | game record | [`parse_record`] | [`format_record`] | one turn a line: `1g Ra1 …` |
//! | [archive] of the official server | [`ArchiveReader`] | [`format_movelist`] | one game a line, in columns |
//! | [many games](archive) | [`RecordReader`] | [`format_concluded_record`] | records one after another |
//!
//! Directions are always seen from Gold's side, upper case is Gold. Whatever can't be read is a [`NotationError`], which names
//! the line, the column and the reason.
//!
//! Whatever can be read without a board is also read by `parse` and written by `to_string`:
//!
//! ```
//! use arimaa::notation::{BoardPicture, TurnLabel};
//! use arimaa::rules::{Action, Board, Direction, Game, Kind, Piece, Position, Setup, Side, Square, Step, Turn};
//! fn reads_back<T: std::str::FromStr + ToString>(text: &str) {
//!     assert_eq!(text.parse().map(|value: T| value.to_string()).as_deref().ok(), Some(text));
//! }
//! reads_back::<Square>("d2");
//! reads_back::<Direction>("n");
//! reads_back::<Piece>("E");
//! reads_back::<Kind>("elephant"); // or `E`
//! reads_back::<Side>("Gold"); // or `g`
//! reads_back::<Step>("d2n");
//! reads_back::<Action>("end");
//! reads_back::<Turn>("d2n d3n");
//! reads_back::<Setup>("RHCEMCHR/RRRDDRRR");
//! reads_back::<Board>("[r                                  Er                          R]");
//! reads_back::<Position>("g [r                                  Er                          R]");
//! reads_back::<TurnLabel>("12g");
//! reads_back::<Game>("g [r                                  Er                          R]\n2g Ed4n\n");
//! # let position = Position::INITIAL;
//! reads_back::<BoardPicture>(&BoardPicture { turn_number: 1, position }.to_string());
//! ```
//!
//! # Serialised forms
//! In formats for people (JSON, TOML) the types above are written as these texts. In others they are numbers: indices of squares (0
//! to 63), directions, pieces, and actions as Gold sees the board; kinds and sides as serde numbers their variants. A board takes
//! 32 bytes, two squares a byte. Labels and pictures are written by their fields, and so are errors in every format. What is read
//! is checked: positions, setups, turns, labels, whole games, and that a step state can be reached. A position that was made
//! without checks ([`Position::in_play`](crate::rules::Position::in_play)) may be refused when it is read back.
//!
#![cfg_attr(feature = "serde", doc = "```")]
#![cfg_attr(not(feature = "serde"), doc = "```ignore")]
//! use arimaa::rules::{Action, Position, Step};
//! let steps: Vec<Step> = serde_json::from_str(r#"["d2n","e2n"]"#)?;
//! assert_eq!(serde_json::to_string(&Action::Step(steps[0]))?, r#""d2n""#);
//! let alone_on_a_trap = r#""g [r                 C                                             R]""#;
//! assert!(serde_json::from_str::<Position>(alone_on_a_trap).is_err());
//! # Ok::<(), serde_json::Error>(())
//! ```

pub mod archive;
mod boardless;
mod error;
#[cfg(feature = "serde")]
mod forms;
mod letters;
mod picture;
mod position;
mod record;
#[cfg(feature = "serde")]
mod state_form;
mod token;
mod turn;

pub use archive::{
    ArchiveColumns, ArchiveLine, ArchiveReader, ArchivedGame, ArchivedPlayer, Conclusion,
    RecordReader, RecordText, SideLetters, Termination, WrittenGame, format_concluded_record,
    format_movelist,
};
pub use error::{NotationError, NotationReason};
pub use picture::{BoardPicture, format_board_picture, parse_board_picture};
#[cfg(feature = "cli")]
pub(crate) use position::board_letters;
pub use position::{format_board, format_position, parse_board, parse_position};
pub use record::{TurnLabel, format_record, parse_record};
pub(crate) use token::shorten;
pub use turn::{captured, format_step, format_step_with_capture, format_turn, parse_turn};
