//! The generators of a run: each has a number, for a game's identity is that number and a counter, and a journal of the games
//! that it has in flight.
//!
//! ```text
//! generators/NNN            made by the generator that claims the number
//! generators/NNN/plan.toml  plan of the generator; written when its journal is there
//! generators/NNN/done       written when the plan is carried out
//! generators/NNN/status.json  state of a running generator; of one that has ended it says nothing
//! generators/worker-NAME.lock held by the worker of this name
//! ```
//!
//! A generator that was killed, or stopped before it was done, resumes when the same worker requests the same again: it has the same
//! plan, so that it gets its number, its games in flight and its counter back. Any other start gets a number of its own. Each start
//! takes over what is in flight in the journals of generators that have ended: its worker's at once, others' after [`SILENCE`], for
//! they may come back. Two that start at once never share a number, for the journal's lock is held
//! as long as a number is used; see [`journal`](crate::record::journal) for its requirements of the file system. Whatever breaks
//! off a start wastes a number at most.
//!
//! Machines without a common folder claim numbers from [blocks](block_numbers), one block a machine. A copy of `status.json` and
//! `plan.toml` in the trainer's folder shows it their generators.

use super::directory::{GENERATORS_FOLDER, RunDirectory};
use super::error::RunError;
use super::io::{claim_folder, entries, make_folder, read_file, write_file};
use super::workers::WorkerName;
use crate::files::{self, ChecksumForm, FileLock};
use crate::record::journal::{
    Journal, JournalFault, JournalPlace, Recovery, Standing, generators_in, lock_path,
};
use crate::record::{ShardFault, ShardName};
use crate::stop::Stop;
use serde::{Deserialize, Serialize};
use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A generator has ended for good if its lock is free and it has said nothing for so long. A running one writes its status every 15
/// seconds. Times are compared by the clock of the files: those of the machines may differ.
const SILENCE: Duration = Duration::from_mins(6);

/// The numbers of a block.
const BLOCK: u32 = 1_000;

/// How many blocks there are: one for each machine without a common folder.
pub const BLOCKS: u32 = 10_000;

/// How many generators may work on a run, one after the other or at once. Games of numbers that differ by 2²⁴ would draw the same random
/// numbers.
const GENERATORS: u32 = BLOCKS * BLOCK;

/// The generators' numbers of a block, from 0.
pub fn block_numbers(block: u32) -> Range<u32> {
    let first = block * BLOCK;
    first..first + BLOCK
}

/// Where generators have their numbers, journals and shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratorPaths {
    /// The folder that holds `generators`.
    pub root: PathBuf,
    /// The folder of the journals.
    pub journal: PathBuf,
    /// The folder of the shards.
    pub shards: PathBuf,
    /// The numbers that new generators claim.
    pub numbers: Range<u32>,
}

impl GeneratorPaths {
    /// All numbers.
    pub const ALL: Range<u32> = 0..GENERATORS;

    pub(super) fn generators(&self) -> PathBuf {
        self.root.join(GENERATORS_FOLDER)
    }

    fn folder(&self, generator: u32) -> PathBuf {
        self.generators().join(folder_name(generator))
    }

    /// The name of a generator's worker; none before its plan is written, or if it can't be read.
    pub fn worker(&self, generator: u32) -> Option<String> {
        let plan = Claimed::new(self, generator).read_plan().ok().flatten();
        plan.map(|plan| plan.worker)
    }

    /// Whether a generator has ever begun.
    pub fn is_used(&self) -> bool {
        exists(&self.generators())
    }

    /// The file that a worker with a name of its own holds the lock of while it works.
    pub fn worker_lock(&self, worker: &WorkerName) -> PathBuf {
        self.generators().join(format!("worker-{worker}.lock"))
    }

    /// Takes the lock of a worker's name, as [`FileLock::take`] does.
    ///
    /// # Errors
    ///
    /// What the disk says.
    pub fn lock_worker(
        &self,
        worker: &WorkerName,
        stop: &Stop,
        waits: impl FnOnce(),
    ) -> Result<Option<FileLock>, RunError> {
        make_folder(&self.generators())?;
        let path = self.worker_lock(worker);
        let lock = FileLock::take(&path, FileLock::TIMEOUT, stop, waits);
        lock.map_err(RunError::io("lock", &path))
    }

    /// The file in which a generator says how it stands while it works: JSON, written anew now and then.
    pub fn status(&self, generator: u32) -> PathBuf {
        self.folder(generator).join("status.json")
    }
}

impl From<&RunDirectory> for GeneratorPaths {
    fn from(run: &RunDirectory) -> Self {
        Self {
            root: run.root().to_owned(),
            journal: run.journal(),
            shards: run.shards(),
            numbers: Self::ALL,
        }
    }
}

