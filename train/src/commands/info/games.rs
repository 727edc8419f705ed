//! The number of a run's games and rows, and the speed at which they come. Of the shards only lengths and a few games are read; of
//! many shards a sample is counted.

use engine::record::{IMPORTED, ShardError, ShardFault, ShardReader, list_shards};
use engine::run::{GameSpeed, Problems};
use rayon::prelude::*;
use serde::Serialize;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The shards that are counted; of more, an even sample of this size.
const COUNTED_SHARDS: usize = 256;

/// About how many games are read for the mean number of rows.
const READ_GAMES: usize = 128;

/// The games of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct GamesReport {
    pub(super) shards: u64,
    pub(super) shard_bytes: u64,
    pub(super) games: u64,
    /// Whether `games` is an estimate from a sample of the shards.
    pub(super) is_estimated: bool,
    /// From a sample of the games.
    pub(super) rows_a_game: Option<f64>,
    pub(super) speed: Option<GameSpeed>,
}

/// A shard, unread.
#[derive(Debug, Clone, PartialEq)]
struct Shard {
    generator: u32,
    path: PathBuf,
    bytes: u64,
    written: SystemTime,
}

/// The counts of one shard.
struct Counted {
    bytes: u64,
    games: u64,
    /// The games that were read.
    read: u64,
    rows: u64,
}

impl GamesReport {
    /// Of the shards of a folder, which may be missing. A shard that can't be read is left out, with a problem.
    pub(super) fn of(folder: &Path, problems: &mut Problems) -> Self {
        let shards = list(folder, problems);
        let sample = evenly(&shards, COUNTED_SHARDS);
        let counts: Vec<Result<Counted, ShardError>> = sample
            .par_iter()
            .map(|shard| count(shard, READ_GAMES.div_ceil(sample.len())))
            .collect();
        let mut sum = Counted {
            bytes: 0,
            games: 0,
            read: 0,
            rows: 0,
        };
        let mut games: Vec<Option<f64>> = Vec::with_capacity(counts.len());
        for counted in counts {
            games.push(counted.as_ref().ok().map(|it| it.games as f64));
            match counted {
                Ok(counted) => {
                    sum.bytes += counted.bytes;
                    sum.games += counted.games;
                    sum.read += counted.read;
                    sum.rows += counted.rows;
                }
                // A generator has just removed it as too old.
                Err(error) if is_gone(&error) => {}
                Err(error) => problems.add(error.to_string()),
            }
        }
        let is_estimated = sample.len() < shards.len();
        let shard_bytes = shards.iter().map(|shard| shard.bytes).sum();
        let games_a_byte = sum.games as f64 / sum.bytes.max(1) as f64;
        if is_estimated {
            games = vec![None; shards.len()];
        }
        let written = shards.iter().zip(games).map(|(shard, games)| {
            let games = games.unwrap_or(shard.bytes as f64 * games_a_byte);
            (shard.generator, (shard.written, games))
        });
        // The speed is that of self-play.
        let importers = importers(&shards);
        let written = written.filter(|(generator, _)| !importers.contains(generator));
        let written = written.map(|(_, shard)| shard);
        Self {
            shards: shards.len() as u64,
            shard_bytes,
            games: if is_estimated {
                (shard_bytes as f64 * games_a_byte).round() as u64
            } else {
                sum.games
            },
            is_estimated,
            rows_a_game: (sum.read > 0).then(|| sum.rows as f64 / sum.read as f64),
            speed: GameSpeed::of(&written.collect::<Vec<_>>(), SystemTime::now()),
        }
    }

    /// The rows of all games, for validation and training.
    pub(super) fn rows(&self) -> Option<u64> {
        Some((self.rows_a_game? * self.games as f64).round() as u64)
    }
}

fn is_gone(error: &ShardError) -> bool {
    matches!(&error.fault, ShardFault::Io(error) if error.kind() == ErrorKind::NotFound)
}

fn list(folder: &Path, problems: &mut Problems) -> Vec<Shard> {
    if !folder.exists() {
        return Vec::new();
    }
    let listed = list_shards(folder).unwrap_or_else(|error| {
        problems.add(error.to_string());
        Default::default()
    });
    let mut shards = Vec::new();
    for (name, path) in listed {
        let about = std::fs::metadata(&path);
        match about.and_then(|about| Ok((about.len(), about.modified()?))) {
            Ok((bytes, written)) => shards.push(Shard {
                generator: name.generator,
                path,
                bytes,
                written,
            }),
            Err(error) => problems.add_unless_gone(&path, &error),
        }
    }
    shards
}

