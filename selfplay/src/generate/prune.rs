//! `selfplay.keep_shards`: shards that no window of training can reach any more are removed.

use crate::import;
use crate::output::complain;
use engine::run::{GeneratorPlaces, RunDirectory};
use engine::shard::journal;
use engine::shard::{ShardError, ShardName, ShardReader, list_shards};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Training opens its window once and reads from it for a while, as more games come: kept is twice what it may reach.
const WINDOWS: u64 = 2;

/// Which shards of a folder are kept.
#[derive(Debug)]
pub(crate) struct Pruning {
    shards: PathBuf,
    journal: PathBuf,
    /// The file that names what the trainer reads.
    window: PathBuf,
    /// So many of the newest.
    keep: usize,
    /// The newest that hold so many games.
    games: u64,
    /// How many games each shard holds, for those that have been looked at.
    counted: BTreeMap<ShardName, u64>,
}

/// What was removed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Removed {
    pub(crate) shards: u64,
    pub(crate) bytes: u64,
}

/// A shard of the folder.
struct Candidate {
    name: ShardName,
    path: PathBuf,
    written: SystemTime,
    bytes: u64,
}

impl Pruning {
    /// Keeps `keep` shards, and a window of so many games twice over; nothing is ever removed where `keep` is 0.
    pub(crate) fn new(places: &GeneratorPlaces, keep: u32, window_games: u64) -> Option<Self> {
        (keep > 0).then(|| Self {
            shards: places.shards.clone(),
            journal: places.journal.clone(),
            window: RunDirectory::new(&places.root).window(),
            keep: keep as usize,
            games: window_games.saturating_mul(WINDOWS),
            counted: BTreeMap::new(),
        })
    }

    /// Removes what is not kept. Where something can't be read nothing is removed, and that is said.
    pub(crate) fn prune(&mut self) -> Removed {
        match self.unreachable() {
            Ok(unreachable) => remove(&unreachable),
            Err(error) => {
                complain(format_args!("no shards are removed for now: {error}"));
                Removed::default()
            }
        }
    }

    /// The shards that are not among the newest, neither by their names nor by when they were written, nor read by a
    /// trainer now, nor imported; nor has a
    /// journal still to hear of them.
    fn unreachable(&mut self) -> Result<Vec<Candidate>, PruneError> {
        let mut candidates = Vec::new();
        for (name, path) in list_shards(&self.shards)? {
            // Another generator may have removed it.
            if let Ok(file) = fs::metadata(&path) {
                let written = file.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                let bytes = file.len();
                candidates.push(Candidate {
                    name,
                    path,
                    written,
                    bytes,
                });
            }
        }
        if candidates.len() <= self.keep {
            return Ok(Vec::new());
        }
        let mut kept: BTreeSet<ShardName> = self.newest(&candidates)?;
        candidates.sort_by_key(|candidate| (candidate.written, candidate.name));
        kept.extend(self.newest(&candidates)?);
        if candidates
            .iter()
            .all(|candidate| kept.contains(&candidate.name))
        {
            return Ok(Vec::new());
        }
        kept.extend(journal::announced(&self.journal)?);
        kept.extend(self.read_by_the_trainer()?);
        let mut unreachable = Vec::new();
        for candidate in candidates {
            if !kept.contains(&candidate.name) && !is_imported(&candidate.path)? {
                unreachable.push(candidate);
            }
        }
        Ok(unreachable)
    }

    /// What a training that takes long reads, however old it has become.
    fn read_by_the_trainer(&self) -> io::Result<BTreeSet<ShardName>> {
        match fs::read_to_string(&self.window) {
            Ok(names) => Ok(names.lines().filter_map(|name| name.parse().ok()).collect()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeSet::new()),
            Err(error) => Err(error),
        }
    }

    /// The newest of shards in order, as many as are kept.
    fn newest(&mut self, oldest_first: &[Candidate]) -> Result<BTreeSet<ShardName>, ShardError> {
        let mut games = 0;
        let mut newest = BTreeSet::new();
        for candidate in oldest_first.iter().rev() {
            if newest.len() >= self.keep && games >= self.games {
                break;
            }
            games += self.games_in(candidate)?;
            newest.insert(candidate.name);
        }
        Ok(newest)
    }

    fn games_in(&mut self, candidate: &Candidate) -> Result<u64, ShardError> {
        if let Some(&games) = self.counted.get(&candidate.name) {
            return Ok(games);
        }
        let offsets = ShardReader::open(&candidate.path)?.frame_offsets()?;
        let games = offsets.len() as u64;
        self.counted.insert(candidate.name, games);
        Ok(games)
    }
}

/// Whether somebody has brought a shard along: no generator could play its games again.
fn is_imported(path: &Path) -> Result<bool, ShardError> {
    let reader = ShardReader::open(path)?;
    Ok(reader.header().evaluator.name == import::EVALUATOR)
}

