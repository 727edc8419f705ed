//! `selfplay.keep_shards`: removes shards once the trainer's window has moved past them.
//!
//! Without a trainer nothing is removed.

use engine::files;
use engine::progress::say;
use engine::record::journal;
use engine::record::{IMPORTED, ShardError, ShardName, ShardReader, list_shards};
use engine::run::{GeneratorPaths, RunDirectory};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Which shards of a folder are kept.
#[derive(Debug)]
pub(crate) struct Pruning {
    /// With the run, whose trainer lists the shards behind its window.
    paths: GeneratorPaths,
    /// The number of the newest that are kept.
    keep: usize,
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
    /// Keeps `keep` shards and all that the trainer's window has not passed; with `keep` 0, all.
    pub(crate) fn new(paths: &GeneratorPaths, keep: u32) -> Option<Self> {
        (keep > 0).then(|| Self {
            paths: paths.clone(),
            keep: keep as usize,
        })
    }

    /// Removes what is not kept. Where something can't be read, nothing is removed, and a message says so.
    pub(crate) fn prune(&mut self) -> Removed {
        match self.superfluous() {
            Ok(superfluous) => remove(&superfluous),
            Err(error) => {
                say(&format!("no shards are removed for now: {error}"));
                Removed::default()
            }
        }
    }

