//! Facts about turns, ends and games, and whether the rules agree with them.

use super::count::{SideLetter, count};
use crate::notation::{
    NotationError, NotationReason, TurnLabel, format_board, parse_board, parse_turn,
};
use crate::rules::{Game, History, Position, Reason, Side, TurnEnumerator};
use serde::{Deserialize, Serialize};

/// A fact to be held against the rules: what is given, and what must come out.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Case {
    /// A turn is legal or not, repetition left aside.
    Turn {
        /// What to call the case.
        id: String,
        /// The board.
        position: String,
        /// The side to move.
        side: SideLetter,
        /// The turn.
        turn: String,
        /// Whether it is legal.
        legal: bool,
        /// The board after it, where it is legal.
        result: Option<String>,
    },
    /// A position has so many turns.
    Count {
        /// What to call the case.
        id: String,
        /// The board.
        position: String,
        /// The side to move.
        side: SideLetter,
        /// How many different boards its turns can end on.
        distinct_turns: u64,
        /// Their checksum.
        turns_checksum: String,
        /// Its legal first steps, sorted.
        first_steps: Vec<String>,
    },
    /// A game ends, or goes on, in a position.
    End {
        /// What to call the case.
        id: String,
        /// The board.
        position: String,
        /// The side to move.
        side: SideLetter,
        /// Who has won.
        winner: Option<SideLetter>,
        /// How.
        reason: Option<Reason>,
    },
    /// A game goes on to its end, to an illegal turn, or to the last move given.
    Game {
        /// What to call the case.
        id: String,
        /// Turns from the empty board on, each behind its number and side.
        moves: Vec<String>,
        /// Who has won.
        winner: Option<SideLetter>,
        /// How.
        reason: Option<GameReason>,
        /// How many turns were handed in, a rejected one included.
        plies_played: usize,
    },
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
}

/// What came out of a case, by its kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Found {
    /// Of a turn.
    Turn {
        /// Whether it is legal.
        legal: bool,
        /// The board after it, where it is legal.
        result: Option<String>,
        /// Why it is illegal.
        #[serde(skip_serializing_if = "Option::is_none")]
        fault: Option<String>,
    },
    /// Of a count.
    Count {
        /// How many different boards the turns can end on.
        distinct_turns: u64,
        /// Their checksum.
        turns_checksum: String,
        /// The legal first steps, sorted.
        first_steps: Vec<String>,
    },
    /// Of an end.
    End {
        /// Who has won.
        winner: Option<SideLetter>,
        /// How.
        reason: Option<Reason>,
    },
    /// Of a game.
    Game {
        /// Who has won.
        winner: Option<SideLetter>,
        /// How.
        reason: Option<GameReason>,
        /// How many turns were handed in.
        plies_played: usize,
        /// Why the last turn is illegal.
        #[serde(skip_serializing_if = "Option::is_none")]
        fault: Option<String>,
    },
}

/// The board of a case can't be read.
#[derive(Debug, thiserror::Error)]
#[error("{id}: position: {error}")]
pub struct PositionFault {
    /// The case.
    pub id: String,
    /// What is wrong with its board.
    pub error: NotationError,
}

impl Case {
    /// What the case is called.
    pub fn id(&self) -> &str {
        match self {
            Self::Turn { id, .. }
            | Self::Count { id, .. }
            | Self::End { id, .. }
            | Self::Game { id, .. } => id,
        }
    }

    /// Asks the rules, and compares.
    pub fn answer(&self) -> Result<Answer, PositionFault> {
        let found = self.ask().map_err(|error| PositionFault {
            id: self.id().to_owned(),
            error,
        })?;
        Ok(Answer {
            id: self.id().to_owned(),
            pass: self.agrees(&found),
            found,
        })
    }

    fn ask(&self) -> Result<Found, NotationError> {
        Ok(match self {
            Self::Turn {
                position,
                side,
                turn,
                ..
            } => try_turn(turn, &read_position(position, *side)?),
            Self::Count { position, side, .. } => {
                let mut enumerator = TurnEnumerator::new();
                let counted = count(&read_position(position, *side)?, &mut enumerator);
                Found::Count {
                    distinct_turns: counted.turns.distinct_turns,
                    turns_checksum: counted.turns_checksum,
                    first_steps: counted.turns.first_steps,
                }
            }
            Self::End { position, side, .. } => {
                let outcome = read_position(position, *side)?.outcome(&History::default());
                Found::End {
                    winner: outcome.map(|outcome| outcome.winner.into()),
                    reason: outcome.map(|outcome| outcome.reason),
                }
            }
            Self::Game { moves, .. } => play_out(moves),
        })
    }

    fn agrees(&self, answer: &Found) -> bool {
        match (self, answer) {
            (
                Self::Turn { legal, result, .. },
                Found::Turn {
                    legal: found,
                    result: board,
                    ..
                },
            ) => legal == found && result == board,
            (
                Self::Count {
                    distinct_turns,
                    turns_checksum,
                    first_steps,
                    ..
                },
                found,
            ) => {
                *found
                    == Found::Count {
                        distinct_turns: *distinct_turns,
                        turns_checksum: turns_checksum.clone(),
                        first_steps: first_steps.clone(),
                    }
            }
            (Self::End { winner, reason, .. }, found) => {
                *found
                    == Found::End {
                        winner: *winner,
                        reason: *reason,
                    }
            }
            (
                Self::Game {
                    winner,
                    reason,
                    plies_played,
                    ..
                },
                Found::Game {
                    winner: found_winner,
                    reason: found_reason,
                    plies_played: found_plies,
                    ..
                },
            ) => (winner, reason, plies_played) == (found_winner, found_reason, found_plies),
            _ => false,
        }
    }
}

/// The position of a case. Cases may hold boards that no game reaches.
fn read_position(board: &str, side: SideLetter) -> Result<Position, NotationError> {
    Ok(Position::in_play(parse_board(board)?, side.into()))
}

/// Why a turn handed in as text was not played.
fn refusal(error: impl Into<NotationReason>) -> String {
    error.into().to_string()
}

fn try_turn(text: &str, position: &Position) -> Found {
    let end = parse_turn(text, position)
        .map_err(|error| error.to_string())
        .and_then(|turn| {
            position
                .after_turn(&turn, &History::default())
                .map_err(refusal)
        });
    Found::Turn {
        legal: end.is_ok(),
        result: end.as_ref().ok().map(|end| format_board(end.board())),
        fault: end.err(),
    }
}

/// Plays a game until it is over, a turn is illegal, or the moves are used up.
fn play_out(moves: &[String]) -> Found {
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
            return Found::Game {
                winner: Some(winner.into()),
                reason: Some(reason),
                plies_played: index + 1,
                fault: played.err(),
            };
        }
    }
    Found::Game {
        winner: None,
        reason: None,
        plies_played: moves.len(),
        fault: None,
    }
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
    fn answers_say_what_came_out() {
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
