//! What is found in a folder of journals: the games to resume, a generator's own and those of generators that have ended; and the
//! shards that games were announced for.

use super::disk::Disk;
use super::error::{JournalError, JournalFault};
use super::folder::{JournalFile, JournalPlace, Lock, Owned, list_files};
use super::games::{Dropped, GameInFlight};
use super::reader::{Games, OnDamage};
use crate::files;
use crate::record::game::{Ending, GameId, GameRecord};
use crate::record::replay::{EndingFault, ReplayError, replay};
use crate::record::shard::{ShardFault, ShardName, ShardReader, list_shards};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// What was found when a journal was opened.
#[derive(Debug, Default)]
pub struct Recovery {
    /// The games to resume, by id. They are in the new journal already.
    pub games: Vec<GameInFlight>,
    /// The counter of the generator's next game.
    pub next_counter: u64,
    /// The sequence number of the generator's next shard: above all that it has announced.
    pub next_shard: u32,
    /// The generators whose journals were taken over, by number.
    pub adopted: Vec<u32>,
    /// Games in the files that a complete shard holds.
    pub finished: u64,
    /// Parts of files that could not be read: torn ends, and damage. A file with damage stays beside its journal, as
    /// `NNN-SSSSSS.journal.damaged`.
    pub dropped: Vec<Dropped>,
    /// The games in flight that have lost turns to damage, as far as later ones tell: they are among the [`games`](Self::games),
    /// with the turns before those.
    pub cut: Vec<GameId>,
    /// The games of which the beginning is lost to damage, and that no shard holds. The generator's own may begin again.
    pub lost: Vec<GameId>,
    /// Journals of other generators that are unlocked and can't be read: they stay as they are.
    pub left: Vec<JournalError>,
}

/// The games that one file holds, checked as when a journal is opened, and what could not be read. Some may be in a shard: no shard
/// is looked at.
///
/// # Errors
///
/// The beginning of the file is damaged or another program's, or a game breaks the rules.
pub fn games_in(
    path: &Path,
    bytes: &[u8],
) -> Result<(Vec<GameInFlight>, Vec<Dropped>), JournalError> {
    let mut games = Games::new(OnDamage::LeaveOut);
    games.read(path, bytes)?;
    check_all(&games)?;
    let found = games.found.into_values().map(|found| found.game);
    Ok((found.collect(), games.dropped))
}

/// The files of a folder of journals that count, of all generators: those that a later one replaces are left out.
///
/// # Errors
///
/// What the disk says, and files that end as journals do and have another name.
pub fn files_in_use(folder: &Path) -> Result<Vec<PathBuf>, JournalError> {
    let current = by_generator(&list_files(folder)?)
        .into_values()
        .flat_map(|files| Owned::of_files(files).current);
    Ok(current.map(|file| file.path).collect())
}

/// The generators that have journals in a folder.
pub(crate) fn generators_in(folder: &Path) -> Result<BTreeSet<u32>, JournalError> {
    let files = list_files(folder)?.into_iter();
    Ok(files.map(|file| file.generator).collect())
}

fn by_generator(files: &[JournalFile]) -> BTreeMap<u32, Vec<JournalFile>> {
    let mut by_generator: BTreeMap<u32, Vec<JournalFile>> = BTreeMap::new();
    for file in files {
        let own = by_generator.entry(file.generator).or_default();
        own.push(file.clone());
    }
    by_generator
}

/// The most games that are looked for among the lost ones.
const MAX_LOST: usize = 1 << 20;

/// The games of one generator's files: checked, and without those that a complete shard holds.
pub(super) fn load(place: &JournalPlace, owned: &Owned) -> Result<Loaded, JournalError> {
    let mut games = Games::of_files(&owned.current, OnDamage::LeaveOut)?;
    keep_damaged(&games)?;
    let held = leave_out_finished(&place.shards, &mut games)?;
    check_all(&games)?;
    let mut lost = games.damaged.clone();
    // Games begin in the order of their counters.
    for (&generator, first) in &games.first {
        let next = games.next_counters.get(&generator).copied();
        let counters = first.next_counter..next.unwrap_or_default();
        let ids = counters.map(|counter| GameId { generator, counter });
        lost.extend(ids.take(MAX_LOST).filter(|id| !games.begun.contains(id)));
    }
    lost.retain(|id| !games.found.contains_key(id) && !held.contains(id));
    let mut cut = std::mem::take(&mut games.damaged);
    cut.retain(|id| games.found.contains_key(id));
    Ok(Loaded { games, cut, lost })
}

/// The games of one generator's files, and those that have suffered from damage.
pub(super) struct Loaded {
    pub(super) games: Games,
    /// [`Recovery::cut`].
    pub(super) cut: BTreeSet<GameId>,
    /// [`Recovery::lost`].
    pub(super) lost: BTreeSet<GameId>,
}

/// Gives files with damage a second name, under which they stay.
fn keep_damaged(games: &Games) -> Result<(), JournalError> {
    let damaged = games.dropped.iter().filter(|part| part.is_damage);
    for Dropped { path, .. } in damaged {
        let mut kept = path.clone().into_os_string();
        kept.push(".damaged");
        // Some file systems have no links.
        let done = match files::link(path, Path::new(&kept)) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            Err(_) => fs::copy(path, &kept).map(drop),
            Ok(()) => Ok(()),
        };
        done.map_err(|error| JournalError::of_file(Path::new(&kept), error))?;
    }
    Ok(())
}

