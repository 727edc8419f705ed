//! A match's folder: the plan, and each game that is over.
//!
//! ```text
//! match.toml      the match as resolved (MatchPlan)
//! results.jsonl   a line for each game that is over, in the order in which they ended
//! games/          the games' records by number: 000000.txt, …
//! openings.txt    openings that a player sampled
//! match.lock      held by the program that plays the match
//! ```
//!
//! A game's record is written before its line, and the line holds the record's hash: a game counts once both exist and agree. The
//! plan, each line and the openings end with a checksum.
//! Records and lines are not flushed to the disk game by game. A killed process loses nothing; after a power cut, missing or torn
//! games are played again.

mod parts;

use super::plan::{MatchPlan, PlanError};
use super::record::{GAMES, RecordError, read_record, record_name};
use super::result::{GameSummary, MAX_RESULTS_BYTES, RESULTS};
use crate::openings::MAX_BYTES;
use anyhow::{Context, Result, bail, ensure};
use engine::files::{self, ChecksumForm, FileLock, is_temporary, read_whole};
use engine::progress::say;
use engine::run::{make_folder, write_file};
use engine::stop::Stop;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(super) const PLAN: &str = "match.toml";
const LOCK: &str = "match.lock";
pub(super) const OPENINGS: &str = "openings.txt";

/// The first line of a file of openings whose last line is a checksum. Files of earlier versions have neither.
const SIGNED: &str = "# The last line is a checksum.\n";

/// The most bytes of a plan; a usual one has a few thousand.
const MAX_PLAN_BYTES: u64 = 1 << 20;

/// The time between two flushes to the disk.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// A match that is resumed, and its games that are over by number.
pub(super) type Resumed = (MatchFolder, BTreeMap<u64, GameSummary>);

/// The folder of a match that is being played.
#[derive(Debug)]
pub(super) struct MatchFolder {
    path: PathBuf,
    results: File,
    _lock: FileLock,
    /// The time of the first line that is not flushed yet.
    unflushed_since: Option<Instant>,
}

impl MatchFolder {
    /// Makes a new folder: `name` in `out`, or `name.2`, `name.3`, ….
    pub(super) fn begin(out: &Path, name: &str, plan: &MatchPlan) -> Result<Self> {
        make_folder(out)?;
        let path = claim(out, name)?;
        let lock = lock(&path, Duration::ZERO, &Stop::default())?;
        let lock = lock.with_context(|| is_played(&path))?;
        write_file(&path.join(PLAN), plan.to_toml().as_bytes())?;
        Self::open(path, lock)
    }

    /// The matches in `out` with the same plan, or fewer games, each with its number of games: those with fewer first, and the last
    /// begun or resumed last. The text says how the nearest other match differs.
    ///
    /// # Errors
    ///
    /// No match has the plan, and the plan of a folder with the match's name, `name` or `name.N`, is damaged: that may be the match.
    pub(super) fn find(
        out: &Path,
        name: &str,
        plan: &MatchPlan,
    ) -> Result<(Vec<(PathBuf, u64)>, String)> {
        let mut damaged = None;
        let wanted = |_: &MatchPlan| Some(plan.clone());
        let Compared { mut same, nearest } = Compared::of(out, wanted, |path, message, error| {
            if matches!(error, PlanError::Damaged(_)) && is_named(path, name) {
                damaged = Some(message);
            } else {
                say(&format!("{message}; this match is not resumed"));
            }
        })?;
        if let Some(message) = damaged {
            ensure!(
                !same.is_empty(),
                "{message}; this may be the match to resume: put back the file, or move its folder away"
            );
            say(&format!("{message}; this match is not resumed"));
        }
        let wanted_games = plan.games;
        // Folders are numbered, but another name may stand between them.
        same.sort_by_cached_key(|(path, games)| {
            let plan = std::fs::metadata(path.join(PLAN));
            let begun = plan.and_then(|plan| plan.modified()).ok();
            let has_all = *games == wanted_games;
            (has_all, begun, path.as_os_str().len(), path.clone())
        });
        let others = match nearest {
            None => format!("there is no match in {}", out.display()),
            Some(nearest) => another(&nearest),
        };
        Ok((same, others))
    }

