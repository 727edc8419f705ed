//! What can go wrong in training.

use engine::config::ConfigError;
use engine::record::{ReplayError, ShardError, ShardFault};
use engine::run::RunError;
use network::NetworkError;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tch::TchError;

/// An error of the program `train`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrainError {
    /// A file or folder of the run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A network, its device, or libtorch.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A shard.
    #[error("{0}{help}", help = what_helps(.0))]
    Shard(ShardError),
    /// A game that breaks the rules.
    #[error("{}: game at byte {offset}: {error}{REPAIR}", path.display())]
    Game {
        /// The shard.
        path: PathBuf,
        /// Where in it.
        offset: u64,
        /// What is wrong.
        error: ReplayError,
    },
    /// A file of the trainer's own.
    #[error("can't {what} {}: {error}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// A folder without a run.
    #[error("{} is not a run: it has no {missing}; `train init --run {}` makes one", path.display(), path.display())]
    NoRun {
        /// The folder.
        path: PathBuf,
        /// The missing file.
        missing: &'static str,
    },
    /// There are no games to train on.
    #[error(
        "{} holds no games to train on: `selfplay generate --run DIR` makes some",
        folder.display()
    )]
    NoGames {
        /// The folder of the shards.
        folder: PathBuf,
    },
    /// A batch needs more rows than there are.
    #[error(
        "{} has {rows} rows to train on in {games} games (validation games left out), but a batch needs train.batch_size = {batch_size}: more games are needed, or searches of more evaluations \
         (a state gives a row from selfplay.targets.min_visits visits on, and those of truncated games only where \
         selfplay.targets.truncated_weight is above 0)",
        folder.display()
    )]
    TooFewRows {
        /// The folder of the shards.
        folder: PathBuf,
        /// Rows of the window's training games.
        rows: u64,
        /// The window's training games.
        games: usize,
        /// Rows of a batch.
        batch_size: u32,
        /// Whether the run never had more.
        is_first: bool,
    },
    /// All rows are used up, and the training may not wait for more.
    #[error(
        "{}: {missing}: generate more games, raise train.reuse_factor, or let `train run` wait for a generator",
        folder.display()
    )]
    NothingNew {
        /// The folder of the shards.
        folder: PathBuf,
        /// What is missing, in words.
        missing: String,
    },
    /// A checkpoint is of another version of the program.
    #[error(
        "{}: {what} version {found}, but this program knows version {known}: resume with the program that wrote it, or move the \
         checkpoints away to begin with a new optimizer, which trains on all games as new ones",
        path.display()
    )]
    CheckpointVersion {
        /// The file.
        path: PathBuf,
        /// What has the version.
        what: &'static str,
        /// The file's version.
        found: u32,
        /// This program's version.
        known: u32,
    },
    /// A checkpoint can't be used.
    #[error("{}: this is not a checkpoint, or it is damaged: {reason}", path.display())]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A loss or gradient that is not finite.
    #[error("step {step}: the {what} is {value}; the step was not made")]
    NotFinite {
        /// The optimizer's step, from 1.
        step: u64,
        /// Its name.
        what: String,
        /// Its value.
        value: f64,
    },
    /// Several dropped batches in a row.
    #[error(
        "{error}; it is the third in a row: {} hold their batches; lower train.learning_rate or train.gradient_clip, and if it happens \
         again at once, the weights of the newest checkpoints are at fault: move them away to resume from the previous one",
        in_a_row(batches)
    )]
    NeverFinite {
        /// The error of the last one.
        error: Box<TrainError>,
        /// The files of the batches.
        batches: Vec<PathBuf>,
    },
    /// An error in a training that can be resumed.
    #[error("{error}; the newest checkpoint is {}", checkpoint.display())]
    Interrupted {
        /// The error.
        error: Box<TrainError>,
        /// The checkpoint that the next start resumes from.
        checkpoint: PathBuf,
    },
    /// The loader's threads ended.
    #[error(
        "the thread that reads the games panicked, with the message above: the same command resumes the training"
    )]
    LoaderGone,
    /// A started program failed or ended too early.
    #[error("{command} ended {how}{last_lines}")]
    Child {
        /// The started command.
        command: String,
        /// The signal that killed it, if one did.
        signal: Option<i32>,
        /// How it ended.
        how: String,
        /// The last lines of its standard error.
        last_lines: String,
    },
    /// A file or an output that can't be parsed.
    #[error("{what}: {reason}")]
    Answer {
        /// What it is.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A stop is requested, and the loop's work is not done: no failure.
    #[error("stopped")]
    Stopped,
    /// Any other error, in words.
    #[error("{0}")]
    Other(String),
}

