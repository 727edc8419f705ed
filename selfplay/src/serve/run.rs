//! A run as its files show it: what `train info` prints, as JSON. A file that can't be read is a problem, and the rest is shown.

use super::games::GamesIndex;
use super::series::TrainLog;
use engine::config::Config;
use engine::files::{ChecksumForm, FileLock, read_whole};
use engine::run::{
    GameSpeed, GeneratorPaths, GeneratorStatus, LogLine, RunDirectory, generators_at_work,
    lost_generators_at,
};
use serde::Serialize;
use serde_json::Value;
use std::fmt::Display;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The most bytes of a small file.
const LARGEST: u64 = 64 << 20;

/// `GET /api/run`.
#[derive(Debug, Default, Serialize)]
pub(super) struct RunAnswer {
    name: String,
    path: String,
    time: f64,
    networks: Vec<NetworkFileInfo>,
    generators: Vec<GeneratorInfo>,
    /// The newest line of kind `train`.
    trainer: Option<LogLine>,
    trainer_is_running: bool,
    /// What it waits for.
    waiting: Option<String>,
    /// The newest line of kind `phase`, if the loop is running.
    phase: Option<LogLine>,
    time_left: Option<TimeLeft>,
    ratings: Option<Ratings>,
    clock: Vec<Effort>,
    game_speed: Option<GameSpeed>,
    config: String,
    changes: Vec<LogLine>,
    matches: Vec<Match>,
    disk: Disk,
    pub(super) problems: Vec<String>,
}

/// Until `loop.generations` are trained.
#[derive(Debug, Serialize)]
struct TimeLeft {
    generations: u32,
    /// By the median time of the newest; none before the second.
    seconds: Option<f64>,
}

#[derive(Debug, Serialize)]
struct NetworkFileInfo {
    generation: u32,
    name: String,
    time: f64,
    bytes: u64,
}

/// A generator's own status, its age, and what follows from both: its state, `running` or `lost`.
#[derive(Debug, Serialize)]
struct GeneratorInfo {
    number: u32,
    /// A lost one of another machine: only there it resumes.
    is_elsewhere: bool,
    seconds_ago: f64,
    #[serde(flatten)]
    status: GeneratorStatus,
}

#[derive(Debug, Serialize)]
struct Ratings {
    reference: Value,
    players: Value,
}

#[derive(Debug, Serialize)]
struct Effort {
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

/// The bytes of folders.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Disk {
    shards: u64,
    journal: u64,
    networks: u64,
    checkpoints: u64,
    pit: u64,
    logs: u64,
    cache: u64,
}

