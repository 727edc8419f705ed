//! One trainer a run: two would overwrite each other's checkpoints.

use crate::error::TrainError;
use engine::run::{RunDirectory, make_folder};
use std::fs::{File, TryLockError};

/// Held while a program trains in a run; the system frees it when the program ends, however it ends.
#[derive(Debug)]
pub(crate) struct RunLock {
    _file: File,
}

impl RunLock {
    /// Takes the lock of a run.
    pub(crate) fn take(run: &RunDirectory) -> Result<Self, TrainError> {
        make_folder(run.root())?;
        let path = run.root().join("trainer.lock");
        let io = |error| TrainError::Io {
            what: "lock",
            path: path.clone(),
            error,
        };
        let file = File::create(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(TrainError::Locked {
                run: run.root().to_owned(),
                lock: path,
            }),
            Err(TryLockError::Error(error)) => Err(io(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_one_trainer_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path().join("run"));
        let first = RunLock::take(&run).unwrap();
        let message = RunLock::take(&run).unwrap_err().to_string();
        assert!(message.contains("trainer.lock"), "{message}");
        drop(first);
        RunLock::take(&run).unwrap();
    }
}
