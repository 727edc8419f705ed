//! The state of a run.

use super::file::{NetworkReport, Size};
use super::games::GamesReport;
use super::header::{self, FileHeader};
use crate::error::TrainError;
use crate::ratings::clock::efforts;
use crate::ratings::{MatchResult, RatedPlayer, RatingsFile, result_files};
use crate::trainer::checkpoint::{self, Checkpoint};
use crate::trainer::state::TrainingState;
use engine::files::{FileLock, now_in};
use engine::run::{
    FolderSize, GeneratorPaths, GeneratorReport, LogLine, LogSummary, Problems, RunDirectory,
    TimeLeft, folder_sizes, running_generators,
};
use network::{Network, Origin};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The number of listed generations, the newest.
const LISTED: usize = 10;

/// The state of a run. Parts that can't be read are missing, and `problems` states why.
#[derive(Debug, Serialize)]
pub(super) struct RunReport {
    pub(super) path: PathBuf,
    pub(super) newest_network: Option<NewestNetwork>,
    /// The generation in training, if its checkpoint is ahead of the newest network.
    pub(super) training: Option<InTraining>,
    pub(super) running: RunningReport,
    /// The running generators that have reported, and the lost ones.
    pub(super) generators: Vec<GeneratorReport>,
    pub(super) games: GamesReport,
    pub(super) window: WindowReport,
    pub(super) disk: Vec<FolderSize>,
    pub(super) time_left: Option<TimeLeft>,
    /// The log's last line on steps.
    pub(super) last_steps: Option<LogLine>,
    /// The log's last line on validation rows.
    pub(super) last_validation: Option<LogLine>,
    pub(super) ratings: Vec<RatedPlayer>,
    /// The newest generations, oldest first.
    pub(super) generations: Vec<Generation>,
    pub(super) problems: Problems,
}

#[derive(Debug, Serialize)]
pub(super) struct NewestNetwork {
    pub(super) generation: u32,
    pub(super) file: PathBuf,
    #[serde(flatten)]
    pub(super) size: Option<Size>,
}

#[derive(Debug, Serialize)]
pub(super) struct InTraining {
    pub(super) checkpoint: PathBuf,
    #[serde(flatten)]
    pub(super) state: TrainingState,
}

/// The programs that run on it now, as far as this machine knows.
#[derive(Debug, Default, Serialize)]
pub(super) struct RunningReport {
    pub(super) trainer: bool,
    /// By number.
    pub(super) generators: Vec<u32>,
    /// What the trainer waits for.
    pub(super) waiting: Option<String>,
    /// What `train loop` does.
    pub(super) phase: Option<PhaseReport>,
}

/// What `train loop` does.
#[derive(Debug, Serialize)]
pub(super) struct PhaseReport {
    /// `self_play`, `training` or `matches`.
    pub(super) phase: String,
    pub(super) generation: u32,
    /// Seconds since 1970.
    pub(super) since: f64,
}

impl PhaseReport {
    fn of(line: &LogLine) -> Option<Self> {
        Some(Self {
            phase: line.text("phase")?.to_owned(),
            generation: line.generation?,
            since: line.time?,
        })
    }
}

