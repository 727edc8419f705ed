//! The lock of a run's trainer: two trainers would overwrite each other's checkpoints.

use crate::error::TrainError;
use engine::files::{self, FileLock};
use engine::progress::say;
use engine::run::{RunDirectory, make_folder};
use engine::stop::Stop;
use std::io::ErrorKind;
use std::time::Duration;

/// Takes the lock of a run's trainer, and removes what killed trainers have left half written. None if a stop is requested while
/// another trainer holds it.
///
/// # Errors
/// Another trainer works on the run, and still does after [`FileLock::TIMEOUT`].
pub(crate) fn lock_run(run: &RunDirectory, stop: &Stop) -> Result<Option<FileLock>, TrainError> {
    lock_within(run, FileLock::TIMEOUT, stop)
}

fn lock_within(
    run: &RunDirectory,
    timeout: Duration,
    stop: &Stop,
) -> Result<Option<FileLock>, TrainError> {
    make_folder(run.root())?;
    let path = run.trainer_lock();
    let locked = format!(
        "another trainer works on {}: it holds {}; wait for it, or stop it",
        run.root().display(),
        path.display()
    );
    let waits = || {
        say(&format!("{locked}. This one waits up to 3 minutes for it."));
    };
    let lock = FileLock::take(&path, timeout, stop, waits);
    match lock.map_err(TrainError::io("lock", &path))? {
        None if !stop.is_requested() => Err(TrainError::Other(locked)),
        None => Ok(None),
        lock => {
            for folder in [run.checkpoints(), run.candidates(), run.networks()] {
                match files::remove_temporaries(&folder, ".") {
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    removed => {
                        removed.map_err(TrainError::io("remove unfinished files in", &folder))?;
                    }
                }
            }
            Ok(lock)
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
        let stop = Stop::default();
        let first = lock_run(&run, &stop).unwrap().unwrap();
        let message = lock_within(&run, Duration::ZERO, &stop).unwrap_err();
        assert!(message.to_string().contains("trainer.lock"), "{message}");
        drop(first);
        let checkpoints = run.checkpoints();
        make_folder(&checkpoints).unwrap();
        for name in [".AbCdEf.tmp", "00001-0000000200.safetensors"] {
            std::fs::write(checkpoints.join(name), "half").unwrap();
        }
        lock_run(&run, &stop).unwrap().unwrap();
        assert_eq!(files::entries(&checkpoints).unwrap().len(), 1);
    }
}
