//! The games that are trained on: an index over the frames of the newest shards.

use super::{TrainingRow, rows_of};
use crate::error::TrainError;
use engine::encoding::ENCODING_VERSION;
use engine::shard::{GameId, ShardReader, list_shards};
use rayon::prelude::*;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What belongs to a window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WindowOptions {
    /// The newest games, as many as there are of these.
    pub(crate) games: u64,
    /// The share of them that is never trained on.
    pub(crate) validation_share: f32,
}

/// The newest games of some shards: where each is, and whether it is trained on or only measured with.
#[derive(Debug)]
pub(crate) struct Window {
    folder: PathBuf,
    shards: Vec<PathBuf>,
    training: Vec<GameLocation>,
    validation: Vec<GameLocation>,
    /// The rows of the training games.
    training_rows: u64,
    /// The rows of the training games in shards that were not known before.
    new_rows: u64,
    /// The games in shards that were not known before.
    new_games: u64,
}

/// Where a game is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct GameLocation {
    offset: u64,
    shard: u32,
    rows: u32,
}

/// A game that the index has found.
struct Found {
    location: GameLocation,
    id: GameId,
}

/// The names of the shards in a folder, oldest first; none where there is no folder.
pub(crate) fn shard_names(folder: &Path) -> Result<Vec<String>, TrainError> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let shards = list_shards(folder)?;
    Ok(shards.keys().map(ToString::to_string).collect())
}

impl Window {
    /// Reads through the newest of the named shards (oldest first), as far back as games are wanted. Shards whose names are not
    /// in `known` count as new.
    pub(crate) fn open(
        folder: &Path,
        names: &[String],
        known: &HashSet<&str>,
        options: WindowOptions,
    ) -> Result<Self, TrainError> {
        let names = newest(folder, names, options.games)?;
        let shards: Vec<PathBuf> = names.iter().map(|name| folder.join(name)).collect();
        let found: Vec<Vec<Found>> = shards
            .par_iter()
            .enumerate()
            .map(|(number, path)| index(path, number as u32))
            .collect::<Result<_, _>>()?;
        let mut found: Vec<Found> = found.into_iter().flatten().collect();
        let games = usize::try_from(options.games).unwrap_or(usize::MAX);
        found.drain(..found.len().saturating_sub(games));
        if found.is_empty() {
            return Err(TrainError::NoGames {
                folder: folder.to_owned(),
            });
        }
        let is_new: Vec<bool> = names
            .iter()
            .map(|name| !known.contains(name.as_str()))
            .collect();
        let mut window = Self {
            folder: folder.to_owned(),
            shards,
            training: Vec::new(),
            validation: Vec::new(),
            training_rows: 0,
            new_rows: 0,
            new_games: 0,
        };
        for Found { location, id } in found {
            window.add(
                location,
                is_validation(id, options.validation_share),
                is_new[location.shard as usize],
            );
        }
        Ok(window)
    }

    fn add(&mut self, location: GameLocation, validation: bool, new: bool) {
        let rows = u64::from(location.rows);
        self.new_games += u64::from(new);
        if validation {
            self.validation.push(location);
            return;
        }
        self.training.push(location);
        self.training_rows += rows;
        self.new_rows += if new { rows } else { 0 };
    }

    /// The names of the shards that are read.
    pub(crate) fn shard_names(&self) -> impl Iterator<Item = &str> {
        let names = self.shards.iter().filter_map(|path| path.file_name());
        names.filter_map(|name| name.to_str())
    }

    /// Where the shards are.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// How long ago the newest shard was written, if the file is still there and says so.
    pub(crate) fn age(&self) -> Option<Duration> {
        let written = std::fs::metadata(self.shards.last()?)
            .ok()?
            .modified()
            .ok()?;
        // A clock that was set back makes it new.
        Some(written.elapsed().unwrap_or_default())
    }

    /// All games of the window.
    pub(crate) fn games(&self) -> usize {
        self.training.len() + self.validation.len()
    }

    /// The games that are trained on.
    pub(crate) fn training_games(&self) -> usize {
        self.training.len()
    }

    /// Their rows.
    pub(crate) fn training_rows(&self) -> u64 {
        self.training_rows
    }

    /// The rows among them that are new.
    pub(crate) fn new_rows(&self) -> u64 {
        self.new_rows
    }

    /// The new games of the window, those for validation among them.
    pub(crate) fn new_games(&self) -> u64 {
        self.new_games
    }

    /// How many rows training game `game` has.
    pub(super) fn rows_in(&self, game: u32) -> u64 {
        u64::from(self.training[game as usize].rows)
    }

    /// The rows of some training games, in the games' order; the games are read and checked in parallel.
    pub(super) fn read(
        &self,
        games: &[u32],
        search_value_share: f32,
    ) -> Result<Vec<TrainingRow>, TrainError> {
        let locations: Vec<_> = games
            .iter()
            .map(|&game| self.training[game as usize])
            .collect();
        self.read_games(&locations, search_value_share)
    }

    /// The rows of the validation games, no more than about `limit`: whole games, the newest first.
    pub(crate) fn validation_rows(
        &self,
        limit: usize,
        search_value_share: f32,
    ) -> Result<Vec<TrainingRow>, TrainError> {
        let mut rows = 0;
        let locations: Vec<_> = self
            .validation
            .iter()
            .rev()
            .take_while(|location| {
                let within = rows < limit;
                rows += location.rows as usize;
                within
            })
            .copied()
            .collect();
        self.read_games(&locations, search_value_share)
    }