/// The rows that are trained on.
#[derive(Debug, Serialize)]
pub(super) struct WindowReport {
    /// Training rows at the last line of the log.
    pub(super) rows: Option<u64>,
    /// Its full size.
    pub(super) wanted: Option<u64>,
    /// About how many rows all shards hold, validation games included.
    pub(super) there: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(super) struct Generation {
    pub(super) generation: u32,
    pub(super) origin: Origin,
}

impl RunReport {
    /// Looks at the run in a folder.
    ///
    /// # Errors
    ///
    /// The folder is no run, or a run of another format.
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
            size: problems.or_default(NetworkReport::of(file).map(|network| Some(network.size()))),
        });
        let newest = newest_network
            .as_ref()
            .map_or(0, |newest| newest.generation);
        let trained = problems.or_default(run.newest_trained());
        let trained = trained.map_or(newest, |(generation, _)| generation);
        let state = newest_state(&run, &mut problems);
        for path in problems.or_default(result_files(&run)).values() {
            problems.or_default(MatchResult::load(path));
        }
        problems.or_default(efforts(&run));
        problems.or_default(run.read_trainer_window());
        let log = problems.or_default(LogSummary::read(run.train_log()));
        let lock = run.trainer_lock();
        let trainer =
            problems.or_default(FileLock::is_held(&lock).map_err(TrainError::io("look at", &lock)));
        let paths = GeneratorPaths::from(&run);
        // By the clock of the files: another machine may have written them.
        let now = now_in(path).unwrap_or_else(|_| SystemTime::now());
        let games = GamesReport::of(&run.shards(), &mut problems);
        let window_rows = |line: &LogLine| line.contents.get("window_rows")?.as_u64();
        let supply = state.as_ref().map(|state| &state.state.supply);
        Ok(Self {
            path: path.to_owned(),
            window: WindowReport {
                rows: log.train.as_ref().and_then(window_rows),
                wanted: supply.map(|supply| supply.window_rows),
                there: games.rows(),
            },
            training: state.filter(|state| state.state.generation > trained),
            running: RunningReport {
                trainer,
                waiting: log.waiting.clone().filter(|_| trainer),
                phase: log
                    .phase
                    .as_ref()
                    .and_then(PhaseReport::of)
                    .filter(|_| trainer),
                generators: problems.or_default(running_generators(&paths)),
            },
            generators: GeneratorReport::list(&paths, now, &mut problems),
            games,
            disk: folder_sizes(path, &mut problems),
            time_left: TimeLeft::of(&run, trained, log.generation_time(), &mut problems),
            last_steps: log.train,
            last_validation: log.validation,
            ratings: ratings(&run.ratings(), &mut problems),
            generations: generations(&networks, &mut problems),
            newest_network,
            problems,
        })
    }
}

/// The newest checkpoint that is whole; all are checked.
fn newest_state(run: &RunDirectory, problems: &mut Problems) -> Option<InTraining> {
    let paths = problems.or_default(checkpoint::list(&run.checkpoints()));
    let mut newest = None;
    for path in paths {
        match header::read(&path) {
            Ok(FileHeader::Checkpoint) => {}
            Ok(FileHeader::Network) => {
                problems.add(format!("{} is a network, not a checkpoint", path.display()));
                continue;
            }
            Ok(FileHeader::Other(found)) => {
                problems.add(format!("{} is not a checkpoint: {found}", path.display()));
                continue;
            }
            Err(error) => {
                problems.add_unless_gone(&path, &error);
                continue;
            }
        }
        let loaded = Checkpoint::load_named(&path);
        newest = problems
            .or_default(loaded.map(Some))
            .map(|checkpoint| InTraining {
                state: checkpoint.header.state,
                checkpoint: path,
            })
            .or(newest);
    }
    newest
}

/// The ratings so far; none without the file.
fn ratings(path: &Path, problems: &mut Problems) -> Vec<RatedPlayer> {
    let read = RatingsFile::load(path).map(|file| file.map_or_else(Vec::new, |it| it.ratings));
    problems.or_default(read)
}

/// The origins of the newest networks; empty for an unreadable one.
fn generations(networks: &[(u32, PathBuf)], problems: &mut Problems) -> Vec<Generation> {
    let listed = networks[networks.len().saturating_sub(LISTED)..].iter();
    let read = listed.map(|(generation, path)| {
        let origin = match Network::load(path) {
            Ok(file) => file.origin,
            Err(error) => {
                // The newest has been named.
                if networks
                    .last()
                    .is_none_or(|(newest, _)| newest != generation)
                {
                    problems.add(error.to_string());
                }
                Origin::default()
            }
        };
        let stated = origin.get("generation");
        // A run may begin with any network.
        if *generation > 0 && stated.is_some_and(|stated| stated.parse() != Ok(*generation)) {
            problems.add(format!(
                "{} is network {} by its contents",
                path.display(),
                stated.map_or("?", String::as_str)
            ));
        }
        Generation {
            generation: *generation,
            origin,
        }
    });
    read.collect()
}