impl TrainError {
    /// The error of a file or folder, for `map_err`: what was tried with it.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Self + Copy {
        move |error| Self::Io {
            what,
            path: path.to_owned(),
            error,
        }
    }

    /// The error of a checkpoint that is broken, for `map_err`.
    pub(crate) fn checkpoint<Reason: ToString>(path: &Path) -> impl Fn(Reason) -> Self + Copy {
        move |reason| Self::Checkpoint {
            path: path.to_owned(),
            reason: reason.to_string(),
        }
    }

    /// Whether more games would resolve the error of a first window.
    pub(crate) fn is_for_more_games(&self) -> bool {
        match self {
            Self::NoGames { .. } => true,
            // Of games without a row, more would help as little.
            Self::TooFewRows { rows, games, .. } => *rows > 0 || *games == 0,
            _ => false,
        }
    }

    /// What is missing, in words, if more games would resolve the error.
    pub(crate) fn missing_games(&self) -> Option<String> {
        match self {
            Self::NothingNew { missing, .. } => Some(missing.clone()),
            Self::TooFewRows { is_first: true, .. } if self.is_for_more_games() => {
                Some(self.to_string())
            }
            Self::Interrupted { error, .. } => error.missing_games(),
            _ => None,
        }
    }

    /// Whether a shard is missing.
    pub(crate) fn is_gone(&self) -> bool {
        let Self::Shard(error) = self else {
            return false;
        };
        matches!(&error.fault, ShardFault::Io(error) if error.kind() == ErrorKind::NotFound)
    }
}

/// Advice on a damaged shard.
fn what_helps(error: &ShardError) -> &'static str {
    match error {
        _ if !error.fault.is_damage() => "",
        _ if error.offset == 0 || error.frame == Some(0) => {
            "; its header is lost, and with it the origin of its games: put back a copy of it, or move it away"
        }
        _ => REPAIR,
    }
}

/// Advice on a shard with a bad game.
const REPAIR: &str = "; `selfplay inspect --repair DIR SHARD` copies its good games into a shard in another folder, which can replace it";

fn in_a_row(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    names.join(", ")
}

// Not as a source, which the program would print again.
impl From<ShardError> for TrainError {
    fn from(error: ShardError) -> Self {
        Self::Shard(error)
    }
}

impl From<TchError> for TrainError {
    fn from(error: TchError) -> Self {
        Self::Network(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_damaged_shard_names_the_repair_and_that_of_a_missing_one_does_not() {
        let message = |frame, fault| {
            let path = "run/shards/000-000001.shard".into();
            TrainError::from(ShardError {
                path,
                frame,
                offset: 12,
                fault,
            })
            .to_string()
        };
        let damaged = message(Some(3), ShardFault::CutOff);
        assert!(damaged.starts_with("run/shards/000-000001.shard: frame 3 at byte 12: the file"));
        assert!(damaged.contains("selfplay inspect --repair"), "{damaged}");
        // No command helps with a header.
        let header = message(Some(0), ShardFault::CutOff);
        assert!(header.contains("move it away") && !header.contains("--repair"));
        assert!(message(None, ShardFault::CutOff).contains("selfplay inspect --repair"));
        let missing = message(None, ShardFault::Io(ErrorKind::NotFound.into()));
        assert!(!missing.contains("--repair"), "{missing}");
    }
}
