//! Games as texts, one after another.

use super::super::record::{TurnLabel, is_position};
use super::super::{format_record, parse_position};
use super::movelist::{Entry, read_label, read_movelist};
use super::reader::Lines;
use super::{ArchiveError, ArchiveFault, Conclusion, MAX_LINE_BYTES};
use crate::rules::{Game, Phase, Position, Side};
use std::io::BufRead;

/// A game that stood in a text.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenGame {
    /// The line that it begins in, from 1.
    pub line: u64,
    /// Its turns.
    pub game: Game,
    /// How it was lost, where the rules did not end it and the last line says so.
    pub conclusion: Option<Conclusion>,
}

/// Reads games that stand one after another in a text, see [the module](super): each is a game or an error that names the line,
/// and after an error the next game is read. Only what the source can't give at all ([`ArchiveFault::Io`]) ends it. A game has
/// [`MAX_LINE_BYTES`] at most; memory is bounded by that.
///
/// ```
/// use arimaa::notation::{Conclusion, RecordReader};
/// use arimaa::rules::Side;
/// let text = "\
/// Gold: anna
/// 1g Ra1 Rb1 Rc1 Dd1 De1 Rf1 Rg1 Rh1 Ra2 Hb2 Cc2 Md2 Ee2 Cf2 Hg2 Rh2
/// 1s ra8 rb8 rc8 cd8 ce8 rf8 rg8 rh8 ra7 hb7 dc7 md7 ee7 df7 hg7 rh7
/// 2g resigns
/// g [r                                  Er                          R]
/// 2g Ed4n
/// ";
/// let mut games = RecordReader::new(text.as_bytes());
/// let game = games.next().unwrap()?;
/// assert_eq!((game.line, game.game.turns().len()), (2, 2));
/// assert_eq!(game.conclusion, Some(Conclusion::Resigned { winner: Side::Silver }));
/// let game = games.next().unwrap()?;
/// assert_eq!((game.line, game.game.turns().len(), game.conclusion), (5, 1, None));
/// assert!(games.next().is_none());
/// # Ok::<(), arimaa::notation::ArchiveError>(())
/// ```
#[derive(Debug)]
pub struct RecordReader<R> {
    lines: Lines<R>,
    /// The first line of the next game, where it has been read already.
    begun: Option<(u64, String)>,
}

/// The lines of a game in a text, not yet read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordText {
    /// With their numbers; never empty.
    lines: Vec<(u64, String)>,
}

impl<R: BufRead> RecordReader<R> {
    /// Nothing is read yet.
    pub fn new(source: R) -> Self {
        Self {
            lines: Lines::new(source),
            begun: None,
        }
    }

    /// The lines of the next game. What the iterator gives is made of them by [`RecordText::read`].
    pub fn next_text(&mut self) -> Option<Result<RecordText, ArchiveError>> {
        let mut lines: Vec<(u64, String)> = Vec::new();
        let mut has_turns = false;
        let mut bytes = 0;
        let mut fault = None;
        loop {
            let (number, line) = match self.begun.take().map(Ok).or_else(|| self.lines.next()) {
                None => break,
                Some(Ok(line)) => line,
                Some(Err(error)) if matches!(error.fault, ArchiveFault::Io(_)) => {
                    return Some(Err(error));
                }
                // A line that is too long spoils its game.
                Some(Err(error)) => {
                    fault.get_or_insert(error);
                    has_turns = true;
                    continue;
                }
            };
            if is_note(&line) {
                continue;
            }
            let is_start = is_position(&line);
            let takes_back = lines.last().is_some_and(|(_, last)| is_takeback(last));
            // A position alone is a game as well, one without turns.
            let is_game = has_turns || lines.first().is_some_and(|(_, first)| is_in_play(first));
            if is_game && (is_start || is_first_turn(&line) && !takes_back) {
                self.begun = Some((number, line));
                break;
            }
            has_turns |= !is_start;
            bytes += line.len();
            if bytes > MAX_LINE_BYTES {
                let limit = MAX_LINE_BYTES;
                let line = lines.first().map_or(number, |(first, _)| *first);
                fault.get_or_insert_with(|| {
                    ArchiveError::of_line(line, ArchiveFault::GameTooLong { limit })
                });
            }
            if fault.is_none() {
                lines.push((number, line));
            }
        }
        match fault {
            Some(error) => Some(Err(error)),
            None if lines.is_empty() => None,
            None => Some(Ok(RecordText { lines })),
        }
    }
}

