//! Games of random legal steps, for tests and measurements: whole and valid, but nothing that a network should learn from.

use super::codec;
use super::game::{
    Ending, EvaluatorId, FORMAT_VERSION, GameId, GameRecord, Header, RowRecord, SearchKind,
    SearchRecord, Start, TurnOrigin, TurnRecord,
};
use super::policy::quantize_policy;
use super::shard::{ContentToWrite, MAGIC, Packer, frame_of};
use crate::encoding::ENCODING_VERSION;
use arimaa::rules::{Action, Game, StepState, Steps, Turn};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// A game of uniformly drawn legal actions, with a uniform policy row for every step state: won, or unfinished after
/// `max_turns` turns. Seed and id determine it.
pub fn random_game(id: GameId, seed: u64, max_turns: usize) -> GameRecord {
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ u64::from(id.generator));
    random.set_stream(id.counter);
    let mut game = Game::new();
    let mut turns = Vec::new();
    while game.outcome().is_none() && turns.len() < max_turns {
        let (turn, record) = random_turn(&game, &mut random);
        game.play_unchecked(turn);
        turns.push(record);
    }
    let last_search = turns.iter().rev().find_map(TurnRecord::search);
    let value = last_search.map(|search| search.value);
    GameRecord {
        id,
        seed,
        start: Start::Empty,
        evaluators: vec![EvaluatorId {
            name: "sample".into(),
            identity: "sample".into(),
        }],
        ending: match game.outcome() {
            Some(outcome) => Ending::Won(outcome),
            None => Ending::Unfinished { value },
        },
        turns,
        resignation_waived: None,
    }
}

/// A game's content as in its frame, before compression.
///
/// # Panics
/// Never with a record that fits a frame, as those of [`random_game`] do.
pub fn content_of(record: &GameRecord) -> Vec<u8> {
    let mut content = Vec::new();
    codec::encode(&ContentToWrite::Game(record), &mut content)
        .unwrap_or_else(|error| panic!("{error:?}"));
    content
}

/// The bytes of a shard with a sound header, frames that hold these contents, whatever they are, and an end that counts them: lengths
/// and checksums are right everywhere.
///
/// # Panics
/// Never with contents that fit frames.
pub fn shard_with(contents: &[&[u8]]) -> Vec<u8> {
    let header = Header {
        encoding_version: ENCODING_VERSION,
        program_version: "0".into(),
        evaluator: EvaluatorId::default(),
        config_digest: String::new(),
        generator: 0,
    };
    let mut packer = Packer::new().unwrap_or_else(|fault| panic!("{fault}"));
    let mut frame = |content: &ContentToWrite| {
        packer
            .pack(content)
            .unwrap_or_else(|fault| panic!("{fault}"))
    };
    let (header, games) = (ContentToWrite::header(&header), contents.len() as u64);
    let mut bytes = [&MAGIC[..], &FORMAT_VERSION.to_le_bytes(), &frame(&header)].concat();
    for content in contents {
        let payload = zstd::bulk::compress(content, 1).unwrap_or_else(|error| panic!("{error}"));
        bytes.extend(frame_of(&payload).unwrap_or_else(|fault| panic!("{fault}")));
    }
    bytes.extend(frame(&ContentToWrite::End { games }));
    bytes
}

/// One turn of a game that is not over.
fn random_turn(game: &Game, random: &mut ChaCha8Rng) -> (Turn, TurnRecord) {
    let side = game.position().side();
    let mut state = StepState::new(game.position());
    let mut record = TurnRecord {
        actions: Vec::new(),
        origin: TurnOrigin::Search(SearchRecord {
            evaluator: 0,
            kind: SearchKind::Full,
            budget: 1,
            evaluations: 1,
            visits: 1,
            value: random.random_range(0.0..=1.0),
            network_value: 0.5,
        }),
        rows: Vec::new(),
    };
    let mut played = Vec::new();
    while !state.is_complete() {
        let legal = state.legal_actions(game.history());
        let actions: Vec<Action> = legal.in_index_order(side).collect();
        record.rows.push(RowRecord {
            step: record.actions.len() as u8,
            visits: actions.len() as u32,
            // Never empty: a game that is not over has a legal turn, and each legal action begins one.
            policy: quantize_policy(&vec![1.0; actions.len()]).unwrap_or_default(),
            surprise: 0.0,
            weight: 1.0,
        });
        let action = actions[random.random_range(0..actions.len())];
        if action == Action::End {
            break;
        }
        played.push(action);
        record.actions.push(action.index(side) as u16);
        state = state.after(action);
    }
    let turn = Turn::from_actions(&played, game.position());
    // Eight legal placements are a setup.
    (turn.unwrap_or(Turn::Steps(Steps::new())), record)
}