    fn read_games(
        &self,
        locations: &[GameLocation],
        search_value_share: f32,
    ) -> Result<Vec<TrainingRow>, TrainError> {
        let games: Vec<Vec<TrainingRow>> = locations
            .par_iter()
            .map_init(
                || None,
                |reader, location| self.read_game(reader, *location, search_value_share),
            )
            .collect::<Result<_, _>>()?;
        Ok(games.into_iter().flatten().collect())
    }

    /// Reads a game; `reader` is kept open for the next one, which may well be in the same shard.
    fn read_game(
        &self,
        reader: &mut Option<(u32, ShardReader)>,
        location: GameLocation,
        search_value_share: f32,
    ) -> Result<Vec<TrainingRow>, TrainError> {
        let path = &self.shards[location.shard as usize];
        let open = match reader.take() {
            Some((shard, open)) if shard == location.shard => open,
            _ => ShardReader::open(path)?,
        };
        let (_, open) = reader.insert((location.shard, open));
        let record = open.read_at(location.offset)?;
        rows_of(&record, search_value_share).map_err(|error| TrainError::Game {
            path: path.clone(),
            offset: location.offset,
            error,
        })
    }
}

/// The newest shards, oldest first, as many as hold `games` games.
fn newest(folder: &Path, names: &[String], games: u64) -> Result<Vec<String>, TrainError> {
    let mut count = 0;
    let mut newest = Vec::new();
    for name in names.iter().rev() {
        if count >= games {
            break;
        }
        count += ShardReader::open(folder.join(name))?.frame_offsets()?.len() as u64;
        newest.push(name.clone());
    }
    newest.reverse();
    Ok(newest)
}

/// Finds the games of a shard and counts their rows.
fn index(path: &Path, shard: u32) -> Result<Vec<Found>, TrainError> {
    let mut reader = ShardReader::open(path)?;
    let found = reader.header().encoding_version;
    if found != ENCODING_VERSION {
        return Err(TrainError::Encoding {
            path: path.to_owned(),
            found,
            known: ENCODING_VERSION,
        });
    }
    let mut games = Vec::new();
    while let Some(record) = reader.next() {
        let record = record?;
        let rows: usize = record.turns.iter().map(|turn| turn.rows.len()).sum();
        let location = GameLocation {
            offset: reader.last_location().offset,
            shard,
            rows: rows as u32,
        };
        games.push(Found {
            location,
            id: record.id,
        });
    }
    Ok(games)
}

/// Whether a game is one of those that are never trained on. It depends on nothing but the game's id, so that a game stays what
/// it is from window to window.
fn is_validation(id: GameId, share: f32) -> bool {
    let mut hash = blake3::Hasher::new();
    hash.update(&id.generator.to_le_bytes());
    hash.update(&id.counter.to_le_bytes());
    let mut first = [0; 4];
    hash.finalize_xof().fill(&mut first);
    f64::from(u32::from_le_bytes(first)) < f64::from(share) * 2f64.powi(32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::samples::{game, write_games};

    fn open(folder: &Path, games: u64, validation_share: f32) -> Result<Window, TrainError> {
        let options = WindowOptions {
            games,
            validation_share,
        };
        let known = HashSet::from(["000-000000.shard"]);
        Window::open(folder, &shard_names(folder)?, &known, options)
    }

    #[test]
    fn a_window_is_exactly_the_newest_games() {
        let folder = tempfile::tempdir().unwrap();
        let records = write_games(folder.path(), 25, 10);
        for games in [1, 5, 6, 15, 24, 25, 26, 1_000] {
            let window = open(folder.path(), games, 0.0).unwrap();
            let expected = games.min(25) as usize;
            assert_eq!(window.games(), expected);
            let newest: Vec<_> = records[25 - expected..]
                .iter()
                .map(|record| rows_of(record, 0.0).unwrap())
                .collect();
            let all: Vec<u32> = (0..expected as u32).collect();
            assert_eq!(window.read(&all, 0.0).unwrap(), newest.concat());
            assert_eq!(window.training_rows(), newest.concat().len() as u64);
            // The first shard, with ten games, is known.
            assert_eq!(window.new_games(), games.min(15));
            let new: usize = newest.iter().rev().take(15).map(Vec::len).sum();
            assert_eq!(window.new_rows(), new as u64);
        }
    }

    #[test]
    fn a_game_is_for_validation_whatever_the_window() {
        let folder = tempfile::tempdir().unwrap();
        write_games(folder.path(), 40, 6);
        let measured = |games| {
            let window = open(folder.path(), games, 0.3).unwrap();
            assert_eq!(
                window.training_games() + window.validation.len(),
                games as usize
            );
            window.validation_rows(usize::MAX, 0.0).unwrap()
        };
        let (all, newest) = (measured(40), measured(20));
        assert!(!newest.is_empty() && newest.len() < all.len());
        assert!(newest.iter().all(|row| all.contains(row)));
        let some = open(folder.path(), 40, 0.3)
            .unwrap()
            .validation_rows(30, 0.0)
            .unwrap();
        assert!(some.len() >= 30 && some.len() < 30 + rows_of(&game(0, 6), 0.0).unwrap().len() * 2);
        let share = (0..10_000)
            .filter(|&counter| {
                is_validation(
                    GameId {
                        generator: 3,
                        counter,
                    },
                    0.3,
                )
            })
            .count();
        assert!((2_800..3_200).contains(&share), "{share} of 10,000 games");
        assert!((0..1_000).all(|counter| !is_validation(
            GameId {
                generator: 3,
                counter
            },
            0.0
        )));
    }

    #[test]
    fn folders_without_games_are_named() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(
            shard_names(&folder.path().join("missing")).unwrap(),
            Vec::<String>::new()
        );
        let message = open(folder.path(), 10, 0.0).unwrap_err().to_string();
        assert!(
            message.contains(&folder.path().display().to_string()),
            "{message}"
        );
    }
}
