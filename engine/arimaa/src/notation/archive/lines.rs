//! The lines of a source, of limited length.

use crate::notation::error::{NotationError, NotationReason};
use crate::notation::token::{Location, Span};
use std::io::{self, BufRead, Read};

/// The longest line that is read, in bytes without its end. A longer one is an error, and its bytes are not kept.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// A line of an archive, not yet read as a game.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveLine {
    /// From 1.
    pub(super) number: usize,
    pub(super) text: String,
}

impl ArchiveLine {
    /// Its size without its end, in bytes.
    pub fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Its text, with its place in the source.
    pub(super) fn span(&self) -> Span<'_> {
        Span {
            text: &self.text,
            place: Location::of_line(self.number),
        }
    }
}

/// The lines of a source; ends after a failure of the source.
#[derive(Debug)]
pub(super) struct Lines<R> {
    source: R,
    /// The lines read so far.
    count: usize,
    /// Whether the source has failed, and nothing follows.
    has_failed: bool,
}

impl<R> Lines<R> {
    pub(super) fn new(source: R) -> Self {
        Self {
            source,
            count: 0,
            has_failed: false,
        }
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<ArchiveLine, NotationError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let line = read_line(&mut self.source).transpose()?;
        self.has_failed = matches!(line, Err(NotationReason::Io(_)));
        self.count += 1;
        let number = self.count;
        let line = line.map(|bytes| ArchiveLine {
            number,
            text: into_text(bytes, number == 1),
        });
        Some(line.map_err(|reason| Location::of_line(number).fault(reason)))
    }
}

/// Reads a line without its end; none at the end of the source. A line that is too long is read to its end and is a fault.
fn read_line(source: &mut impl BufRead) -> Result<Option<Vec<u8>>, NotationReason> {
    let failed = |error: io::Error| NotationReason::Io(error.to_string());
    let mut line = Vec::new();
    // The longest line ends with a carriage return and a line feed.
    let mut part = source.by_ref().take(MAX_LINE_BYTES as u64 + 2);
    if part.read_until(b'\n', &mut line).map_err(failed)? == 0 {
        return Ok(None);
    }
    let is_whole = line.pop_if(|byte| *byte == b'\n').is_some();
    line.pop_if(|byte| *byte == b'\r');
    if line.len() <= MAX_LINE_BYTES {
        return Ok(Some(line));
    }
    if !is_whole {
        source.skip_until(b'\n').map_err(failed)?;
    }
    Err(NotationReason::TooLong {
        what: "line".into(),
        limit: MAX_LINE_BYTES,
    })
}

/// The text of a line. What is no UTF-8 was written in Latin-1, where every byte is a letter, as names of players were for long.
/// A byte order mark is no part of the first line.
fn into_text(line: Vec<u8>, is_first: bool) -> String {
    let text = String::from_utf8(line)
        .unwrap_or_else(|error| error.as_bytes().iter().copied().map(char::from).collect());
    match text.strip_prefix('\u{feff}') {
        Some(rest) if is_first => rest.to_owned(),
        _ => text,
    }
}