/// The part of a generator's task that its games depend on: equal plans are the same generator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeneratorPlan {
    /// The [name](super::WorkerName) of the worker. In the file it comes first, for it can be missing: a file that is cut lacks
    /// another key.
    #[serde(default)]
    pub worker: String,
    /// The run's seed. In the file it is a text: numbers there have 63 bits.
    #[serde(with = "as_text")]
    pub seed: u64,
    /// The games to play, if there is a limit.
    #[serde(
        default,
        with = "as_optional_text",
        skip_serializing_if = "Option::is_none"
    )]
    pub games: Option<u64>,
    /// [`digest`](crate::record::digest) of the resolved configuration's TOML.
    pub config_digest: String,
    /// The evaluator of step states, as the generator was started with it.
    pub evaluator: String,
}

mod as_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(number)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

mod as_optional_text {
    use super::as_text;
    use serde::{Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        number: &Option<u64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        number
            .map(|number| number.to_string())
            .serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
        as_text::deserialize(from).map(Some)
    }
}

/// A generator that works on a run, with its journal. Its number is free for the same plan again when this is dropped or the
/// program ends, however it ends.
pub struct Generator {
    journal: Journal,
    folder: PathBuf,
    is_resumed: bool,
}

impl Generator {
    /// Resumes the generator of this plan that has ended without being done, the one of the lowest number if there are several;
    /// else begins a new one. Folders are made as needed.
    ///
    /// A generator is not resumed if another has taken over its journal.
    ///
    /// # Errors
    ///
    /// What the disk says: another call may succeed then. A plan or the plan's journal that can't be read: its games would be played
    /// again. All numbers being used.
    pub fn start(
        paths: &GeneratorPaths,
        plan: &GeneratorPlan,
    ) -> Result<(Self, Recovery), RunError> {
        let generators = paths.generators();
        for folder in [&generators, &paths.journal, &paths.shards] {
            make_folder(folder)?;
        }
        for number in list_numbers(&generators)? {
            if let Some(resumed) = resume(paths, plan, number)? {
                return Ok(resumed);
            }
        }
        let numbers = paths.numbers.clone();
        first_free(&generators, &paths.shards, numbers, |number| {
            claim(paths, plan, number)
        })
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.journal.generator()
    }

    /// Its journal.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Whether it resumes what a generator of the same plan has begun.
    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// Says that the plan has been carried out: the same requested again is the work of a new generator.
    ///
    /// # Errors
    ///
    /// Games that are in flight, and what the disk says.
    pub fn mark_done(&self) -> Result<(), RunError> {
        let path = self.folder.join("done");
        match self.journal.games() {
            0 => write_file(&path, b""),
            games => Err(RunError::GamesInFlight {
                generator: self.number(),
                games,
            }),
        }
    }
}

/// The numbers of the generators that run at this moment, in order. Each lock is held for an instant to see whether it is free. One
/// without a lock is another machine's: it runs while the copy of its status changes every six minutes or more often.
///
/// # Errors
///
/// What the disk says.
pub fn running_generators(paths: &GeneratorPaths) -> Result<Vec<u32>, RunError> {
    running_generators_at(paths, || now_in(&paths.generators()))
}

/// [`running_generators`] at a time by the clock of the run's files.
pub(super) fn running_generators_at(
    paths: &GeneratorPaths,
    now: impl FnOnce() -> SystemTime,
) -> Result<Vec<u32>, RunError> {
    let mut running = Vec::new();
    let now = LazyCell::new(now);
    for number in list_numbers(&paths.generators())? {
        if Claimed::new(paths, number).is_done() {
            continue;
        }
        let path = lock_path(&paths.journal, number);
        let runs = if exists(&path) {
            FileLock::is_held(&path).map_err(RunError::io("look at", &path))?
        } else {
            // Another machine's. Without a status or plan its number was only claimed so far.
            let silence = Claimed::new(paths, number).silence(*now);
            silence.is_some_and(|silence| silence < SILENCE)
        };
        if runs {
            running.push(number);
        }
    }
    Ok(running)
}

/// A generator that has ended without being done, and has games in flight: it resumes if its worker starts again, or is taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostGenerator {
    /// Its number.
    pub number: u32,
    /// The name of its worker; empty if its plan can't be read.
    pub worker: String,
    /// The time since it last wrote its status or plan.
    pub silence: Duration,
    /// Whether its journal is on another machine without a common folder: no generator here can take it over.
    pub is_elsewhere: bool,
}

/// The generators that have ended without being done and have said nothing for six minutes, in order.
///
/// # Errors
///
/// What the disk says.
pub fn lost_generators(paths: &GeneratorPaths) -> Result<Vec<LostGenerator>, RunError> {
    let generators = paths.generators();
    if list_numbers(&generators)?.is_empty() {
        return Ok(Vec::new());
    }
    lost_generators_at(paths, now_in(&generators))
}

