//! Why a run can't be used.

use crate::record::journal::JournalError;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Why a run's directory can't be used.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file or folder can't be read or made.
    #[error("can't {what} {}: {error}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With which file or folder.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A network with a name that no generation has.
    #[error("{} is not named after a generation, as 00012.safetensors is", path.display())]
    NetworkName {
        /// The file.
        path: PathBuf,
    },
    /// More generators than there are numbers.
    #[error("{} has no free number left from {} to {}", path.display(), numbers.start, numbers.end - 1)]
    Full {
        /// The folder of generators.
        path: PathBuf,
        /// The numbers, all of which are taken.
        numbers: Range<u32>,
    },
    /// A journal can't be used.
    #[error("{0}")]
    Journal(Box<JournalError>),
    /// A generator's plan can't be read.
    #[error(
        "{}: {reason}; put back a copy of it, or move {} away to play the games of its plan again", path.display(), folder.display()
    )]
    GeneratorPlan {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// The folder of the generator.
        folder: PathBuf,
    },
    /// The journal of a generator that is to resume can't be read.
    #[error(
        "{error}; without this journal its games in flight are lost: move the file and {} away to play the games of its plan again",
        folder.display()
    )]
    GeneratorJournal {
        /// What is wrong with it.
        error: Box<JournalError>,
        /// The folder of the generator.
        folder: PathBuf,
    },
    /// A generator is not done while it has games in flight.
    #[error("generator {generator} has {games} games in flight and is not done")]
    GamesInFlight {
        /// Its number.
        generator: u32,
        /// How many games.
        games: usize,
    },
    /// `trainer.window` has another form.
    #[error("{} does not say which shards the trainer reads: {reason}", path.display())]
    TrainerWindow {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The run was made by a program of another format.
    #[error(
        "{} is a run of format {found}; this program works on runs of format {known}", path.display()
    )]
    Format {
        /// The run's directory.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The format of this program.
        known: u32,
    },
    /// `format.toml` does not hold a format.
    #[error("{} does not say the run's format: {reason}", path.display())]
    FormatFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl From<JournalError> for RunError {
    fn from(error: JournalError) -> Self {
        Self::Journal(Box::new(error))
    }
}

impl RunError {
    /// A failure to do something with a file or folder.
    pub(super) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io {
            what,
            path: path.to_owned(),
            error,
        }
    }
}
