//! The files and folders of a run, and the version of their layout.
//!
//! `format.toml` holds `format = 1` and, as information, `program`, the version of the program that made the run. The number of a
//! network belongs to it wherever its file is: `networks/` has gaps where others were rejected.

use super::error::RunError;
use super::io::{entries, make_folder, read_file};
use crate::files;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The format of runs that this program makes and works on.
pub const RUN_FORMAT: u32 = 1;

/// What is read of the file. Later formats may say more in it.
#[derive(Deserialize)]
struct RunFormat {
    format: u32,
}

/// The directory of a run. Its folders are made when they are first needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDirectory {
    root: PathBuf,
}

/// The folder of the generators in a folder of games.
pub(super) const GENERATORS_FOLDER: &str = "generators";

/// Networks by generation, and other files with a network's extension.
pub type FoundNetworks = (Vec<(u32, PathBuf)>, Vec<PathBuf>);

impl RunDirectory {
    /// The name of the folder of the shards.
    pub const SHARDS: &str = "shards";

    /// The name of the folder of the matches' games.
    pub const PIT: &str = "pit";

    /// The name of the folder of the games that networks play to be shown.
    pub const SHOW: &str = "show";

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
        self.root.join(Self::SHARDS)
    }

    /// The folder of the journals.
    pub fn journal(&self) -> PathBuf {
        self.root.join("journal")
    }

    /// The folder of the generators, with a folder for each.
    pub fn generators(&self) -> PathBuf {
        self.root.join(GENERATORS_FOLDER)
    }

    /// The folder of the trainer's checkpoints.
    pub fn checkpoints(&self) -> PathBuf {
        self.root.join("checkpoints")
    }

    /// The folder of the matches' games.
    pub fn pit(&self) -> PathBuf {
        self.root.join(Self::PIT)
    }

    /// The folder of the games that networks play to be shown.
    pub fn show(&self) -> PathBuf {
        self.root.join(Self::SHOW)
    }

    /// The folder of what `selfplay serve` derives from the games. It may be deleted.
    pub fn cache(&self) -> PathBuf {
        self.root.join("cache")
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

    /// `logs/train.jsonl`, the trainer's log of [`LogLine`](super::LogLine)s.
    pub fn train_log(&self) -> PathBuf {
        self.logs().join("train.jsonl")
    }

    /// `trainer.window`, a [`TrainerWindow`](super::TrainerWindow).
    pub fn trainer_window(&self) -> PathBuf {
        self.root.join("trainer.window")
    }

    /// `trainer.lock`, held by the run's trainer.
    pub fn trainer_lock(&self) -> PathBuf {
        self.root.join("trainer.lock")
    }

    /// `format.toml`.
    pub fn format(&self) -> PathBuf {
        self.root.join("format.toml")
    }

    /// Refuses a run of another format. One that doesn't say its format is of the first, as one that isn't there yet.
    pub fn check_format(&self) -> Result<(), RunError> {
        let path = self.format();
        let Some(text) = read_file(&path, 1 << 20)? else {
            return Ok(());
        };
        match toml::from_slice::<RunFormat>(&text) {
            Ok(RunFormat { format: RUN_FORMAT }) => Ok(()),
            Ok(RunFormat { format: found }) => Err(RunError::Format {
                path: self.root.clone(),
                found,
                known: RUN_FORMAT,
            }),
            Err(error) => Err(RunError::FormatFile {
                path,
                reason: error.message().to_owned(),
            }),
        }
    }

    /// Refuses a run of another format, and makes one that doesn't say its format say so, its folder too if need be. Several programs
    /// may do so at once: the first one's file stays.
    pub fn ensure_format(&self) -> Result<(), RunError> {
        make_folder(&self.root)?;
        let path = self.format();
        let is_there = path.try_exists().map_err(RunError::io("read", &path))?;
        if !is_there {
            let program = env!("CARGO_PKG_VERSION");
            let text = format!("format = {RUN_FORMAT}\nprogram = \"{program}\"\n");
            files::write_new(&path, text.as_bytes()).map_err(RunError::io("write", &path))?;
        }
        self.check_format()
    }

    /// Writes the configuration of a run that has none. Several programs may do so at once: the first one's file stays.
    pub fn ensure_config(&self, text: &str) -> Result<(), RunError> {
        let path = self.config();
        let is_there = path.try_exists().map_err(RunError::io("read", &path))?;
        if !is_there {
            files::write_new(&path, text.as_bytes()).map_err(RunError::io("write", &path))?;
        }
        Ok(())
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

    /// The folder of the networks that wait for their match.
    pub fn candidates(&self) -> PathBuf {
        self.root.join("candidates")
    }

    /// The file of a generation's network that waits for its match.
    pub fn candidate(&self, generation: u32) -> PathBuf {
        network_file(&self.candidates(), generation)
    }

    /// The folder of the networks that were not good enough.
    pub fn rejected(&self) -> PathBuf {
        self.root.join("rejected")
    }

    /// The file of a generation's network that was not good enough.
    pub fn rejected_network(&self, generation: u32) -> PathBuf {
        network_file(&self.rejected(), generation)
    }

    /// The networks that wait for their match, as [`list_networks`](Self::list_networks).
    pub fn list_candidates(&self) -> Result<Vec<(u32, PathBuf)>, RunError> {
        self.list_networks_in(&self.candidates())
    }

    /// The networks that were not good enough, as [`list_networks`](Self::list_networks).
    pub fn list_rejected(&self) -> Result<Vec<(u32, PathBuf)>, RunError> {
        self.list_networks_in(&self.rejected())
    }

    /// The network that was trained last, whatever became of it.
    pub fn newest_trained(&self) -> Result<Option<(u32, PathBuf)>, RunError> {
        let mut trained = self.list_networks()?;
        trained.extend(self.list_candidates()?);
        trained.extend(self.list_rejected()?);
        Ok(trained.into_iter().max())
    }

    /// Makes a candidate the run's newest network.
    pub fn accept_candidate(&self, generation: u32) -> Result<(), RunError> {
        make_folder(&self.networks())?;
        rename(&self.candidate(generation), &self.network(generation))
    }

    /// Puts a candidate where no generator plays with it.
    pub fn reject_candidate(&self, generation: u32) -> Result<(), RunError> {
        make_folder(&self.rejected())?;
        rename(
            &self.candidate(generation),
            &self.rejected_network(generation),
        )
    }
}

/// The name of a run's network: `00012`.
pub fn network_name(generation: u32) -> String {
    format!("{generation:05}")
}

/// The generation of a run's network, by its name; none for other names. Each generation has one name.
pub fn generation_of(name: &str) -> Option<u32> {
    let generation = name.parse().ok()?;
    (network_name(generation) == name).then_some(generation)
}

/// A generation's network in a folder.
fn network_file(folder: &Path, generation: u32) -> PathBuf {
    let name = network_name(generation);
    folder.join(format!("{name}.safetensors"))
}

/// As [`RunDirectory::find_networks`], in any folder.
fn find_networks_in(folder: &Path) -> Result<FoundNetworks, RunError> {
    let (mut networks, mut strays) = (Vec::new(), Vec::new());
    for path in entries(folder)? {
        if path.extension().is_none_or(|it| it != "safetensors") {
            continue;
        }
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        match stem.and_then(generation_of) {
            Some(number) if number < u32::MAX => networks.push((number, path)),
            _ => strays.push(path),
        }
    }
    networks.sort();
    strays.sort();
    Ok((networks, strays))
}

fn rename(from: &Path, to: &Path) -> Result<(), RunError> {
    files::rename(from, to)
        .and_then(|()| files::sync_folder_of(to))
        .and_then(|()| files::sync_folder_of(from))
        .map_err(RunError::io("rename", from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::io::write_file;
    use std::fs;

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

    fn numbers(list: Vec<(u32, PathBuf)>) -> Vec<u32> {
        list.into_iter().map(|(number, _)| number).collect()
    }

    #[test]
    fn candidates_are_accepted_or_rejected_and_keep_their_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path());
        assert_eq!(run.newest_trained().unwrap(), None);
        make_folder(&run.candidates()).unwrap();
        for generation in 0..4 {
            write_file(&run.candidate(generation), &[generation as u8]).unwrap();
        }
        for generation in [0, 2] {
            run.accept_candidate(generation).unwrap();
        }
        assert_eq!(
            run.newest_trained().unwrap(),
            Some((3, run.candidate(3))),
            "one that waits is trained"
        );
        for generation in [1, 3] {
            run.reject_candidate(generation).unwrap();
        }
        assert_eq!(numbers(run.list_networks().unwrap()), [0, 2]);
        assert!(run.list_candidates().unwrap().is_empty());
        assert_eq!(numbers(run.list_rejected().unwrap()), [1, 3]);
        let newest = run.newest_trained().unwrap();
        assert_eq!(newest, Some((3, run.rejected_network(3))));
        assert_eq!(fs::read(run.network(2)).unwrap(), [2]);
        let message = run.accept_candidate(7).unwrap_err().to_string();
        assert!(message.contains("candidates/00007"), "{message}");
    }

    #[test]
    fn the_format_of_a_run_is_written_once() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path().join("run"));
        run.check_format().unwrap();
        assert!(!run.root().exists(), "looking makes nothing");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| run.ensure_format().unwrap());
            }
        });
        let text = fs::read_to_string(run.format()).unwrap();
        assert!(text.starts_with("format = 1\nprogram = \""), "{text}");
        assert_eq!(fs::read_dir(run.root()).unwrap().count(), 1);
        // What another program of the format has written stays.
        fs::write(run.format(), "format = 1\nprogram = \"other\"\nmore = 1\n").unwrap();
        run.ensure_format().unwrap();
        assert!(fs::read_to_string(run.format()).unwrap().contains("other"));
    }

    #[test]
    fn a_run_of_another_format_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path());
        let later = "format = 2\nlayout = [\"new\"]\n";
        fs::write(run.format(), later).unwrap();
        for refused in [run.check_format(), run.ensure_format()] {
            let message = refused.unwrap_err().to_string();
            let name = folder.path().display().to_string();
            assert!(message.starts_with(&name), "{message}");
            assert!(message.contains("format 2; this") && message.ends_with("format 1"));
        }
        assert_eq!(fs::read_to_string(run.format()).unwrap(), later);
        for nonsense in ["", "format = \"one\"", "format = -1", "\u{0}"] {
            fs::write(run.format(), nonsense).unwrap();
            let message = run.ensure_format().unwrap_err().to_string();
            assert!(message.contains("format.toml does not say"), "{message}");
        }
        fs::remove_file(run.format()).unwrap();
        fs::create_dir(run.format()).unwrap();
        assert!(run.ensure_format().is_err());
    }
}
