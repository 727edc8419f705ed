//! The lines of another program, bounded in length and number.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The longest line in bytes; a longer one is no message.
pub(super) const MAX_LINE_BYTES: usize = 1 << 16;

/// The most lines and bytes of a pipe that are read within a second; then reading pauses, and the program's writing waits.
const LINES_PER_SECOND: usize = 10_000;
const BYTES_PER_SECOND: usize = 16 << 20;

/// Last lines that are kept for errors, and characters of each.
const LAST_LINES: usize = 20;
const SHOWN: usize = 200;

/// A line that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReadLine {
    /// A whole line, without its end. Bytes that are no UTF-8 are replaced.
    Whole(String),
    /// The beginning of a line that is too long; the rest is discarded.
    Cut(String),
}

/// Bounds the rate of reading: a program that writes without end takes little of the CPU.
struct Pace {
    begun: Instant,
    lines: usize,
    bytes: usize,
}

impl Pace {
    fn new() -> Self {
        Self {
            begun: Instant::now(),
            lines: 0,
            bytes: 0,
        }
    }

    /// Counts what was read, and waits for the end of the second if it is too much.
    fn count(&mut self, lines: usize, bytes: usize) {
        self.lines += lines;
        self.bytes += bytes;
        if self.lines >= LINES_PER_SECOND || self.bytes >= BYTES_PER_SECOND {
            std::thread::sleep(Duration::from_secs(1).saturating_sub(self.begun.elapsed()));
            *self = Self::new();
        }
    }
}

/// Passes the lines of a pipe to `take` until the pipe ends or can't be read, or `take` returns false. The last line needs no end.
pub(super) fn read_lines(pipe: impl Read, mut take: impl FnMut(ReadLine) -> bool) {
    let mut pipe = BufReader::new(pipe);
    let mut bytes = Vec::new();
    // Whether a line goes on whose beginning was handed over already.
    let mut is_rest = false;
    let mut pace = Pace::new();
    loop {
        bytes.clear();
        // One byte more shows that a line is too long.
        let mut part = pipe.by_ref().take(MAX_LINE_BYTES as u64 + 1);
        let read = part.read_until(b'\n', &mut bytes);
        if bytes.is_empty() {
            return;
        }
        let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let has_end = line.len() < bytes.len();
        pace.count(usize::from(has_end), bytes.len());
        let goes_on = is_rest
            || take(if line.len() > MAX_LINE_BYTES {
                ReadLine::Cut(text(&line[..MAX_LINE_BYTES]))
            } else {
                ReadLine::Whole(text(line))
            });
        if !goes_on || read.is_err() {
            return;
        }
        is_rest = !has_end;
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .trim_end_matches('\r')
        .to_owned()
}

/// The last lines that a program wrote, shortened.
#[derive(Debug, Default)]
pub(super) struct LastLines {
    lines: Mutex<VecDeque<String>>,
}

impl LastLines {
    pub(super) fn push(&self, line: &str) {
        let mut shown: String = line.chars().take(SHOWN).collect();
        if shown.len() < line.len() {
            shown.push('…');
        }
        // Control characters stay visible, and can't change the terminal.
        let shown = shown.replace(
            |letter: char| letter.is_control() && letter != '\t',
            "\u{fffd}",
        );
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LAST_LINES {
            lines.pop_front();
        }
        lines.push_back(shown);
    }

    pub(super) fn get(&self) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> Vec<ReadLine> {
        let mut all = Vec::new();
        read_lines(bytes, |line| {
            all.push(line);
            true
        });
        all
    }

    #[test]
    fn lines_are_split_whatever_their_end() {
        let whole = |text: &str| ReadLine::Whole(text.into());
        assert_eq!(lines(b""), []);
        assert_eq!(
            lines(b"aeiok\r\n\nlog \xff\nbestmove"),
            [
                whole("aeiok"),
                whole(""),
                whole("log \u{fffd}"),
                whole("bestmove")
            ]
        );
    }

    #[test]
    fn what_is_too_long_is_cut_and_the_next_line_is_whole() {
        let mut bytes = vec![b'x'; MAX_LINE_BYTES];
        bytes.extend(b"\nb\n");
        assert_eq!(lines(&bytes)[1], ReadLine::Whole("b".into()));
        assert!(matches!(&lines(&bytes)[0], ReadLine::Whole(_)));
        let longest = "x".repeat(MAX_LINE_BYTES);
        assert_eq!(
            lines(longest.as_bytes()),
            [ReadLine::Whole(longest.clone())]
        );
        for length in [1, 2, MAX_LINE_BYTES + 2, 2 * MAX_LINE_BYTES] {
            let mut bytes = vec![b'x'; MAX_LINE_BYTES + length];
            bytes.extend(b"\nb\n");
            let expected = [ReadLine::Cut(longest.clone()), ReadLine::Whole("b".into())];
            assert_eq!(lines(&bytes), expected);
        }
        // It is handed over before it ends, if it ever does.
        let mut first = None;
        read_lines(std::io::repeat(b'x'), |line| {
            first = Some(line);
            false
        });
        assert!(matches!(first, Some(ReadLine::Cut(_))));
    }

    #[test]
    fn lines_and_bytes_of_a_second_are_bounded() {
        let begun = Instant::now();
        assert_eq!(
            lines(&b"x\n".repeat(LINES_PER_SECOND)).len(),
            LINES_PER_SECOND
        );
        assert!(begun.elapsed() >= Duration::from_millis(999));
        let begun = Instant::now();
        lines(&vec![b'x'; BYTES_PER_SECOND]);
        assert!(begun.elapsed() >= Duration::from_millis(999));
    }

    #[test]
    fn the_last_lines_are_kept_shortened() {
        let last = LastLines::default();
        (0..30).for_each(|number| last.push(&format!("line {number}")));
        let kept = last.get();
        assert_eq!(
            (kept.len(), kept[0].as_str(), kept[19].as_str()),
            (20, "line 10", "line 29")
        );
        last.push(&"ä".repeat(500));
        last.push("\x1b[2J");
        let kept = last.get();
        assert_eq!(kept[18], "ä".repeat(SHOWN) + "…");
        assert_eq!(kept[19], "\u{fffd}[2J");
    }
}
