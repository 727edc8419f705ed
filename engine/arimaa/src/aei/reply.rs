//! What an engine says to a controller.

use super::error::MessageError;
use super::words::{needed, nothing_more, one_line, split_word, words, write_on_one_line};
use crate::notation::shorten;
use crate::rules::Side;
use std::fmt;
use std::str::FromStr;

/// A message of an engine to a controller.
///
/// ```
/// use arimaa::aei::{Info, LogLevel, Reply};
/// assert_eq!("info depth 10+".parse(), Ok(Reply::Info(Info::Depth { steps: 10, goes_on: true })));
/// let log = Reply::Log { level: Some(LogLevel::Warning), text: "no such option".into() };
/// assert_eq!(log.to_string(), "log Warning: no such option");
/// assert_eq!(log.to_string().parse(), Ok(log));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// The first answer to `aei`: the protocol's version.
    ProtocolVersion(u32),
    /// The engine's identity.
    Identity {
        /// What is said of it.
        kind: IdentityKind,
        /// The text.
        value: String,
    },
    /// The opening phase is over.
    AeiOk,
    /// Everything before `isready` is done.
    ReadyOk,
    /// The turn that the engine plays, in standard notation. An engine may also say `resign`, in any case, and one that can't move
    /// may say nothing.
    BestMove(String),
    /// About the running search.
    Info(Info),
    /// For the controller's log.
    Log {
        /// How serious it is, where the engine says so.
        level: Option<LogLevel>,
        /// What it says.
        text: String,
    },
}

words! {
    /// What an engine says of itself.
    pub enum IdentityKind {
        /// Its name.
        Name = "name",
        /// Its author.
        Author = "author",
        /// Its version.
        Version = "version",
    }
}

words! {
    /// How serious a line of the log is.
    pub enum LogLevel {
        /// Something is wrong.
        Error = "Error:",
        /// Something is unusual.
        Warning = "Warning:",
        /// For the engine's makers.
        Debug = "Debug:",
    }
}

/// What an engine says of its search. Scores are from the view of the side to move.
#[derive(Debug, Clone, PartialEq)]
pub enum Info {
    /// The score: 100 is what the first rabbit lost is worth.
    Score(i64),
    /// How deep the search has gone.
    Depth {
        /// Steps that are searched completely.
        steps: u32,
        /// Whether the next one is being searched.
        goes_on: bool,
    },
    /// Positions that have been looked at.
    Nodes(u64),
    /// The line that both sides are expected to play; see [`format_variation`].
    Variation(String),
    /// Seconds since the search began, 0 or more.
    Time(f64),
    /// The number of the turn that is being looked at.
    CurrentMoveNumber(u32),
    /// Of a kind that the protocol doesn't name.
    Other {
        /// Its kind, one word.
        kind: String,
        /// Its value.
        value: String,
    },
}

impl Reply {
    /// A line of the log.
    pub fn log(level: LogLevel, text: impl fmt::Display) -> Self {
        Self::Log {
            level: Some(level),
            text: text.to_string(),
        }
    }
}

/// One line, without its end.
impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ProtocolVersion(version) => write!(f, "protocol-version {version}"),
            Self::Identity { kind, value } => {
                write!(f, "id {kind} ")?;
                write_on_one_line(f, value)
            }
            Self::AeiOk => f.write_str("aeiok"),
            Self::ReadyOk => f.write_str("readyok"),
            Self::BestMove(turn) => write_behind(f, "bestmove", turn),
            Self::Info(info) => write!(f, "info {info}"),
            Self::Log { level: None, text } => write_behind(f, "log", text),
            Self::Log {
                level: Some(level),
                text,
            } => write_behind(f, &format!("log {level}"), text),
        }
    }
}

/// Writes the beginning of a message, and a blank and a text where there is one.
fn write_behind(f: &mut fmt::Formatter<'_>, before: &str, text: &str) -> fmt::Result {
    f.write_str(before)?;
    if text.is_empty() {
        return Ok(());
    }
    f.write_str(" ")?;
    write_on_one_line(f, text)
}

