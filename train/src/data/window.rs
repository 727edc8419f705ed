//! The window: the newest games of some shards, and the reading of their rows.

use super::rows::{GameRows, rows_of_weight};
use super::targets::TargetOptions;
use crate::error::TrainError;
use engine::record::{GameRecord, ReplayError, ShardReader};
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Games that are read before the threads turn to other work, such as batches.
const GAMES_AT_ONCE: usize = 64;

/// About the bytes of a shard's path in memory.
const PATH_BYTES: usize = 256;

/// The place and the contents of a game.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Game {
    /// Its frame's first byte.
    pub(super) offset: u64,
    /// The sum of its rows' weights, in [`WEIGHT_UNITS`](super::rows::WEIGHT_UNITS)ths.
    pub(super) weight: u32,
    /// The bytes that its rows may take in a pool, at most.
    pub(super) bytes: u32,
}

const _: () = assert!(size_of::<Game>() == 16);

/// The games of one shard, in the order of its frames.
#[derive(Debug)]
pub(super) struct ShardGames {
    pub(super) path: PathBuf,
    pub(super) training: Box<[Game]>,
    pub(super) validation: Box<[Game]>,
}

/// The newest games of some shards. Training games are numbered from 0, oldest first.
#[derive(Debug)]
pub(crate) struct Window {
    folder: PathBuf,
    /// Oldest first.
    shards: Vec<Arc<ShardGames>>,
    /// The number of the training game behind the last one of each shard.
    ends: Vec<u32>,
    /// The training games of the oldest shard that are too old.
    skipped: u32,
    /// The validation games of the oldest shard that are too old.
    skipped_validation: usize,
    training_rows: u64,
}

/// The place of a shard in the window, and a game of it.
type Location = (usize, Game);

impl Window {
    /// The newest games of some shards (oldest first, none too old as a whole) with the weight `wanted`; `weight` is that of all
    /// training games.
    pub(super) fn new(
        folder: &Path,
        shards: Vec<Arc<ShardGames>>,
        mut weight: u64,
        wanted: u64,
    ) -> Result<Self, TrainError> {
        let mut window = Self {
            folder: folder.to_owned(),
            shards,
            ends: Vec::new(),
            skipped: 0,
            skipped_validation: 0,
            training_rows: 0,
        };
        if let Some(oldest) = window.shards.first() {
            for game in &oldest.training {
                if weight - u64::from(game.weight) < wanted {
                    break;
                }
                weight -= u64::from(game.weight);
                window.skipped += 1;
            }
            if window.skipped > 0 {
                let first = oldest.training.get(window.skipped as usize);
                let begin = first.map_or(u64::MAX, |game| game.offset);
                let validation = oldest.validation.iter();
                window.skipped_validation =
                    validation.take_while(|game| game.offset < begin).count();
            }
        }
        window.training_rows = rows_of_weight(weight);
        let mut end = 0;
        for shard in &window.shards {
            end += shard.training.len();
            window.ends.push((end - window.skipped as usize) as u32);
        }
        if window.games() == 0 {
            return Err(TrainError::NoGames {
                folder: folder.to_owned(),
            });
        }
        Ok(window)
    }

    /// The names of the shards that are read.
    pub(crate) fn shard_names(&self) -> impl Iterator<Item = &str> {
        let names = self
            .shards
            .iter()
            .filter_map(|shard| shard.path.file_name());
        names.filter_map(|name| name.to_str())
    }

    /// The folder of the shards.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The time since the newest shard was written, if its file still exists and states it.
    pub(crate) fn age(&self) -> Option<Duration> {
        let written = std::fs::metadata(&self.shards.last()?.path)
            .ok()?
            .modified()
            .ok()?;
        // After the clock was set back, it counts as new.
        Some(written.elapsed().unwrap_or_default())
    }

    /// All games of the window.
    pub(crate) fn games(&self) -> usize {
        let validation: usize = self.shards.iter().map(|shard| shard.validation.len()).sum();
        self.training_games() + validation - self.skipped_validation
    }

