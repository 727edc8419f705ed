//! The lock of a run's trainer: two trainers would overwrite each other's checkpoints.

use crate::error::TrainError;
use engine::run::{RunDirectory, make_folder};
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

/// How long a taken lock is waited for: a program that only checks the lock holds it for a moment.
const MOMENT: Duration = Duration::from_millis(50);

/// Held while a program trains a run; the system frees it whenever the program ends.
#[derive(Debug)]
pub(crate) struct RunLock {
    _file: File,
}

impl RunLock {
    /// Takes the lock of a run.
    pub(crate) fn take(run: &RunDirectory) -> Result<Self, TrainError> {
        make_folder(run.root())?;
        let path = path_in(run);
        let io = TrainError::io("lock", &path);
        let file = File::create(&path).map_err(io)?;
        let mut taken = file.try_lock();
        if matches!(taken, Err(TryLockError::WouldBlock)) {
            sleep(MOMENT);
            taken = file.try_lock();
        }
        match taken {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(TrainError::Locked {
                run: run.root().to_owned(),
                lock: path,
            }),
            Err(TryLockError::Error(error)) => Err(io(error)),
        }
    }

    /// Whether a trainer works on a run now.
    pub(crate) fn is_held(run: &RunDirectory) -> Result<bool, TrainError> {
        let path = path_in(run);
        let tried = File::open(&path).map(|file| file.try_lock_shared());
        match tried {
            Ok(Ok(())) => Ok(false),
            Ok(Err(TryLockError::WouldBlock)) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Ok(Err(TryLockError::Error(error))) | Err(error) => {
                Err(TrainError::io("look at", &path)(error))
            }
        }
    }
}

fn path_in(run: &RunDirectory) -> PathBuf {
    run.root().join("trainer.lock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_one_trainer_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path().join("run"));
        assert!(!RunLock::is_held(&run).unwrap());
        let first = RunLock::take(&run).unwrap();
        assert!(RunLock::is_held(&run).unwrap());
        let message = RunLock::take(&run).unwrap_err().to_string();
        assert!(message.contains("trainer.lock"), "{message}");
        drop(first);
        assert!(!RunLock::is_held(&run).unwrap());
        RunLock::take(&run).unwrap();
    }
}
