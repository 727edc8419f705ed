//! The files of games that are there.

use super::entry::{FileKey, FileKind, FoundFile};
use crate::pit::RESULTS;
use engine::record::ShardName;
use engine::run::RunDirectory;
use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::UNIX_EPOCH;

/// The source of self-play's games.
pub(super) const SELFPLAY: &str = "selfplay";

/// The source of the games that are played to be shown, and their folder.
pub(super) const SHOW: &str = RunDirectory::SHOW;

/// What a look at the run's folders has found.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) files: Vec<FoundFile>,
    pub(super) problems: Vec<String>,
    /// The beginnings of paths of which it is not known what is there.
    pub(super) unread: Vec<String>,
}

impl Scan {
    /// Looks at the folders of a run. Those that are missing hold nothing.
    pub(super) fn of(run: &RunDirectory) -> Self {
        let mut scan = Self::default();
        scan.add_shards(run.root(), RunDirectory::SHARDS, SELFPLAY);
        scan.add_shards(run.root(), SHOW, SHOW);
        scan.add_matches(run.root());
        scan
    }

    fn add_shards(&mut self, root: &Path, folder: &str, source: &str) {
        for name in self.names_in(root, folder) {
            if !name.ends_with(".shard") {
                continue;
            }
            let path = format!("{folder}/{name}");
            match name.parse::<ShardName>() {
                Ok(_) => self.add(root, path, source, FileKind::Shard),
                Err(fault) => self.problems.push(format!("{path}: {fault}")),
            }
        }
    }

    fn add_matches(&mut self, root: &Path) {
        let folder = RunDirectory::PIT;
        for name in self.names_in(root, folder) {
            let path = format!("{folder}/{name}/{RESULTS}");
            if [SELFPLAY, SHOW].contains(&name.as_str()) {
                let problem = "a match of this name can't be told from the run's own games";
                self.problems.push(format!("{folder}/{name}: {problem}"));
            } else {
                self.add(root, path, &name, FileKind::Results);
            }
        }
    }

    /// Adds a file, if there is one.
    fn add(&mut self, root: &Path, path: String, source: &str, kind: FileKind) {
        let about = std::fs::metadata(root.join(&path));
        match about.and_then(|about| key_of(&about)) {
            Ok(key) => self.files.push(FoundFile {
                path,
                source: source.to_owned(),
                kind,
                key,
            }),
            Err(error) if is_absent(&error) => {}
            Err(error) => {
                self.problems.push(format!("{path}: {error}"));
                self.unread.push(path);
            }
        }
    }

    /// The names in a folder, those that are no text left out.
    fn names_in(&mut self, root: &Path, folder: &str) -> Vec<String> {
        let names = std::fs::read_dir(root.join(folder)).and_then(|entries| {
            entries
                .map(|entry| entry.map(|entry| entry.file_name().into_string()))
                .collect::<io::Result<Vec<_>>>()
        });
        match names {
            Ok(names) => names.into_iter().flatten().collect(),
            Err(error) if is_absent(&error) => Vec::new(),
            Err(error) => {
                self.problems.push(format!("{folder}: {error}"));
                self.unread.push(format!("{folder}/"));
                Vec::new()
            }
        }
    }
}

/// Whether nothing is there: no file, or one where a folder should be.
pub(super) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn key_of(about: &Metadata) -> io::Result<FileKey> {
    // One from before 1970 has some time, as long as it stays the same.
    let time = about.modified()?.duration_since(UNIX_EPOCH);
    let time = time.map_or(0, |time| time.as_nanos());
    Ok(FileKey {
        bytes: about.len(),
        time: u64::try_from(time).unwrap_or(u64::MAX),
    })
}
