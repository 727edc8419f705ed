//! One game, read from its file and replayed.

use super::entry::{FileKind, GameEnd, GameEntry, IndexedFile};
use super::matches::{hash_text, record_path};
use super::scan::is_absent;
use super::shards::networks_of;
use crate::inspect::format_action;
use crate::pit::{RecordError, RecordRemarks, read_record};
use crate::serve::error::{ApiError, ApiResult};
use crate::serve::rules::{GameText, board_text};
use arimaa::notation::{format_position, format_record, format_turn, parse_record};
use arimaa::rules::{Action, Game, Position, Side};
use engine::record::{
    Ending, EvaluatorId, GameId, GameRecord, POLICY_TOTAL, ReplayError, ReplayedRow, ReplayedTurn,
    ShardError, ShardFault, ShardReader, Start, StartPosition, TurnOrigin, TurnRecord, replay,
};
use serde::Serialize;
use std::cmp::Reverse;
use std::path::Path;

const REMOVED: &str = "removed";
const REPLACED: &str = "replaced; ask again in a second";

/// The actions of a policy target that are shown.
const ACTIONS_SHOWN: usize = 10;

/// The answer of `GET /api/games/ID`.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct GameDetail {
    game: GameText,
    id: String,
    source: String,
    networks: Vec<String>,
    winner: Option<Side>,
    ending: GameEnd,
    seed: u64,
    /// As standard text.
    record: String,
    first_label: String,
    turns: Vec<TurnDetail>,
    /// One before each turn and one behind the last.
    boards: Vec<String>,
}

/// A turn and how it was chosen. Win probabilities are Gold's.
#[derive(Debug, PartialEq, Serialize)]
struct TurnDetail {
    label: String,
    turn: String,
    origin: Origin,
    network: Option<String>,
    gold_value: Option<f32>,
    network_gold_value: Option<f32>,
    visits: Option<u32>,
    evaluations: Option<u32>,
    /// The mean over its rows.
    surprise: Option<f32>,
    rows: Vec<RowDetail>,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Origin {
    Given,
    Policy,
    Search,
}

/// A step state to train on.
#[derive(Debug, PartialEq, Serialize)]
struct RowDetail {
    step: u8,
    visits: u32,
    weight: f32,
    surprise: f32,
    policy: Vec<ActionShare>,
}

#[derive(Debug, PartialEq, Serialize)]
struct ActionShare {
    action: String,
    share: f64,
}

impl GameDetail {
    /// Reads a game of the index.
    ///
    /// # Errors
    /// It is missing if its file was removed or replaced. Else its shard or record is damaged, or the game breaks the rules.
    pub(super) fn read(root: &Path, file: &IndexedFile, game: &GameEntry) -> ApiResult<Self> {
        match file.file.kind {
            FileKind::Shard => Self::read_in_shard(root, file, game),
            FileKind::Results => Self::read_in_match(root, file, game),
        }
    }

    fn read_in_shard(root: &Path, file: &IndexedFile, game: &GameEntry) -> ApiResult<Self> {
        let (id, path) = (game.id, file.file.path.as_str());
        let read = ShardReader::open(root.join(path));
        let record = read.and_then(|mut shard| shard.read_at(game.place));
        match record {
            Ok(record) if record.id == id => Self::of(&record, &file.file.source)
                .map_err(|fault| of_shard(path, game.place, ShardFault::Game(fault))),
            Ok(_) => Err(missing(id, path, REPLACED)),
            Err(error) if matches!(&error.fault, ShardFault::Io(io) if is_absent(io)) => {
                Err(missing(id, path, REMOVED))
            }
            Err(error) => Err(of_shard(path, error.offset, error.fault)),
        }
    }

    fn read_in_match(root: &Path, file: &IndexedFile, game: &GameEntry) -> ApiResult<Self> {
        let (id, path) = (game.id, record_path(&file.file, game.id.counter));
        let fault = |reason: String| ApiError::failed(format!("{path}: {reason}"));
        let text = match read_record(&root.join(&path), &hash_text(game.place)) {
            Ok(text) => text,
            Err(RecordError::Io(error)) if is_absent(&error) => {
                return Err(missing(id, &path, REMOVED));
            }
            Err(RecordError::Another) => return Err(missing(id, &path, REPLACED)),
            Err(error) => return Err(fault(error.to_string())),
        };
        let played = parse_record(&text).map_err(|error| fault(error.to_string()))?;
        let remarks = RecordRemarks::read(&text);
        let record = record_of_match(game, &played, remarks.header.seed);
        let detail = Self::of(&record, &file.file.source);
        let mut detail = detail.map_err(|error| fault(error.to_string()))?;
        detail.add_reports(&remarks, played.start());
        Ok(detail)
    }