/// Checks that the games are games so far.
pub(super) fn check_all(games: &Games) -> Result<(), JournalError> {
    for (&game, found) in &games.found {
        check(&found.game).map_err(|error| {
            let error = error.into();
            JournalError::at(
                &found.path,
                found.offset,
                JournalFault::Game { game, error },
            )
        })?;
    }
    Ok(())
}

/// Drops the games that are in a shard: one that they were announced for, or one that the files don't know, because their end or
/// something in the middle is lost. Returns the games of these shards.
fn leave_out_finished(shards: &Path, games: &mut Games) -> Result<BTreeSet<GameId>, JournalError> {
    let found = games.found.values();
    let mut names: BTreeSet<ShardName> = found.flat_map(|found| found.shards.clone()).collect();
    names.extend(unknown_shards(shards, games)?);
    let mut held = BTreeSet::new();
    for name in names {
        let path = shards.join(name.to_string());
        let ids = games_of(&path).map_err(|fault| JournalError::of_file(&path, fault))?;
        games.count_shard(name.generator, name.sequence.saturating_add(1));
        for id in &ids {
            games.count_game(id.generator, id.counter.saturating_add(1));
        }
        held.extend(ids);
    }
    let before = games.found.len();
    games.found.retain(|id, _| !held.contains(id));
    games.finished += (before - games.found.len()) as u64;
    Ok(held)
}

/// The generators' shards that the files should know of and don't: all that may be, if entries are missing in the middle.
fn unknown_shards(shards: &Path, games: &Games) -> Result<Vec<ShardName>, JournalError> {
    let is_there = shards.try_exists();
    let is_there = is_there.map_err(|error| JournalError::of_file(shards, error))?;
    let listed = if is_there {
        list_shards(shards)
    } else {
        return Ok(Vec::new());
    };
    let listed =
        listed.map_err(|error| JournalError::of_file(shards, JournalFault::Shard(error.into())))?;
    let is_unknown = |name: &ShardName| {
        let first = games.first.get(&name.generator);
        first.is_some_and(|first| {
            let is_new = name.sequence >= first.next_shard && !games.announced.contains(name);
            is_new || games.is_damaged()
        })
    };
    Ok(listed.into_keys().filter(is_unknown).collect())
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
fn check(game: &GameInFlight) -> Result<(), ReplayError> {
    let record = GameRecord {
        id: game.beginning.id,
        seed: game.beginning.seed,
        start: game.beginning.start,
        evaluators: game.evaluators.clone(),
        turns: game.turns.clone(),
        ending: Ending::Unfinished { value: None },
        resignation_waived: None,
    };
    match replay(&record) {
        Ok(_) | Err(ReplayError::Ending(EndingFault::Over { .. })) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Takes over the journals of all unlocked generators that `may_adopt` accepts, by giving their files names of this generator's, and adds their games to
/// its own. Returns the generators' numbers, and the errors of journals that can't be taken over and stay where they are.
pub(super) fn adopt(
    place: &JournalPlace,
    disk: &dyn Disk,
    may_adopt: &dyn Fn(u32) -> bool,
    own: &mut Loaded,
    next_sequence: &mut u32,
) -> Result<(Vec<u32>, Vec<JournalError>), JournalError> {
    let (mut adopted, mut left) = (Vec::new(), Vec::new());
    let mut generators = generators_in(&place.journal)?;
    generators.remove(&place.generator);
    for generator in generators {
        if !may_adopt(generator) {
            continue;
        }
        let lock = match Lock::take(&place.journal, generator) {
            Ok(Some(lock)) => lock,
            Ok(None) => continue,
            // As where the files are another user's.
            Err(error) => {
                left.push(error);
                continue;
            }
        };
        // Listed under the lock: it may have been taken over since.
        let owned = Owned::list(&place.journal, generator)?;
        if owned.is_empty() {
            continue;
        }
        // Under the lock: it may have worked and ended since.
        if !may_adopt(generator) {
            continue;
        }
        let theirs = load(place, &owned).and_then(|theirs| {
            check_apart(&theirs.games, &own.games)?;
            Ok(theirs)
        });
        match theirs {
            Ok(theirs) => {
                rename_all(place, disk, lock, owned, next_sequence)?;
                adopted.push(generator);
                own.cut.extend(theirs.cut);
                own.lost.extend(theirs.lost);
                let (games, theirs) = (&mut own.games, theirs.games);
                games.found.extend(theirs.found);
                games.dropped.extend(theirs.dropped);
                games.finished += theirs.finished;
            }
            Err(error) => left.push(error),
        }
    }
    Ok((adopted, left))
}

/// Each game stands in the files of one generator, unless they were copied.
fn check_apart(games: &Games, others: &Games) -> Result<(), JournalError> {
    let mut found = games.found.iter();
    match found.find(|(id, _)| others.found.contains_key(id)) {
        None => Ok(()),
        Some((&id, found)) => {
            let fault = JournalFault::Twice(id);
            Err(JournalError::at(&found.path, found.offset, fault))
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
        // Adopting a journal renames its files, and while that happens a listing may miss them.
        let error = match (read, list_files(folder)? == before) {
            (Ok(shards), true) => return Ok(shards),
            (Err(error), true) => error,
            (_, false) => JournalError::of_file(folder, JournalFault::Changing),
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
    let mut shards = BTreeSet::new();
    for files in by_generator(files).into_values() {
        let games = Games::of_files(&Owned::of_files(files).current, OnDamage::Fail)?;
        shards.extend(games.found.into_values().flat_map(|found| found.shards));
    }
    Ok(shards)
}
