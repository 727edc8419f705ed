//! Words with their places in a text.

use super::{NotationError, NotationReason};

/// A place in a text: line and column, both from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Place {
    /// Where a text begins.
    pub(super) const START: Self = Self { line: 1, column: 1 };

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
    pub(super) fn expected(self, what: &'static str, found: &str) -> NotationError {
        let found = match found {
            "" => "the end".to_owned(),
            text => format!("`{text}`"),
        };
        self.fault(NotationReason::Expected {
            what: what.into(),
            found,
        })
    }
}

/// A word: characters without a blank between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    pub(super) place: Place,
}

/// The words of a text that begins at a place.
pub(super) fn words(text: &str, start: Place) -> impl Iterator<Item = Word<'_>> {
    let mut rest = text;
    let mut place = start;
    std::iter::from_fn(move || {
        while let Some(blank) = rest.chars().next().filter(|letter| letter.is_whitespace()) {
            rest = &rest[blank.len_utf8()..];
            place = match blank {
                '\n' => Place {
                    line: place.line + 1,
                    column: 1,
                },
                _ => place.right(1),
            };
        }
        let (text, after) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
        if text.is_empty() {
            return None;
        }
        let word = Word { text, place };
        rest = after;
        place = place.right(text.chars().count());
        Some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_know_their_lines_and_columns() {
        let found: Vec<_> = words("  ä b\n\tcde", Place { line: 3, column: 5 })
            .map(|word| (word.text, word.place.line, word.place.column))
            .collect();
        assert_eq!(found, [("ä", 3, 7), ("b", 3, 9), ("cde", 4, 2)]);
        assert_eq!(words(" \n ", Place::START).count(), 0);
    }
}