    /// The games of a match that are over and have their record.
    pub(super) fn games_over(path: &Path) -> Result<BTreeMap<u64, GameSummary>> {
        recorded(path, read_results(path)?.0)
    }

    /// Whether a program plays the match of a folder.
    pub(super) fn is_played(path: &Path) -> Result<bool> {
        let lock = path.join(LOCK);
        FileLock::is_held(&lock).with_context(|| format!("can't look at {}", lock.display()))
    }

    /// Resumes a match: its folder, and the games that are over by number. Torn games are reported and removed. None if a stop is
    /// requested while another program plays the match.
    pub(super) fn resume(path: &Path, plan: &MatchPlan, stop: &Stop) -> Result<Option<Resumed>> {
        let Some(lock) = lock(path, FileLock::TIMEOUT, stop)? else {
            return Ok(None);
        };
        let (results, torn) = read_results(path)?;
        let lines = results.len();
        let games = recorded(path, results)?;
        let unrecorded = lines - games.len();
        if torn + unrecorded > 0 {
            say(&format!(
                "{}: {torn} lines of {RESULTS} are torn, {unrecorded} records are missing or torn: these games are played again",
                path.display()
            ));
            let text: String = games.values().map(GameSummary::to_line).collect();
            write_file(&path.join(RESULTS), text.as_bytes())?;
        }
        // The resumed match may have more games.
        write_file(&path.join(PLAN), plan.to_toml().as_bytes())?;
        Ok(Some((Self::open(path.to_owned(), lock)?, games)))
    }

