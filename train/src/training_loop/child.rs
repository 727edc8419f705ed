//! Other programs: started and waited for, or running beside this one.

use crate::error::TrainError;
use engine::process::end_with_parent;
use engine::stop::{Exit, Stop};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write, stderr};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

/// The last lines of a failed program that its error shows.
const LAST_LINES: usize = 10;

/// The time between two looks at a running program.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// A running program. Its standard error is copied to this program's.
///
/// It has a process group of its own, so that a Ctrl-C at the terminal reaches it through this program alone. When this program is
/// killed, or the thread ends that started it, the system sends it a SIGTERM.
#[derive(Debug)]
struct Running {
    /// Its name in errors.
    what: String,
    child: Child,
    errors: Option<JoinHandle<VecDeque<String>>>,
    output: Option<JoinHandle<String>>,
}

impl Running {
    /// Starts a program; `what` is its name in errors.
    fn start(command: &mut Command, what: &str) -> Result<Self, TrainError> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        // A restarted loop would start a second one beside it.
        end_with_parent(command, Signal::TERM);
        let mut child = command
            .spawn()
            .map_err(TrainError::io("start", what.as_ref()))?;
        let errors = child.stderr.take();
        let output = child.stdout.take();
        Ok(Self {
            what: what.to_owned(),
            child,
            errors: errors.map(|pipe| std::thread::spawn(|| pass_on(pipe))),
            output: output.map(|pipe| std::thread::spawn(|| read(pipe))),
        })
    }

    /// Waits for its end, and requests it once `is_over` holds, which then stays so. It is killed if it has not ended so long after the
    /// request. Returns its exit status, and whether the end was requested before.
    fn wait(
        &mut self,
        is_over: impl Fn() -> bool,
        limit: Option<Duration>,
    ) -> Result<(ExitStatus, bool), TrainError> {
        let mut waited = Duration::ZERO;
        loop {
            // Before the look: an end after it was requested.
            let is_requested = is_over();
            let status = self.child.try_wait();
            let status = status.map_err(TrainError::io("wait for", self.what.as_ref()))?;
            if let Some(status) = status {
                return Ok((status, is_requested));
            }
            if is_requested {
                // It may have ended meanwhile. A second signal would end it at once.
                if waited.is_zero() {
                    let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
                }
                waited += LOOK_INTERVAL;
                if limit.is_some_and(|limit| waited >= limit) {
                    let _ = self.child.kill();
                }
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    /// What it wrote to standard output, and the error of its end, for callers to which the end is one.
    fn finish(self, status: ExitStatus) -> (String, TrainError) {
        let lines = self.errors.map(join).unwrap_or_default();
        let error = TrainError::Child {
            command: self.what,
            signal: status.signal(),
            how: if status.success() {
                "before its end was requested".to_owned()
            } else {
                format!("with {status}")
            },
            last_lines: lines.iter().map(|line| format!("\n  {line}")).collect(),
        };
        (self.output.map(join).unwrap_or_default(), error)
    }
}

/// Runs a program to its end and returns what it wrote to standard output; `what` is its name in errors.
///
/// A requested stop is passed on, and its end awaited. If it then fails, the error is [`TrainError::Stopped`]. So it is if someone else
/// stopped it: then a stop of everything else is requested.
pub(super) fn run(command: &mut Command, what: &str, stop: &Stop) -> Result<String, TrainError> {
    let mut running = Running::start(command, what)?;
    let (status, _) = running.wait(|| stop.is_requested(), None)?;
    let (output, error) = running.finish(status);
    if status.success() {
        return Ok(output);
    }
    if was_stopped(status) {
        stop.request();
    }
    Err(if stop.is_requested() {
        TrainError::Stopped
    } else {
        error
    })
}

/// Whether a program was stopped. Schedulers send a signal to all programs of a job, and any of them may be the first. Before a program
/// listens for it, a signal ends it at once.
fn was_stopped(status: ExitStatus) -> bool {
    let stops = [Signal::TERM, Signal::INT, Signal::HUP, Signal::USR1];
    // With a second signal it exits at once, with the signal in its code.
    let signal = status.signal().or(status.code().map(|code| code - 128));
    status.code() == Some(Exit::Interrupted.code().into())
        || signal.is_some_and(|signal| stops.iter().any(|stop| stop.as_raw() == signal))
}

/// What a thread returns; nothing if it panicked.
fn join<T: Default>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_default()
}

/// Writes what comes to standard error, and returns its last lines.
fn pass_on(pipe: impl Read) -> VecDeque<String> {
    let mut pipe = BufReader::new(pipe);
    let mut last = VecDeque::new();
    let mut line = Vec::new();
    // An error is the end of the pipe.
    while pipe
        .read_until(b'\n', &mut line)
        .is_ok_and(|bytes| bytes > 0)
    {
        // This program's standard error may be closed; the other program's work continues.
        let _ = stderr().write_all(&line);
        if last.len() == LAST_LINES {
            last.pop_front();
        }
        last.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
        line.clear();
    }
    last
}

fn read(mut pipe: impl Read) -> String {
    let mut bytes = Vec::new();
    // After an error the output is incomplete, which its parser reports.
    let _ = pipe.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A program that runs until its end is requested: the generator, or the page's server. A thread watches it: if it ends before, a stop
/// of what depends on it is requested at once.
#[derive(Debug)]
pub(super) struct BackgroundProcess {
    ends: Arc<AtomicBool>,
    watch: Option<JoinHandle<Result<(), TrainError>>>,
}

impl BackgroundProcess {
    /// Starts it; `what` is its name in errors. A requested `stop` ends it too.
    ///
    /// The system ends it when the calling thread ends. It is killed if it has not ended so long after the request.
    pub(super) fn start(
        command: &mut Command,
        what: &str,
        stop: Stop,
        limit: Option<Duration>,
    ) -> Result<Self, TrainError> {
        let running = Running::start(command, what)?;
        let ends = Arc::new(AtomicBool::new(false));
        let watched = Arc::clone(&ends);
        Ok(Self {
            ends,
            watch: Some(std::thread::spawn(move || {
                watch(running, &watched, &stop, limit)
            })),
        })
    }

    /// Requests its end and waits for it.
    ///
    /// # Errors
    ///
    /// It had ended before that, and was not stopped by someone else.
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

impl Drop for BackgroundProcess {
    /// There is no receiver left for its failure.
    fn drop(&mut self) {
        let _ = self.finish();
    }
}

fn watch(
    mut running: Running,
    ends: &AtomicBool,
    stop: &Stop,
    limit: Option<Duration>,
) -> Result<(), TrainError> {
    let is_over = || ends.load(Relaxed) || stop.is_requested();
    let ended = running.wait(is_over, limit);
    let (status, is_requested) = ended.inspect_err(|_| stop.request())?;
    if is_requested {
        return Ok(());
    }
    stop.request();
    if was_stopped(status) {
        Ok(())
    } else {
        Err(running.finish(status).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_comes_back() {
        let output = run(
            &mut shell("echo one; echo two >&2"),
            "test",
            &Stop::default(),
        );
        assert_eq!(output.unwrap(), "one\n");
    }

    #[test]
    fn a_failure_has_name_code_and_last_lines() {
        let script = "for n in 1 2 3 4 5 6 7 8 9 10 11 12; do echo line $n >&2; done; exit 3";
        let error = run(&mut shell(script), "selfplay test", &Stop::default()).unwrap_err();
        let message = error.to_string();
        assert!(
            message.starts_with("selfplay test ended with exit status: 3\n  line 3\n"),
            "{message}"
        );
        assert!(message.ends_with("\n  line 12"), "{message}");
        let error = run(
            &mut Command::new("/no/such/program"),
            "selfplay test",
            &Stop::default(),
        );
        assert!(
            error
                .unwrap_err()
                .to_string()
                .starts_with("can't start selfplay test: ")
        );
    }

    #[test]
    fn a_signal_that_killed_it_is_named() {
        let error = run(&mut shell("kill -9 $$"), "selfplay pit", &Stop::default());
        let message = error.unwrap_err().to_string();
        assert!(
            message.starts_with("selfplay pit ended with signal: 9 (SIGKILL)"),
            "{message}"
        );
    }

    #[test]
    fn a_program_that_someone_else_stopped_stops_everything() {
        let stop = Stop::default();
        let output = run(&mut shell("echo half; exit 75"), "test", &stop);
        assert!(matches!(output, Err(TrainError::Stopped)));
        assert!(stop.is_requested());
        for script in ["exit 75", "exit 143", "kill -TERM $$", "kill -USR1 $$"] {
            let stop = Stop::default();
            let generator = start(script, &stop);
            wait_for(&stop);
            generator.end().unwrap();
        }
    }

    #[test]
    fn a_requested_stop_is_passed_on_and_waited_for() {
        let stop = Stop::default();
        let request = stop.clone();
        let waiting = std::thread::spawn(move || {
            // It takes a moment until the trap is set.
            let script =
                "trap 'echo stopping; exit 1' TERM; echo ready; while :; do sleep 0.05; done";
            run(&mut shell(script), "test", &stop)
        });
        std::thread::sleep(Duration::from_millis(500));
        assert!(!waiting.is_finished());
        request.request();
        let ended = waiting.join().unwrap();
        assert!(matches!(ended, Err(TrainError::Stopped)));
    }

    fn start(script: &str, stop: &Stop) -> BackgroundProcess {
        BackgroundProcess::start(&mut shell(script), "selfplay generate", stop.clone(), None)
            .unwrap()
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
