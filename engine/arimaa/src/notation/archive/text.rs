//! Games as texts, one after another.

use super::Conclusion;
use super::lines::{ArchiveLine, Lines, MAX_LINE_BYTES};
use super::movelist::read_movelist;
use crate::notation::error::{NotationError, NotationReason};
use crate::notation::position::parse_position;
use crate::notation::position::read_position;
use crate::notation::record::format_record;
use crate::notation::record::{TurnLabel, is_note, is_position};
use crate::rules::{Game, Phase, Position, Side};
use std::io::BufRead;

/// A game that stood in a text.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenGame {
    /// The line that it begins in, from 1.
    pub line: usize,
    /// Its turns.
    pub game: Game,
    /// How it was lost, where the rules did not end it and the last line says so.
    pub conclusion: Option<Conclusion>,
}

/// Reads games that stand one after another in a text, see [the module](super): each is a game or an error that names the line,
/// and after an error the next game is read. Only a failure of the source ([`NotationReason::Io`]) ends it. A game has
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
/// # Ok::<(), arimaa::notation::NotationError>(())
/// ```
#[derive(Debug)]
pub struct RecordReader<R> {
    lines: Lines<R>,
    /// The first line of the next game, where it has been read already.
    begun: Option<ArchiveLine>,
}

/// The lines of a game in a text, not yet read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordText {
    /// Never empty.
    lines: Vec<ArchiveLine>,
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
    pub fn next_text(&mut self) -> Option<Result<RecordText, NotationError>> {
        let mut lines: Vec<ArchiveLine> = Vec::new();
        let mut has_turns = false;
        let mut bytes = 0;
        let mut fault = None;
        while let Some(line) = self.begun.take().map(Ok).or_else(|| self.lines.next()) {
            let line = match line {
                Ok(line) => line,
                Err(error) if matches!(error.reason, NotationReason::Io(_)) => {
                    return Some(Err(error));
                }
                // A line that is too long spoils its game.
                Err(error) => {
                    fault.get_or_insert(error);
                    has_turns = true;
                    continue;
                }
            };
            if is_note(&line.text) {
                continue;
            }
            let is_start = is_position(&line.text);
            let takes_back = lines
                .last()
                .is_some_and(|last| takes_setup_back(&last.text));
            // A position alone is a game as well, one without turns.
            let is_game = has_turns || lines.first().is_some_and(|first| is_in_play(&first.text));
            if is_game && (is_start || is_first_turn(&line.text) && !takes_back) {
                self.begun = Some(line);
                break;
            }
            has_turns |= !is_start;
            bytes += line.bytes();
            if bytes > MAX_LINE_BYTES {
                let first = lines.first().unwrap_or(&line).span();
                fault.get_or_insert_with(|| {
                    first.place.fault(NotationReason::TooLong {
                        what: "game".into(),
                        limit: MAX_LINE_BYTES,
                    })
                });
            }
            if fault.is_none() {
                lines.push(line);
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
    type Item = Result<WrittenGame, NotationError>;

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.next_text()?;
        Some(text.and_then(|text| text.read()))
    }
}

impl RecordText {
    /// The line that the game begins in, from 1.
    pub fn line(&self) -> usize {
        self.lines[0].number
    }

    /// Its size without the ends of its lines, in bytes.
    pub fn bytes(&self) -> usize {
        self.lines.iter().map(ArchiveLine::bytes).sum()
    }

    /// Reads the game.
    ///
    /// # Errors
    /// What stands there is no game. The error names the line and the column of the turn at fault.
    pub fn read(&self) -> Result<WrittenGame, NotationError> {
        let line = self.line();
        let place = self.lines[0].span().place;
        let mut entries = self.lines.iter().map(ArchiveLine::span).peekable();
        let start = match entries.next_if(|line| is_position(line.text)) {
            Some(line) => read_position(line)?,
            None => Position::INITIAL,
        };
        if entries.peek().is_none() && start != Position::INITIAL {
            return Ok(WrittenGame {
                line,
                game: Game::from_position(start),
                conclusion: None,
            });
        }
        let (game, given_up) = read_movelist(&start, entries, place)?;
        let conclusion = match (game.outcome(), given_up) {
            (Some(played), Some(given_up)) if given_up.winner() != played.winner => {
                return Err(place.fault(NotationReason::LoserWon(played.winner)));
            }
            (Some(_), _) => None,
            (None, given_up) => given_up,
        };
        Ok(WrittenGame {
            line,
            game,
            conclusion,
        })
    }
}

fn is_in_play(line: &str) -> bool {
    parse_position(line).is_ok_and(|position| position.phase() == Phase::Play)
}

fn is_first_turn(line: &str) -> bool {
    let word = line.split_whitespace().next();
    let label = word.and_then(TurnLabel::read_old_or_new);
    label.is_some_and(|label| label.number == 1 && label.side == Side::Gold)
}

/// Whether a line takes Gold's setup back, which is then due again.
fn takes_setup_back(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let label = words.next().and_then(TurnLabel::read_old_or_new);
    label.is_some_and(|label| label.number == 1 && label.side == Side::Silver)
        && words.next() == Some("takeback")
}

/// Writes a game's record with how it was lost where the rules did not end it, as [`RecordReader`] reads it:
/// [`format_record`], and a line like `12s resigns` or `12s lost`.
pub fn format_concluded_record(game: &Game, conclusion: Option<Conclusion>) -> String {
    let mut text = format_record(game);
    if let Some(conclusion) = conclusion {
        let due = TurnLabel::due(game);
        let label = if due.side == conclusion.winner() {
            due.after(1)
        } else {
            due
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