    fn open(path: PathBuf, lock: FileLock) -> Result<Self> {
        make_folder(&path.join(GAMES))?;
        let name = path.join(RESULTS);
        let results = files::open_to_append(&name);
        Ok(Self {
            results: results.with_context(|| format!("can't open {}", name.display()))?,
            path,
            _lock: lock,
            unflushed_since: None,
        })
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of its games' records.
    pub(super) fn games(&self) -> PathBuf {
        self.path.join(GAMES)
    }

    /// The openings that a player sampled, as text; none if none are kept.
    ///
    /// # Errors
    /// The file can't be read, or was changed since it was written.
    pub(super) fn openings(&self) -> Result<Option<String>> {
        openings_of(&self.path)
    }

    /// Keeps openings that a player sampled, with a checksum.
    pub(super) fn keep_openings(&self, text: &str) -> Result<()> {
        let signed = ChecksumForm::Toml.sign(&format!("{SIGNED}{text}"));
        Ok(write_file(&self.path.join(OPENINGS), signed.as_bytes())?)
    }

    /// Keeps a game that is over: its summary and its record.
    pub(super) fn keep(&mut self, summary: &GameSummary, record: &str) -> Result<()> {
        let name = self.path.join(record_name(summary.game));
        let written = files::write_unflushed(&name, record.as_bytes());
        written.with_context(|| format!("can't write {}", name.display()))?;
        let written = files::write_all(&self.results, summary.to_line().as_bytes());
        written.with_context(|| self.cant_write())?;
        self.unflushed_since.get_or_insert_with(Instant::now);
        Ok(())
    }

    /// Flushes the results to the disk once the interval has passed.
    pub(super) fn flush_if_due(&mut self) -> Result<()> {
        match self.unflushed_since {
            Some(since) if since.elapsed() >= FLUSH_INTERVAL => self.flush(),
            _ => Ok(()),
        }
    }

    /// Flushes the results to the disk.
    pub(super) fn flush(&mut self) -> Result<()> {
        if self.unflushed_since.take().is_some() {
            files::sync(&self.results).with_context(|| self.cant_write())?;
        }
        Ok(())
    }

    fn cant_write(&self) -> String {
        format!("can't write {}", self.path.join(RESULTS).display())
    }
}

/// The matches of a folder, compared with a plan.
#[derive(Default)]
struct Compared {
    /// Those without a difference, with the number of games.
    same: Vec<(PathBuf, u64)>,
    /// The one with the fewest differences, and these.
    nearest: Option<(PathBuf, Vec<String>)>,
}

impl Compared {
    /// Compares the plan of each match in `out` with the one that is `wanted` in its place; none leaves the match out. A plan that
    /// can't be read is handed to `refuse`, with the error in words.
    fn of(
        out: &Path,
        wanted: impl Fn(&MatchPlan) -> Option<MatchPlan>,
        mut refuse: impl FnMut(&Path, String, PlanError),
    ) -> Result<Self> {
        let mut compared = Self::default();
        for path in folders(out)? {
            let kept = match read_plan(&path) {
                Ok(Some(kept)) => kept,
                Ok(None) => continue,
                Err(error) => {
                    let message = format!("{}: {error}", path.join(PLAN).display());
                    refuse(&path, message, error);
                    continue;
                }
            };
            let Some(wanted) = wanted(&kept) else {
                continue;
            };
            let differences = wanted.differences(&kept);
            let is_nearer = |(_, least): &(_, Vec<String>)| differences.len() < least.len();
            if differences.is_empty() {
                compared.same.push((path, kept.games));
            } else if compared.nearest.as_ref().is_none_or(is_nearer) {
                compared.nearest = Some((path, differences));
            }
        }
        Ok(compared)
    }
}

/// How the nearest match differs.
fn another((path, differences): &(PathBuf, Vec<String>)) -> String {
    const MAX_SHOWN: usize = 4;
    let shown = differences[..differences.len().min(MAX_SHOWN)].join("; ");
    let more = match differences.len() {
        0..=MAX_SHOWN => String::new(),
        more => format!("; and {} more", more - MAX_SHOWN),
    };
    format!("{} is another match: {shown}{more}", path.display())
}

/// The games among the results that have their record.
fn recorded(
    folder: &Path,
    results: BTreeMap<u64, GameSummary>,
) -> Result<BTreeMap<u64, GameSummary>> {
    let mut games = BTreeMap::new();
    for (number, summary) in results {
        if record_of(folder, &summary)?.is_some() {
            games.insert(number, summary);
        }
    }
    Ok(games)
}

/// The record of a game that is over; none if it is missing or torn.
///
/// # Errors
/// The record can't be read, and a later try may succeed.
fn record_of(folder: &Path, summary: &GameSummary) -> Result<Option<String>> {
    let path = folder.join(record_name(summary.game));
    match read_record(&path, &summary.record_hash) {
        Ok(record) => Ok(Some(record)),
        Err(RecordError::Io(error))
            if error.kind() != ErrorKind::NotFound && is_temporary(&error) =>
        {
            Err(error).with_context(|| {
                format!(
                    "can't read {} now; try again later, or remove it to play its game again",
                    path.display()
                )
            })
        }
        Err(_) => Ok(None),
    }
}

/// The openings that a player sampled for a match; none if none are kept.
fn openings_of(folder: &Path) -> Result<Option<String>> {
    let path = folder.join(OPENINGS);
    let bytes = match read_whole(&path, MAX_BYTES) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        bytes => bytes.with_context(|| format!("can't read {}", path.display()))?,
    };
    let damaged = || {
        format!(
            "{} was damaged or edited: put back a copy of it, or move the match's folder away to play the match anew",
            path.display()
        )
    };
    let text = String::from_utf8(bytes).with_context(damaged)?;
    let opened = match ChecksumForm::Toml.open(&text) {
        Ok(None) if !text.starts_with(SIGNED) => Some(text),
        Ok(Some(body)) => body.strip_prefix(SIGNED).map(str::to_owned),
        Ok(None) | Err(_) => None,
    };
    opened.map(Some).with_context(damaged)
}

fn claim(out: &Path, name: &str) -> Result<PathBuf> {
    for attempt in 1..=u32::MAX {
        let folder = match attempt {
            1 => out.join(name),
            _ => out.join(format!("{name}.{attempt}")),
        };
        match files::make_new_folder(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("can't make the folder {}", folder.display()));
            }
        }
    }
    bail!("{} has no free name left for {name}", out.display())
}