    /// The shards behind the trainer's window that may be removed. Kept are the newest by name, the newest by time, imported ones, and
    /// those that a journal has announced and not closed.
    fn superfluous(&self) -> anyhow::Result<Vec<Candidate>> {
        let mut candidates = self.candidates()?;
        if candidates.len() <= self.keep {
            return Ok(Vec::new());
        }
        let run = RunDirectory::new(&self.paths.root);
        let Some(window) = run.read_trainer_window()? else {
            return Ok(Vec::new());
        };
        let mut kept: BTreeSet<ShardName> = window.reads.into_iter().collect();
        kept.extend(self.newest(&candidates));
        candidates.sort_by_key(|candidate| (candidate.written, candidate.name));
        kept.extend(self.newest(&candidates));
        let left_behind: BTreeSet<ShardName> = window.left_behind.into_iter().collect();
        candidates
            .retain(|Candidate { name, .. }| left_behind.contains(name) && !kept.contains(name));
        let mut superfluous = Vec::new();
        for candidate in candidates {
            match is_imported(&candidate.path) {
                Ok(true) => {}
                Ok(false) => superfluous.push(candidate),
                // Another generator may have removed it.
                Err(_) if matches!(candidate.path.try_exists(), Ok(false)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if !superfluous.is_empty() {
            let announced = journal::announced(&self.paths.journal)?;
            superfluous.retain(|candidate| !announced.contains(&candidate.name));
        }
        Ok(superfluous)
    }

    /// All shards, in the order of their names.
    fn candidates(&self) -> Result<Vec<Candidate>, ShardError> {
        let mut candidates = Vec::new();
        for (name, path) in list_shards(&self.paths.shards)? {
            // Another generator may have removed it.
            if let Ok(file) = fs::metadata(&path) {
                candidates.push(Candidate {
                    name,
                    path,
                    written: file.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                    bytes: file.len(),
                });
            }
        }
        Ok(candidates)
    }

    /// The newest of shards in order, as many as are kept.
    fn newest(&self, oldest_first: &[Candidate]) -> impl Iterator<Item = ShardName> {
        let newest = oldest_first.iter().rev().take(self.keep);
        newest.map(|candidate| candidate.name)
    }
}

/// Whether a shard was imported: no generator could play its games again.
fn is_imported(path: &Path) -> Result<bool, ShardError> {
    let reader = ShardReader::open(path)?;
    Ok(reader.header().evaluator.name == IMPORTED)
}

fn remove(candidates: &[Candidate]) -> Removed {
    let mut removed = Removed::default();
    for candidate in candidates {
        match files::remove(&candidate.path) {
            Ok(()) => {
                removed.shards += 1;
                removed.bytes += candidate.bytes;
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => say(&format!(
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
    use engine::record::{EvaluatorId, GameId, Header, ShardWriter, digest, samples::random_game};
    use engine::run::TrainerWindow;

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
            evaluator: EvaluatorId {
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

    fn paths(root: &Path) -> GeneratorPaths {
        let paths = GeneratorPaths::from(&RunDirectory::new(root));
        fs::create_dir(&paths.shards).unwrap();
        fs::create_dir(&paths.journal).unwrap();
        paths
    }

    fn names(folder: &Path) -> Vec<String> {
        list_shards(folder)
            .unwrap()
            .keys()
            .map(ToString::to_string)
            .collect()
    }

    /// Lets the trainer read some shards and leave others behind, each named by its generator and sequence.
    fn leave_behind(root: &Path, reads: &[(u32, u32)], left_behind: &[(u32, u32)]) {
        let names = |numbers: &[(u32, u32)]| {
            let name = |&(generator, sequence)| ShardName {
                generator,
                sequence,
            };
            numbers.iter().map(name).collect()
        };
        let window = TrainerWindow {
            reads: names(reads),
            left_behind: names(left_behind),
        };
        RunDirectory::new(root)
            .write_trainer_window(&window)
            .unwrap();
    }

    #[test]
    fn only_shards_behind_the_trainers_window_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let paths = paths(folder.path());
        for sequence in 0..8 {
            write(&paths.shards, 0, sequence, 5, u64::from(sequence));
        }
        let prune = |keep| Pruning::new(&paths, keep).map(|mut pruning| pruning.prune());
        assert_eq!(prune(0), None);
        assert_eq!(prune(1), Some(Removed::default()), "there is no trainer");
        let left_behind = [(0, 0), (0, 1), (0, 3)];
        leave_behind(folder.path(), &[(0, 2), (0, 4)], &left_behind);
        assert_eq!(
            prune(8),
            Some(Removed::default()),
            "all are among the newest"
        );
        let removed = prune(5).unwrap();
        assert_eq!(removed.shards, 2, "the third is among the newest five");
        assert!(removed.bytes > 0);
        assert_eq!(prune(1).unwrap().shards, 1);
        assert_eq!(
            names(&paths.shards),
            [2, 4, 5, 6, 7].map(|sequence| format!("000-{sequence:06}.shard"))
        );
        assert_eq!(prune(1), Some(Removed::default()));
    }

    #[test]
    fn the_newest_by_name_and_by_time_and_imported_shards_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let paths = paths(folder.path());
        let shards = &paths.shards;
        let mut all = vec![(4, 0)];
        for sequence in 0..6 {
            write(shards, 0, sequence, 5, 100 + u64::from(sequence));
            write(shards, 1, sequence, 5, 50 + u64::from(sequence));
            all.extend([(0, sequence), (1, sequence)]);
        }
        write_by(IMPORTED, shards, (4, 0), 5, 1);
        leave_behind(folder.path(), &[], &all);
        // By name 4-0, 1-5, 1-4 and 1-3, by time 0-2 to 0-5.
        let removed = Pruning::new(&paths, 4).unwrap().prune();
        assert_eq!(removed.shards, 5);
        let left = names(shards);
        assert_eq!(left.len(), 8);
        for gone in [
            "000-000000",
            "000-000001",
            "001-000000",
            "001-000001",
            "001-000002",
        ] {
            assert!(!left.iter().any(|name| name.starts_with(gone)), "{left:?}");
        }
        write(shards, 5, 0, 5, 1_000);
        Pruning::new(&paths, 1).unwrap().prune();
        assert_eq!(names(shards), ["004-000000.shard", "005-000000.shard"]);
    }

    #[test]
    fn nothing_is_removed_where_something_can_t_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let paths = paths(folder.path());
        let shards = paths.shards.clone();
        for sequence in 0..5 {
            write(&shards, 0, sequence, 3, u64::from(sequence));
        }
        let mut pruning = Pruning::new(&paths, 2).unwrap();
        let run = RunDirectory::new(folder.path());
        fs::write(run.trainer_window(), "000-000001.shard").unwrap();
        assert_eq!(pruning.prune(), Removed::default());
        leave_behind(folder.path(), &[], &[(0, 0), (0, 1)]);
        let damaged = shards.join("000-000001.shard");
        fs::write(&damaged, "nonsense").unwrap();
        let file = fs::File::options().append(true).open(damaged).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(pruning.prune(), Removed::default());
        assert_eq!(names(&shards).len(), 5);
    }
}
