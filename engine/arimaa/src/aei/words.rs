//! Enumerations of the protocol's words, and the ways that both kinds of messages are split and written by.

use super::error::MessageError;
use crate::notation::shorten;
use std::fmt;

/// Declares an enumeration whose variants are words: written by `Display`, found by `of`, and all of them in `ALL`.
macro_rules! words {
    ($(#[$about:meta])* $visibility:vis enum $name:ident { $($(#[$note:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        $visibility enum $name { $($(#[$note])* $variant,)+ }

        impl $name {
            /// All of them.
            $visibility const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// As the protocol writes it.
            $visibility const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// The one that a word is, if it is one. Upper and lower case are distinct.
            $visibility fn of(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.word() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

pub(super) use words;

/// A text without its line's end and the blanks around it. What is no single line is refused.
pub(super) fn one_line(text: &str) -> Result<&str, MessageError> {
    let line = text.trim();
    if line.is_empty() {
        return Err(MessageError::Empty);
    }
    if line.contains(['\n', '\r']) {
        Err(MessageError::Lines(shorten(line)))
    } else {
        Ok(line)
    }
}

/// The first word of a text, and what follows it without the blanks around.
pub(super) fn split_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim())
}

/// What follows a word that must be followed by something.
pub(super) fn needed<'a>(
    message: &'static str,
    what: &'static str,
    text: &'a str,
) -> Result<&'a str, MessageError> {
    match text.trim() {
        "" => Err(MessageError::Missing { message, what }),
        text => Ok(text),
    }
}

/// Refuses what follows a message that is complete.
pub(super) fn nothing_more(message: &'static str, rest: &str) -> Result<(), MessageError> {
    match split_word(rest).0 {
        "" => Ok(()),
        word => Err(MessageError::Unexpected {
            message,
            word: shorten(word),
        }),
    }
}

/// Writes a text that must not end the line before the message does.
pub(super) fn write_on_one_line(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    let lines: Vec<&str> = text.lines().collect();
    f.write_str(&lines.join(" ").replace('\r', " "))
}
