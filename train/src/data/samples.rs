//! Shards for tests: random games with distinguishable rows.

use super::batch::{Batch, Column};
use super::rows::{GameRows, RowRef};
use super::targets::TargetOptions;
use engine::encoding::{ENCODING_VERSION, InputRow, POLICY_SIZE};
use engine::record::{
    EvaluatorId, GameId, GameRecord, Header, POLICY_TOTAL, ShardName, ShardWriter, digest,
    quantize_policy, samples::random_game,
};
use network::Head;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A random game with peaked random targets, as if by a network.
pub(crate) fn game(counter: u64, max_turns: usize) -> GameRecord {
    let id = GameId {
        generator: 0,
        counter,
    };
    let mut record = random_game(id, 9, max_turns);
    record.evaluators[0].identity = digest(b"sample");
    let mut random = ChaCha8Rng::seed_from_u64(counter);
    let rows = record.turns.iter_mut().flat_map(|turn| &mut turn.rows);
    for row in rows {
        let shares: Vec<f32> = (0..row.policy.len())
            .map(|_| random.random::<f32>().powi(8) + 1e-4)
            .collect();
        row.policy = quantize_policy(&shares).unwrap();
    }
    record
}

/// Targets with a share of the search's value.
pub(crate) const fn targets(search_value_share: f32) -> TargetOptions {
    TargetOptions {
        search_value_share,
        short_horizon_turns: 6.0,
    }
}

/// The header of a shard.
pub(crate) fn header() -> Header {
    Header {
        encoding_version: ENCODING_VERSION,
        program_version: "0.0.0".into(),
        evaluator: EvaluatorId {
            name: "uniform".into(),
            identity: "uniform".into(),
        },
        config_digest: digest(b""),
        generator: 0,
    }
}

/// Writes some games to a shard.
pub(crate) fn write_shard(
    folder: &Path,
    name: ShardName,
    header: &Header,
    records: &[GameRecord],
) -> PathBuf {
    let mut writer = ShardWriter::create(folder, name, header).unwrap();
    for record in records {
        writer.push(record).unwrap();
    }
    writer.finish().unwrap()
}

/// Lets a file be written so many seconds after the epoch.
pub(crate) fn set_written(path: &Path, seconds: u64) {
    let file = std::fs::File::options().append(true).open(path).unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    file.set_modified(time).unwrap();
}

/// Writes games of at most `max_turns` turns to a folder, ten a shard, and returns them.
pub(crate) fn write_games(folder: &Path, games: u64, max_turns: usize) -> Vec<GameRecord> {
    let records: Vec<_> = (0..games).map(|counter| game(counter, max_turns)).collect();
    write_records(folder, &records);
    records
}

/// Writes games to a folder, ten a shard.
pub(crate) fn write_records(folder: &Path, records: &[GameRecord]) {
    for (sequence, records) in records.chunks(10).enumerate() {
        let name = ShardName {
            generator: 0,
            sequence: sequence as u32,
        };
        write_shard(folder, name, &header(), records);
    }
}

/// Finds which row of which game a row is: by its board, and where boards are equal (before the first placement) by its target.
pub(crate) struct Identities(HashMap<([u64; 12], Vec<u32>), (usize, usize)>);

impl Identities {
    pub(crate) fn of(records: &[GameRecord]) -> Self {
        let mut identities = HashMap::new();
        for (game, record) in records.iter().enumerate() {
            let rows = GameRows::all(record, targets(0.0)).unwrap();
            for (number, row) in rows.rows().enumerate() {
                let before = identities.insert(key_of(&row), (game, number));
                assert_eq!(before, None, "two rows are equal");
            }
        }
        Self(identities)
    }

    /// The game and the row in it.
    pub(crate) fn of_row(&self, row: &RowRef) -> (usize, usize) {
        self.0[&key_of(row)]
    }

    /// The game and the row in it that each row of a batch is.
    pub(crate) fn of_batch(&self, batch: &Batch) -> Vec<((usize, usize), InputRow)> {
        let Column::Numbers(policies) = &batch.targets[Head::Policy] else {
            panic!("policies are numbers");
        };
        let policies = policies.chunks_exact(POLICY_SIZE);
        let rows = batch.inputs.iter().zip(policies);
        let rows = rows.map(|(input, policy)| {
            let share = |&share: &f32| (share * POLICY_TOTAL as f32).round() as u32;
            (self.0[&key(input, policy.iter().map(share))], *input)
        });
        rows.collect()
    }
}

fn key_of(row: &RowRef) -> ([u64; 12], Vec<u32>) {
    key(row.input(), row.policy().iter().map(|&share| share.into()))
}

/// The same for a row and its mirror.
fn key(input: &InputRow, policy: impl Iterator<Item = u32>) -> ([u64; 12], Vec<u32>) {
    let board = |input: &InputRow| *input.planes.first_chunk::<12>().unwrap();
    let mut policy: Vec<u32> = policy.filter(|&share| share > 0).collect();
    policy.sort_unstable();
    (board(input).min(board(&input.mirror())), policy)
}

/// The batch with a value that is NaN.
pub(crate) fn spoiled(batch: &Batch) -> Batch {
    let mut batch = batch.clone();
    let Column::Numbers(values) = &mut batch.targets[Head::Value] else {
        panic!("values are numbers");
    };
    values[3] = f32::NAN;
    batch
}
