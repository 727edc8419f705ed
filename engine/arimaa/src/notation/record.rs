//! Game records.

use super::position::read_position;
use super::token::{Location, Span};
use super::turn::{push_turn, read_turn};
use super::{NotationError, NotationReason, format_position};
use crate::rules::{Game, Phase, Position, Side, TurnError};
use std::fmt::{self, Write};
use std::str::FromStr;

/// What stands before a turn: its number and side, like `12g`. The setups are turn 1; a game that starts from a position starts
/// with turn 2.
///
/// ```
/// use arimaa::notation::TurnLabel;
/// use arimaa::rules::{Game, Side};
/// let label: TurnLabel = "12s".parse()?;
/// assert_eq!((label.number, label.side), (12, Side::Silver));
/// assert_eq!(TurnLabel::due(&Game::new()).to_string(), "1g");
/// # Ok::<(), arimaa::notation::NotationError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TurnLabel {
    /// The turn's number, from 1; both sides have a turn of each number.
    pub number: u32,
    /// Whose turn it is.
    pub side: Side,
}

impl TurnLabel {
    /// The label of the turn that is due in a game.
    pub fn due(game: &Game) -> Self {
        Self::first(game.start()).after(game.turns().len())
    }

    /// The label of the first turn of a game that starts from a position.
    pub(super) fn first(start: &Position) -> Self {
        Self {
            number: match start.phase() {
                Phase::Setup => 1,
                Phase::Play => 2,
            },
            side: start.side(),
        }
    }

    /// The label of the turn that comes so many turns later.
    pub fn after(self, turns: usize) -> Self {
        let turns = u32::try_from(turns).unwrap_or(u32::MAX);
        let before = turns.saturating_add(self.side.index() as u32);
        Self {
            number: self.number.saturating_add(before / 2),
            side: Side::ALL[before as usize % 2],
        }
    }

    /// Reads a label.
    pub(super) fn read(label: Span<'_>) -> Result<Self, NotationError> {
        let Span { text, place } = label;
        let expected = || label.expected("a turn's number and side, like `12g`,");
        let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
        let mut letters = text[digits.len()..].chars();
        let side = match (letters.next(), letters.next()) {
            (Some('g'), None) => Side::Gold,
            (Some('s'), None) => Side::Silver,
            (Some(letter), None) if letter.is_alphabetic() => {
                let column = digits.chars().count();
                return Err(place.right(column).fault(NotationReason::Side(letter)));
            }
            _ => return Err(expected()),
        };
        let number = read_number(digits).ok_or_else(expected)?;
        Ok(Self { number, side })
    }

    /// Reads a label as records of all times write it: `w` and `b` are Gold and Silver as well.
    pub(super) fn read_old_or_new(text: &str) -> Option<Self> {
        let side = match text.chars().last()? {
            'w' | 'g' => Side::Gold,
            'b' | 's' => Side::Silver,
            _ => return None,
        };
        let number = read_number(&text[..text.len() - 1])?;
        Some(Self { number, side })
    }
}

/// Reads a turn's number, which has no sign and does not begin with a zero.
fn read_number(digits: &str) -> Option<u32> {
    let is_number = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

/// The label, as it stands before a turn.
impl FromStr for TurnLabel {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        Self::read(Span::whole(text))
    }
}

impl fmt::Display for TurnLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.number, self.side.letter())
    }
}

/// Reads a record: one turn a line behind its number and side, which must follow on each other. It may stop before the game is
/// over; blank lines, remarks (`# …`) and tags (`Gold: anna`) don't matter, see [`archive`](super::archive#texts). A game that did not
/// start with the setups has its first position, in the short form, on the first line, and its turns are numbered from 2.
///
/// Every turn is played: an illegal one is refused, at the step at fault where there is one.
///
/// ```
/// use arimaa::notation::{format_record, parse_record};
/// let text = "\
/// 1g Ra1 Rb1 Rc1 Dd1 De1 Rf1 Rg1 Rh1 Ra2 Hb2 Cc2 Md2 Ee2 Cf2 Hg2 Rh2
/// 1s ra8 rb8 rc8 cd8 ce8 rf8 rg8 rh8 ra7 hb7 dc7 md7 ee7 df7 hg7 rh7
/// 2g Ee2n Ee3n Ee4n Ee5n
/// ";
/// let game = parse_record(text)?;
/// assert_eq!(format_record(&game), text);
/// # Ok::<(), arimaa::notation::NotationError>(())
/// ```
pub fn parse_record(text: &str) -> Result<Game, NotationError> {
    let mut lines = text
        .lines()
        .enumerate()
        .filter(|(_, text)| !is_note(text))
        .map(|(index, text)| Span {
            text,
            place: Location::of_line(index + 1),
        })
        .peekable();
    let start = match lines.next_if(|line| is_position(line.text)) {
        Some(line) => read_position(line)?,
        None => Position::INITIAL,
    };
    let mut game = Game::from_position(start);
    for turn in lines.filter_map(LabelledTurn::of_line) {
        turn.check_label(TurnLabel::read(turn.label)?, TurnLabel::due(&game))?;
        turn.play(&mut game)?;
    }
    Ok(game)
}