/// [`lost_generators`] at a time by the clock of the run's files.
pub(super) fn lost_generators_at(
    paths: &GeneratorPaths,
    now: SystemTime,
) -> Result<Vec<LostGenerator>, RunError> {
    let numbers = list_numbers(&paths.generators())?;
    let running = running_generators_at(paths, || now)?;
    let with_journal = if exists(&paths.journal) {
        generators_in(&paths.journal)?
    } else {
        BTreeSet::new()
    };
    let mut lost = Vec::new();
    for number in numbers {
        let claimed = Claimed::new(paths, number);
        let is_elsewhere = !exists(&lock_path(&paths.journal, number));
        let has_games = is_elsewhere || with_journal.contains(&number);
        if running.contains(&number) || claimed.is_done() || !has_games {
            continue;
        }
        if let Some(silence) = claimed.silence(now).filter(|&silence| silence >= SILENCE) {
            let plan = claimed.read_plan().ok().flatten();
            lost.push(LostGenerator {
                number,
                worker: plan.map(|plan| plan.worker).unwrap_or_default(),
                silence,
                is_elsewhere,
            });
        }
    }
    Ok(lost)
}

/// The time by the clock of a folder's files, or this machine's where nothing can be written.
fn now_in(folder: &Path) -> SystemTime {
    files::now_in(folder).unwrap_or_else(|_| SystemTime::now())
}

/// Which generators that have ended a start of this plan takes over, by number.
fn may_adopt<'a>(paths: &'a GeneratorPaths, plan: &'a GeneratorPlan) -> impl Fn(u32) -> bool + 'a {
    let now = now_in(&paths.generators());
    move |number| {
        let claimed = Claimed::new(paths, number);
        let is_own = match claimed.read_plan() {
            Ok(Some(theirs)) => theirs.worker == plan.worker,
            // It was broken off, or can't resume.
            Ok(None) | Err(RunError::GeneratorPlan { .. }) => true,
            Err(_) => false,
        };
        is_own
            || claimed
                .silence(now)
                .is_none_or(|silence| silence >= SILENCE)
    }
}

/// Claims the first free generator number of all, for good: the folder `NNN` is made by an operation that only one of several programs
/// can succeed in. Numbers that shards have are taken. A game's identity is this number and a counter. [`Generator`] claims numbers that
/// can be resumed.
pub fn claim_generator(paths: &GeneratorPaths) -> Result<u32, RunError> {
    let folder = paths.generators();
    make_folder(&folder)?;
    first_free(&folder, &paths.shards, GeneratorPaths::ALL, |number| {
        let is_claimed = !was_moved_away(paths, number)? && claim_folder(&paths.folder(number))?;
        Ok(is_claimed.then_some(number))
    })
}

/// Whether a number was used and its folder was moved away: the lock stays.
fn was_moved_away(paths: &GeneratorPaths, number: u32) -> Result<bool, RunError> {
    let lock = lock_path(&paths.journal, number);
    let has_lock = lock.try_exists().map_err(RunError::io("look at", &lock))?;
    Ok(has_lock && !exists(&paths.folder(number)))
}

/// What `claim` makes of the first of some numbers that it can have. The numbers of the shards in a folder are taken: the shards may have
/// been copied without their generators.
fn first_free<T>(
    generators: &Path,
    shards: &Path,
    numbers: Range<u32>,
    mut claim: impl FnMut(u32) -> Result<Option<T>, RunError>,
) -> Result<T, RunError> {
    let names = entries(shards)?.into_iter().filter_map(|path| {
        let name: ShardName = path.file_name()?.to_str()?.parse().ok()?;
        Some(name.generator)
    });
    let taken: BTreeSet<u32> = names.collect();
    for number in numbers.clone().filter(|number| !taken.contains(number)) {
        if let Some(claimed) = claim(number)? {
            return Ok(claimed);
        }
    }
    Err(RunError::Full {
        path: generators.to_owned(),
        numbers,
    })
}

/// The numbers of the folders that there are, in order. Other entries are ignored.
pub(super) fn list_numbers(generators: &Path) -> Result<Vec<u32>, RunError> {
    let numbers = entries(generators)?.into_iter().filter_map(|path| {
        let name = path.file_name()?.to_str()?;
        // Written back, so that each number has one name.
        let number = name.parse().ok()?;
        (name == folder_name(number)).then_some(number)
    });
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    Ok(numbers)
}

fn folder_name(number: u32) -> String {
    format!("{number:03}")
}

/// A number by its folder, of any generator.
struct Claimed {
    folder: PathBuf,
    place: JournalPlace,
}

impl Claimed {
    fn new(paths: &GeneratorPaths, number: u32) -> Self {
        Self {
            folder: paths.folder(number),
            place: JournalPlace::new(&paths.journal, &paths.shards, number),
        }
    }