/// Takes the lock of a match; none if a stop is requested while another program holds it.
fn lock(folder: &Path, timeout: Duration, stop: &Stop) -> Result<Option<FileLock>> {
    let path = folder.join(LOCK);
    let waits = || {
        say(&format!(
            "{}. This one waits up to 3 minutes for it.",
            is_played(folder)
        ));
    };
    let lock = FileLock::take(&path, timeout, stop, waits);
    let lock = lock.with_context(|| format!("can't lock {}", path.display()))?;
    ensure!(lock.is_some() || stop.is_requested(), is_played(folder));
    Ok(lock)
}

fn is_played(folder: &Path) -> String {
    format!("another program plays the match in {}", folder.display())
}

/// The folders in a folder; none if it doesn't exist.
fn folders(out: &Path) -> Result<Vec<PathBuf>> {
    let what = || format!("can't read the folder {}", out.display());
    let entries = match fs::read_dir(out) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(what)?,
    };
    let mut folders = Vec::new();
    for entry in entries {
        let path = entry.with_context(what)?.path();
        if path.is_dir() {
            folders.push(path);
        }
    }
    folders.sort();
    Ok(folders)
}

/// Whether a match of this name may have made a folder.
fn is_named(folder: &Path, name: &str) -> bool {
    let found = folder.file_name().and_then(|found| found.to_str());
    let rest = found.and_then(|found| found.strip_prefix(name));
    let is_number = |text: &str| text.parse::<u32>().is_ok();
    rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('.').is_some_and(is_number))
}

/// The plan of a folder; none if it is no match.
pub(super) fn read_plan(folder: &Path) -> Result<Option<MatchPlan>, PlanError> {
    let damaged = |reason: &dyn std::fmt::Display| PlanError::Damaged(reason.to_string());
    let bytes = match read_whole(&folder.join(PLAN), MAX_PLAN_BYTES) {
        Err(error) if error.kind() == ErrorKind::NotFound && !folder.join(RESULTS).exists() => {
            return Ok(None);
        }
        bytes => bytes.map_err(|error| damaged(&error))?,
    };
    let text = String::from_utf8(bytes).map_err(|error| damaged(&error))?;
    MatchPlan::parse(&text).map(Some)
}