/// Whether a line is a position rather than a turn.
pub(super) fn is_position(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with(['g', 's']) && line.contains('[')
}

/// Whether a line says nothing of the game: blank, a remark, or a tag.
pub(super) fn is_note(line: &str) -> bool {
    let Some(word) = line.split_whitespace().next() else {
        return true;
    };
    let tag = word.strip_suffix(':');
    word.starts_with('#') || tag.is_some_and(|tag| TurnLabel::read_old_or_new(tag).is_none())
}

/// A line of a record: a turn behind its label.
#[derive(Debug, Clone, Copy)]
pub(super) struct LabelledTurn<'a> {
    pub(super) label: Span<'a>,
    /// What follows the label.
    pub(super) turn: Span<'a>,
}

impl<'a> LabelledTurn<'a> {
    /// Splits a line; a blank one has no label.
    pub(super) fn of_line(line: Span<'a>) -> Option<Self> {
        let label = line.words().next()?;
        let blanks = line.text.len() - line.text.trim_start().len();
        let turn = Span {
            text: &line.text[blanks + label.text.len()..],
            place: label.place.right(label.text.chars().count()),
        };
        Some(Self { label, turn })
    }

    /// Refuses a label that is not the one that is due.
    pub(super) fn check_label(
        &self,
        found: TurnLabel,
        due: TurnLabel,
    ) -> Result<(), NotationError> {
        if found == due {
            return Ok(());
        }
        Err(self.label.place.fault(NotationReason::OtherTurn {
            due: due.to_string(),
            found: found.to_string(),
        }))
    }

    /// Plays the turn.
    pub(super) fn play(&self, game: &mut Game) -> Result<(), NotationError> {
        if let Some(outcome) = game.outcome() {
            return Err(self.label.place.fault(TurnError::GameOver(outcome)));
        }
        let written = read_turn(self.turn, game.position())?;
        game.play(&written.turn)
            .map_err(|error| written.fault(error))
    }
}

/// Writes a game's record, as [`parse_record`] reads it. Each line ends with a line feed.
pub fn format_record(game: &Game) -> String {
    let mut position = *game.start();
    let mut label = TurnLabel::first(&position);
    let mut text = String::new();
    if position != Position::INITIAL {
        text.push_str(&format!("{}\n", format_position(&position)));
    }
    for turn in game.turns() {
        // A text takes what is written to it.
        let _ = write!(text, "{label} ");
        push_turn(&mut text, turn, &position);
        text.push('\n');
        position = position.after_turn_unchecked(turn);
        label = label.after(1);
    }
    text
}

/// The record, as [`format_record`] writes it.
impl fmt::Display for Game {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_record(self))
    }
}

/// The record, as [`parse_record`] reads it.
impl FromStr for Game {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        parse_record(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Outcome, Reason, StepError, TurnError};

    const OPENING: &str = "\
1g Ra1 Rb1 Rc1 Dd1 De1 Rf1 Rg1 Rh1 Ra2 Hb2 Cc2 Md2 Ee2 Cf2 Hg2 Rh2
1s ra8 rb8 rc8 cd8 ce8 rf8 rg8 rh8 ra7 hb7 dc7 md7 ee7 df7 hg7 rh7
2g Ee2n Ee3n Ee4n
2s ra7s
";

    fn fault(text: &str) -> (usize, usize, NotationReason) {
        let error = parse_record(text).unwrap_err();
        (error.line, error.column, error.reason)
    }

