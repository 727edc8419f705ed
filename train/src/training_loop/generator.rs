//! The generator that plays beside the trainer.

use super::child::{LOOK_INTERVAL, Running};
use crate::error::TrainError;
use crate::trainer::stop::Stop;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;

/// A program that runs until its end is requested. A thread watches it: if it ends by itself, with any exit code, a stop of
/// everything else is requested at once.
#[derive(Debug)]
pub(super) struct Generator {
    ends: Arc<AtomicBool>,
    watch: Option<JoinHandle<Result<(), TrainError>>>,
}

impl Generator {
    /// Starts it; `what` is its name in errors. A requested `stop` ends it too.
    ///
    /// The system ends it when the calling thread ends.
    pub(super) fn start(command: &mut Command, what: &str, stop: Stop) -> Result<Self, TrainError> {
        let running = Running::start(command, what)?;
        let ends = Arc::new(AtomicBool::new(false));
        let watched = Arc::clone(&ends);
        Ok(Self {
            ends,
            watch: Some(std::thread::spawn(move || watch(running, &watched, &stop))),
        })
    }

    /// Requests its end and waits for it.
    ///
    /// # Errors
    ///
    /// It had ended before that.
    pub(super) fn end(mut self) -> Result<(), TrainError> {
        self.finish()
    }

    fn finish(&mut self) -> Result<(), TrainError> {
        self.ends.store(true, Relaxed);
        match self.watch.take() {
            Some(watch) => watch.join().unwrap_or(Ok(())),
            None => Ok(()),
        }
    }
}

impl Drop for Generator {
    /// There is no receiver left for its failure.
    fn drop(&mut self) {
        let _ = self.finish();
    }
}

fn watch(mut running: Running, ends: &AtomicBool, stop: &Stop) -> Result<(), TrainError> {
    loop {
        // Before the look: an end after it was requested.
        let is_requested = ends.load(Relaxed) || stop.is_requested();
        let status = running.try_wait().inspect_err(|_| stop.request())?;
        match status {
            Some(_) if is_requested => return Ok(()),
            Some(status) => {
                stop.request();
                return Err(running.finish(status).1);
            }
            None if is_requested => running.request_end(),
            None => {}
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn start(script: &str, stop: &Stop) -> Generator {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Generator::start(&mut command, "selfplay generate", stop.clone()).unwrap()
    }

    fn wait_for(stop: &Stop) {
        let begun = Instant::now();
        while !stop.is_requested() {
            assert!(begun.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn it_plays_until_its_end_is_requested() {
        let stop = Stop::default();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("stopped");
        let script = format!(
            "trap 'echo x > {}; exit 0' TERM; touch {}.ready; while :; do sleep 0.02; done",
            file.display(),
            file.display()
        );
        for is_dropped in [false, true] {
            let generator = start(&script, &stop);
            while !file.with_extension("ready").exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            if is_dropped {
                drop(generator);
            } else {
                generator.end().unwrap();
            }
            assert!(!stop.is_requested());
            std::fs::remove_file(&file).unwrap();
            std::fs::remove_file(file.with_extension("ready")).unwrap();
        }
    }

    #[test]
    fn an_end_of_its_own_stops_everything_and_is_an_error() {
        for (script, message) in [
            (
                "echo no room >&2; exit 3",
                "selfplay generate ended with exit status: 3\n  no room",
            ),
            (
                "kill -9 $$",
                "selfplay generate ended with signal: 9 (SIGKILL)",
            ),
            (
                "echo all done >&2",
                "selfplay generate ended before its end was requested\n  all done",
            ),
        ] {
            let stop = Stop::default();
            let generator = start(script, &stop);
            wait_for(&stop);
            assert_eq!(generator.end().unwrap_err().to_string(), message);
        }
    }
}