/// The generators' numbers whose games were imported. An import has a number of its own, so one shard of each number is opened.
fn importers(shards: &[Shard]) -> HashSet<u32> {
    let by_number = shards.par_chunk_by(|one, next| one.generator == next.generator);
    let importers = by_number.filter_map(|shards| {
        let open = |shard: &Shard| ShardReader::open(&shard.path).ok();
        let reader = shards.iter().find_map(open)?;
        let is_imported = reader.header().evaluator.name == IMPORTED;
        shards.first().filter(|_| is_imported)
    });
    importers.map(|shard| shard.generator).collect()
}

/// All items, or an even sample of `most`.
fn evenly<T>(all: &[T], most: usize) -> Vec<&T> {
    let step = (all.len() as f64 / most.max(1) as f64).max(1.0);
    let places = (0..most.min(all.len())).map(|place| ((place as f64 + 0.5) * step) as usize);
    places.filter_map(|place| all.get(place)).collect()
}

fn count(shard: &Shard, read_games: usize) -> Result<Counted, ShardError> {
    let mut reader = ShardReader::open(&shard.path)?;
    let offsets = reader.frame_offsets()?;
    let mut counted = Counted {
        bytes: shard.bytes,
        games: offsets.len() as u64,
        read: 0,
        rows: 0,
    };
    for &offset in evenly(&offsets, read_games) {
        counted.read += 1;
        counted.rows += reader.read_at(offset)?.row_count();
    }
    Ok(counted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::samples::{game, header, set_written, write_games, write_shard};
    use engine::record::{EvaluatorId, Header, ShardName};

    #[test]
    fn games_and_rows_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        write_games(folder.path(), 12, 12);
        let mut problems = Problems::default();
        let report = GamesReport::of(folder.path(), &mut problems);
        assert_eq!((report.games, report.is_estimated), (12, false));
        let mut rows = 0;
        for path in list_shards(folder.path()).unwrap().values() {
            for record in ShardReader::open(path).unwrap() {
                rows += record.unwrap().row_count();
            }
        }
        assert!(rows > 0);
        assert_eq!(report.rows(), Some(rows));
        assert!(problems.is_empty());
        let none = GamesReport::of(&folder.path().join("none"), &mut problems);
        assert_eq!(none, GamesReport::default());
        assert!(problems.is_empty());
    }

    #[test]
    fn a_shard_that_can_t_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        write_games(folder.path(), 4, 12);
        let broken = folder.path().join("777-000000.shard");
        std::fs::write(&broken, b"Tusker\r\n").unwrap();
        let mut problems = Problems::default();
        let report = GamesReport::of(folder.path(), &mut problems);
        assert_eq!(report.games, 4);
        assert!(problems.to_string().contains("777-000000.shard"));
    }

    #[test]
    fn imported_games_are_no_self_play_even_where_their_shard_is_not_counted() {
        let folder = tempfile::tempdir().unwrap();
        let name = |generator, sequence| ShardName {
            generator,
            sequence,
        };
        let games = [game(0, 4)];
        let played = write_shard(folder.path(), name(0, 0), &header(), &games);
        // All self-play at one time: it has no speed.
        set_written(&played, 1_000_000);
        let own = (1..3).map(|sequence| name(0, sequence));
        for name in own.chain((0..298).map(|sequence| name(2, sequence))) {
            std::fs::hard_link(&played, folder.path().join(name.to_string())).unwrap();
        }
        let places: Vec<usize> = (0..302).collect();
        assert!(!evenly(&places, COUNTED_SHARDS).contains(&&3));
        let by_import = Header {
            evaluator: EvaluatorId {
                name: IMPORTED.into(),
                identity: "games".into(),
            },
            generator: 1,
            ..header()
        };
        let imported = write_shard(folder.path(), name(1, 0), &by_import, &games);
        set_written(&imported, 1_003_600);
        let report = GamesReport::of(folder.path(), &mut Problems::default());
        assert_eq!((report.shards, report.is_estimated), (302, true));
        assert_eq!(report.speed, None);
    }

    #[test]
    fn a_sample_lies_evenly_among_all() {
        let all: Vec<u32> = (0..1_000).collect();
        let sample = evenly(&all, 4);
        assert_eq!(sample, [&125, &375, &625, &875]);
        assert_eq!(evenly(&all[..3], 4), [&0, &1, &2]);
        assert_eq!(evenly(&all[..0], 4), [&0; 0]);
        assert_eq!(evenly(&all, 1_000).len(), 1_000);
    }
}
