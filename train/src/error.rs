//! What can go wrong in training.

use engine::config::ConfigError;
use engine::encoding::READABLE_VERSIONS;
use engine::record::{ReplayError, ShardError, ShardFault};
use engine::run::RunError;
use network::{Architecture, Device, NetworkError};
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
    /// A shard of an encoding version that is not read.
    #[error("{}: encoding version {found}, but this program knows versions {} to {known}", path.display(), READABLE_VERSIONS.start())]
    Encoding {
        /// The shard.
        path: PathBuf,
        /// The shard's version.
        found: u32,
        /// This program's version.
        known: u32,
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
    /// `train init` on an existing run.
    #[error("{} already holds a run: nothing was changed; `train run --run {}` resumes it", path.display(), path.display())]
    RunExists {
        /// The run.
        path: PathBuf,
    },
    /// Another shard has the name of a shard to take over.
    #[error("{} is there already, and is not {}: take over games into a folder without shards of its own", own.display(), path.display())]
    OtherShard {
        /// The existing shard.
        own: PathBuf,
        /// The shard to take over.
        path: PathBuf,
    },
    /// A folder without a run.
    #[error("{} is not a run: it has no {missing}; `train init --run {}` makes one", path.display(), path.display())]
    NoRun {
        /// The folder.
        path: PathBuf,
        /// The missing file.
        missing: &'static str,
    },
    /// Another trainer works on the run.
    #[error("another trainer works on {}: it holds {}; wait for it, or stop it", run.display(), lock.display())]
    Locked {
        /// The run.
        run: PathBuf,
        /// The lock's file.
        lock: PathBuf,
    },
    /// The run was begun with another configuration.
    #[error(
        "{key} = {given}, but the run {} has {key} = {saved}: change it in {}, begin another run, or omit --config and --set",
        run.display(),
        run.join("config.toml").display()
    )]
    OtherConfig {
        /// The run.
        run: PathBuf,
        /// The first key that differs.
        key: String,
        /// The value given now.
        given: String,
        /// The value of the run.
        saved: String,
    },
    /// The run was begun with other weights.
    #[error("{} already holds a run, which began with {saved}: give these, or begin another run", run.display())]
    OtherWeights {
        /// The run.
        run: PathBuf,
        /// The first network of the run, in words.
        saved: String,
    },
    /// The run was begun with another seed.
    #[error("--seed {given}: the run {} began with --seed {saved}; omit --seed", run.display())]
    OtherSeed {
        /// The run.
        run: PathBuf,
        /// The seed given now.
        given: u64,
        /// The seed of the run.
        saved: u64,
    },
    /// The configured network has another size than the run's files.
    #[error("{key} = {configured} in {}, but {} has {found}: a run's network can't change its size", config.display(), file.display())]
    OtherArchitecture {
        /// The key.
        key: &'static str,
        /// Its value.
        configured: u32,
        /// The configuration.
        config: PathBuf,
        /// The network or checkpoint.
        file: PathBuf,
        /// Its size.
        found: u32,
    },
    /// A first network of another size than configured.
    #[error(
        "{} has {} blocks and {} channels, and the configuration has {} and {}: with `--set network.blocks={} --set \
         network.channels={}` a run begins with it",
        file.display(), found.blocks, found.channels, configured.blocks, configured.channels, found.blocks, found.channels
    )]
    OtherSize {
        /// The configured size.
        configured: Architecture,
        /// The network's size.
        found: Architecture,
        /// The network.
        file: PathBuf,
    },
    /// A change of the configuration that is not allowed in training.
    #[error("{}: {refusal}", config.display())]
    Refused {
        /// The configuration.
        config: PathBuf,
        /// The key, both values, and why not.
        refusal: String,
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
    /// The memory for rows is too small for a batch.
    #[error(
        "train.memory_mib = {given} is too little: the window's index, pools of a batch of {batch_size} rows or of the largest game, \
         and the batches that are ready take {needed} MiB: raise it to {needed} or more"
    )]
    TooLittleMemory {
        /// The given MiB.
        given: u64,
        /// The least MiB.
        needed: u64,
        /// Rows of a batch.
        batch_size: usize,
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
    /// There are checkpoints, and none of them is whole.
    #[error(
        "{}: all checkpoints are damaged, the newest too ({}): put back a copy of one, or move them away to begin with a new optimizer, \
         which trains on all games as new ones",
        folder.display(), newest.display()
    )]
    NoWholeCheckpoint {
        /// Their folder.
        folder: PathBuf,
        /// The newest of them.
        newest: PathBuf,
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
    /// A device has too little memory.
    #[error(
        "device {device}: out of memory with batches of {rows} rows of a {}x{} network: lower train.batch_size, take a smaller \
         network (network.blocks, network.channels), or end other programs that use the device ({reason})",
        network.blocks, network.channels
    )]
    OutOfMemory {
        /// The device.
        device: Device,
        /// The network's sizes.
        network: Architecture,
        /// The rows of a batch.
        rows: u32,
        /// The error of libtorch.
        reason: String,
    },
    /// A GPU failed; the process can't use it any more.
    #[error(
        "device {device} failed ({reason}): this process can compute nothing more on it; the same command resumes from what is saved"
    )]
    DeviceFailed {
        /// The device.
        device: Device,
        /// The error of libtorch.
        reason: String,
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
    /// The computing threads can't be started.
    #[error("can't start the threads that compute gradients: {0}")]
    Threads(String),
    /// The loader's threads ended.
    #[error(
        "the thread that reads the games panicked, with the message above: the same command resumes the training"
    )]
    LoaderGone,
    /// The generator succeeded without new games.
    #[error("`selfplay generate` ended without an error, but {} has no more games than before: {games} are missing", folder.display())]
    NoProgress {
        /// The missing games.
        games: u64,
        /// The folder of the shards.
        folder: PathBuf,
    },
    /// The program `selfplay` is missing.
    #[error("{} not found: `train loop` starts the program `selfplay` from its own folder; build it with `cargo build --release`", path.display())]
    NoProgram {
        /// Its expected path.
        path: PathBuf,
    },
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