/// What stands behind the word `info`.
impl fmt::Display for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Score(score) => write!(f, "score {score}"),
            Self::Depth { steps, goes_on } => {
                let more = if *goes_on { "+" } else { "" };
                write!(f, "depth {steps}{more}")
            }
            Self::Nodes(nodes) => write!(f, "nodes {nodes}"),
            Self::Variation(turns) => write_behind(f, "pv", turns),
            Self::Time(seconds) => write!(f, "time {seconds}"),
            Self::CurrentMoveNumber(number) => write!(f, "currmovenumber {number}"),
            Self::Other { kind, value } => {
                write_on_one_line(f, kind)?;
                write_behind(f, "", value)
            }
        }
    }
}

/// Reads one line; its end and blanks around it don't matter.
impl FromStr for Reply {
    type Err = MessageError;

    fn from_str(text: &str) -> Result<Self, MessageError> {
        let (word, rest) = split_word(one_line(text)?);
        match word {
            "protocol-version" => {
                let message = "protocol-version";
                let (version, more) = split_word(needed(message, "a number", rest)?);
                nothing_more(message, more)?;
                number(message, version, "a version, 0 or more").map(Self::ProtocolVersion)
            }
            "id" => {
                let (kind, value) = split_word(needed("id", "name, author or version", rest)?);
                match IdentityKind::of(kind) {
                    Some(kind) => Ok(Self::Identity {
                        kind,
                        value: value.to_owned(),
                    }),
                    None => Err(MessageError::Unexpected {
                        message: "id",
                        word: shorten(kind),
                    }),
                }
            }
            "aeiok" => nothing_more("aeiok", rest).map(|()| Self::AeiOk),
            "readyok" => nothing_more("readyok", rest).map(|()| Self::ReadyOk),
            "bestmove" => Ok(Self::BestMove(rest.to_owned())),
            "info" => rest.parse().map(Self::Info),
            "log" => {
                let marked = LogLevel::ALL
                    .into_iter()
                    .find_map(|level| Some((level, rest.strip_prefix(level.word())?)));
                Ok(match marked {
                    Some((level, text)) => Self::log(level, text.trim_start()),
                    None => Self::Log {
                        level: None,
                        text: rest.to_owned(),
                    },
                })
            }
            _ => Err(MessageError::Unknown(shorten(word))),
        }
    }
}

/// Reads what stands behind the word `info`.
impl FromStr for Info {
    type Err = MessageError;

    fn from_str(text: &str) -> Result<Self, MessageError> {
        let text = needed("info", "the kind of information", text)?;
        let (kind, value) = split_word(one_line(text)?);
        Ok(match kind {
            "pv" => Self::Variation(value.to_owned()),
            "score" => Self::Score(number("info", value, "a score, a whole number")?),
            "nodes" => Self::Nodes(number("info", value, "a count of nodes")?),
            "currmovenumber" => Self::CurrentMoveNumber(number("info", value, "a turn's number")?),
            "depth" => {
                let digits = value.strip_suffix('+');
                Self::Depth {
                    steps: number("info", digits.unwrap_or(value), "a depth in steps")?,
                    goes_on: digits.is_some(),
                }
            }
            "time" => {
                let expected = "a number of seconds, 0 or more";
                let seconds: f64 = number("info", value, expected)?;
                if !(seconds.is_finite() && seconds.is_sign_positive()) {
                    return Err(not_a_number("info", value, expected));
                }
                Self::Time(seconds)
            }
            _ => Self::Other {
                kind: kind.to_owned(),
                value: value.to_owned(),
            },
        })
    }
}

fn number<T: FromStr>(
    message: &'static str,
    word: &str,
    expected: &'static str,
) -> Result<T, MessageError> {
    word.parse()
        .map_err(|_| not_a_number(message, word, expected))
}

fn not_a_number(message: &'static str, word: &str, expected: &'static str) -> MessageError {
    MessageError::Number {
        message,
        word: shorten(word),
        expected,
    }
}

/// Writes a line of turns, given in standard notation, the first of them by `first`: each turn but the first stands behind its
/// side's letter.
///
/// ```
/// use arimaa::aei::format_variation;
/// use arimaa::rules::Side;
/// let turns = ["Ed2n Ed3n", "ee7s ee6s", "Ed4n"];
/// assert_eq!(format_variation(Side::Gold, turns), "Ed2n Ed3n s ee7s ee6s g Ed4n");
/// ```
pub fn format_variation<'a>(first: Side, turns: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = String::new();
    let mut side = first;
    for turn in turns {
        if !text.is_empty() {
            text += &format!(" {} ", side.letter());
        }
        text += turn;
        side = side.opponent();
    }
    text
}