impl Disk {
    /// Adds up the files, which takes a while where there are many.
    pub(super) fn of(run: &RunDirectory) -> Self {
        Self {
            shards: folder_bytes(&run.shards(), 0),
            journal: folder_bytes(&run.journal(), 0),
            networks: folder_bytes(&run.networks(), 0),
            checkpoints: folder_bytes(&run.checkpoints(), 0),
            pit: folder_bytes(&run.pit(), 4),
            logs: folder_bytes(&run.logs(), 2),
            cache: folder_bytes(&run.cache(), 2),
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
        self.problems.extend(log.problem());
        let trained = or_default(&mut self.problems, run.newest_trained());
        let trained = trained.map_or(0, |(generation, _)| generation);
        let config = Config::load(&run.config()).map(Some);
        if let Some(config) = or_default(&mut self.problems, config) {
            let left = config.training_loop.generations.saturating_sub(trained);
            let each = newest.generation_time();
            self.time_left = Some(TimeLeft {
                generations: left,
                seconds: each.map(|each| each.seconds * f64::from(left)),
            });
        }
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
            disk,
            ..Self::default()
        };
        let problems = &mut answer.problems;
        answer.networks = networks(run, problems);
        answer.generators = generators(run, problems);
        answer.trainer_is_running = or_default(problems, FileLock::is_held(&run.trainer_lock()));
        answer.ratings = json_file(&run.ratings(), problems).map(ratings);
        answer.clock =
            json_file(&run.clock(), problems).map_or_else(Vec::new, |clock| efforts(&clock));
        answer.game_speed = games.speed();
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

fn or_default<T: Default>(problems: &mut Vec<String>, result: Result<T, impl Display>) -> T {
    result.unwrap_or_else(|error| {
        problems.push(error.to_string());
        T::default()
    })
}

fn networks(run: &RunDirectory, problems: &mut Vec<String>) -> Vec<NetworkFileInfo> {
    let (networks, _) = or_default(problems, run.find_networks());
    let info = networks.into_iter().filter_map(|(generation, path)| {
        let found = fs::metadata(path).ok()?;
        Some(NetworkFileInfo {
            generation,
            name: format!("{generation:05}"),
            time: seconds(found.modified().ok()?),
            bytes: found.len(),
        })
    });
    info.collect()
}

/// The generators that run, and those that have ended with games in flight and are silent.
fn generators(run: &RunDirectory, problems: &mut Vec<String>) -> Vec<GeneratorInfo> {
    let paths = GeneratorPaths::from(run);
    let now = SystemTime::now();
    let mut generators = Vec::new();
    for number in or_default(problems, generators_at_work(&paths)) {
        let read = GeneratorStatus::read(&paths, number);
        let Some(mut status) = or_default(problems, read) else {
            continue;
        };
        let written = fs::metadata(paths.status(number)).and_then(|found| found.modified());
        let silence = written.ok().and_then(|time| now.duration_since(time).ok());
        status.state = "running".into();
        generators.push(GeneratorInfo {
            number,
            is_elsewhere: false,
            seconds_ago: silence.unwrap_or_default().as_secs_f64(),
            status,
        });
    }
    for lost in or_default(problems, lost_generators_at(&paths, now)) {
        let read = GeneratorStatus::read(&paths, lost.number);
        let mut status = or_default(problems, read).unwrap_or_default();
        (status.worker, status.state) = (lost.worker, "lost".into());
        generators.push(GeneratorInfo {
            number: lost.number,
            is_elsewhere: lost.is_elsewhere,
            seconds_ago: lost.silence.as_secs_f64(),
            status,
        });
    }
    generators
}

fn ratings(mut file: Value) -> Ratings {
    Ratings {
        reference: file["reference"].take(),
        players: file["ratings"].take(),
    }
}

fn efforts(clock: &Value) -> Vec<Effort> {
    let networks = clock["networks"].as_object().into_iter().flatten();
    let mut efforts: Vec<Effort> = networks
        .filter_map(|(generation, effort)| {
            Some(Effort {
                generation: generation.parse().ok()?,
                hours: effort["seconds"].as_f64().map(|seconds| seconds / 3600.0),
                games: effort["games"].as_u64(),
            })
        })
        .collect();
    efforts.sort_by_key(|effort| effort.generation);
    efforts
}

/// The matches in the folder `pit`, with a folder for each, and with so many games.
fn matches(pit: &Path, games: impl Fn(&str) -> usize, problems: &mut Vec<String>) -> Vec<Match> {
    let Ok(entries) = fs::read_dir(pit) else {
        return Vec::new();
    };
    let folders = entries.flatten().filter(|entry| entry.path().is_dir());
    let mut matches: Vec<Match> = folders
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let games = games(&name);
            let planned = planned_games(&entry.path().join("match.toml"), problems);
            Match {
                finished: planned.is_some_and(|planned| games as u64 >= planned),
                games,
                name,
            }
        })
        .collect();
    matches.sort_by(|one, other| one.name.cmp(&other.name));
    matches
}

