//! Which shards must stay, for the journals of games in flight may ask for them.

use super::folder::{JournalFile, Owned, list_files};
use super::reader::Games;
use super::{JournalError, JournalFault};
use crate::record::shard::ShardName;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// How often files are read that are renamed, replaced or appended to meanwhile, and the pause between two attempts.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(5);

/// The shards that any journal in a folder has announced ([`Journal::closing`](super::Journal::closing)) and not said to be
/// complete: those of living generators, of other machines' too, and of dead ones that are not adopted yet. Some of them may
/// be there under their names nevertheless, and the generator that adopts the journal will look which games they hold.
///
/// Shards are pruned so: list them, ask here, and leave those that are found here. A shard that is there when it is listed was
/// announced before, so that none is missed.
///
/// # Errors
///
/// A journal that can't be read or is damaged: what it has announced is not known, and nothing should be pruned.
pub fn announced(folder: &Path) -> Result<BTreeSet<ShardName>, JournalError> {
    let mut attempt = 1;
    loop {
        let before = list_files(folder)?;
        let read = read_all(&before);
        // Who adopts a journal renames its files, and while that happens a listing may miss them.
        let error = match (read, list_files(folder)? == before) {
            (Ok(shards), true) => return Ok(shards),
            (Err(error), true) => error,
            (_, false) => JournalError::of_file(folder, JournalFault::Restless),
        };
        // What looks like damage may be a frame that is being written.
        if attempt == ATTEMPTS {
            return Err(error);
        }
        attempt += 1;
        sleep(PAUSE);
    }
}

fn read_all(files: &[JournalFile]) -> Result<BTreeSet<ShardName>, JournalError> {
    let mut by_generator: BTreeMap<u32, Vec<JournalFile>> = BTreeMap::new();
    for file in files {
        let own = by_generator.entry(file.generator).or_default();
        own.push(file.clone());
    }
    let mut shards = BTreeSet::new();
    for files in by_generator.into_values() {
        let mut games = Games::default();
        for JournalFile { path, .. } in Owned::of_files(files).current {
            let bytes = fs::read(&path).map_err(|error| JournalError::of_file(&path, error))?;
            games.read(&path, &bytes)?;
        }
        shards.extend(games.announced());
    }
    Ok(shards)
}
