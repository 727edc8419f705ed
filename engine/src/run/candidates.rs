//! Networks that are trained and wait for their match: `candidates/`; and those that have lost it: `rejected/`.
//!
//! A number belongs to one network, wherever its file is: those that play have gaps where others were rejected.

use super::{RunDirectory, RunError, make_folder, network_file};
use crate::files;
use std::fs;
use std::path::{Path, PathBuf};

impl RunDirectory {
    /// The folder of the networks that wait for their match.
    pub fn candidates(&self) -> PathBuf {
        self.root().join("candidates")
    }

    /// The file of a generation's network that waits for its match.
    pub fn candidate(&self, generation: u32) -> PathBuf {
        network_file(&self.candidates(), generation)
    }

    /// The folder of the networks that were not good enough.
    pub fn rejected(&self) -> PathBuf {
        self.root().join("rejected")
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

fn rename(from: &Path, to: &Path) -> Result<(), RunError> {
    let io = |error| RunError::Io {
        what: "rename",
        path: from.to_owned(),
        error,
    };
    fs::rename(from, to).map_err(io)?;
    for path in [to, from] {
        files::sync_folder_of(path).map_err(io)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::write_file;

    fn numbers(list: Vec<(u32, PathBuf)>) -> Vec<u32> {
        list.into_iter().map(|(number, _)| number).collect()
    }

    #[test]
    fn candidates_become_networks_or_are_put_aside_and_keep_their_numbers() {
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
}