    /// The games that are trained on.
    pub(crate) fn training_games(&self) -> usize {
        self.ends.last().map_or(0, |&end| end as usize)
    }

    /// Their rows: the mean number that an epoch draws.
    pub(crate) fn training_rows(&self) -> u64 {
        self.training_rows
    }

    /// The bytes of the window's part of the index. The number does not depend on the folder's path, because the sizes of the pools
    /// follow from it.
    pub(crate) fn bytes(&self) -> u64 {
        let games = |shard: &Arc<ShardGames>| shard.training.len() + shard.validation.len();
        let games: usize = self.shards.iter().map(games).sum();
        let shard = size_of::<ShardGames>() + size_of::<(Arc<ShardGames>, u32)>() + PATH_BYTES;
        (games * size_of::<Game>() + self.shards.len() * shard) as u64
    }

    /// The bytes of the largest training game in a pool, at most, and the mean bytes of a row.
    pub(super) fn game_bytes(&self) -> (u64, u64) {
        let games = || self.shards.iter().flat_map(|shard| &shard.training);
        let games = || {
            games()
                .map(|game| u64::from(game.bytes))
                .skip(self.skipped as usize)
        };
        let mean = games().sum::<u64>().div_ceil(self.training_rows.max(1));
        (games().max().unwrap_or(0), mean)
    }

    /// The place of a training game.
    fn location(&self, game: u32) -> Location {
        let shard = self.ends.partition_point(|&end| end <= game);
        let begin = match shard {
            0 => 0,
            _ => self.ends[shard - 1],
        };
        let skipped = if shard == 0 { self.skipped } else { 0 };
        let game = self.shards[shard].training[(game - begin + skipped) as usize];
        (shard, game)
    }

    /// The index's entry of a training game.
    pub(super) fn game(&self, game: u32) -> Game {
        self.location(game).1
    }

    /// Reads some training games in parallel and maps each by `make`; the results are in the games' order.
    pub(super) fn read<Made: Send>(
        &self,
        games: &[u32],
        make: impl Fn(usize, &GameRecord) -> Result<Made, ReplayError> + Sync,
    ) -> Result<Vec<Made>, TrainError> {
        let locations: Vec<_> = games.iter().map(|&game| self.location(game)).collect();
        self.read_games(&locations, make)
    }

    /// The rows of the validation games, no more than about `limit` in all: whole games, the newest first.
    pub(crate) fn validation_rows(
        &self,
        limit: usize,
        targets: TargetOptions,
    ) -> Result<Vec<GameRows>, TrainError> {
        let limit = limit as u64;
        let mut weight = 0;
        let newest = self
            .shards
            .iter()
            .enumerate()
            .rev()
            .flat_map(|(number, shard)| {
                let skipped = if number == 0 {
                    self.skipped_validation
                } else {
                    0
                };
                let games = shard.validation[skipped..].iter().rev();
                games.map(move |&game| (number, game))
            });
        let locations: Vec<Location> = newest
            .take_while(|(_, game)| {
                let within = rows_of_weight(weight) < limit;
                weight += u64::from(game.weight);
                within
            })
            .collect();
        self.read_games(&locations, |_, record| GameRows::all(record, targets))
    }

    fn read_games<Made: Send>(
        &self,
        locations: &[Location],
        make: impl Fn(usize, &GameRecord) -> Result<Made, ReplayError> + Sync,
    ) -> Result<Vec<Made>, TrainError> {
        let mut all = Vec::with_capacity(locations.len());
        for some in locations.chunks(GAMES_AT_ONCE) {
            let first = all.len();
            let made: Vec<Made> = some
                .par_iter()
                .enumerate()
                .map_init(
                    || None,
                    |reader, (place, &location)| {
                        let record = self.read_game(reader, location)?;
                        make(first + place, &record).map_err(|error| TrainError::Game {
                            path: self.shards[location.0].path.clone(),
                            offset: location.1.offset,
                            error,
                        })
                    },
                )
                .collect::<Result<_, _>>()?;
            all.extend(made);
        }
        Ok(all)
    }