impl<R: BufRead> Iterator for RecordReader<R> {
    type Item = Result<WrittenGame, ArchiveError>;

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.next_text()?;
        Some(text.and_then(|text| text.read()))
    }
}

impl RecordText {
    /// The line that the game begins in, from 1.
    pub fn line(&self) -> u64 {
        self.lines.first().map_or(1, |(number, _)| *number)
    }

    /// Its size without the ends of its lines, in bytes.
    pub fn bytes(&self) -> usize {
        self.lines.iter().map(|(_, line)| line.len()).sum()
    }

    /// Reads the game.
    ///
    /// # Errors
    /// What stands there is no game, see [`ArchiveFault`].
    pub fn read(&self) -> Result<WrittenGame, ArchiveError> {
        let line = self.line();
        let (start, turns) = match self.lines.split_first() {
            Some(((number, first), rest)) if is_position(first) => {
                let start = parse_position(first).map_err(|error| {
                    let (column, reason) = (error.column, error.reason);
                    ArchiveError::of_line(*number, ArchiveFault::Turn { column, reason })
                })?;
                (start, rest)
            }
            _ => (Position::INITIAL, &self.lines[..]),
        };
        if turns.is_empty() && start != Position::INITIAL {
            return Ok(WrittenGame {
                line,
                game: Game::from_position(start),
                conclusion: None,
            });
        }
        let entries = turns.iter().map(|(number, text)| Entry {
            line: *number,
            text,
        });
        let movelist = read_movelist(line, &start, entries).map_err(|error| ArchiveError {
            turn: error.turn,
            ..ArchiveError::of_line(error.line, error.fault)
        })?;
        let conclusion = match (movelist.game.outcome(), movelist.conclusion) {
            (Some(played), Some(conclusion)) if conclusion.winner() != played.winner => {
                return Err(ArchiveError::of_line(
                    line,
                    ArchiveFault::LoserWon(played.winner),
                ));
            }
            (Some(_), _) => None,
            (None, conclusion) => conclusion,
        };
        Ok(WrittenGame {
            line,
            game: movelist.game,
            conclusion,
        })
    }
}

/// Whether a line says nothing of the game: blank, a remark, or a tag.
pub(in super::super) fn is_note(line: &str) -> bool {
    match line.split_whitespace().next() {
        None => true,
        Some(word) => {
            let tag = word.strip_suffix(':');
            word.starts_with('#') || tag.is_some_and(|tag| read_label(tag).is_none())
        }
    }
}

fn is_in_play(line: &str) -> bool {
    parse_position(line).is_ok_and(|position| position.phase() == Phase::Play)
}

fn is_first_turn(line: &str) -> bool {
    let label = line.split_whitespace().next().and_then(read_label);
    label.is_some_and(|label| label.number == 1 && label.side == Side::Gold)
}

fn is_takeback(line: &str) -> bool {
    line.split_whitespace().nth(1) == Some("takeback")
}

/// Writes a game's record with how it was lost where the rules did not end it, as [`RecordReader`] reads it:
/// [`format_record`], and a line like `12s resigns` or `12s lost`.
pub fn format_concluded_record(game: &Game, conclusion: Option<Conclusion>) -> String {
    let mut text = format_record(game);
    if let Some(conclusion) = conclusion {
        let due = TurnLabel::due(game);
        let label = match due.side == conclusion.winner() {
            true => due.next(),
            false => due,
        };
        let word = match conclusion {
            Conclusion::Resigned { .. } => "resigns",
            Conclusion::Forfeited { .. } => "lost",
        };
        text.push_str(&format!("{label} {word}\n"));
    }
    text
}

#[cfg(test)]
mod tests;
