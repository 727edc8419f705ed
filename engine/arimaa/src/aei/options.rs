//! Options that a controller sets: what the protocol names, and what values options take.

use super::error::OptionError;
use super::words::words;
use crate::notation::shorten;
use std::str::FromStr;

words! {
    /// The options that the protocol itself gives a meaning. Times are seconds; 0 means no limit where nothing else is said.
    pub enum StandardOption {
        /// The time for each turn.
        TcMove = "tcmove",
        /// The reserve at the game's start.
        TcReserve = "tcreserve",
        /// The part of the time not used on a turn that the reserve gains, in percent; 100 where nothing was said, and 0 adds nothing.
        TcPercent = "tcpercent",
        /// The most that the reserve may grow to.
        TcMax = "tcmax",
        /// The most time that the whole game may take.
        TcTotal = "tctotal",
        /// The most turns, of both sides together counted once, that the game may last.
        TcTurns = "tcturns",
        /// The most time that one turn may take.
        TcTurnTime = "tcturntime",
        /// Gold's reserve now.
        GoldReserve = "greserve",
        /// Silver's reserve now.
        SilverReserve = "sreserve",
        /// What Gold used on its last turn.
        GoldUsed = "gused",
        /// What Silver used on its last turn.
        SilverUsed = "sused",
        /// What the last turn took.
        LastMoveUsed = "lastmoveused",
        /// What the turn that is due has taken so far.
        MoveUsed = "moveused",
        /// The opponent's name.
        Opponent = "opponent",
        /// The opponent's rating.
        OpponentRating = "opponent_rating",
        /// The engine's own rating.
        Rating = "rating",
        /// Whether the game is rated: 1, or 0.
        Rated = "rated",
        /// What the game belongs to.
        Event = "event",
        /// MiB that the search may keep its findings in.
        Hash = "hash",
        /// How many steps deep to search; 0 or less means no limit.
        Depth = "depth",
    }
}

/// The longest time that an option may name, in seconds: thirty years.
const MAX_SECONDS: f64 = 1e9;

impl StandardOption {
    /// The values that it takes.
    pub fn kind(self) -> OptionKind {
        let float = |least, most| OptionKind::Float { least, most };
        let spin = |least, most| OptionKind::Spin { least, most };
        match self {
            Self::TcMove
            | Self::TcReserve
            | Self::TcMax
            | Self::TcTotal
            | Self::TcTurnTime
            | Self::GoldUsed
            | Self::SilverUsed
            | Self::LastMoveUsed
            | Self::MoveUsed => float(0.0, MAX_SECONDS),
            // A controller may count on below nothing for a moment.
            Self::GoldReserve | Self::SilverReserve => float(-MAX_SECONDS, MAX_SECONDS),
            Self::TcPercent => float(0.0, 1_000.0),
            Self::TcTurns => spin(0, 1_000_000),
            Self::OpponentRating | Self::Rating => float(-100_000.0, 100_000.0),
            Self::Rated => spin(0, 1),
            Self::Opponent | Self::Event => OptionKind::Text,
            Self::Hash => spin(1, 1_048_576),
            Self::Depth => spin(-1_000_000, 1_000_000),
        }
    }
}

impl FromStr for StandardOption {
    type Err = OptionError;

    fn from_str(name: &str) -> Result<Self, OptionError> {
        Self::of(name).ok_or_else(|| OptionError::Unknown(shorten(name)))
    }
}

/// What values an option takes, in the words of the engine manifest (`ENGINE_MANIFEST.md`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OptionKind {
    /// `true` or `false`.
    Check,
    /// A whole number.
    Spin {
        /// The least.
        least: i64,
        /// The most.
        most: i64,
    },
    /// A number.
    Float {
        /// The least.
        least: f64,
        /// The most.
        most: f64,
    },
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// Any text, which may be empty.
    Text,
    /// A file's path.
    File,
    /// An action, without a value.
    Button,
}

/// A value that an option was set to.
#[derive(Debug, Clone, PartialEq)]
pub enum OptionValue {
    /// Of a [`Check`](OptionKind::Check).
    Check(bool),
    /// Of a [`Spin`](OptionKind::Spin).
    Spin(i64),
    /// Of a [`Float`](OptionKind::Float).
    Float(f64),
    /// Of a [`Choice`](OptionKind::Choice).
    Choice(&'static str),
    /// Of a [`Text`](OptionKind::Text) or a [`File`](OptionKind::File).
    Text(String),
    /// Of a [`Button`](OptionKind::Button): it was pressed.
    Pressed,
}

impl OptionKind {
    /// Reads a value, as it follows the word `value`.
    ///
    /// ```
    /// use arimaa::aei::{OptionKind, OptionValue};
    /// let lines = OptionKind::Spin { least: 1, most: 9 };
    /// assert_eq!(lines.read(Some("3")), Ok(OptionValue::Spin(3)));
    /// assert_eq!(lines.read(Some("30")).unwrap_err().to_string(), "`30` is not a whole number from 1 to 9");
    /// ```
    pub fn read(&self, value: Option<&str>) -> Result<OptionValue, OptionError> {
        let bad = |value: &str| OptionError::BadValue {
            value: shorten(value),
            allowed: self.allowed(),
        };
        let text = match (self, value.map(str::trim)) {
            (Self::Button, None | Some("")) => return Ok(OptionValue::Pressed),
            (Self::Button, Some(value)) => {
                return Err(OptionError::NotNeeded {
                    value: shorten(value),
                });
            }
            (_, Some(text)) => text,
            (Self::Text, None) => "",
            (_, None) => {
                return Err(OptionError::NoValue {
                    allowed: self.allowed(),
                });
            }
        };
        Ok(match *self {
            Self::Check => OptionValue::Check(text.parse().map_err(|_| bad(text))?),
            Self::Spin { least, most } => match text.parse() {
                Ok(number) if (least..=most).contains(&number) => OptionValue::Spin(number),
                _ => return Err(bad(text)),
            },
            Self::Float { least, most } => match text.parse() {
                Ok(number) if (least..=most).contains(&number) => OptionValue::Float(number),
                _ => return Err(bad(text)),
            },
            Self::Choice(words) => {
                let word = words.iter().find(|&&word| word == text);
                OptionValue::Choice(word.ok_or_else(|| bad(text))?)
            }
            Self::File if text.is_empty() => return Err(bad(text)),
            Self::Text | Self::File => OptionValue::Text(text.to_owned()),
            Self::Button => OptionValue::Pressed,
        })
    }

    /// The values that it takes, in words.
    pub fn allowed(&self) -> String {
        match self {
            Self::Check => "true or false".into(),
            Self::Spin { least, most } => format!("a whole number from {least} to {most}"),
            Self::Float { least, most } => format!("a number from {least} to {most}"),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::Text => "a text".into(),
            Self::File => "a file's path".into(),
            Self::Button => "nothing".into(),
        }
    }
}

impl OptionValue {
    /// The number that it is, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Float(number) => Some(*number),
            Self::Spin(number) => Some(*number as f64),
            _ => None,
        }
    }
}
