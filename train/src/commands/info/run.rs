//! Where a run stands; in `words`, how that is told to a person.

mod words;

use super::disk::{FolderSize, folder_sizes};
use super::file::{NetworkReport, Size, StateSummary};
use super::games::GamesReport;
use super::generators::GeneratorReport;
use super::header::{self, FileHeader};
use super::log::{GenerationTime, LogSummary};
use crate::checkpoint;
use crate::error::TrainError;
use crate::lock::RunLock;
use crate::ratings::{RatedPlayer, RatingsFile};
use engine::config::Config;
use engine::run::{GeneratorPlaces, RunDirectory, generators_at_work};
use network::Origin;
use serde::Serialize;
use serde_json::Value;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// So many of the newest generations are listed.
const LISTED: usize = 10;

/// Where a run stands. What can't be found out is missing, and `problems` says why.
#[derive(Debug, Serialize)]
pub(super) struct RunReport {
    path: PathBuf,
    newest_network: Option<NewestNetwork>,
    /// The generation in training, if its checkpoint is ahead of the newest network.
    training: Option<InTraining>,
    at_work: AtWork,
    /// Those at work that have said how they stand.
    generators: Vec<GeneratorReport>,
    games: GamesReport,
    window: WindowReport,
    disk: Vec<FolderSize>,
    time_left: Option<TimeLeft>,
    /// The log's last line on steps.
    last_steps: Option<Value>,
    /// The log's last line on validation rows.
    last_validation: Option<Value>,
    ratings: Vec<RatedPlayer>,
    /// The newest generations, oldest first.
    generations: Vec<Generation>,
    problems: Problems,
}

#[derive(Debug, Serialize)]
struct NewestNetwork {
    generation: u32,
    file: PathBuf,
    #[serde(flatten)]
    size: Option<Size>,
}

#[derive(Debug, Serialize)]
struct InTraining {
    checkpoint: PathBuf,
    #[serde(flatten)]
    state: StateSummary,
}

/// Programs that work on the run at this moment, as far as this machine knows.
#[derive(Debug, Default, Serialize)]
struct AtWork {
    trainer: bool,
    /// By number.
    generators: Vec<u32>,
    /// What the trainer waits for.
    waiting: Option<String>,
}

/// The rows that are trained on.
#[derive(Debug, Serialize)]
struct WindowReport {
    /// Rows to train on, when the log was last written.
    rows: Option<u64>,
    /// How many rows it would reach back for, if they were there.
    wanted: Option<u64>,
    /// Rows in all shards, about; those of validation games among them.
    there: Option<u64>,
}

#[derive(Debug, Serialize)]
struct TimeLeft {
    /// Until `loop.generations` are made.
    generations: u32,
    /// Where it is known how long one takes.
    #[serde(flatten)]
    estimate: Option<TimeEstimate>,
}

#[derive(Debug, Serialize)]
struct TimeEstimate {
    /// For all that are left.
    seconds: f64,
    measured: GenerationTime,
}

#[derive(Debug, Serialize)]
struct Generation {
    generation: u32,
    origin: Origin,
}

/// What could not be found out, and why.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub(super) struct Problems(Vec<String>);

impl Problems {
    pub(super) fn add(&mut self, problem: String) {
        self.0.push(problem);
    }

    /// Adds what the disk says of a file, unless another program has just renamed or removed it.
    pub(super) fn add_unless_gone(&mut self, path: &Path, error: &std::io::Error) {
        if error.kind() != ErrorKind::NotFound {
            self.add(format!("can't read {}: {error}", path.display()));
        }
    }

