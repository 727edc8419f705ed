//! A run as its files show it: what `train info` prints, as JSON. A file that can't be read is a problem, and the rest is shown.

use super::games::GamesIndex;
use super::series::TrainLog;
use crate::pit::is_finished;
use engine::files::{ChecksumForm, FileLock, make_folders, now_in, read_whole};
use engine::run::{
    FolderSize, GameSpeed, GeneratorPaths, GeneratorReport, LogLine, Problems, RunClock,
    RunDirectory, TimeLeft, folder_sizes, network_name,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The most bytes of a small file.
const MAX_BYTES: u64 = 64 << 20;

/// The most matches of an answer: the files of each are read for it.
const MAX_MATCHES: usize = 200;

/// `GET /api/run`.
#[derive(Debug, Default, Serialize)]
pub(super) struct RunAnswer {
    name: String,
    path: String,
    time: f64,
    networks: Vec<NetworkFileInfo>,
    generators: Vec<GeneratorReport>,
    /// The newest line of kind `train`.
    trainer: Option<LogLine>,
    trainer_is_running: bool,
    /// What it waits for.
    waiting: Option<String>,
    /// The newest line of kind `phase`, if the loop is running.
    phase: Option<LogLine>,
    time_left: Option<TimeLeft>,
    ratings: Option<Ratings>,
    clock: Vec<NetworkEffort>,
    game_speed: Option<GameSpeed>,
    config: String,
    changes: Vec<LogLine>,
    matches: Vec<Match>,
    disk: Vec<FolderSize>,
    pub(super) problems: Problems,
}

#[derive(Debug, Serialize)]
struct NetworkFileInfo {
    generation: u32,
    name: String,
    time: f64,
    bytes: u64,
}

#[derive(Debug, Deserialize, Serialize)]
struct Ratings {
    reference: Value,
    #[serde(rename(deserialize = "ratings"))]
    players: Vec<Value>,
}

#[derive(Debug, Serialize)]
struct NetworkEffort {
    generation: u32,
    hours: Option<f64>,
    games: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Match {
    name: String,
    games: usize,
    finished: bool,
}

/// The sizes of the run's folders.
#[derive(Debug, Clone, Default)]
pub(super) struct Disk {
    folders: Vec<FolderSize>,
    problems: Problems,
}

impl Disk {
    /// Adds up the files, which takes a while where there are many.
    pub(super) fn of(run: &RunDirectory) -> Self {
        let mut problems = Problems::default();
        Self {
            folders: folder_sizes(run.root(), &mut problems),
            problems,
        }
    }
}

impl RunAnswer {
    /// Adds what the trainer's log says.
    pub(super) fn add_log(&mut self, run: &RunDirectory, log: &TrainLog) {
        let newest = log.summary();
        (self.trainer, self.changes) = (newest.train.clone(), log.changes());
        if self.trainer_is_running {
            (self.phase, self.waiting) = (newest.phase.clone(), newest.waiting.clone());
        }
        let problems = &mut self.problems;
        log.problem()
            .into_iter()
            .for_each(|problem| problems.add(problem));
        let trained = problems.or_default(run.newest_trained());
        let trained = trained.map_or(0, |(generation, _)| generation);
        self.time_left = TimeLeft::of(run, trained, newest.generation_time(), problems);
    }

    /// Looks at a run, without the trainer's log.
    pub(super) fn of(run: &RunDirectory, games: &GamesIndex, disk: Disk) -> Self {
        let root = run.root();
        let name = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let mut answer = Self {
            name: name
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            path: root.display().to_string(),
            time: seconds(SystemTime::now()),
            disk: disk.folders,
            problems: disk.problems,
            ..Self::default()
        };
        let problems = &mut answer.problems;
        answer.networks = networks(run, problems);
        let now = now_of(run);
        answer.generators = GeneratorReport::list(&GeneratorPaths::from(run), now, problems);
        answer.trainer_is_running = problems.or_default(FileLock::is_held(&run.trainer_lock()));
        answer.ratings = json_file(&run.ratings(), problems);
        answer.clock = json_file(&run.clock(), problems).map_or_else(Vec::new, efforts);
        answer.game_speed = games.speed(now);
        answer.config = text_file(&run.config(), problems).unwrap_or_default();
        answer.matches = matches(&run.pit(), |name| games.count(name), problems);
        answer
    }
}

fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64()
}

/// The time by the clock of the run's files: on a shared folder, another machine's. This machine's where nothing can be written.
fn now_of(run: &RunDirectory) -> SystemTime {
    let cache = run.cache();
    let now = make_folders(&cache).and_then(|()| now_in(&cache));
    now.unwrap_or_else(|_| SystemTime::now())
}

fn networks(run: &RunDirectory, problems: &mut Problems) -> Vec<NetworkFileInfo> {
    let (networks, _) = problems.or_default(run.find_networks());
    let info = networks.into_iter().filter_map(|(generation, path)| {
        let found = fs::metadata(path).ok()?;
        Some(NetworkFileInfo {
            generation,
            name: network_name(generation),
            time: seconds(found.modified().ok()?),
            bytes: found.len(),
        })
    });
    info.collect()
}

fn efforts(clock: RunClock) -> Vec<NetworkEffort> {
    let networks = clock.networks.into_iter();
    let efforts = networks.map(|(generation, effort)| NetworkEffort {
        generation,
        hours: effort.hours(),
        games: effort.games,
    });
    efforts.collect()
}

/// The matches of the folder `pit`, [`MAX_MATCHES`] at most: the last by name, the last first. `games` counts a match's games.
fn matches(pit: &Path, games: impl Fn(&str) -> usize, problems: &mut Problems) -> Vec<Match> {
    let Ok(entries) = fs::read_dir(pit) else {
        return Vec::new();
    };
    let folders = entries.flatten().map(|entry| entry.path());
    let mut folders: Vec<_> = folders.filter(|path| path.is_dir()).collect();
    folders.sort();
    let shown = folders.len().saturating_sub(MAX_MATCHES);
    let matches = folders.split_off(shown).into_iter().rev();
    let matches = matches.map(|path| {
        let name = path.file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        let games = games(&name);
        let finished = is_finished(&path, games as u64);
        Match {
            finished: finished.unwrap_or_else(|error| {
                problems.add(format!("{error:#}"));
                false
            }),
            games,
            name,
        }
    });
    matches.collect()
}

/// A small file of JSON; none where there is none. Its checksum, where it has one, must match.
fn json_file<T: DeserializeOwned>(path: &Path, problems: &mut Problems) -> Option<T> {
    let bytes = file(path, problems)?;
    let text = ChecksumForm::Json.read(bytes);
    let value =
        text.and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()));
    value
        .map_err(|reason| problems.add(format!("{}: {reason}", path.display())))
        .ok()
}