    /// Reads a game; `reader` is kept open for the next one, which may well be in the same shard.
    fn read_game(
        &self,
        reader: &mut Option<(usize, ShardReader)>,
        (shard, game): Location,
    ) -> Result<GameRecord, TrainError> {
        let open = match reader.take() {
            Some((number, open)) if number == shard => open,
            _ => ShardReader::open(&self.shards[shard].path)?,
        };
        let (_, open) = reader.insert((shard, open));
        Ok(open.read_at(game.offset)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Index;
    use crate::data::samples::{game, targets, write_games};

    fn open(folder: &Path, rows: u64, validation_share: f32) -> Result<Window, TrainError> {
        let mut index = Index::new(folder, validation_share);
        let names = index.list()?;
        index.window(&names, rows)
    }

    #[test]
    fn a_window_is_exactly_the_newest_games_that_hold_the_rows() {
        let folder = tempfile::tempdir().unwrap();
        let records = write_games(folder.path(), 25, 10);
        let games: Vec<_> = records
            .iter()
            .map(|record| GameRows::all(record, targets(0.0)).unwrap())
            .collect();
        let all: u64 = games.iter().map(|rows| rows.len() as u64).sum();
        for wanted in [1, 40, 41, 200, all / 2, all - 1, all, all + 1, u64::MAX] {
            let window = open(folder.path(), wanted, 0.0).unwrap();
            let mut rows = 0;
            let newest: Vec<_> = games
                .iter()
                .rev()
                .take_while(|game| {
                    let within = rows < wanted;
                    rows += if within { game.len() as u64 } else { 0 };
                    within
                })
                .collect();
            assert_eq!(window.games(), newest.len(), "{wanted} rows");
            assert_eq!(window.training_rows(), rows);
            let numbers: Vec<u32> = (0..newest.len() as u32).collect();
            let read = window
                .read(&numbers, |_, record| GameRows::all(record, targets(0.0)))
                .unwrap();
            assert!(read.iter().eq(newest.into_iter().rev()));
        }
    }

    #[test]
    fn validation_games_are_those_of_the_same_stretch() {
        let folder = tempfile::tempdir().unwrap();
        let records = write_games(folder.path(), 40, 6);
        let (all, newest) = (
            open(folder.path(), u64::MAX, 0.3).unwrap(),
            open(folder.path(), 500, 0.3).unwrap(),
        );
        let measured = |window: &Window| window.validation_rows(usize::MAX, targets(0.0)).unwrap();
        assert_eq!(all.games(), 40);
        assert!(newest.games() > newest.training_games() && newest.games() < 40);
        let (all, measured) = (measured(&all), measured(&newest));
        assert!(!measured.is_empty() && measured.len() < all.len());
        assert!(measured.iter().all(|row| all.contains(row)));
        // Training and validation together are the last games without a gap.
        let numbers: Vec<u32> = (0..newest.training_games() as u32).collect();
        let ids = |_: usize, record: &GameRecord| Ok(record.id.counter);
        let trained = newest.read(&numbers, ids).unwrap();
        let oldest = *trained.iter().min().unwrap() as usize;
        let stretch = &records[oldest..];
        assert_eq!(newest.games(), stretch.len());
        let some = open(folder.path(), u64::MAX, 0.3).unwrap();
        let some = some.validation_rows(30, targets(0.0)).unwrap();
        let count: usize = some.iter().map(GameRows::len).sum();
        let of_game = GameRows::all(&game(0, 6), targets(0.0)).unwrap().len();
        assert!(count >= 30 && count < 30 + 2 * of_game);
    }

    #[test]
    fn folders_without_games_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let message = open(folder.path(), 10, 0.0).unwrap_err().to_string();
        assert!(
            message.contains(&folder.path().display().to_string()),
            "{message}"
        );
    }
}