/// The results by game, and the number of torn lines.
pub(super) fn read_results(folder: &Path) -> Result<(BTreeMap<u64, GameSummary>, usize)> {
    let path = folder.join(RESULTS);
    let bytes = match read_whole(&path, MAX_RESULTS_BYTES) {
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        bytes => bytes.with_context(|| format!("can't read {}", path.display()))?,
    };
    let mut games = BTreeMap::new();
    let mut torn = 0;
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        // A line without its end would run into the next one.
        match GameSummary::of_line(line) {
            Some(summary) => drop(games.insert(summary.game, summary)),
            None => torn += 1,
        }
    }
    Ok((games, torn))
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::plan;
    use super::super::result::tests::summary;
    use super::super::sprt::SprtOrder;
    use super::*;

    fn found(out: &Path, plan: &MatchPlan) -> Result<PathBuf, String> {
        let (mut same, others) = MatchFolder::find(out, "m", plan).unwrap();
        same.pop().map(|(path, _)| path).ok_or(others)
    }

    fn resumed(path: &Path, plan: &MatchPlan) -> Resumed {
        let resumed = MatchFolder::resume(path, plan, &Stop::default());
        resumed.unwrap().unwrap()
    }

    /// A folder with a match whose first games are over.
    fn played(out: &Path, games: u64) -> PathBuf {
        let mut folder = MatchFolder::begin(out, "m", &plan()).unwrap();
        for number in 0..games {
            let record = format!("game {number}\n");
            folder.keep(&summary(number, &record), &record).unwrap();
        }
        folder.flush().unwrap();
        folder.path().to_owned()
    }

    #[test]
    fn games_that_are_over_are_found_again() {
        let out = tempfile::tempdir().unwrap();
        assert_eq!(
            found(out.path(), &plan()).unwrap_err(),
            format!("there is no match in {}", out.path().display())
        );
        let path = played(out.path(), 3);
        assert_eq!(found(out.path(), &plan()).unwrap(), path);
        let longer = MatchPlan {
            games: 40,
            ..plan()
        };
        assert_eq!(found(out.path(), &longer).unwrap(), path);
        let (folder, games) = resumed(&path, &longer);
        assert_eq!(games.keys().copied().collect::<Vec<_>>(), [0, 1, 2]);
        let message = found(out.path(), &plan()).unwrap_err();
        assert!(
            message.contains("m is another match: games is 40 there and 20 here"),
            "{message}"
        );
        let locked = lock(&path, Duration::ZERO, &Stop::default());
        let locked = locked.unwrap_err().to_string();
        assert!(
            locked.contains("another program plays the match"),
            "{locked}"
        );
        assert!(MatchFolder::is_played(&path).unwrap());
        drop(folder);
        resumed(&path, &longer);
    }

    #[test]
    fn the_last_of_several_is_resumed_and_the_nearest_is_named() {
        let out = tempfile::tempdir().unwrap();
        for _ in 0..11 {
            drop(MatchFolder::begin(out.path(), "m", &plan()).unwrap());
        }
        assert_eq!(found(out.path(), &plan()).unwrap(), out.path().join("m.11"));
        let mut far = MatchPlan {
            seed: 9,
            games: 2,
            max_turns: 5,
            ..plan()
        };
        assert!(
            found(out.path(), &far)
                .unwrap_err()
                .contains("max_turns is 400 there and 5 here")
        );
        drop(
            MatchFolder::begin(
                out.path(),
                "x",
                &MatchPlan {
                    seed: 8,
                    ..far.clone()
                },
            )
            .unwrap(),
        );
        far.games = 4;
        let message = found(out.path(), &far).unwrap_err();
        assert!(
            message.ends_with("x is another match: seed is 8 there and 9 here"),
            "{message}"
        );
    }

    #[test]
    fn a_match_with_a_damaged_plan_is_no_absent_match() {
        let out = tempfile::tempdir().unwrap();
        let path = played(out.path(), 3);
        let file = path.join(PLAN);
        let kept = fs::read_to_string(&file).unwrap();
        let message = |name| {
            let found = MatchFolder::find(out.path(), name, &plan());
            found.err().unwrap().to_string()
        };
        for damaged in ["", "format = ", &kept.replace("seed = 3", "seed = 2")] {
            fs::write(&file, damaged).unwrap();
            let message = message("m");
            assert!(
                message.contains("m/match.toml: ")
                    && message.contains("may be the match to resume"),
                "{message}"
            );
        }
        // Another match's damage hides nothing.
        let (same, others) = MatchFolder::find(out.path(), "n", &plan()).unwrap();
        assert!(same.is_empty() && others.contains("there is no match"));
        fs::remove_file(&file).unwrap();
        assert!(message("m").contains("No such file"));
        let again = played(out.path(), 1);
        assert_eq!(again.file_name().unwrap(), "m.2");
        assert_eq!(found(out.path(), &plan()).unwrap(), again);
        fs::write(again.join(PLAN), "").unwrap();
        assert!(message("m").contains("m.2/match.toml: "));
    }

    #[test]
    fn torn_games_are_played_again() {
        let out = tempfile::tempdir().unwrap();
        let path = played(out.path(), 6);
        let results = path.join(RESULTS);
        let text = fs::read_to_string(&results).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        // Game 1's line is zeros, game 5's has no end; game 2's record is cut, game 3's gone.
        let torn = [lines[0], "\0\0\0", lines[2], lines[3], lines[4], lines[5]].join("\n");
        fs::write(&results, torn).unwrap();
        fs::write(path.join(record_name(2)), "ga").unwrap();
        fs::remove_file(path.join(record_name(3))).unwrap();
        let (mut folder, games) = resumed(&path, &plan());
        assert_eq!(games.keys().copied().collect::<Vec<_>>(), [0, 4]);
        folder.keep(&summary(1, "again\n"), "again\n").unwrap();
        drop(folder);
        let (_, games) = resumed(&path, &plan());
        assert_eq!(games.keys().copied().collect::<Vec<_>>(), [0, 1, 4]);
    }

    #[test]
    fn games_whose_records_can_not_be_read_now_are_not_played_again() {
        let out = tempfile::tempdir().unwrap();
        let path = played(out.path(), 3);
        let (results, record) = (path.join(RESULTS), path.join(record_name(1)));
        let kept = fs::read_to_string(&results).unwrap();
        fs::remove_file(&record).unwrap();
        // A link to itself can't be opened, by any user.
        std::os::unix::fs::symlink(&record, &record).unwrap();
        let resumed = MatchFolder::resume(&path, &plan(), &Stop::default());
        let message = resumed.unwrap_err().to_string();
        assert!(
            message.contains("m/games/000001.txt now; try again later"),
            "{message}"
        );
        assert!(MatchFolder::games_over(&path).is_err());
        assert_eq!(fs::read_to_string(&results).unwrap(), kept);
    }

    #[test]
    fn openings_have_a_checksum_and_older_ones_are_read() {
        let out = tempfile::tempdir().unwrap();
        let folder = MatchFolder::begin(out.path(), "m", &plan()).unwrap();
        let read = || folder.openings().unwrap();
        assert_eq!(read(), None);
        let file = folder.path().join(OPENINGS);
        let text = "# opening 0\n1g Ra1 Rb1\n2g Ra2n\n\n";
        fs::write(&file, text).unwrap();
        assert_eq!(read().as_deref(), Some(text));
        folder.keep_openings(text).unwrap();
        assert_eq!(read().as_deref(), Some(text));
        let kept = fs::read_to_string(&file).unwrap();
        let (cut, _) = kept.split_once("2g").unwrap();
        for damaged in [cut, kept.trim_end(), &kept.replace("Ra2n", "Ra2e")] {
            fs::write(&file, damaged).unwrap();
            let message = folder.openings().unwrap_err().to_string();
            assert!(
                message.contains("m/openings.txt was damaged or edited: put back a copy"),
                "{message}"
            );
        }
        fs::write(&file, b"\xff").unwrap();
        assert!(folder.openings().is_err());
        // They are not missing, but can't be read now.
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink(&file, &file).unwrap();
        assert!(folder.openings().is_err());
    }

    #[test]
    fn a_match_is_finished_when_no_game_is_left_to_play() {
        let out = tempfile::tempdir().unwrap();
        let path = played(out.path(), 12);
        let is_finished = |plan: &MatchPlan, over| {
            fs::write(path.join(PLAN), plan.to_toml()).unwrap();
            crate::pit::is_finished(&path, over).unwrap()
        };
        let whole = MatchPlan {
            seed: u64::MAX,
            ..plan()
        };
        assert!(is_finished(&whole, 20) && !is_finished(&whole, 19));
        let part = MatchPlan {
            part: Some("1/3".parse().unwrap()),
            ..plan()
        };
        assert!(is_finished(&part, 8) && !is_finished(&part, 7));
        // Twelve won games decide one test and not the other.
        let sprt = |elo1| MatchPlan {
            sprt: Some(SprtOrder {
                elo0: 0.0,
                elo1,
                alpha: 0.2,
                beta: 0.2,
            }),
            ..plan()
        };
        assert!(is_finished(&sprt(400.0), 12) && !is_finished(&sprt(5.0), 12));
        let other = plan().to_toml().replace("format = 4", "format = 3");
        fs::write(path.join(PLAN), other).unwrap();
        assert!(!crate::pit::is_finished(&path, 20).unwrap());
        fs::write(path.join(PLAN), "format = 4").unwrap();
        let error = crate::pit::is_finished(&path, 20).unwrap_err();
        assert!(error.to_string().contains("m/match.toml: "), "{error}");
    }
}