    fn of(record: &GameRecord, source: &str) -> Result<Self, ReplayError> {
        let replayed = replay(record)?;
        let mut game = record.new_game()?;
        let mut boards = vec![board_text(game.position().board())];
        let mut turns = Vec::with_capacity(replayed.len());
        for (index, turn) in replayed.iter().enumerate() {
            turns.push(TurnDetail::of(record, index, turn));
            game.play_unchecked(turn.turn.clone());
            boards.push(board_text(game.position().board()));
        }
        let is_position = matches!(record.start, Start::Position(_));
        Ok(Self {
            game: GameText {
                start: is_position.then(|| format_position(game.start())),
                turns: turns.iter().map(|turn| turn.turn.clone()).collect(),
            },
            id: record.id.to_string(),
            source: source.to_owned(),
            networks: networks_of(record).into_iter().map(str::to_owned).collect(),
            winner: record.ending.winner(),
            ending: record.ending.into(),
            seed: record.seed,
            record: format_record(&game),
            first_label: record.turn_number(0).to_string(),
            turns,
            boards,
        })
    }

    /// Adds what the players of a match said of their turns. Turns of which nothing is said stay given: the opening's, and those of
    /// players without values.
    fn add_reports(&mut self, remarks: &RecordRemarks, start: &Position) {
        let players = remarks.header.players();
        self.networks = players.map(str::to_owned).to_vec();
        let mut mover = start.side();
        for (turn, info) in self.turns.iter_mut().zip(&remarks.turns) {
            if let Some(info) = info {
                turn.origin = if info.is_sampled {
                    Origin::Policy
                } else {
                    Origin::Search
                };
                turn.network = Some(players[mover.index()].to_owned());
                turn.gold_value = Some(info.value);
                turn.evaluations = Some(info.evaluations);
            }
            mover = mover.opponent();
        }
    }
}

fn missing(id: GameId, path: &str, why: &str) -> ApiError {
    ApiError::missing(format!(
        "game {id} is no longer there: {path} has been {why}"
    ))
}

/// A fault of a shard, named as in the run's folder.
fn of_shard(path: &str, offset: u64, fault: ShardFault) -> ApiError {
    ApiError::failed(ShardError {
        path: path.into(),
        frame: None,
        offset,
        fault,
    })
}

/// A match's game as one of a shard, without what the players said.
fn record_of_match(entry: &GameEntry, played: &Game, seed: u64) -> GameRecord {
    let start = match *played.start() {
        Position::INITIAL => Start::Empty,
        position => Start::Position(StartPosition::new(&position)),
    };
    let ending = match (played.outcome(), entry.end, entry.winner) {
        (Some(outcome), ..) => Ending::Won(outcome),
        (None, GameEnd::Resigned, Some(winner)) => Ending::Resigned { winner },
        (None, _, Some(winner)) => Ending::Forfeited { winner },
        (None, _, None) => Ending::Unfinished { value: None },
    };
    let mut mover = played.start().side();
    let turns = played.turns().iter().map(|turn| {
        let record = TurnRecord::given(turn, mover);
        mover = mover.opponent();
        record
    });
    GameRecord {
        id: entry.id,
        seed,
        start,
        evaluators: Vec::new(),
        turns: turns.collect(),
        ending,
        resignation_waived: None,
    }
}

impl TurnDetail {
    fn of(record: &GameRecord, index: usize, turn: &ReplayedTurn) -> Self {
        let evaluator = turn.origin.evaluator().map(usize::from);
        let evaluator = evaluator.and_then(|place| record.evaluators.get(place));
        let search = turn.origin.search();
        // 0 where it was not kept.
        let evaluations = search.map(|search| search.evaluations);
        let rows: Vec<RowDetail> = turn.rows.iter().map(RowDetail::of).collect();
        let surprise: f32 = rows.iter().map(|row| row.surprise).sum();
        Self {
            label: record.turn_number(index).to_string(),
            turn: format_turn(&turn.turn, &turn.position),
            origin: match turn.origin {
                TurnOrigin::Given => Origin::Given,
                TurnOrigin::Policy { .. } => Origin::Policy,
                TurnOrigin::Search(_) => Origin::Search,
            },
            network: evaluator.map(|EvaluatorId { name, .. }| name.clone()),
            gold_value: search.map(|search| search.value),
            network_gold_value: match turn.origin {
                TurnOrigin::Given => None,
                TurnOrigin::Policy { network_value, .. } => Some(network_value),
                TurnOrigin::Search(search) => Some(search.network_value),
            },
            visits: search.map(|search| search.visits),
            evaluations: evaluations.filter(|&evaluations| evaluations > 0),
            surprise: (!rows.is_empty()).then(|| surprise / rows.len() as f32),
            rows,
        }
    }
}

impl RowDetail {
    fn of(row: &ReplayedRow) -> Self {
        let actions = row.legal.in_index_order(row.state.side());
        let shares = actions.zip(row.policy.iter().copied());
        let mut shares: Vec<(Action, u16)> = shares.filter(|&(_, part)| part > 0).collect();
        // A stable sort: equal ones stay in the order of the policy.
        shares.sort_by_key(|&(_, part)| Reverse(part));
        shares.truncate(ACTIONS_SHOWN);
        let policy = shares.into_iter().map(|(action, part)| ActionShare {
            action: format_action(action, row),
            share: f64::from(part) / f64::from(POLICY_TOTAL),
        });
        Self {
            step: row.state.steps_used(),
            visits: row.visits,
            weight: row.weight,
            surprise: row.surprise,
            policy: policy.collect(),
        }
    }
}
