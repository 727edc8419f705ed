//! The turns of a game, as the server writes them: in one field of its archive, or on a line each.

use super::Conclusion;
use crate::notation::error::{NotationError, NotationReason};
use crate::notation::record::{LabelledTurn, TurnLabel};
use crate::notation::token::{Location, Span};
use crate::notation::turn::format_turn;
use crate::rules::{Game, Position, Side};

/// What separates turns in a field of the archive: two characters, no line feed.
pub(super) const SEPARATOR: &str = "\\n";

/// Reads the entries of a movelist, most of them turns, and plays them from where the game started. Also says how the last entry
/// concludes the game. `place` is where the movelist begins.
pub(super) fn read_movelist<'a>(
    start: &Position,
    entries: impl Iterator<Item = Span<'a>>,
    place: Location,
) -> Result<(Game, Option<Conclusion>), NotationError> {
    let (turns, conclusion) = lasting_turns(start, entries)?;
    let mut game = Game::from_position(*start);
    for turn in &turns {
        turn.play(&mut game)?;
    }
    if turns.is_empty() {
        Err(place.fault(NotationReason::NoTurns))
    } else {
        Ok((game, conclusion))
    }
}

/// The turns that were not taken back, and how the last entry concludes the game. Taking back is resolved before anything is
/// played, so that a list of nothing but turns and their taking back costs no more than its length.
fn lasting_turns<'a>(
    start: &Position,
    entries: impl Iterator<Item = Span<'a>>,
) -> Result<(Vec<LabelledTurn<'a>>, Option<Conclusion>), NotationError> {
    let first = TurnLabel::first(start);
    let mut turns: Vec<LabelledTurn> = Vec::new();
    let mut conclusion = None;
    for turn in entries.filter_map(LabelledTurn::of_line) {
        let label = turn.label;
        let found = TurnLabel::read_old_or_new(label.text)
            .ok_or_else(|| label.expected("a turn's number and side (w, b, g, s)"))?;
        let due = first.after(turns.len());
        let word = turn.turn.text.trim();
        let concluded = read_conclusion(word, found.side);
        // A side that gives up while the other side is to move stands behind its own next turn's number.
        let is_next = concluded.is_some() && found == due.after(1);
        turn.check_label(found, if is_next { found } else { due })?;
        if conclusion.is_some() && !word.is_empty() {
            return Err(label.place.fault(NotationReason::AfterConclusion));
        }
        match word {
            "" => {}
            "takeback" if turns.pop().is_none() => {
                return Err(label.place.fault(NotationReason::NothingToTakeBack));
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
