//! A run's directory: where its configuration, networks and games are.
//!
//! ```text
//! format.toml   the version of this layout
//! config.toml   the configuration as resolved when the run began
//! networks/     00000.safetensors, 00001.safetensors, …: by generation, complete and never changed
//! candidates/   networks that are trained and wait for their match, where a gate is requested
//! rejected/     those that were not good enough
//! shards/       000-000000.shard, …: games, by generator and sequence
//! journal/      the games in flight, by generator
//! generators/   000, 001, …: one folder for each generator
//! checkpoints/  what the trainer needs to go on
//! pit/          the matches' games and results
//! ratings.json  what they say of the networks' strength
//! clock.json    how long the loop has generated and trained, and the games and time behind each network
//! logs/         the trainer's measurements: one JSON object a line, TensorBoard's event files, curves.svg and ratings.svg
//! trainer.lock  held by the one trainer that may work on the run
//! trainer.window  the shards that it reads, and those that it will not read again
//! ```

mod candidates;
mod format;
mod generators;
mod trainer_window;

pub use format::RUN_FORMAT;
pub use generators::{Generator, GeneratorPlaces, GeneratorPlan, generators_at_work};
pub use trainer_window::TrainerWindow;

use crate::files;
use crate::record::ShardName;
use crate::record::journal::JournalError;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The directory of a run. Its folders are made when they are first needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDirectory {
    root: PathBuf,
}

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
    #[error("{} has no free number left below {limit}", path.display())]
    Full {
        /// The folder of generators.
        path: PathBuf,
        /// The first number that is too large.
        limit: u32,
    },
    /// A journal can't be used.
    #[error("{0}")]
    Journal(Box<JournalError>),
    /// A generator is not done while it has games in flight.
    #[error("generator {generator} has {games} games in flight and is not done")]
    GamesInFlight {
        /// Its number.
        generator: u32,
        /// How many games.
        games: usize,
    },
    /// The file in which the trainer says what it reads is none.
    #[error("{} does not say which shards the trainer reads: {reason}", path.display())]
    TrainerWindow {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The run was made by a program of another format.
    #[error(
        "{} is a run of format {found}; this program works on runs of format {RUN_FORMAT}", path.display()
    )]
    Format {
        /// The run's directory.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// The file that says the run's format says nothing of the kind.
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

/// Networks by generation, and files that only look like networks.
pub type FoundNetworks = (Vec<(u32, PathBuf)>, Vec<PathBuf>);

/// How many generators may work on a run, one after the other or at once.
const GENERATORS: u32 = 100_000;

impl RunDirectory {
    /// The run in a folder, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `config.toml`.
    pub fn config(&self) -> PathBuf {
        self.root.join("config.toml")
    }

    /// The folder of the networks.
    pub fn networks(&self) -> PathBuf {
        self.root.join("networks")
    }

    /// The file of a generation's network.
    pub fn network(&self, generation: u32) -> PathBuf {
        network_file(&self.networks(), generation)
    }

    /// The folder of the shards.
    pub fn shards(&self) -> PathBuf {
        self.root.join("shards")
    }

    /// The folder of the journals.
    pub fn journal(&self) -> PathBuf {
        self.root.join("journal")
    }

    /// The folder of the trainer's checkpoints.
    pub fn checkpoints(&self) -> PathBuf {
        self.root.join("checkpoints")
    }

    /// The folder of the matches' games.
    pub fn pit(&self) -> PathBuf {
        self.root.join("pit")
    }

    /// `ratings.json`.
    pub fn ratings(&self) -> PathBuf {
        self.root.join("ratings.json")
    }

    /// `clock.json`.
    pub fn clock(&self) -> PathBuf {
        self.root.join("clock.json")
    }

    /// The folder of the logs.
    pub fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// `trainer.window`, a [`TrainerWindow`].
    pub fn trainer_window(&self) -> PathBuf {
        self.root.join("trainer.window")
    }

    /// The networks that are there, by generation. A file that ends in `.safetensors` and has no generation's name is an error,
    /// for it would be left out.
    pub fn list_networks(&self) -> Result<Vec<(u32, PathBuf)>, RunError> {
        self.list_networks_in(&self.networks())
    }

    /// The networks in a folder of the run.
    fn list_networks_in(&self, folder: &Path) -> Result<Vec<(u32, PathBuf)>, RunError> {
        let (networks, strays) = find_networks_in(folder)?;
        match strays.into_iter().next() {
            Some(path) => Err(RunError::NetworkName { path }),
            None => Ok(networks),
        }
    }

    /// The networks that are there, by generation, and the files that end as theirs do and have no generation's name.
    pub fn find_networks(&self) -> Result<FoundNetworks, RunError> {
        find_networks_in(&self.networks())
    }
}

/// The name of a generation's network in a folder.
fn network_file(folder: &Path, generation: u32) -> PathBuf {
    folder.join(format!("{generation:05}.safetensors"))
}

/// As [`RunDirectory::find_networks`], in any folder.
fn find_networks_in(folder: &Path) -> Result<FoundNetworks, RunError> {
    let mut strays = Vec::new();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok((Vec::new(), strays));
        }
        Err(error) => {
            return Err(RunError::Io {
                what: "read the folder",
                path: folder.to_owned(),
                error,
            });
        }
    };
    let mut networks = Vec::new();
    for entry in entries {
        let path = entry
            .map_err(|error| RunError::Io {
                what: "read the folder",
                path: folder.to_owned(),
                error,
            })?
            .path();
        if path
            .extension()
            .is_none_or(|extension| extension != "safetensors")
        {
            continue;
        }
        let number = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .and_then(|stem| stem.parse().ok());
        // Written back, so that each generation has one name.
        match number {
            Some(number) if number < u32::MAX && network_file(folder, number) == path => {
                networks.push((number, path))
            }
            _ => strays.push(path),
        }
    }
    networks.sort();
    strays.sort();
    Ok((networks, strays))
}

