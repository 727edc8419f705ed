//! What a controller says to an engine.

use super::words::{
    needed, nothing_more, one_line, shortened, split_word, words, write_on_one_line,
};
use super::{MessageError, StandardOption};
use crate::notation::{format_position, parse_position};
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
    /// The first message: say who you are.
    Aei,
    /// Say `readyok` once everything before is done.
    IsReady,
    /// A new game: an empty board, Gold sets up.
    NewGame,
    /// The game goes on from here.
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

words! {
    /// The words that messages of controllers begin with.
    enum Verb {
        Aei = "aei",
        IsReady = "isready",
        NewGame = "newgame",
        SetPosition = "setposition",
        SetOption = "setoption",
        MakeMove = "makemove",
        Go = "go",
        Stop = "stop",
        Quit = "quit",
    }
}

/// The word behind `go` that asks for thinking on the opponent's time.
const PONDER: &str = "ponder";
/// The words in front of an option's name and of its value.
const NAME: &str = "name";
const VALUE: &str = "value";

impl Command {
    /// The command that sets a standard option.
    pub fn set(option: StandardOption, value: impl fmt::Display) -> Self {
        Self::SetOption {
            name: option.word().to_owned(),
            value: Some(value.to_string()),
        }
    }

    fn verb(&self) -> Verb {
        match self {
            Self::Aei => Verb::Aei,
            Self::IsReady => Verb::IsReady,
            Self::NewGame => Verb::NewGame,
            Self::SetPosition(_) => Verb::SetPosition,
            Self::SetOption { .. } => Verb::SetOption,
            Self::MakeMove(_) => Verb::MakeMove,
            Self::Go | Self::Ponder => Verb::Go,
            Self::Stop => Verb::Stop,
            Self::Quit => Verb::Quit,
        }
    }
}

/// One line, without its end.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.verb())?;
        match self {
            Self::SetPosition(position) => write!(f, " {}", format_position(position)),
            Self::SetOption { name, value } => {
                write!(f, " {NAME} ")?;
                write_on_one_line(f, name)?;
                match value {
                    Some(value) => {
                        write!(f, " {VALUE} ")?;
                        write_on_one_line(f, value)
                    }
                    None => Ok(()),
                }
            }
            Self::MakeMove(turn) => {
                f.write_str(" ")?;
                write_on_one_line(f, turn)
            }
            Self::Ponder => write!(f, " {PONDER}"),
            _ => Ok(()),
        }
    }
}

/// Reads one line; its end and blanks around it don't matter.
impl FromStr for Command {
    type Err = MessageError;

    fn from_str(text: &str) -> Result<Self, MessageError> {
        let (word, rest) = split_word(one_line(text)?);
        let verb = Verb::of(word).ok_or_else(|| MessageError::Unknown(shortened(word)))?;
        let message = verb.word();
        let command = match verb {
            Verb::SetPosition => {
                let text = needed(message, "a side and a board", rest)?;
                return Ok(Self::SetPosition(parse_position(text)?));
            }
            Verb::SetOption => return set_option(message, rest),
            Verb::MakeMove => {
                let turn = needed(message, "a turn", rest)?;
                return Ok(Self::MakeMove(turn.to_owned()));
            }
            Verb::Go => {
                let (word, rest) = split_word(rest);
                return match word {
                    PONDER => nothing_more(message, rest).map(|()| Self::Ponder),
                    _ => nothing_more(message, word).map(|()| Self::Go),
                };
            }
            Verb::Aei => Self::Aei,
            Verb::IsReady => Self::IsReady,
            Verb::NewGame => Self::NewGame,
            Verb::Stop => Self::Stop,
            Verb::Quit => Self::Quit,
        };
        nothing_more(message, rest)?;
        Ok(command)
    }
}

/// Reads `name NAME` and `value VALUE`, the value with all that follows it.
fn set_option(message: &'static str, text: &str) -> Result<Command, MessageError> {
    let (word, rest) = split_word(needed(message, "`name` and the option's name", text)?);
    if word != NAME {
        nothing_more(message, word)?;
    }
    let (name, rest) = split_word(needed(message, "the option's name", rest)?);
    let (word, value) = split_word(rest);
    if word != VALUE {
        nothing_more(message, word)?;
    }
    Ok(Command::SetOption {
        name: name.to_owned(),
        value: (word == VALUE).then(|| value.to_owned()),
    })
}
