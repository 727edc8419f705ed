//! What is found when a journal is opened: the games to resume, its own and those of generators that have ended.

use super::disk::Disk;
use super::folder::{JournalFile, Lock, Owned, list_files};
use super::reader::{Games, Told};
use super::{JournalError, JournalFault, JournalPlace};
use crate::record::game::{Ending, GameId, GameRecord};
use crate::record::replay::{EndingFault, ReplayError, replay};
use crate::record::shard::{ShardFault, ShardName, ShardReader};
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::fs;
use std::path::Path;

/// The games of one generator's files: checked, and without those that a complete shard holds.
pub(super) fn load(place: &JournalPlace, owned: &Owned) -> Result<Games, JournalError> {
    let mut games = Games::default();
    for file in &owned.current {
        let bytes =
            fs::read(&file.path).map_err(|error| JournalError::of_file(&file.path, error))?;
        games.read(&file.path, &bytes)?;
    }
    leave_out_finished(&place.shards, &mut games)?;
    check_all(&games)?;
    Ok(games)
}

/// Checks that the games are games so far.
pub(super) fn check_all(games: &Games) -> Result<(), JournalError> {
    for told in games.told.values() {
        check(told).map_err(|error| {
            let (game, error) = (told.beginning.id, error.into());
            JournalError::at(&told.path, told.offset, JournalFault::Game { game, error })
        })?;
    }
    Ok(())
}

/// Drops the games that were to be in a shard and are in it.
fn leave_out_finished(shards: &Path, games: &mut Games) -> Result<(), JournalError> {
    let mut held: BTreeMap<ShardName, BTreeSet<GameId>> = BTreeMap::new();
    for told in games.told.values() {
        for &name in &told.shards {
            if let Entry::Vacant(unknown) = held.entry(name) {
                let path = shards.join(name.to_string());
                let ids = games_of(&path)
                    .map_err(|fault| JournalError::at(&told.path, told.offset, fault))?;
                unknown.insert(ids);
            }
        }
    }
    let before = games.told.len();
    games.told.retain(|id, told| {
        let is_in = |name| held.get(name).is_some_and(|ids| ids.contains(id));
        !told.shards.iter().any(is_in)
    });
    games.finished += (before - games.told.len()) as u64;
    Ok(())
}

/// The games of a shard that can be read; none if it is not there. That a shard has its name is not enough: another start of the
/// generator may have given the name to a shard of other games.
fn games_of(path: &Path) -> Result<BTreeSet<GameId>, JournalFault> {
    let mut ids = BTreeSet::new();
    if !path.try_exists()? {
        return Ok(ids);
    }
    let reader = match ShardReader::open(path) {
        Ok(reader) => reader,
        // Nor may it be taken for lost what a newer program can read.
        Err(error) if matches!(error.fault, ShardFault::Io(_) | ShardFault::Version { .. }) => {
            return Err(JournalFault::Shard(error.into()));
        }
        Err(_) => return Ok(ids),
    };
    for record in reader {
        match record {
            Ok(record) => {
                ids.insert(record.id);
            }
            Err(error) if matches!(error.fault, ShardFault::Io(_)) => {
                return Err(JournalFault::Shard(error.into()));
            }
            // A frame that can't be read holds no usable game.
            Err(_) => {}
        }
    }
    Ok(ids)
}

/// Plays the turns under the rules, with all that a record's must hold. The last one may have ended the game.
fn check(told: &Told) -> Result<(), ReplayError> {
    let mut record = GameRecord {
        id: told.beginning.id,
        seed: told.beginning.seed,
        start: told.beginning.start,
        evaluators: told.evaluators.clone(),
        turns: told.turns.clone(),
        ending: Ending::Unfinished { value: None },
        resignation_waived: None,
    };
    match replay(&record) {
        Err(ReplayError::Ending(EndingFault::Over { played })) => {
            record.ending = Ending::Won(played);
            replay(&record).map(|_| ())
        }
        other => other.map(|_| ()),
    }
}

/// What generators that have ended leave: their games, now in files of this one.
#[derive(Default)]
pub(super) struct Adopted {
    pub(super) games: Games,
    pub(super) generators: Vec<u32>,
    /// Journals that can't be taken over, and stay where they are.
    pub(super) left: Vec<JournalError>,
}

/// Takes over the journals of all unlocked generators, by giving their files names of this generator's, whose own
/// games are given.
pub(super) fn adopt(
    place: &JournalPlace,
    disk: &dyn Disk,
    own: &Games,
    next_sequence: &mut u32,
) -> Result<Adopted, JournalError> {
    let generators: BTreeSet<u32> = list_files(&place.journal)?
        .into_iter()
        .map(|file| file.generator)
        .filter(|&generator| generator != place.generator)
        .collect();
    let mut adopted = Adopted::default();
    for generator in generators {
        let lock = match Lock::try_take(&place.journal, generator) {
            Ok(Some(lock)) => lock,
            Ok(None) => continue,
            // As where the files are another user's.
            Err(error) => {
                adopted.left.push(error);
                continue;
            }
        };
        // Listed under the lock: it may have been taken over since.
        let owned = Owned::list(&place.journal, generator)?;
        if owned.is_empty() {
            continue;
        }
        let games = load(place, &owned).and_then(|games| {
            check_apart(&games, own)?;
            check_apart(&games, &adopted.games)?;
            Ok(games)
        });
        match games {
            Ok(games) => {
                rename_all(place, disk, lock, owned, next_sequence)?;
                adopted.generators.push(generator);
                adopted.games.told.extend(games.told);
                adopted.games.dropped.extend(games.dropped);
                adopted.games.finished += games.finished;
            }
            Err(error) => adopted.left.push(error),
        }
    }
    Ok(adopted)
}

/// Each game stands in the files of one generator, unless they were copied.
fn check_apart(games: &Games, others: &Games) -> Result<(), JournalError> {
    match games
        .told
        .iter()
        .find(|(id, _)| others.told.contains_key(id))
    {
        None => Ok(()),
        Some((&id, told)) => {
            let fault = JournalFault::Twice(id);
            Err(JournalError::at(&told.path, told.offset, fault))
        }
    }
}

fn rename_all(
    place: &JournalPlace,
    disk: &dyn Disk,
    mut lock: Lock,
    mut owned: Owned,
    next_sequence: &mut u32,
) -> Result<(), JournalError> {
    let JournalPlace {
        journal, generator, ..
    } = place;
    // Under the new name nothing makes void files void: they go first, and for good.
    owned.remove_void(disk, journal)?;
    lock.mark_taken_over(*generator)?;
    for file in &owned.current {
        let renamed = JournalFile::new(journal, *generator, *next_sequence, true);
        *next_sequence = next_sequence.checked_add(1).ok_or_else(|| {
            let generator = *generator;
            JournalError::of_file(journal, JournalFault::Full { generator })
        })?;
        disk.rename(&file.path, &renamed.path)
            .and_then(|()| disk.sync_folder_of(&renamed.path))
            .map_err(|error| JournalError::of_file(&file.path, error))?;
    }
    Ok(())
}
