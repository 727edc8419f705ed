//! An engine's process: what it is sent, what it writes, and its end.

use super::command::EngineCommand;
use super::fault::{EngineFault, FaultKind, Interruption};
use super::lines::{LONGEST_LINE, LastLines, ReadLine, read_lines};
use engine::process::end_with_parent;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Channels that an engine may be ahead of its reader; then its writing waits.
const LINES_AHEAD: usize = 4_096;

/// Between two looks at whether the match is to stop.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Between two looks at whether a process has ended.
const END_INTERVAL: Duration = Duration::from_millis(5);

/// How long an engine is waited for that was told to quit, before it is killed.
const QUIT_LIMIT: Duration = Duration::from_millis(500);

/// How long is waited for the exit status of an engine that has closed its output, and for its last words.
const LAST_WORDS_LIMIT: Duration = Duration::from_secs(1);

/// A line of an engine, and when it came.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) at: Instant,
    line: ReadLine,
}

/// A child process that is talked to by lines.
///
/// It runs in a process group of its own: a Ctrl-C at the terminal doesn't reach it, and when it is dropped, what it has started
/// goes with it. Where this program is killed, the system kills the child too (Linux), and for all else its input ends.
#[derive(Debug)]
pub(crate) struct EngineProcess {
    child: Child,
    /// What is to be written, by a thread that may wait for the child to read. None once nothing more may be sent.
    to_write: Option<Sender<String>>,
    heard: Receiver<Heard>,
    last_lines: Arc<LastLines>,
    /// Reads standard error.
    errors: JoinHandle<()>,
}

impl EngineProcess {
    /// Starts a program. The thread that does so must outlive it, for the system ends the child with the thread.
    pub(crate) fn start(command: &EngineCommand) -> std::io::Result<Self> {
        let mut to_start = Command::new(&command.program);
        to_start
            .args(&command.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        // Abandoned engines would think on for ever.
        end_with_parent(&mut to_start, Signal::KILL);
        let child = Started(Some(to_start.spawn()?));
        child.talk()
    }

    /// Sends a line. One that can't be sent any more is no error here: what follows from it will be heard.
    pub(super) fn send(&self, line: impl std::fmt::Display) {
        if let Some(to_write) = &self.to_write {
            let _ = to_write.send(format!("{line}\n"));
        }
    }

    /// Discards the lines that have come and were not requested.
    pub(super) fn forget_lines(&self) {
        while self.heard.try_recv().is_ok() {}
    }

    /// The next line and when it came; none at the deadline.
    pub(super) fn next_line(
        &mut self,
        deadline: Instant,
        stop: &AtomicBool,
    ) -> Result<Option<(String, Instant)>, Interruption> {
        loop {
            if stop.load(Relaxed) {
                return Err(Interruption::Stopped);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.heard.recv_timeout(left.min(LOOK_INTERVAL)) {
                Ok(Heard {
                    at,
                    line: ReadLine::Whole(line),
                }) => return Ok(Some((line, at))),
                Ok(Heard {
                    line: ReadLine::Cut(_),
                    ..
                }) => {
                    let reason = format!("it wrote a line of more than {LONGEST_LINE} bytes");
                    return Err(self.fault(FaultKind::Rubbish, reason).into());
                }
                Err(RecvTimeoutError::Timeout) if left.is_zero() => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended().into()),
            }
        }
    }

    /// A fault of the engine, with its last lines.
    pub(super) fn fault(&self, kind: FaultKind, reason: impl Into<String>) -> EngineFault {
        EngineFault {
            kind,
            reason: reason.into(),
            last_lines: self.last_lines.get(),
        }
    }

    /// The fault of an engine that has closed its output.
    fn ended(&mut self) -> EngineFault {
        let limit = Instant::now() + LAST_WORDS_LIMIT;
        while !(self.has_ended() && self.errors.is_finished()) && Instant::now() < limit {
            std::thread::sleep(END_INTERVAL);
        }
        let reason = match self.has_ended().then(|| self.reap()).flatten() {
            Some(status) => format!("it ended by itself ({status})"),
            None => "it closed its output".to_owned(),
        };
        self.fault(FaultKind::Crash, reason)
    }

    /// Whether the process has ended. It isn't reaped, so that its number stays its own.
    fn has_ended(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // What can't be waited for has been.
        !matches!(
            waitid(WaitId::Pid(Pid::from_child(&self.child)), look),
            Ok(None)
        )
    }

    /// Kills what is left of the group, and returns how the process itself ended.
    fn reap(&mut self) -> Option<ExitStatus> {
        end(&mut self.child)
    }
}

/// Asked to quit, and killed with all that it has started if it doesn't, or has left something behind.
impl Drop for EngineProcess {
    fn drop(&mut self) {
        self.send(arimaa::aei::Command::Quit);
        // The writer closes the child's input when there is nothing more to write.
        self.to_write = None;
        let limit = Instant::now() + QUIT_LIMIT;
        while !self.has_ended() && Instant::now() < limit {
            std::thread::sleep(END_INTERVAL);
        }
        self.reap();
    }
}

/// A child that is killed unless it is taken over.
struct Started(Option<Child>);

impl Started {
    /// Starts the threads that talk to the child.
    fn talk(mut self) -> std::io::Result<EngineProcess> {
        let none = || std::io::Error::other("a pipe to it is missing");
        let child = self.0.as_mut().ok_or_else(none)?;
        let mut input = child.stdin.take().ok_or_else(none)?;
        let output = child.stdout.take().ok_or_else(none)?;
        let errors = child.stderr.take().ok_or_else(none)?;
        let last_lines = Arc::new(LastLines::default());
        let (to_write, written): (Sender<String>, Receiver<String>) = channel();
        let thread = |name: &str| Builder::new().name(name.to_owned());
        thread("engine input").spawn(move || {
            for line in written {
                if input
                    .write_all(line.as_bytes())
                    .and_then(|()| input.flush())
                    .is_err()
                {
                    break;
                }
            }
        })?;
        let (sender, heard) = sync_channel(LINES_AHEAD);
        let last = Arc::clone(&last_lines);
        thread("engine output")
            .spawn(move || read_lines(output, |line| hear(line, &last, &sender)))?;
        let last = Arc::clone(&last_lines);
        let errors = thread("engine errors").spawn(move || {
            read_lines(errors, |line| {
                note(&line, &last);
                true
            });
        })?;
        Ok(EngineProcess {
            child: self.0.take().ok_or_else(none)?,
            to_write: Some(to_write),
            heard,
            last_lines,
            errors,
        })
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            end(child);
        }
    }
}

/// Passes a line on; false once the receiver is gone, or the rest is useless.
fn hear(line: ReadLine, last: &LastLines, sender: &SyncSender<Heard>) -> bool {
    note(&line, last);
    let goes_on = matches!(line, ReadLine::Whole(_));
    let at = Instant::now();
    sender.send(Heard { at, line }).is_ok() && goes_on
}

fn note(line: &ReadLine, last: &LastLines) {
    let (ReadLine::Whole(text) | ReadLine::Cut(text)) = line;
    if !text.trim().is_empty() {
        last.push(text);
    }
}

/// Kills a child's whole group and reaps the child, in this order: until it is reaped, the group's number is no other's.
fn end(child: &mut Child) -> Option<ExitStatus> {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    // Of a child that was reaped before, the standard library still knows the status; the system knows no such child.
    if waitid(WaitId::Pid(Pid::from_child(child)), look).is_ok() {
        // All of the group may be gone already.
        let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    }
    child.wait().ok()
}
