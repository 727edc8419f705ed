//! Parts of a text with their places.

use super::{NotationError, NotationReason};
use std::borrow::Cow;

/// A place in a text: line and column, both from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Location {
    /// Where a text begins.
    pub(super) const START: Self = Self::of_line(1);

    /// Where a line begins.
    pub(super) const fn of_line(line: usize) -> Self {
        Self { line, column: 1 }
    }

    /// So many characters further on in the line.
    pub(super) fn right(self, characters: usize) -> Self {
        Self {
            column: self.column + characters,
            ..self
        }
    }

    /// The error of something wrong here.
    pub(super) fn fault(self, reason: impl Into<NotationReason>) -> NotationError {
        NotationError {
            line: self.line,
            column: self.column,
            reason: reason.into(),
        }
    }

    /// The error of something else standing here than what must.
    pub(super) fn expected(self, what: impl Into<Cow<'static, str>>, found: &str) -> NotationError {
        let found = match found {
            "" => "the end".to_owned(),
            text => format!("`{}`", shorten(text)),
        };
        self.fault(NotationReason::Expected {
            what: what.into(),
            found,
        })
    }
}

/// A part of a text, and where it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span<'a> {
    pub(super) text: &'a str,
    pub(super) place: Location,
}

impl<'a> Span<'a> {
    /// A whole text.
    pub(super) fn whole(text: &'a str) -> Self {
        let place = Location::START;
        Self { text, place }
    }

    /// The part without the blanks around it.
    pub(super) fn trim(self) -> Self {
        let rest = self.text.trim_start();
        let blanks = &self.text[..self.text.len() - rest.len()];
        Self {
            text: rest.trim_end(),
            place: self.place.right(blanks.chars().count()),
        }
    }

    /// The words: characters without a blank between them.
    pub(super) fn words(self) -> impl Iterator<Item = Self> {
        let Self {
            text: mut rest,
            mut place,
        } = self;
        std::iter::from_fn(move || {
            while let Some(blank) = rest.chars().next().filter(|letter| letter.is_whitespace()) {
                rest = &rest[blank.len_utf8()..];
                place = match blank {
                    '\n' => Location::of_line(place.line + 1),
                    _ => place.right(1),
                };
            }
            let (text, after) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
            if text.is_empty() {
                return None;
            }
            let word = Self { text, place };
            rest = after;
            place = place.right(text.chars().count());
            Some(word)
        })
    }

    /// The parts of a line between separators.
    pub(super) fn split(self, separator: &'a str) -> impl Iterator<Item = Self> {
        let mut place = self.place;
        self.text.split(separator).map(move |text| {
            let part = Self { text, place };
            place = place.right(text.chars().count() + separator.chars().count());
            part
        })
    }

    /// The error of this standing where something else must.
    pub(super) fn expected(self, what: impl Into<Cow<'static, str>>) -> NotationError {
        self.place.expected(what, self.text)
    }
}

/// The most characters of a text that an error quotes.
const QUOTED: usize = 60;

/// The beginning of a text, for a message.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_their_lines_and_columns() {
        let text = Span {
            text: "  ä b\n\tcde",
            place: Location { line: 3, column: 5 },
        };
        let found: Vec<_> = text
            .words()
            .map(|word| (word.text, word.place.line, word.place.column))
            .collect();
        assert_eq!(found, [("ä", 3, 7), ("b", 3, 9), ("cde", 4, 2)]);
        assert_eq!(Span::whole(" \n ").words().count(), 0);
    }

    #[test]
    fn fields_have_their_columns() {
        let found: Vec<_> = Span::whole(" ä\t\t b ")
            .split("\t")
            .map(Span::trim)
            .map(|field| (field.text, field.place.column))
            .collect();
        assert_eq!(found, [("ä", 2), ("", 4), ("b", 6)]);
    }
}
