//! Facts about turns, ends and games, and whether the rules agree with them.

use super::count::{PositionLine, PositionLineError, SideLetter, count};
use crate::notation::{NotationReason, TurnLabel, format_board, parse_turn};
use crate::rules::{Game, History, Position, Reason, Side, TurnEnumerator};
use serde::{Deserialize, Serialize};

/// A fact to be compared with the rules: what is given, and what must come out.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Case {
    /// A turn is legal or not, repetition left aside.
    Turn {
        /// The position, which may be one that no game reaches.
        #[serde(flatten)]
        position: PositionLine,
        /// The turn.
        turn: String,
        /// What must come out.
        #[serde(flatten)]
        expected: TurnResult,
    },
    /// A position has so many turns.
    Count {
        /// The position.
        #[serde(flatten)]
        position: PositionLine,
        /// What must come out.
        #[serde(flatten)]
        expected: CountResult,
    },
    /// A game ends in a position, or continues.
    End {
        /// The position.
        #[serde(flatten)]
        position: PositionLine,
        /// What must come out.
        #[serde(flatten)]
        expected: EndResult,
    },
    /// A game is played to its end, to an illegal turn, or to the last move given.
    Game {
        /// What to call the case.
        id: String,
        /// Turns from the empty board on, each behind its number and side.
        moves: Vec<String>,
        /// What must come out.
        #[serde(flatten)]
        expected: GameResult,
    },
}

/// Whether a turn is legal, and where it leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnResult {
    /// Whether it is legal.
    pub legal: bool,
    /// The board after it, where it is legal.
    pub result: Option<String>,
}

/// The turns of a position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountResult {
    /// How many different boards the turns can end on.
    pub distinct_turns: u64,
    /// The [`checksum`](super::checksum) of these boards in 16 hexadecimal digits.
    pub turns_checksum: String,
    /// The legal first steps, sorted.
    pub first_steps: Vec<String>,
}

/// How a game has ended in a position, if it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndResult {
    /// The side that has won.
    pub winner: Option<SideLetter>,
    /// How.
    pub reason: Option<Reason>,
}

/// How a game that was played out has ended, if it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GameResult {
    /// The side that has won.
    pub winner: Option<SideLetter>,
    /// How.
    pub reason: Option<GameReason>,
    /// How many turns were handed in, a rejected one included.
    pub plies_played: usize,
}

/// How a game of a case ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum GameReason {
    /// A rabbit reaches its goal rank.
    #[serde(rename = "g")]
    Goal,
    /// A side has no rabbits left.
    #[serde(rename = "e")]
    Elimination,
    /// The side to move has no legal turn.
    #[serde(rename = "m")]
    Immobilization,
    /// A side hands in an illegal turn.
    #[serde(rename = "i")]
    Illegal,
}

impl From<Reason> for GameReason {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Goal => Self::Goal,
            Reason::Elimination => Self::Elimination,
            Reason::Immobilization => Self::Immobilization,
        }
    }
}

/// What came out of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// What the case is called.
    pub id: String,
    /// Whether what came out is what the case says.
    pub pass: bool,
    /// What came out.
    #[serde(flatten)]
    pub found: Found,
    /// Why the last turn is illegal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// What came out of a case, by its kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Found {
    /// Of a turn.
    Turn(TurnResult),
    /// Of a count.
    Count(CountResult),
    /// Of an end.
    End(EndResult),
    /// Of a game.
    Game(GameResult),
}

impl Case {
    /// What the case is called.
    pub fn id(&self) -> &str {
        match self {
            Self::Turn { position, .. }
            | Self::Count { position, .. }
            | Self::End { position, .. } => &position.id,
            Self::Game { id, .. } => id,
        }
    }

