//! What can be wrong with a message or an option.

/// Why a line is no message.
///
/// ```
/// use arimaa::aei::{Command, MessageError};
/// let error = "setposition g [x]".parse::<Command>().unwrap_err();
/// assert_eq!(error.to_string(), "setposition: line 1, column 4: `x` is not a piece (RCDHME of Gold, rcdhme of Silver)");
/// assert!(matches!("fly".parse::<Command>(), Err(MessageError::Unknown(word)) if word == "fly"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// Nothing stands in the line.
    #[error("an empty line is not a message")]
    Empty,
    /// A message is one line.
    #[error("a message is one line, and `{0}` holds several")]
    Lines(String),
    /// The line begins with a word that does not begin a message.
    #[error("`{0}` does not begin a message of the protocol")]
    Unknown(String),
    /// Something is missing behind a word.
    #[error("{message}: {what} must follow")]
    Missing {
        /// The message's first word.
        message: &'static str,
        /// What is missing.
        what: &'static str,
    },
    /// A word that means nothing where it stands.
    #[error("{message}: `{word}` is not expected here")]
    Unexpected {
        /// The message's first word.
        message: &'static str,
        /// The word.
        word: String,
    },
    /// A word that is no number, or none that can stand here.
    #[error("{message}: `{word}` is not {expected}")]
    Number {
        /// The message's first word.
        message: &'static str,
        /// The word.
        word: String,
        /// What must stand there.
        expected: &'static str,
    },
    /// The position can't be read, or is none.
    #[error("setposition: {0}")]
    Position(#[from] crate::notation::NotationError),
}

/// Why an option can't be set.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum OptionError {
    /// The protocol names no such option.
    #[error("`{0}` is not an option")]
    Unknown(String),
    /// The option needs a value.
    #[error("a value must follow, {allowed}")]
    NoValue {
        /// What it may be.
        allowed: String,
    },
    /// The option takes no value.
    #[error("it takes no value, and `{value}` follows")]
    NotNeeded {
        /// What was given.
        value: String,
    },
    /// The value is none of those that the option takes.
    #[error("`{value}` is not {allowed}")]
    BadValue {
        /// What was given.
        value: String,
        /// What it may be.
        allowed: String,
    },
}
