//! The index of a folder's games over the frames of its shards. It is kept between windows, so that each shard is read once.
//!
//! A row counts by its recorded weight: the mean number of its draws in an epoch. Rows of weight 0 are left out. The sums are kept in [`WEIGHT_UNITS`]ths of a row, so that they are whole numbers and the same in any order.

use super::rows::{WEIGHT_UNITS, game_weight, rows_of_weight};
use super::window::{Game, ShardGames, Window};
use crate::error::TrainError;
use engine::config::TrainConfig;
use engine::encoding::{ENCODING_VERSION, READABLE_VERSIONS};
use engine::record::{ShardName, ShardReader, list_shards};
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// Shards that are read at once: few, so that a small window reads little more than it holds.
const SHARDS_AT_ONCE: usize = 16;

/// The contents of some shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct WindowCounts {
    /// All games.
    pub(crate) games: u64,
    /// The evaluations by networks in them.
    pub(crate) evaluations: u64,
    /// Their rows: the mean number that an epoch over them draws.
    pub(crate) training_rows: u64,
}

impl AddAssign for WindowCounts {
    fn add_assign(&mut self, other: Self) {
        self.games += other.games;
        self.evaluations += other.evaluations;
        self.training_rows += other.training_rows;
    }
}

/// A shard that has been read through.
#[derive(Debug)]
struct Known {
    games: u64,
    evaluations: u64,
    /// In [`WEIGHT_UNITS`]ths.
    training_weight: u64,
    /// None if they are too old for a window.
    index: Option<Arc<ShardGames>>,
}

/// The index of one folder of shards.
#[derive(Debug)]
pub(crate) struct Index {
    folder: PathBuf,
    validation_share: f32,
    shards: HashMap<String, Known>,
}

impl Index {
    /// An empty index. `validation_share` is the share of games that are never trained on.
    pub(crate) fn new(folder: &Path, validation_share: f32) -> Self {
        Self {
            folder: folder.to_owned(),
            validation_share,
            shards: HashMap::new(),
        }
    }

    /// The names of the folder's shards, as by [`shard_names`].
    pub(crate) fn list(&self) -> Result<Vec<String>, TrainError> {
        shard_names(&self.folder)
    }

    /// The counts of the named shards. Unread ones are read first, in parallel.
    pub(crate) fn count(&mut self, names: &[String]) -> Result<WindowCounts, TrainError> {
        let unknown = names.iter().filter(|&name| !self.shards.contains_key(name));
        if let Some((_, error)) = self.read(unknown.collect())?.into_iter().next() {
            return Err(error);
        }
        let known = || names.iter().filter_map(|name| self.shards.get(name));
        let weight: u64 = known().map(|shard| shard.training_weight).sum();
        Ok(WindowCounts {
            games: known().map(|shard| shard.games).sum(),
            evaluations: known().map(|shard| shard.evaluations).sum(),
            training_rows: rows_of_weight(weight),
        })
    }

    /// The newest training games of the named shards (oldest first) with at least `rows` rows, or all if there are fewer, and the
    /// validation games of the same period. Unread shards are read as far back as needed. Of older shards only the counts are kept.
    pub(crate) fn window(&mut self, names: &[String], rows: u64) -> Result<Window, TrainError> {
        let wanted = rows.saturating_mul(WEIGHT_UNITS.into());
        let mut weight = 0;
        let mut shards: Vec<Arc<ShardGames>> = Vec::new();
        for last in names.rchunks(SHARDS_AT_ONCE) {
            if weight >= wanted {
                break;
            }
            let mut gone = self.read_for(last, wanted - weight)?;
            for name in last.iter().rev() {
                if weight >= wanted {
                    break;
                }
                if let Some(error) = gone.remove(name) {
                    return Err(error);
                }
                if let Some(known) = self.shards.get(name) {
                    weight += known.training_weight;
                    shards.extend(known.index.clone());
                }
            }
        }
        shards.reverse();
        self.forget(&shards);
        Window::new(&self.folder, shards, weight, wanted)
    }

