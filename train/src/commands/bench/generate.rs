//! Generated shards of random games.

use crate::error::TrainError;
use engine::encoding::ENCODING_VERSION;
use engine::progress::Progress;
use engine::record::{
    EvaluatorId, GameId, Header, ShardName, ShardWriter, digest, samples::random_game,
};
use rayon::prelude::*;
use std::path::Path;

/// Games of a shard.
const GAMES: u64 = 100;

/// Turns of a game at most: about as in self-play.
const TURNS: usize = 86;

/// Shards that are written before their rows are counted.
const SHARDS_AT_ONCE: u32 = 16;

/// Writes games of random steps to a folder, in parallel, until they have so many rows.
pub(super) fn write_shards(folder: &Path, rows: u64) -> Result<(), TrainError> {
    let mut progress = Progress::new("writing random games", rows);
    let (mut written, mut sequence) = (0, 0);
    while written < rows {
        let shards = sequence..sequence + SHARDS_AT_ONCE;
        let counts = shards
            .into_par_iter()
            .map(|sequence| write(folder, sequence));
        written += counts.sum::<Result<u64, TrainError>>()?;
        sequence += SHARDS_AT_ONCE;
        progress.show(written.min(rows), String::new);
    }
    progress.finish(&format!("{written} rows"));
    Ok(())
}

/// Writes one shard; how many rows it has.
fn write(folder: &Path, sequence: u32) -> Result<u64, TrainError> {
    let evaluator = EvaluatorId {
        name: "random".into(),
        identity: "random".into(),
    };
    let header = Header {
        encoding_version: ENCODING_VERSION,
        program_version: env!("CARGO_PKG_VERSION").into(),
        evaluator,
        config_digest: digest(b""),
        generator: 0,
    };
    let name = ShardName {
        generator: 0,
        sequence,
    };
    let mut writer = ShardWriter::create(folder, name, &header)?;
    let mut rows = 0;
    for game in 0..GAMES {
        let id = GameId {
            generator: 0,
            counter: u64::from(sequence) * GAMES + game,
        };
        let record = random_game(id, 0, TURNS);
        rows += record.row_count();
        writer.push(&record)?;
    }
    writer.finish()?;
    Ok(rows)
}