fn text_file(path: &Path, problems: &mut Problems) -> Option<String> {
    Some(String::from_utf8_lossy(&file(path, problems)?).into_owned())
}

fn file(path: &Path, problems: &mut Problems) -> Option<Vec<u8>> {
    match read_whole(path, MAX_BYTES) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => {
            problems.add(format!("can't read {}: {error}", path.display()));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_match_without_a_whole_plan_is_not_finished() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("b/match.toml"), "games = 1").unwrap();
        let mut problems = Problems::default();
        let matches = matches(folder.path(), |_| 5, &mut problems);
        assert_eq!(problems.as_slice().len(), 1, "{problems:?}");
        assert!(problems.as_slice()[0].contains("b/match.toml: "));
        let found: Vec<(&str, usize, bool)> = matches
            .iter()
            .map(|one| (one.name.as_str(), one.games, one.finished))
            .collect();
        assert_eq!(found, [("b", 5, false), ("a", 5, false)]);
    }

    #[test]
    fn a_damaged_file_is_a_problem_and_the_rest_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path());
        fs::write(run.config(), "a").unwrap();
        fs::write(run.ratings(), "[]").unwrap();
        let clock =
            r#"{"seconds": 3600, "networks": {"2": {"games": 7, "seconds": 1800}, "1": {}}}"#;
        fs::write(run.clock(), clock).unwrap();
        let games = GamesIndex::open(&run).unwrap();
        let answer = RunAnswer::of(&run, &games, Disk::default());
        assert_eq!(answer.problems.as_slice().len(), 1, "{:?}", answer.problems);
        assert!(answer.problems.as_slice()[0].contains("ratings.json"));
        let efforts: Vec<(u32, Option<f64>, Option<u64>)> = answer
            .clock
            .iter()
            .map(|effort| (effort.generation, effort.hours, effort.games))
            .collect();
        assert_eq!(efforts, [(1, None, None), (2, Some(0.5), Some(7))]);
    }

    #[test]
    fn the_clock_of_the_files_is_known_without_a_cache_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path());
        for _ in 0..2 {
            let before = SystemTime::now();
            let apart = match now_of(&run).duration_since(before) {
                Ok(apart) => apart,
                Err(error) => error.duration(),
            };
            assert!(apart < Duration::from_secs(10), "{apart:?}");
            assert_eq!(fs::read_dir(run.cache()).unwrap().count(), 0);
        }
    }
}
