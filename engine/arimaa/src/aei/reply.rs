//! What an engine says to a controller.

use super::MessageError;
use super::words::{
    needed, nothing_more, one_line, shortened, split_word, words, write_on_one_line,
};
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
    /// Who the engine is.
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
    /// About the search that is going on.
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
        /// Who made it.
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

words! {
    /// The words that messages of engines begin with.
    enum Verb {
        ProtocolVersion = "protocol-version",
        Identity = "id",
        AeiOk = "aeiok",
        ReadyOk = "readyok",
        BestMove = "bestmove",
        Info = "info",
        Log = "log",
    }
}

words! {
    /// The kinds of information that the protocol names.
    enum InfoKind {
        Score = "score",
        Depth = "depth",
        Nodes = "nodes",
        Variation = "pv",
        Time = "time",
        CurrentMoveNumber = "currmovenumber",
    }
}

impl Reply {
    /// A line of the log.
    pub fn log(level: LogLevel, text: impl fmt::Display) -> Self {
        Self::Log {
            level: Some(level),
            text: text.to_string(),
        }
    }

    fn verb(&self) -> Verb {
        match self {
            Self::ProtocolVersion(_) => Verb::ProtocolVersion,
            Self::Identity { .. } => Verb::Identity,
            Self::AeiOk => Verb::AeiOk,
            Self::ReadyOk => Verb::ReadyOk,
            Self::BestMove(_) => Verb::BestMove,
            Self::Info(_) => Verb::Info,
            Self::Log { .. } => Verb::Log,
        }
    }
}

/// One line, without its end.
impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.verb())?;
        match self {
            Self::ProtocolVersion(version) => write!(f, " {version}"),
            Self::Identity { kind, value } => {
                write!(f, " {kind} ")?;
                write_on_one_line(f, value)
            }
            Self::AeiOk | Self::ReadyOk => Ok(()),
            Self::BestMove(turn) => write_behind(f, turn),
            Self::Info(info) => write!(f, " {info}"),
            Self::Log { level, text } => {
                if let Some(level) = level {
                    write!(f, " {level}")?;
                }
                write_behind(f, text)
            }
        }
    }
}

/// Writes a blank and a text, or nothing where there is no text.
fn write_behind(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
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
            Self::Score(score) => write!(f, "{} {score}", InfoKind::Score),
            Self::Depth { steps, goes_on } => {
                let more = if *goes_on { "+" } else { "" };
                write!(f, "{} {steps}{more}", InfoKind::Depth)
            }
            Self::Nodes(nodes) => write!(f, "{} {nodes}", InfoKind::Nodes),
            Self::Variation(turns) => {
                write!(f, "{}", InfoKind::Variation)?;
                write_behind(f, turns)
            }
            Self::Time(seconds) => write!(f, "{} {seconds}", InfoKind::Time),
            Self::CurrentMoveNumber(number) => {
                write!(f, "{} {number}", InfoKind::CurrentMoveNumber)
            }
            Self::Other { kind, value } => {
                write_on_one_line(f, kind)?;
                write_behind(f, value)
            }
        }
    }
}

/// Reads one line; its end and blanks around it don't matter.
impl FromStr for Reply {
    type Err = MessageError;

    fn from_str(text: &str) -> Result<Self, MessageError> {
        let (word, rest) = split_word(one_line(text)?);
        let verb = Verb::of(word).ok_or_else(|| MessageError::Unknown(shortened(word)))?;
        let message = verb.word();
        Ok(match verb {
            Verb::ProtocolVersion => {
                let (version, more) = split_word(needed(message, "a number", rest)?);
                nothing_more(message, more)?;
                Self::ProtocolVersion(number(message, version, "a version, 0 or more")?)
            }
            Verb::Identity => {
                let (kind, value) = split_word(needed(message, "name, author or version", rest)?);
                let kind = IdentityKind::of(kind).ok_or_else(|| MessageError::Unexpected {
                    message,
                    word: shortened(kind),
                })?;
                Self::Identity {
                    kind,
                    value: value.to_owned(),
                }
            }
            Verb::AeiOk => nothing_more(message, rest).map(|()| Self::AeiOk)?,
            Verb::ReadyOk => nothing_more(message, rest).map(|()| Self::ReadyOk)?,
            Verb::BestMove => Self::BestMove(rest.to_owned()),
            Verb::Info => Self::Info(rest.parse()?),
            Verb::Log => {
                let level = LogLevel::ALL.into_iter();
                let mut level = level.filter(|level| rest.starts_with(level.word()));
                let marked = level
                    .next()
                    .map(|level| (level, &rest[level.word().len()..]));
                match marked {
                    Some((level, text)) => Self::log(level, text.trim_start()),
                    None => Self::Log {
                        level: None,
                        text: rest.to_owned(),
                    },
                }
            }
        })
    }
}

/// Reads what stands behind the word `info`.
impl FromStr for Info {
    type Err = MessageError;

    fn from_str(text: &str) -> Result<Self, MessageError> {
        let message = Verb::Info.word();
        let text = needed(message, "the kind of information", text)?;
        let (word, value) = split_word(one_line(text)?);
        let Some(kind) = InfoKind::of(word) else {
            return Ok(Self::Other {
                kind: word.to_owned(),
                value: value.to_owned(),
            });
        };
        Ok(match kind {
            InfoKind::Variation => Self::Variation(value.to_owned()),
            InfoKind::Score => Self::Score(number(message, value, "a score, a whole number")?),
            InfoKind::Nodes => Self::Nodes(number(message, value, "a count of nodes")?),
            InfoKind::CurrentMoveNumber => {
                Self::CurrentMoveNumber(number(message, value, "a turn's number")?)
            }
            InfoKind::Depth => {
                let digits = value.strip_suffix('+');
                Self::Depth {
                    steps: number(message, digits.unwrap_or(value), "a depth in steps")?,
                    goes_on: digits.is_some(),
                }
            }
            InfoKind::Time => {
                let expected = "a number of seconds, 0 or more";
                let seconds: f64 = number(message, value, expected)?;
                if !(seconds.is_finite() && seconds.is_sign_positive()) {
                    return Err(not_a_number(message, value, expected));
                }
                Self::Time(seconds)
            }
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
        word: shortened(word),
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
