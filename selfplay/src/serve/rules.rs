//! Positions, legal steps and records: the rules as the page sees them.

use super::error::{ApiError, ApiResult};
use crate::aei::known_setup;
use arimaa::notation::{
    TurnLabel, captured, format_board, format_position, format_record, format_step,
    format_step_with_capture, format_turn, parse_position, parse_record, parse_turn,
};
use arimaa::rules::{Board, Game, Outcome, Pending, Phase, Position, Side, StepState, Turn};
use serde::{Deserialize, Serialize};

/// The most turns of a game in a request.
const MAX_TURNS: usize = 2_000;

/// A game in a request or an answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GameText {
    /// The first position; none for the empty board.
    #[serde(default)]
    pub(super) start: Option<String>,
    #[serde(default)]
    pub(super) turns: Vec<String>,
}

impl GameText {
    /// The game, played under the rules.
    pub(super) fn game(&self) -> ApiResult<Game> {
        if self.turns.len() > MAX_TURNS {
            return Err(ApiError::wrong(format!(
                "a game here has at most {MAX_TURNS} turns"
            )));
        }
        let mut game = match &self.start {
            Some(text) => Game::from_position(parse_position(text).map_err(ApiError::wrong)?),
            None => Game::new(),
        };
        for text in &self.turns {
            let label = TurnLabel::due(&game);
            let wrong =
                |error: &dyn std::fmt::Display| ApiError::wrong(format!("turn {label}: {error}"));
            let turn = parse_turn(text, game.position()).map_err(|error| wrong(&error))?;
            game.play(&turn).map_err(|error| wrong(&error))?;
        }
        Ok(game)
    }

    /// The game, which must not be over.
    pub(super) fn unfinished_game(&self) -> ApiResult<Game> {
        let game = self.game()?;
        match game.outcome() {
            None => Ok(game),
            Some(_) => Err(ApiError::wrong(
                "the game is over: search a position before its end",
            )),
        }
    }

    pub(super) fn of(game: &Game) -> Self {
        let mut position = *game.start();
        let turns = game.turns().iter().map(|turn| {
            let text = format_turn(turn, &position);
            position = position.after_turn_unchecked(turn);
            text
        });
        Self {
            turns: turns.collect(),
            start: (*game.start() != Position::INITIAL).then(|| format_position(game.start())),
        }
    }
}

/// The squares of a board from a8 to h1: a letter for each piece, and blanks.
pub(super) fn board_text(board: &Board) -> String {
    let text = format_board(board);
    text.trim_matches(['[', ']']).to_owned()
}

/// `POST /api/state`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StateRequest {
    game: GameText,
    #[serde(default)]
    steps: String,
}

/// A position inside a turn.
#[derive(Debug, Serialize)]
pub(super) struct StateAnswer {
    board: String,
    position: String,
    side: Side,
    phase: Phase,
    label: String,
    steps: Vec<String>,
    steps_left: u8,
    legal: Vec<LegalStep>,
    pending: Option<&'static str>,
    can_end: bool,
    turn: String,
    result: Option<Outcome>,
    record: String,
}

#[derive(Debug, Serialize)]
struct LegalStep {
    step: String,
    from: String,
    to: String,
    piece: char,
    captures: Option<Captured>,
}

#[derive(Debug, Serialize)]
struct Captured {
    square: String,
    piece: char,
}

/// Plays a game and the steps of its next turn.
pub(super) fn state(request: &StateRequest) -> ApiResult<StateAnswer> {
    let game = request.game.game()?;
    let result = game.outcome();
    let mut state = StepState::new(game.position());
    let mut steps = Vec::new();
    for step in steps_of(&request.steps, game.position())? {
        if result.is_some() {
            return Err(ApiError::wrong("the game is over"));
        }
        state
            .check_step(step, game.history())
            .map_err(ApiError::wrong)?;
        steps.push(format_step_with_capture(step, &state));
        state = state.after_step(step);
    }
    let is_open = result.is_none() && state.phase() == Phase::Play && !state.is_complete();
    let legal = is_open.then(|| state.legal_actions(game.history()));
    Ok(StateAnswer {
        board: board_text(state.board()),
        position: format_position(game.position()),
        side: state.side(),
        phase: state.phase(),
        label: TurnLabel::due(&game).to_string(),
        steps_left: match state.phase() {
            Phase::Play => state.steps_left(),
            Phase::Setup => 0,
        },
        legal: legal
            .iter()
            .flat_map(|legal| legal.steps())
            .filter_map(|step| {
                Some(LegalStep {
                    step: format_step(step, &state),
                    from: step.from.to_string(),
                    to: step.to()?.to_string(),
                    piece: state.board().piece_at(step.from)?.letter(),
                    captures: captured(step, &state).map(|(square, piece)| Captured {
                        square: square.to_string(),
                        piece: piece.letter(),
                    }),
                })
            })
            .collect(),
        pending: match state.pending() {
            Pending::Nothing => None,
            Pending::Push { .. } => Some("push"),
            Pending::Pull { .. } => Some("pull"),
        },
        can_end: state.phase() == Phase::Play && state.can_end(game.history()),
        turn: steps.join(" "),
        steps,
        result,
        record: format_record(&game),
    })
}