    /// The index's bytes in memory: 16 a game, and some hundred a shard.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = |(name, known): (&String, &Known)| {
            let games = known.index.as_ref().map_or(0, |index| {
                let games = index.training.len() + index.validation.len();
                games * size_of::<Game>() + size_of::<ShardGames>() + index.path.as_os_str().len()
            });
            games + name.len() + size_of::<(String, Known)>()
        };
        self.shards.iter().map(bytes).sum::<usize>() as u64
    }

    /// Reads the unread shards that a window of so much weight over the newest of some shards needs, as far as the weights are known.
    /// A missing shard may turn out unneeded: such errors are returned, by name.
    fn read_for(
        &mut self,
        names: &[String],
        wanted: u64,
    ) -> Result<HashMap<String, TrainError>, TrainError> {
        let mut weight = 0;
        let mut needed = Vec::new();
        for name in names.iter().rev() {
            if weight >= wanted {
                break;
            }
            let known = self.shards.get(name);
            // An unread shard counts as empty.
            weight += known.map_or(0, |known| known.training_weight);
            if known.is_none_or(|known| known.index.is_none()) {
                needed.push(name);
            }
        }
        self.read(needed)
    }

    /// Reads the named shards. Returns the errors of missing ones, by name.
    fn read(&mut self, names: Vec<&String>) -> Result<HashMap<String, TrainError>, TrainError> {
        let read: Vec<(String, Result<Known, TrainError>)> = names
            .into_par_iter()
            .map(|name| {
                let known = read_through(self.folder.join(name), self.validation_share);
                (name.clone(), known)
            })
            .collect();
        let mut gone = HashMap::new();
        for (name, known) in read {
            match known {
                Ok(known) => {
                    self.shards.insert(name, known);
                }
                Err(error) if error.is_gone() => {
                    gone.insert(name, error);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(gone)
    }

    /// Drops the games of all shards but these.
    fn forget(&mut self, kept: &[Arc<ShardGames>]) {
        let kept: HashSet<*const ShardGames> = kept.iter().map(Arc::as_ptr).collect();
        for known in self.shards.values_mut() {
            known
                .index
                .take_if(|index| !kept.contains(&Arc::as_ptr(index)));
        }
    }
}

/// The names of the shards in a folder, oldest first; none where there is no folder.
///
/// Several generators write at once, so the files' times give the order. A generator's own shards are in the order of
/// their numbers whatever their times say, for a copy of a folder may have any: each counts as no older than those before it.
pub(crate) fn shard_names(folder: &Path) -> Result<Vec<String>, TrainError> {
    // A folder that can't be looked at is not an empty one: its rows would count again later.
    let is_there = folder.try_exists();
    if !is_there.map_err(TrainError::io("read the folder", folder))? {
        return Ok(Vec::new());
    }
    let mut shards: Vec<(SystemTime, ShardName)> = Vec::new();
    for (name, path) in list_shards(folder)? {
        let written = match std::fs::metadata(&path).and_then(|file| file.modified()) {
            Ok(written) => written,
            // A generator has removed it as too old.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(TrainError::io("read", &path)(error)),
        };
        let before = shards
            .last()
            .filter(|(_, last)| last.generator == name.generator);
        let written = before.map_or(written, |&(before, _)| before.max(written));
        shards.push((written, name));
    }
    shards.sort_unstable();
    Ok(shards.iter().map(|(_, name)| name.to_string()).collect())
}

/// Opens a shard to train on. One with another policy is an error.
pub(crate) fn open_shard(path: &Path) -> Result<ShardReader, TrainError> {
    let reader = ShardReader::open(path)?;
    let found = reader.header().encoding_version;
    if READABLE_VERSIONS.contains(&found) {
        Ok(reader)
    } else {
        Err(TrainError::Other(format!(
            "{}: encoding version {found}, but this program knows versions {} to {ENCODING_VERSION}",
            path.display(),
            READABLE_VERSIONS.start()
        )))
    }
}

/// Finds the games of a shard and counts their rows.
fn read_through(path: PathBuf, validation_share: f32) -> Result<Known, TrainError> {
    let mut reader = open_shard(&path)?;
    let (mut training, mut validation) = (Vec::new(), Vec::new());
    let mut evaluations = 0;
    while let Some(record) = reader.next() {
        let record = record?;
        let (weight, bytes) = game_weight(&record);
        evaluations += record.network_evaluations();
        let game = Game {
            offset: reader.last_location().offset,
            weight,
            bytes,
        };
        if record.id.is_for_validation(validation_share) {
            validation.push(game);
        } else {
            training.push(game);
        }
    }
    Ok(Known {
        games: (training.len() + validation.len()) as u64,
        evaluations,
        training_weight: training.iter().map(|game| u64::from(game.weight)).sum(),
        index: Some(Arc::new(ShardGames {
            path,
            training: training.into(),
            validation: validation.into(),
        })),
    })
}

/// The rows of the window when `seen_rows` training rows have come since the run began: `c·(1 + β·((N/c)^α − 1)/α)` for `N > c`, else c
/// (Wu, Accelerating Self-Play Learning in Go, 2019, appendix on the training: a window that grows
/// with a power of the data, α = 0.75, β = 0.4 and c = 250,000).
pub(crate) fn window_rows(config: &TrainConfig, seen_rows: u64) -> u64 {
    let first = config.window_rows as f64;
    let ratio = (seen_rows as f64 / first).max(1.0);
    let exponent = config.window_exponent;
    let growth = config.window_scale * (ratio.powf(exponent) - 1.0) / exponent;
    (first * (1.0 + growth)).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::samples::{game, header, set_written, write_shard};
    use engine::config::Config;

    fn names(folder: &Path) -> Vec<String> {
        Index::new(folder, 0.0).list().unwrap()
    }

    /// A shard of 5 games, written so many seconds after the epoch.
    fn write(folder: &Path, generator: u32, sequence: u32, seconds: u64) {
        let name = ShardName {
            generator,
            sequence,
        };
        let first = u64::from(sequence) * 5;
        let games: Vec<_> = (first..first + 5).map(|counter| game(counter, 6)).collect();
        set_written(&write_shard(folder, name, &header(), &games), seconds);
    }

    #[test]
    fn what_is_older_than_a_window_may_be_gone() {
        let folder = tempfile::tempdir().unwrap();
        for sequence in 0..6 {
            write(folder.path(), 0, sequence, 100);
        }
        let all = names(folder.path());
        let mut index = Index::new(folder.path(), 0.0);
        let rows = index.count(&all[4..]).unwrap().training_rows;
        let remove = |name: &String| std::fs::remove_file(folder.path().join(name)).unwrap();
        all[..3].iter().for_each(remove);
        let read = |mut index: Index| {
            let window = index.window(&all, rows)?;
            Ok::<_, TrainError>(window.shard_names().map(str::to_owned).collect::<Vec<_>>())
        };
        // By one that knows them, and by one that sees them for the first time.
        assert_eq!(read(index).unwrap(), all[4..]);
        let new = || Index::new(folder.path(), 0.0);
        assert_eq!(read(new()).unwrap(), all[4..]);
        remove(&all[4]);
        let error = read(new()).unwrap_err();
        assert!(
            error.is_gone() && error.to_string().contains(&all[4]),
            "{error}"
        );
    }

    #[test]
    fn shards_are_listed_by_age_and_each_generators_in_its_own_order() {
        let folder = tempfile::tempdir().unwrap();
        for (generator, sequence, seconds) in [
            (0, 0, 100),
            (0, 1, 300),
            // Copied before the one that it follows.
            (0, 2, 50),
            (0, 3, 400),
            (1, 0, 200),
            (1, 1, 300),
            (2, 0, 350),
        ] {
            write(folder.path(), generator, sequence, seconds);
        }
        let expected = ["0-0", "1-0", "0-1", "0-2", "1-1", "2-0", "0-3"].map(|name| {
            let (generator, sequence) = name.split_once('-').unwrap();
            format!("{generator:0>3}-{sequence:0>6}.shard")
        });
        assert_eq!(names(folder.path()), expected);
        // All copied in one moment, in any order.
        for name in &expected {
            set_written(&folder.path().join(name), 1_000);
        }
        assert!(names(folder.path()).is_sorted());
        assert_eq!(names(&folder.path().join("missing")), Vec::<String>::new());
    }

    #[test]
    fn a_shard_is_read_once_and_its_counts_stay_when_it_is_too_old() {
        let folder = tempfile::tempdir().unwrap();
        for sequence in 0..40 {
            write(folder.path(), 0, sequence, sequence.into());
        }
        let names = names(folder.path());
        let mut index = Index::new(folder.path(), 0.2);
        let all = index.count(&names).unwrap();
        assert_eq!(all.games, 200);
        let evaluations = (0..200).map(|counter| game(counter, 6).network_evaluations());
        assert_eq!(all.evaluations, evaluations.sum::<u64>());
        assert!(all.evaluations > 200);
        let whole = index.window(&names, u64::MAX).unwrap();
        let training = whole.training_games();
        assert!((130..180).contains(&training), "{training} games");
        let of_all = index.bytes();
        assert!(of_all < 200 * 16 + 40 * 300, "{of_all} bytes");
        let window = index.window(&names, 100).unwrap();
        assert!(window.training_rows() >= 100 && window.training_rows() < all.training_rows / 10);
        assert!(index.bytes() < of_all - 180 * 16);
        let kept: HashSet<String> = window.shard_names().map(str::to_owned).collect();
        for name in names.iter().filter(|&name| !kept.contains(name)) {
            std::fs::remove_file(folder.path().join(name)).unwrap();
        }
        assert_eq!(index.count(&names).unwrap(), all);
        let first = index.count(&names[..1]).unwrap();
        assert_eq!(first.games, 5);
        // A window that grows again reads them again.
        let error = index.window(&names, u64::MAX).unwrap_err().to_string();
        assert!(error.contains(".shard"), "{error}");
    }

    #[test]
    fn what_is_too_old_for_the_window_is_not_even_read() {
        let folder = tempfile::tempdir().unwrap();
        for sequence in 0..20 {
            write(folder.path(), 0, sequence, sequence.into());
        }
        let names = names(folder.path());
        std::fs::write(folder.path().join(&names[0]), "nonsense").unwrap();
        let mut index = Index::new(folder.path(), 0.0);
        assert_eq!(index.window(&names, 1).unwrap().games(), 1);
        let error = index.count(&names).unwrap_err().to_string();
        assert!(error.contains("000-000000.shard"), "{error}");
    }

    #[test]
    fn rows_count_by_their_weights() {
        let folder = tempfile::tempdir().unwrap();
        let mut record = game(0, 10);
        let rows = record.turns.iter_mut().flat_map(|turn| &mut turn.rows);
        let weights = [0.0, 0.5, 2.25, 0.75, 1e30].into_iter();
        for (row, weight) in rows.zip(weights.chain(std::iter::repeat(0.0))) {
            row.weight = weight;
        }
        let name = "000-000000.shard".parse().unwrap();
        write_shard(folder.path(), name, &header(), &[record]);
        let counts = Index::new(folder.path(), 0.0).count(&names(folder.path()));
        // 3.5 and 1,000, the most that a row may have, rounded up.
        assert_eq!(counts.unwrap().training_rows, 1_004);
    }

    #[test]
    fn the_window_grows_with_a_power_of_the_rows() {
        let config = TrainConfig {
            window_rows: 250_000,
            window_exponent: 0.75,
            window_scale: 0.4,
            ..Config::default().train
        };
        let rows = |seen| window_rows(&config, seen);
        assert_eq!([0, 1_000, 250_000].map(rows), [250_000; 3]);
        // 16^0.75 is 8: 250,000 · (1 + 0.4 · 7 / 0.75).
        assert_eq!(rows(16 * 250_000), 1_183_333);
        // At first four of ten new rows.
        assert_eq!((rows(251_000) - 250_000 + 5) / 10, 40);
        let fixed = TrainConfig {
            window_scale: 0.0,
            ..config
        };
        assert_eq!(window_rows(&fixed, u64::MAX), 250_000);
    }
}