/// Claims the first free generator number in `root/generators`, for good: the folder `NNN` is made by an operation that only one
/// of several programs can succeed in. Numbers that shards in the folder have are taken. A game's identity is this number and a
/// counter. [`Generator`] claims numbers that can be
/// resumed.
pub fn claim_generator(root: &Path, shards: &Path) -> Result<u32, RunError> {
    let folder = root.join("generators");
    make_folder(&folder)?;
    let taken = numbers_of_shards(shards)?;
    for number in (0..GENERATORS).filter(|number| !taken.contains(number)) {
        let path = folder.join(format!("{number:03}"));
        match fs::create_dir(&path) {
            Ok(()) => return Ok(number),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(RunError::Io {
                    what: "make the folder",
                    path,
                    error,
                });
            }
        }
    }
    Err(RunError::Full {
        path: folder,
        limit: GENERATORS,
    })
}

/// The generators that shards in a folder are from, by their names: the shards may have been copied alone. None where there is no
/// folder.
fn numbers_of_shards(folder: &Path) -> Result<BTreeSet<u32>, RunError> {
    let fault = |error| RunError::Io {
        what: "read the folder",
        path: folder.to_owned(),
        error,
    };
    let mut numbers = BTreeSet::new();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(numbers),
        Err(error) => return Err(fault(error)),
    };
    for entry in entries {
        let name = entry.map_err(fault)?.file_name();
        let name: Option<ShardName> = name.to_str().and_then(|name| name.parse().ok());
        numbers.extend(name.map(|name| name.generator));
    }
    Ok(numbers)
}

/// Makes a folder and those above it.
pub fn make_folder(path: &Path) -> Result<(), RunError> {
    fs::create_dir_all(path).map_err(|error| RunError::Io {
        what: "make the folder",
        path: path.to_owned(),
        error,
    })
}

/// Writes a file of the run, whole or not at all.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    files::write_whole(path, bytes).map_err(|error| RunError::Io {
        what: "write",
        path: path.to_owned(),
        error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_generator_gets_a_number_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let mut numbers: Vec<u32> = std::thread::scope(|scope| {
            let claims: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| claim_generator(folder.path(), folder.path()).unwrap()))
                .collect();
            claims
                .into_iter()
                .map(|claim| claim.join().unwrap())
                .collect()
        });
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn networks_are_listed_by_generation_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path());
        assert_eq!(run.list_networks().unwrap(), []);
        make_folder(&run.networks()).unwrap();
        for name in [
            "00010.safetensors",
            "00002.safetensors",
            "00003.safetensors.tmp",
            "notes.txt",
        ] {
            write_file(&run.networks().join(name), b"x").unwrap();
        }
        let generations: Vec<u32> = run
            .list_networks()
            .unwrap()
            .into_iter()
            .map(|(number, _)| number)
            .collect();
        assert_eq!(generations, [2, 10]);
        assert_eq!(run.network(2), run.networks().join("00002.safetensors"));
        for name in [
            "3.safetensors",
            "4294967295.safetensors",
            "99999999999.safetensors",
            "best.safetensors",
        ] {
            write_file(&run.networks().join(name), b"x").unwrap();
            let message = run.list_networks().unwrap_err().to_string();
            assert!(message.contains(name), "{message}");
            fs::remove_file(run.networks().join(name)).unwrap();
        }
    }

    #[test]
    fn a_file_that_can_t_be_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let message = write_file(&folder.path().join("missing").join("file"), b"x")
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("can't write") && message.contains("missing/file"),
            "{message}"
        );
    }
}