    /// What was found out; a failure is a problem, and nothing was.
    fn or_default<T: Default>(&mut self, result: Result<T, impl fmt::Display>) -> T {
        result.unwrap_or_else(|error| {
            self.add(error.to_string());
            T::default()
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|problem| writeln!(f, "problem: {problem}"))
    }
}

impl RunReport {
    /// Looks at the run in a folder.
    ///
    /// # Errors
    ///
    /// A folder that is no run, and a run of another format.
    pub(super) fn of(path: &Path) -> Result<Self, TrainError> {
        let run = RunDirectory::new(path);
        run.check_format()?;
        if !run.config().exists() {
            return Err(TrainError::NoRun {
                path: path.to_owned(),
                missing: "config.toml",
            });
        }
        let mut problems = Problems::default();
        let (networks, strays) = problems.or_default(run.find_networks());
        for stray in strays {
            problems.add(format!(
                "{} is not named after a generation",
                stray.display()
            ));
        }
        let newest_network = networks.last().map(|(generation, file)| NewestNetwork {
            generation: *generation,
            file: file.clone(),
            size: problems.or_default(NetworkReport::of(file).map(|network| Some(network.size))),
        });
        let newest = newest_network
            .as_ref()
            .map_or(0, |newest| newest.generation);
        let state = newest_state(&run, &mut problems);
        let log = LogSummary::read(&run.logs().join("train.jsonl"));
        let log = problems.or_default(log);
        let trainer = problems.or_default(RunLock::is_held(&run));
        let places = GeneratorPlaces::from(&run);
        let at_work = problems.or_default(generators_at_work(&places));
        let games = GamesReport::of(&run.shards(), &mut problems);
        let number = |key: &str| log.last_steps.as_ref()?[key].as_u64();
        let supply = state.as_ref().and_then(|state| state.state.supply.as_ref());
        let config =
            Config::load(&run.config()).map(|config| Some(config.training_loop.generations));
        Ok(Self {
            path: path.to_owned(),
            window: WindowReport {
                rows: number("window_rows"),
                wanted: supply.map(|supply| supply.window_rows),
                there: games.rows(),
            },
            training: state.filter(|state| state.state.generation > newest),
            at_work: AtWork {
                trainer,
                waiting: log.waiting.filter(|_| trainer),
                generators: at_work.clone(),
            },
            generators: GeneratorReport::of(&places, &at_work, &mut problems),
            games,
            disk: folder_sizes(path, &mut problems),
            time_left: problems
                .or_default(config)
                .map(|generations| time_left(generations, newest, log.generation_time)),
            last_steps: log.last_steps,
            last_validation: log.last_validation,
            ratings: ratings(&run.ratings(), &mut problems),
            generations: generations(&networks, &mut problems),
            newest_network,
            problems,
        })
    }
}

/// The newest checkpoint, of which only the header is read.
fn newest_state(run: &RunDirectory, problems: &mut Problems) -> Option<InTraining> {
    let path = problems
        .or_default(checkpoint::list(&run.checkpoints()))
        .pop()?;
    match header::read(&path) {
        Ok(Ok(FileHeader::Checkpoint(header))) => Some(InTraining {
            checkpoint: path,
            state: StateSummary::of(&header["state"]),
        }),
        Ok(Ok(FileHeader::Network(_))) => {
            problems.add(format!("{} is a network and no checkpoint", path.display()));
            None
        }
        Ok(Err(found)) => {
            problems.add(format!("{} is no checkpoint: {found}", path.display()));
            None
        }
        Err(error) => {
            problems.add_unless_gone(&path, &error);
            None
        }
    }
}

fn time_left(generations: u32, newest: u32, measured: Option<GenerationTime>) -> TimeLeft {
    let generations = generations.saturating_sub(newest);
    let estimate = measured.map(|measured| TimeEstimate {
        seconds: f64::from(generations) * measured.seconds,
        measured,
    });
    TimeLeft {
        generations,
        estimate,
    }
}

/// What the matches have found so far: nothing without the file.
fn ratings(path: &Path, problems: &mut Problems) -> Vec<RatedPlayer> {
    let read = RatingsFile::load(path).map(|file| file.map_or_else(Vec::new, |it| it.ratings));
    problems.or_default(read)
}

/// What the files of the newest networks say; they are not read beyond that.
fn generations(networks: &[(u32, PathBuf)], problems: &mut Problems) -> Vec<Generation> {
    let listed = &networks[networks.len().saturating_sub(LISTED)..];
    let mut generations = Vec::new();
    for (generation, path) in listed {
        let origin = match header::read(path) {
            Ok(Ok(FileHeader::Network(header))) => {
                serde_json::from_value(header["origin"].clone()).unwrap_or_default()
            }
            // The newest has been named if it can't be read; older ones are named where they are used.
            Ok(_) => Origin::default(),
            Err(error) => {
                problems.add_unless_gone(path, &error);
                Origin::default()
            }
        };
        generations.push(Generation {
            generation: *generation,
            origin,
        });
    }
    generations
}
