//! The journals of games in flight, beside the shards of a run or folder.

use super::is_new;
use super::problem::Problem;
use anyhow::Context;
use engine::files::read_whole;
use engine::record::journal::{JournalError, files_in_use, games_in};
use serde::Serialize;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The most bytes of a journal's file.
const MAX_BYTES: u64 = 1 << 32;

/// What the journals hold.
#[derive(Debug, Default, Serialize)]
pub(super) struct JournalSummary {
    /// Files that count; those that later ones replace don't.
    pub(super) files: u64,
    /// Games in flight; some may be in a shard already.
    pub(super) games: u64,
    /// Their turns so far.
    pub(super) turns: u64,
    /// Damage, which the next start of a generator leaves out.
    #[serde(skip)]
    pub(super) faults: Vec<Problem>,
}

/// Whether a file is named as a journal.
pub(super) fn is_journal(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("journal" | "adopted" | "damaged"))
}

impl JournalSummary {
    /// Checks the journals of these paths, each once: files, or the folders `journal` of runs and of shards' folders.
    ///
    /// # Errors
    ///
    /// A folder can't be read.
    pub(super) fn of(paths: &[PathBuf]) -> anyhow::Result<Self> {
        let mut summary = Self::default();
        let mut known = HashSet::new();
        for path in paths {
            let folder = path.join("journal");
            let files = if folder.is_dir() {
                files_in_use(&folder)?
            } else if is_journal(path) {
                vec![path.clone()]
            } else {
                Vec::new()
            };
            for file in files {
                if is_new(&mut known, &file) {
                    summary.add(&file)?;
                }
            }
        }
        Ok(summary)
    }

    fn add(&mut self, path: &Path) -> anyhow::Result<()> {
        let bytes = match read_whole(path, MAX_BYTES) {
            // A running generator has replaced it.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            bytes => bytes.with_context(|| format!("can't read {}", path.display()))?,
        };
        self.files += 1;
        match games_in(path, &bytes) {
            Ok((games, dropped)) => {
                self.games += games.len() as u64;
                self.turns += games
                    .iter()
                    .map(|game| game.turns.len() as u64)
                    .sum::<u64>();
                let damage = dropped.into_iter().filter(|part| part.is_damage);
                self.faults.extend(damage.map(|part| Problem {
                    reason: format!("{} bytes are damaged: {}", part.bytes, part.reason),
                    file: part.path,
                    frame: None,
                    offset: part.offset,
                }));
            }
            Err(JournalError {
                path,
                offset,
                fault,
            }) => self.faults.push(Problem {
                file: path,
                frame: None,
                offset: offset.unwrap_or(0),
                reason: fault.to_string(),
            }),
        }
        Ok(())
    }
}