    fn plan(&self) -> PathBuf {
        self.folder.join("plan.toml")
    }

    fn is_done(&self) -> bool {
        exists(&self.folder.join("done"))
    }

    /// Whether no game was begun under this number, though a generator was about to.
    fn was_wasted(&self) -> bool {
        let lock = lock_path(&self.place.journal, self.place.generator);
        !exists(&self.plan()) && !self.is_done() && exists(&lock)
    }

    /// Whether it has this plan and is not done.
    fn can_resume(&self, plan: &GeneratorPlan) -> Result<bool, RunError> {
        if self.is_done() {
            return Ok(false);
        }
        let found = self.read_plan()?;
        // It may have been done a moment ago.
        Ok(found.as_ref() == Some(plan) && !self.is_done())
    }

    /// Its plan, if it is written.
    fn read_plan(&self) -> Result<Option<GeneratorPlan>, RunError> {
        let path = self.plan();
        let Some(bytes) = read_file(&path, 1 << 20)? else {
            return Ok(None);
        };
        let parse = || {
            let text = ChecksumForm::Toml.read(bytes)?;
            toml::from_str::<GeneratorPlan>(&text).map_err(|error| error.message().to_owned())
        };
        parse().map(Some).map_err(|reason| RunError::GeneratorPlan {
            path,
            reason,
            folder: self.folder.clone(),
        })
    }

    /// The time since it last wrote its status, or its plan before it has one. None without either.
    fn silence(&self, now: SystemTime) -> Option<Duration> {
        let time =
            |name: &str| fs::metadata(self.folder.join(name)).and_then(|about| about.modified());
        let last = [time("status.json"), time("plan.toml")]
            .into_iter()
            .flatten()
            .max()?;
        Some(now.duration_since(last).unwrap_or_default())
    }
}

/// Whether something is there. What can't be looked at is not used.
fn exists(path: &Path) -> bool {
    path.try_exists().unwrap_or(true)
}

/// Resumes the generator of this number, if it is one of this plan that has ended and was not done.
fn resume(
    paths: &GeneratorPaths,
    plan: &GeneratorPlan,
    number: u32,
) -> Result<Option<(Generator, Recovery)>, RunError> {
    let claimed = Claimed::new(paths, number);
    if !claimed.can_resume(plan)? {
        return Ok(None);
    }
    let may_adopt = may_adopt(paths, plan);
    let opened = Journal::try_open(claimed.place.clone(), &may_adopt, |standing| {
        // Without a file of its own it is unknown which games it has begun. It may have been done a moment ago.
        standing == Standing::Begun && !claimed.is_done()
    });
    match opened {
        Ok(opened) => Ok(opened.map(|(journal, recovery)| {
            let generator = Generator {
                journal,
                folder: claimed.folder,
                is_resumed: true,
            };
            (generator, recovery)
        })),
        Err(error) if is_of_the_moment(&error.fault) => Err(error.into()),
        Err(error) => Err(RunError::GeneratorJournal {
            error: Box::new(error),
            folder: claimed.folder,
        }),
    }
}

/// Whether another attempt may succeed.
fn is_of_the_moment(fault: &JournalFault) -> bool {
    match fault {
        JournalFault::Io(_) => true,
        JournalFault::Shard(error) => matches!(error.fault, ShardFault::Io(_)),
        _ => false,
    }
}

/// Begins as the generator of this number, if it is unused.
fn claim(
    paths: &GeneratorPaths,
    plan: &GeneratorPlan,
    number: u32,
) -> Result<Option<(Generator, Recovery)>, RunError> {
    let claimed = Claimed::new(paths, number);
    if was_moved_away(paths, number)? {
        return Ok(None);
    }
    // A folder may be left by a start that failed, as on a full disk: otherwise each attempt would use up a number.
    if !claim_folder(&claimed.folder)? && !claimed.was_wasted() {
        return Ok(None);
    }
    let may_adopt = may_adopt(paths, plan);
    let opened = Journal::try_open(claimed.place.clone(), &may_adopt, |standing| {
        // Another may have been faster.
        standing == Standing::Unused && !exists(&claimed.plan())
    });
    let Some((journal, recovery)) = opened? else {
        return Ok(None);
    };
    // The last thing, for from now on the number may be resumed.
    let path = claimed.plan();
    let text = toml::to_string(plan).map_err(io::Error::other);
    let text = text.map_err(RunError::io("write", &path))?;
    write_file(&path, ChecksumForm::Toml.sign(&text).as_bytes())?;
    let generator = Generator {
        journal,
        folder: claimed.folder,
        is_resumed: false,
    };
    Ok(Some((generator, recovery)))
}

#[cfg(test)]
mod tests;