    #[test]
    fn records_may_stop_anywhere() {
        let mut text = String::new();
        for (turns, line) in OPENING.lines().enumerate() {
            let game = parse_record(&text).unwrap();
            assert_eq!(game.turns().len(), turns);
            assert_eq!(game.to_string(), text);
            assert!(line.starts_with(&TurnLabel::due(&game).to_string()));
            text.push_str(line);
            text.push('\n');
        }
        let loose = format!("\n{}", OPENING.replace('\n', " \r\n \n"));
        assert_eq!(loose.parse(), parse_record(OPENING));
    }

    #[test]
    fn remarks_and_tags_are_skipped() {
        let noted = OPENING.replace("\n2g", "\n# value 0.5\n 2g");
        let noted = format!("Gold: anna\nResult: 2g wins\n\n{noted}# value 1\n");
        assert_eq!(noted.parse(), parse_record(OPENING));
        let text = "Gold: anna\ns [r                                  Er                          R]\n# over\n2s Ed4e\n";
        assert_eq!(fault(text).0, 4, "lines are counted as they stand");
        assert_eq!(fault("1g: Ra1\n").0, 1, "a turn's label is no tag");
    }

    #[test]
    fn games_from_a_position_begin_with_it() {
        let text = "\
s [r                                  Er                          R]
2s re4e
3g Ed4e Ee4e
";
        // A frozen rabbit can't move: the record is refused at its step.
        assert_eq!(
            fault(text),
            (
                2,
                4,
                TurnError::Step {
                    number: 1,
                    step: crate::rules::Step::new(
                        "e4".parse().unwrap(),
                        crate::rules::Direction::East
                    ),
                    error: StepError::Frozen("e4".parse().unwrap())
                }
                .into()
            )
        );
        let text = text.replace("re4e", "ra8e").replace("Ed4e Ee4e", "Ed4s");
        let game = parse_record(&text).unwrap();
        assert_eq!(game.to_string(), text);
        assert_eq!(TurnLabel::due(&game).to_string(), "3s");
    }

    #[test]
    fn turns_that_do_not_follow_are_refused() {
        for (wrong, found) in [("2g", "2g"), ("3s", "3s"), ("1s", "1s")] {
            assert_eq!(
                fault(&OPENING.replace("2s", wrong)),
                (
                    4,
                    1,
                    NotationReason::OtherTurn {
                        due: "2s".to_owned(),
                        found: found.to_owned()
                    }
                )
            );
        }
        assert_eq!(
            fault(&OPENING.replace("2s", "2w")),
            (4, 2, NotationReason::Side('w'))
        );
        for wrong in ["02s", "s", "2", "+2s", "2s.", "2gs", "99999999999s"] {
            let (line, column, reason) = fault(&OPENING.replace("2s", wrong));
            assert_eq!((line, column), (4, 1), "{wrong}");
            assert!(matches!(reason, NotationReason::Expected { .. }), "{wrong}");
        }
    }

    #[test]
    fn illegal_turns_are_refused_at_the_step() {
        let (line, column, reason) = fault(&OPENING.replace("2s ra7s", "2s ra7s ra6e ra5s"));
        assert_eq!((line, column), (4, 14));
        assert_eq!(reason, StepError::NoPiece("a5".parse().unwrap()).into());
        let (line, column, reason) = fault(&OPENING.replace("2s ra7s", "2s ra7s  ra6sn"));
        assert_eq!((line, column), (4, 14));
        assert!(matches!(
            reason,
            NotationReason::Turn(TurnError::Step {
                number: 3,
                error: StepError::RabbitBackward(_),
                ..
            })
        ));
        let (line, column, reason) = fault(&OPENING.replace("2s ra7s", "2s  ee7s ee6n"));
        assert_eq!((line, column, reason), (4, 5, TurnError::NoChange.into()));
        assert_eq!(
            fault(&OPENING.replace("2s ra7s", "2s")),
            (4, 3, TurnError::Empty.into())
        );
    }

    #[test]
    fn nothing_follows_the_end_of_a_game() {
        let text = "\
g [                R                       r                       ]
2g Ra6n Ra7n
2s rb3s
";
        let outcome = Outcome {
            winner: Side::Gold,
            reason: Reason::Goal,
        };
        assert_eq!(fault(text), (3, 1, TurnError::GameOver(outcome).into()));
    }
}
