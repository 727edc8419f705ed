//! What a controller says to an engine.

use super::words::{needed, nothing_more, one_line, split_word, write_on_one_line};
use super::{MessageError, StandardOption};
use crate::notation::{format_position, parse_position, shorten};
use crate::rules::Position;
use std::fmt;
use std::str::FromStr;

/// A message of a controller to an engine.
///
/// ```
/// use arimaa::aei::Command;
/// for text in ["aei", "go ponder", "makemove Ra1 Rb1", "setoption name opponent value bot Sharp"] {
///     assert_eq!(text.parse::<Command>()?.to_string(), text);
/// }
/// # Ok::<(), arimaa::aei::MessageError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// The first message: asks for the engine's name.
    Aei,
    /// Say `readyok` once everything before is done.
    IsReady,
    /// A new game: an empty board, Gold sets up.
    NewGame,
    /// The game continues from here.
    SetPosition(Position),
    /// Set an option.
    SetOption {
        /// The option's name, one word.
        name: String,
        /// The value; options that are actions have none.
        value: Option<String>,
    },
    /// A turn was played, by whichever side is to move. The text is a turn in standard notation, not empty; whether it can be played
    /// only the position says.
    MakeMove(String),
    /// Think about the position and say the best turn.
    Go,
    /// Think on the opponent's time.
    Ponder,
    /// End the thinking and say the best turn.
    Stop,
    /// End the session.
    Quit,
}

impl Command {
    /// The command that sets a standard option.
    pub fn set(option: StandardOption, value: impl fmt::Display) -> Self {
        Self::SetOption {
            name: option.word().to_owned(),
            value: Some(value.to_string()),
        }
    }
}

/// One line, without its end.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Aei => f.write_str("aei"),
            Self::IsReady => f.write_str("isready"),
            Self::NewGame => f.write_str("newgame"),
            Self::SetPosition(position) => write!(f, "setposition {}", format_position(position)),
            Self::SetOption { name, value } => {
                f.write_str("setoption name ")?;
                write_on_one_line(f, name)?;
                let Some(value) = value else {
                    return Ok(());
                };
                f.write_str(" value ")?;
                write_on_one_line(f, value)
            }
            Self::MakeMove(turn) => {
                f.write_str("makemove ")?;
                write_on_one_line(f, turn)
            }
            Self::Go => f.write_str("go"),
            Self::Ponder => f.write_str("go ponder"),
            Self::Stop => f.write_str("stop"),
            Self::Quit => f.write_str("quit"),
        }
    }
}

/// Reads one line; its end and blanks around it don't matter.
impl FromStr for Command {
    type Err = MessageError;

    fn from_str(text: &str) -> Result<Self, MessageError> {
        let (word, rest) = split_word(one_line(text)?);
        let alone = |message, command| nothing_more(message, rest).map(|()| command);
        match word {
            "aei" => alone("aei", Self::Aei),
            "isready" => alone("isready", Self::IsReady),
            "newgame" => alone("newgame", Self::NewGame),
            "setposition" => {
                let position = needed("setposition", "a side and a board", rest)?;
                Ok(Self::SetPosition(parse_position(position)?))
            }
            "setoption" => set_option(rest),
            "makemove" => {
                let turn = needed("makemove", "a turn", rest)?;
                Ok(Self::MakeMove(turn.to_owned()))
            }
            "go" => match split_word(rest) {
                ("ponder", more) => nothing_more("go", more).map(|()| Self::Ponder),
                _ => alone("go", Self::Go),
            },
            "stop" => alone("stop", Self::Stop),
            "quit" => alone("quit", Self::Quit),
            _ => Err(MessageError::Unknown(shorten(word))),
        }
    }
}

/// Reads `name NAME` and `value VALUE`, the value with all that follows it.
fn set_option(text: &str) -> Result<Command, MessageError> {
    let message = "setoption";
    let (word, rest) = split_word(needed(message, "`name` and the option's name", text)?);
    if word != "name" {
        nothing_more(message, word)?;
    }
    let (name, rest) = split_word(needed(message, "the option's name", rest)?);
    let (word, value) = split_word(rest);
    if word != "value" {
        nothing_more(message, word)?;
    }
    Ok(Command::SetOption {
        name: name.to_owned(),
        value: (word == "value").then(|| value.to_owned()),
    })
}
