//! Shards for tests: random games whose rows can be told from each other by their weights.

use super::Batch;
use engine::encoding::{ENCODING_VERSION, InputRow};
use engine::shard::{
    Evaluator, GameId, GameRecord, Header, ShardName, ShardWriter, digest, quantize_policy,
    samples::random_game,
};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::path::Path;

/// More rows than a game of these tests has.
const ROWS: usize = 10_000;

/// A random game with peaked random targets, its rows' weights being `1 + ROWS * counter + row`.
pub(crate) fn game(counter: u64, max_turns: usize) -> GameRecord {
    let id = GameId {
        generator: 0,
        counter,
    };
    let mut record = random_game(id, 9, max_turns);
    let mut random = ChaCha8Rng::seed_from_u64(counter);
    let rows = record.turns.iter_mut().flat_map(|turn| &mut turn.rows);
    for (number, row) in rows.enumerate() {
        let shares: Vec<f32> = (0..row.policy.len())
            .map(|_| random.random::<f32>().powi(8) + 1e-4)
            .collect();
        row.policy = quantize_policy(&shares).unwrap();
        row.weight = (1 + ROWS * counter as usize + number) as f32;
    }
    record
}

/// Writes games of at most `max_turns` turns to a folder, ten a shard, and returns them.
pub(crate) fn write_games(folder: &Path, games: u64, max_turns: usize) -> Vec<GameRecord> {
    let header = Header {
        encoding_version: ENCODING_VERSION,
        program_version: "0.0.0".into(),
        evaluator: Evaluator {
            name: "uniform".into(),
            identity: "uniform".into(),
        },
        config_digest: digest(b""),
        generator: 0,
    };
    let records: Vec<_> = (0..games).map(|counter| game(counter, max_turns)).collect();
    for (sequence, records) in records.chunks(10).enumerate() {
        let name = ShardName {
            generator: 0,
            sequence: sequence as u32,
        };
        let mut writer = ShardWriter::create(folder, name, &header).unwrap();
        for record in records {
            writer.push(record).unwrap();
        }
        writer.finish().unwrap();
    }
    records
}

/// The game and the row in it that each row of a batch is.
pub(crate) fn identities(batch: &Batch) -> Vec<((usize, usize), InputRow)> {
    let number = |weight: &f32| *weight as usize - 1;
    let places = batch
        .weight
        .iter()
        .map(number)
        .map(|number| (number / ROWS, number % ROWS));
    places.zip(batch.inputs.iter().copied()).collect()
}

/// The batch with a value that is no number.
pub(crate) fn spoiled(batch: &Batch) -> Batch {
    let mut batch = batch.clone();
    batch.value[3] = f32::NAN;
    batch
}
