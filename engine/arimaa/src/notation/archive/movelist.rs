//! The turns of a game, as the server writes them: in one field of its archive, or on a line each.

use super::super::record::TurnLabel;
use super::super::token::{Place, words};
use super::super::turn::{format_turn, read_turn};
use super::reader::shorten;
use super::{ArchiveFault, Conclusion};
use crate::rules::{Game, Position, Side, TurnError};

/// What separates turns in a field of the archive: two characters, no line feed.
pub(super) const SEPARATOR: &str = "\\n";

/// A movelist, played.
#[derive(Debug)]
pub(super) struct Movelist {
    pub(super) game: Game,
    /// How its last entry says that it ended.
    pub(super) conclusion: Option<Conclusion>,
}

/// A fault of a movelist, with the line and the turn at fault as it is written.
#[derive(Debug)]
pub(super) struct MovelistError {
    pub(super) line: u64,
    pub(super) turn: Option<String>,
    pub(super) fault: ArchiveFault,
}

/// An entry of a movelist: usually a turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'a> {
    /// The line that it stands in, from 1.
    pub(super) line: u64,
    /// All of it, its number and side included.
    pub(super) text: &'a str,
}

/// A turn that was played and not taken back.
struct LastingTurn<'a> {
    line: u64,
    label: &'a str,
    /// The turn behind the label.
    text: &'a str,
    /// Where `text` begins in the entry.
    place: Place,
}

impl LastingTurn<'_> {
    fn error(&self, fault: ArchiveFault) -> MovelistError {
        MovelistError {
            line: self.line,
            turn: Some(shorten(self.label)),
            fault,
        }
    }
}

/// Reads a movelist and plays it from where the game started. `line` is where it begins.
pub(super) fn read_movelist<'a>(
    line: u64,
    start: &Position,
    entries: impl Iterator<Item = Entry<'a>>,
) -> Result<Movelist, MovelistError> {
    let (turns, conclusion) = lasting_turns(start, entries)?;
    let mut game = Game::from_position(*start);
    for turn in &turns {
        play(turn, &mut game).map_err(|fault| turn.error(fault))?;
    }
    if turns.is_empty() {
        return Err(MovelistError {
            line,
            turn: None,
            fault: ArchiveFault::NoTurns,
        });
    }
    Ok(Movelist { game, conclusion })
}

/// The turns that were not taken back, and who gave up. Taking back is resolved before anything is played, so that a list of
/// nothing but turns and their taking back costs no more than its length.
fn lasting_turns<'a>(
    start: &Position,
    entries: impl Iterator<Item = Entry<'a>>,
) -> Result<(Vec<LastingTurn<'a>>, Option<Conclusion>), MovelistError> {
    let first = TurnLabel::first(start);
    let mut turns: Vec<LastingTurn> = Vec::new();
    let mut conclusion = None;
    for (index, Entry { line, text }) in entries.enumerate() {
        let Some(label) = words(text, Place::START).next() else {
            continue;
        };
        let found = read_label(label.text).ok_or_else(|| MovelistError {
            line,
            turn: None,
            fault: ArchiveFault::Label {
                entry: index + 1,
                found: shorten(label.text),
            },
        })?;
        let blanks = text.len() - text.trim_start().len();
        let rest = &text[blanks + label.text.len()..];
        let turn = LastingTurn {
            line,
            label: label.text,
            text: rest,
            place: label.place.right(label.text.chars().count()),
        };
        let word = rest.trim();
        let due = first.after(turns.len());
        let concluded = read_conclusion(word, found.side);
        // Who gives up while the other side is to move stands behind its own next turn.
        if found != due && !(concluded.is_some() && found == due.next()) {
            let due = due.to_string();
            return Err(turn.error(ArchiveFault::OtherTurn { due }));
        }
        if conclusion.is_some() && !word.is_empty() {
            return Err(turn.error(ArchiveFault::AfterConclusion));
        }
        match word {
            "" => {}
            "takeback" if turns.pop().is_none() => {
                return Err(turn.error(ArchiveFault::NothingToTakeBack));
            }
            "takeback" => {}
            _ if concluded.is_some() => conclusion = concluded,
            _ => turns.push(turn),
        }
    }
    Ok((turns, conclusion))
}

/// What a side says instead of a turn, when it makes no more.
fn read_conclusion(word: &str, side: Side) -> Option<Conclusion> {
    let winner = side.opponent();
    match word {
        "resigns" | "resign" | "resigned" => Some(Conclusion::Resigned { winner }),
        "lost" => Some(Conclusion::Forfeited { winner }),
        _ => None,
    }
}

/// Reads `12w`, `12g`, `12b` or `12s`.
pub(super) fn read_label(text: &str) -> Option<TurnLabel> {
    let side = match text.chars().last()? {
        'w' | 'g' => Side::Gold,
        'b' | 's' => Side::Silver,
        _ => return None,
    };
    let digits = &text[..text.len() - 1];
    let is_number = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse().ok().filter(|_| is_number)?;
    Some(TurnLabel { number, side })
}

fn play(turn: &LastingTurn<'_>, game: &mut Game) -> Result<(), ArchiveFault> {
    if let Some(outcome) = game.outcome() {
        return Err(ArchiveFault::Turn {
            column: 1,
            reason: TurnError::GameOver(outcome).into(),
        });
    }
    let written = read_turn(turn.text, turn.place, game.position());
    let played = written.and_then(|written| {
        game.play(&written.turn)
            .map_err(|error| written.fault(error))
    });
    played.map_err(|error| ArchiveFault::Turn {
        column: error.column,
        reason: error.reason,
    })
}

/// The letters of the sides in a movelist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SideLetters {
    /// `w` for Gold and `b` for Silver: before August 2008.
    Old,
    /// `g` for Gold and `s` for Silver.
    New,
}

impl SideLetters {
    fn letter(self, side: Side) -> char {
        match (self, side) {
            (Self::New, side) => side.letter(),
            (Self::Old, Side::Gold) => 'w',
            (Self::Old, Side::Silver) => 'b',
        }
    }
}

/// Writes the turns of a game that began with the setups as a movelist, as [`ArchiveReader`](super::ArchiveReader) reads it.
///
/// ```
/// use arimaa::notation::{SideLetters, format_movelist, parse_record};
/// let game = parse_record("1g Ra1 Rb1 Rc1 Dd1 De1 Rf1 Rg1 Rh1 Ra2 Hb2 Cc2 Md2 Ee2 Cf2 Hg2 Rh2\n")?;
/// assert_eq!(
///     format_movelist(&game, SideLetters::Old),
///     "1w Ra1 Rb1 Rc1 Dd1 De1 Rf1 Rg1 Rh1 Ra2 Hb2 Cc2 Md2 Ee2 Cf2 Hg2 Rh2",
/// );
/// # Ok::<(), arimaa::notation::NotationError>(())
/// ```
pub fn format_movelist(game: &Game, letters: SideLetters) -> String {
    let mut position = *game.start();
    let mut text = String::new();
    for (index, turn) in game.turns().iter().enumerate() {
        if index > 0 {
            text.push_str(SEPARATOR);
        }
        let letter = letters.letter(position.side());
        let turn_text = format_turn(turn, &position);
        text.push_str(&format!("{}{letter} {turn_text}", index / 2 + 1));
        position = position.after_turn_unchecked(turn);
    }
    text
}