#[derive(Debug, thiserror::Error)]
enum PruneError {
    #[error(transparent)]
    Shard(#[from] ShardError),
    #[error(transparent)]
    Journal(#[from] journal::JournalError),
    #[error("can't read what the trainer reads: {0}")]
    Window(#[from] io::Error),
}

fn remove(candidates: &[Candidate]) -> Removed {
    let mut removed = Removed::default();
    for candidate in candidates {
        match fs::remove_file(&candidate.path) {
            Ok(()) => {
                removed.shards += 1;
                removed.bytes += candidate.bytes;
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => complain(format_args!(
                "can't remove {}: {error}",
                candidate.path.display()
            )),
        }
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::shard::{Evaluator, GameId, Header, ShardWriter, digest, samples::random_game};

    fn write(folder: &Path, generator: u32, sequence: u32, games: u64, seconds: u64) {
        write_by("uniform", folder, (generator, sequence), games, seconds);
    }

    /// Writes a shard of so many games, as if so many seconds after the epoch.
    fn write_by(
        evaluator: &str,
        folder: &Path,
        (generator, sequence): (u32, u32),
        games: u64,
        seconds: u64,
    ) {
        let header = Header {
            encoding_version: 1,
            program_version: "0".into(),
            evaluator: Evaluator {
                name: evaluator.into(),
                identity: String::new(),
            },
            config_digest: digest(b""),
            generator,
        };
        let name = ShardName {
            generator,
            sequence,
        };
        let mut writer = ShardWriter::create(folder, name, &header).unwrap();
        for counter in 0..games {
            writer
                .push(&random_game(GameId { generator, counter }, 1, 2))
                .unwrap();
        }
        let path = writer.finish().unwrap();
        let file = fs::File::options().append(true).open(path).unwrap();
        let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        file.set_modified(time).unwrap();
    }

    fn places(root: &Path) -> GeneratorPlaces {
        let places = GeneratorPlaces::from(&RunDirectory::new(root));
        fs::create_dir(&places.shards).unwrap();
        fs::create_dir(&places.journal).unwrap();
        places
    }

    #[test]
    fn what_a_trainer_reads_stays() {
        let folder = tempfile::tempdir().unwrap();
        let places = places(folder.path());
        for sequence in 0..6 {
            write(&places.shards, 0, sequence, 5, u64::from(sequence));
        }
        let run = RunDirectory::new(folder.path());
        fs::write(run.window(), "000-000001.shard\n000-000003.shard\n").unwrap();
        let removed = Pruning::new(&places, 1, 1).unwrap().prune();
        assert_eq!(removed.shards, 3);
        assert_eq!(
            names(&places.shards),
            ["000-000001.shard", "000-000003.shard", "000-000005.shard"]
        );
    }

    fn names(folder: &Path) -> Vec<String> {
        list_shards(folder)
            .unwrap()
            .keys()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn what_a_window_may_reach_is_kept_in_either_order() {
        let folder = tempfile::tempdir().unwrap();
        let places = places(folder.path());
        let shards = places.shards.clone();
        for sequence in 0..6 {
            write(&shards, 0, sequence, 5, 100 + u64::from(sequence));
            write(&shards, 1, sequence, 5, 50 + u64::from(sequence));
        }
        let prune =
            |keep, games| Pruning::new(&places, keep, games).map(|mut pruning| pruning.prune());
        assert_eq!(prune(0, 1), None);
        assert_eq!(prune(12, 1), Some(Removed::default()));
        assert_eq!(
            prune(1, 1_000),
            Some(Removed::default()),
            "all are in the window"
        );
        // Twice ten games are four shards: by name 1-2 to 1-5, by time 0-2 to 0-5.
        let removed = prune(2, 10).unwrap();
        assert_eq!(removed.shards, 4);
        assert!(removed.bytes > 0);
        let left = names(&shards);
        assert_eq!(left.len(), 8);
        for gone in ["000-000000", "000-000001", "001-000000", "001-000001"] {
            assert!(!left.iter().any(|name| name.starts_with(gone)), "{left:?}");
        }
        assert_eq!(prune(2, 10), Some(Removed::default()));
        // An old generator's shards go as well, but not what was brought along.
        write_by(import::EVALUATOR, &shards, (4, 0), 5, 1);
        write(&shards, 2, 0, 5, 1);
        write(&shards, 3, 0, 30, 1_000);
        prune(1, 1);
        assert_eq!(names(&shards), ["003-000000.shard", "004-000000.shard"]);
    }

    #[test]
    fn nothing_is_removed_where_something_can_t_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let places = places(folder.path());
        let shards = places.shards.clone();
        for sequence in 0..5 {
            write(&shards, 0, sequence, 3, u64::from(sequence));
        }
        fs::write(shards.join("000-000004.shard"), "nonsense").unwrap();
        let mut pruning = Pruning::new(&places, 2, 1).unwrap();
        assert_eq!(pruning.prune(), Removed::default());
        assert_eq!(names(&shards).len(), 5);
    }
}