/// The steps of a turn that has begun.
fn steps_of(text: &str, position: &Position) -> ApiResult<Vec<arimaa::rules::Step>> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    if position.phase() == Phase::Setup {
        return Err(ApiError::wrong("a setup is sent as a whole turn"));
    }
    match parse_turn(text, position).map_err(ApiError::wrong)? {
        Turn::Steps(steps) => Ok(steps.to_vec()),
        Turn::Setup(_) => Err(ApiError::wrong("a setup is sent as a whole turn")),
    }
}

/// `POST /api/record`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordRequest {
    text: String,
}

/// A game and its boards.
#[derive(Debug, Serialize)]
pub(super) struct RecordAnswer {
    game: GameText,
    labels: Vec<String>,
    boards: Vec<String>,
}

/// Reads a record or a position.
pub(super) fn record(request: &RecordRequest) -> ApiResult<RecordAnswer> {
    let game = parse_record(&request.text).map_err(ApiError::wrong)?;
    if game.turns().len() > MAX_TURNS {
        return Err(ApiError::wrong(format!(
            "a game here has at most {MAX_TURNS} turns"
        )));
    }
    let first = TurnLabel::due(&Game::from_position(*game.start()));
    let mut position = *game.start();
    let mut boards = vec![board_text(position.board())];
    for turn in game.turns() {
        position = position.after_turn_unchecked(turn);
        boards.push(board_text(position.board()));
    }
    Ok(RecordAnswer {
        game: GameText::of(&game),
        labels: (0..game.turns().len())
            .map(|index| first.after(index).to_string())
            .collect(),
        boards,
    })
}

/// `GET /api/setup`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SetupRequest {
    side: Side,
}

/// A turn.
#[derive(Debug, Serialize)]
pub(super) struct SetupAnswer {
    turn: String,
}

/// A known setup, drawn at random.
pub(super) fn setup(request: &SetupRequest) -> ApiResult<SetupAnswer> {
    let rng = &mut rand::rng();
    let initial = Position::INITIAL;
    let gold = || known_setup(&initial, &mut rand::rng()).map(Turn::Setup);
    let position = match request.side {
        Side::Gold => Some(initial),
        Side::Silver => gold().map(|turn| initial.after_turn_unchecked(&turn)),
    };
    let setup = position.and_then(|position| Some((known_setup(&position, rng)?, position)));
    let (setup, position) = setup.ok_or_else(|| ApiError::failed("there is no known setup"))?;
    Ok(SetupAnswer {
        turn: format_turn(&Turn::Setup(setup), &position),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn ask(game: Value, steps: &str) -> ApiResult<Value> {
        let request = json!({ "game": game, "steps": steps });
        let answer = state(&serde_json::from_value(request).unwrap())?;
        Ok(serde_json::to_value(answer).unwrap())
    }

    #[test]
    fn a_push_must_be_completed() {
        let start = "g [r                                  Er                          R]";
        let game = json!({ "start": start });
        let before = ask(game.clone(), "").unwrap();
        assert_eq!(
            (&before["can_end"], &before["label"]),
            (&json!(false), &json!("2g"))
        );
        assert!(
            before["legal"]
                .as_array()
                .unwrap()
                .iter()
                .any(|step| step["step"] == "re4n")
        );
        let pushed = ask(game.clone(), "re4n").unwrap();
        assert_eq!(pushed["pending"], "push");
        let steps: Vec<&Value> = pushed["legal"]
            .as_array()
            .unwrap()
            .iter()
            .map(|step| &step["step"])
            .collect();
        assert_eq!(steps, ["Ed4e"]);
        let done = ask(game, "re4n Ed4e").unwrap();
        assert_eq!(
            (&done["can_end"], &done["steps_left"]),
            (&json!(true), &json!(2))
        );
    }

    #[test]
    fn captures_results_and_setups_are_told() {
        let capture = json!({ "start": "g [                                 H       r                     R]" });
        let answer = ask(capture, "rb3e").unwrap();
        assert_eq!(answer["turn"], "rb3e rc3x");
        let empty = ask(json!({}), "").unwrap();
        assert_eq!(
            (&empty["phase"], &empty["legal"], &empty["board"]),
            (&json!("setup"), &json!([]), &json!(" ".repeat(64)))
        );
        let goal = "g [       rR                                                       ]";
        let won = ask(json!({ "start": goal, "turns": ["Ra7n"] }), "").unwrap();
        assert_eq!(won["result"], json!({ "winner": "gold", "reason": "goal" }));
        assert_eq!(won["legal"], json!([]));
    }

    #[test]
    fn wrong_requests_are_named() {
        let empty = json!({});
        for (game, steps) in [
            (json!({ "start": "nonsense" }), ""),
            (json!({ "turns": ["Ra1n"] }), ""),
            (empty.clone(), "Ra2n"),
            (json!({ "turns": vec![""; 2_001] }), ""),
        ] {
            assert!(ask(game.clone(), steps).is_err(), "{game} {steps}");
        }
    }

    #[test]
    fn a_record_comes_back_with_its_boards() {
        let gold = setup(&serde_json::from_value(json!({ "side": "gold" })).unwrap())
            .unwrap()
            .turn;
        let silver = setup(&serde_json::from_value(json!({ "side": "silver" })).unwrap())
            .unwrap()
            .turn;
        let text = format!("1g {gold}\n1s {silver}\n");
        let read = record(&RecordRequest { text }).unwrap();
        assert_eq!(read.labels, ["1g", "1s"]);
        assert_eq!(
            (read.boards.len(), read.game.turns),
            (3, vec![gold, silver])
        );
        assert!(
            record(&RecordRequest {
                text: "1g Ra9".into()
            })
            .is_err()
        );
    }
}