/// The games of a match by its plan.
fn planned_games(path: &Path, problems: &mut Vec<String>) -> Option<u64> {
    let text = ChecksumForm::Toml.read(file(path, problems)?);
    let plan = text.and_then(|text| {
        let plan: Result<toml::Table, _> = toml::from_str(&text);
        plan.map_err(|error| error.message().to_owned())
    });
    let games = plan.and_then(|plan| {
        let games = games_of_plan(&plan);
        games.ok_or_else(|| "`games`, `players` or `schedule` is missing".to_owned())
    });
    games
        .map_err(|reason| problems.push(format!("{}: {reason}", path.display())))
        .ok()
}

fn games_of_plan(plan: &toml::Table) -> Option<u64> {
    let games = plan.get("games")?.as_integer()?;
    let players = plan.get("players")?.as_array()?.len() as u64;
    let pairings = match plan.get("schedule")?.as_str()? {
        "round-robin" => players * players.saturating_sub(1) / 2,
        _ => players.saturating_sub(1),
    };
    Some(u64::try_from(games).ok()? * pairings)
}

/// The bytes of a folder's files, and of so many levels of folders below it.
fn folder_bytes(folder: &Path, levels: u32) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    let bytes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() && levels > 0 => folder_bytes(&entry.path(), levels - 1),
        Ok(found) if found.is_file() => found.len(),
        _ => 0,
    });
    bytes.sum()
}

/// A small file of JSON; none where there is none. Its checksum, where it has one, must match.
fn json_file(path: &Path, problems: &mut Vec<String>) -> Option<Value> {
    let bytes = file(path, problems)?;
    let text = ChecksumForm::Json.read(bytes);
    let value =
        text.and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()));
    value
        .map_err(|reason| problems.push(format!("{}: {reason}", path.display())))
        .ok()
}

fn text_file(path: &Path, problems: &mut Vec<String>) -> Option<String> {
    Some(String::from_utf8_lossy(&file(path, problems)?).into_owned())
}

fn file(path: &Path, problems: &mut Vec<String>) -> Option<Vec<u8>> {
    match read_whole(path, LARGEST) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => {
            problems.push(format!("can't read {}: {error}", path.display()));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_is_finished_when_all_its_games_are_played() {
        let folder = tempfile::tempdir().unwrap();
        let found = |name: &str, plan: &str| {
            let folder = folder.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("match.toml"), plan).unwrap();
        };
        let three = "players = [{}, {}, {}]\ngames = 4\nschedule =";
        found("a", &format!("{three} \"round-robin\""));
        found("b", &format!("{three} \"round-robin\""));
        found("c", &format!("{three} \"first-against-others\""));
        found("d", "games = 1");
        let games = |name: &str| match name {
            "a" => 12,
            "b" => 11,
            "c" => 8,
            _ => 5,
        };
        let mut problems = Vec::new();
        let matches = matches(folder.path(), games, &mut problems);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].ends_with("d/match.toml: `games`, `players` or `schedule` is missing"));
        let finished: Vec<(&str, bool)> = matches
            .iter()
            .map(|one| (one.name.as_str(), one.finished))
            .collect();
        assert_eq!(
            finished,
            [("a", true), ("b", false), ("c", true), ("d", false)]
        );
        assert_eq!(matches[3].games, 5);
    }

    #[test]
    fn a_damaged_file_is_a_problem_and_the_rest_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path());
        fs::write(run.config(), "a").unwrap();
        fs::write(run.ratings(), "{\"reference\":").unwrap();
        let clock =
            r#"{"seconds": 3600, "networks": {"2": {"games": 7, "seconds": 1800}, "1": {}}}"#;
        fs::write(run.clock(), clock).unwrap();
        let games = GamesIndex::open(&run).unwrap();
        let answer = RunAnswer::of(&run, &games, Disk::default());
        assert_eq!(answer.problems.len(), 1, "{:?}", answer.problems);
        assert!(answer.problems[0].contains("ratings.json"));
        let efforts: Vec<(u32, Option<f64>, Option<u64>)> = answer
            .clock
            .iter()
            .map(|effort| (effort.generation, effort.hours, effort.games))
            .collect();
        assert_eq!(efforts, [(1, None, None), (2, Some(0.5), Some(7))]);
    }
}