    /// Compares the case with the rules.
    ///
    /// # Errors
    /// The board of the case can't be read.
    pub fn answer(&self) -> Result<Answer, PositionLineError> {
        let mut fault = None;
        let (expected, found) = match self {
            Self::Turn {
                position,
                turn,
                expected,
            } => {
                let played = try_turn(turn, &position.any_position()?);
                let found = TurnResult {
                    legal: played.is_ok(),
                    result: played.as_ref().ok().cloned(),
                };
                fault = played.err();
                (Found::Turn(expected.clone()), Found::Turn(found))
            }
            Self::Count { position, expected } => {
                let counted = count(&position.any_position()?, &mut TurnEnumerator::new());
                let found = CountResult {
                    distinct_turns: counted.turns.distinct_turns,
                    turns_checksum: counted.turns_checksum,
                    first_steps: counted.turns.first_steps,
                };
                (Found::Count(expected.clone()), Found::Count(found))
            }
            Self::End { position, expected } => {
                let outcome = position.any_position()?.outcome(&History::default());
                let found = EndResult {
                    winner: outcome.map(|outcome| outcome.winner.into()),
                    reason: outcome.map(|outcome| outcome.reason),
                };
                (Found::End(expected.clone()), Found::End(found))
            }
            Self::Game {
                moves, expected, ..
            } => {
                let found;
                (found, fault) = play_out(moves);
                (Found::Game(expected.clone()), Found::Game(found))
            }
        };
        Ok(Answer {
            id: self.id().to_owned(),
            pass: expected == found,
            found,
            fault,
        })
    }
}

/// Why a turn handed in as text was not played.
fn refusal(error: impl Into<NotationReason>) -> String {
    error.into().to_string()
}

/// The board after a turn, or why the turn is illegal.
fn try_turn(text: &str, position: &Position) -> Result<String, String> {
    let turn = parse_turn(text, position).map_err(|error| error.to_string())?;
    let end = position.after_turn(&turn, &History::default());
    Ok(format_board(end.map_err(refusal)?.board()))
}

/// Plays a game until it is over, a turn is illegal, or the moves are used up. Also says why a turn is illegal.
fn play_out(moves: &[String]) -> (GameResult, Option<String>) {
    let mut game = Game::new();
    for (index, text) in moves.iter().enumerate() {
        let side = game.position().side();
        let played = parse_turn(without_label(text), game.position())
            .map_err(|error| error.to_string())
            .and_then(|turn| game.play(&turn).map_err(refusal));
        let outcome: Option<(Side, GameReason)> = match &played {
            Ok(()) => game
                .outcome()
                .map(|outcome| (outcome.winner, outcome.reason.into())),
            Err(_) => Some((side.opponent(), GameReason::Illegal)),
        };
        if let Some((winner, reason)) = outcome {
            let result = GameResult {
                winner: Some(winner.into()),
                reason: Some(reason),
                plies_played: index + 1,
            };
            return (result, played.err());
        }
    }
    let result = GameResult {
        winner: None,
        reason: None,
        plies_played: moves.len(),
    };
    (result, None)
}

/// A move without its number and side. They are not checked: whose turn it is follows from the game.
fn without_label(text: &str) -> &str {
    let text = text.trim_start();
    match text.split_once(char::is_whitespace) {
        Some((label, turn)) if label.parse::<TurnLabel>().is_ok() => turn,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(line: &str) -> (bool, String) {
        let case: Case = serde_json::from_str(line).unwrap();
        let answer = case.answer().unwrap();
        (answer.pass, serde_json::to_string(&answer).unwrap())
    }

    const BOARD: &str = "[r                                  Er                          R]";

    #[test]
    fn answers_hold_what_was_found() {
        let turn = |turn: &str, legal: bool, result: &str| {
            format!(
                r#"{{"id":"a","kind":"turn","position":"{BOARD}","side":"g","turn":"{turn}","legal":{legal},"result":{result}}}"#
            )
        };
        let (pass, text) = answer(&turn("Ed4n", false, "null"));
        assert!(!pass);
        assert_eq!(
            text,
            r#"{"id":"a","pass":false,"legal":true,"result":"[r                          E        r                          R]"}"#
        );
        let (pass, text) = answer(&turn("Ed4e", false, "null"));
        assert!(pass);
        assert_eq!(
            text,
            r#"{"id":"a","pass":true,"legal":false,"result":null,"fault":"line 1, column 1: e4 is occupied (r)"}"#
        );
        assert!(!answer(&turn("Ed4n", true, &format!("{BOARD:?}"))).0);
    }

    #[test]
    fn a_game_without_an_end_has_no_winner() {
        let line =
            r#"{"id":"b","kind":"game","moves":[],"winner":null,"reason":null,"plies_played":0}"#;
        assert_eq!(
            answer(line),
            (
                true,
                r#"{"id":"b","pass":true,"winner":null,"reason":null,"plies_played":0}"#.to_owned()
            )
        );
        let line = r#"{"id":"b","kind":"game","moves":["1g Ra1"],"winner":"s","reason":"i","plies_played":1}"#;
        assert!(answer(line).0);
    }
}
