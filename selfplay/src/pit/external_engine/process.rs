//! An engine's process: its input, its output, and its end.

use super::command::EngineCommand;
use super::descendants::Mark;
use super::fault::{EngineFault, FaultKind, Interruption};
use super::lines::{LastLines, MAX_LINE_BYTES, ReadLine, read_lines};
use engine::process::end_with_parent;
use engine::progress::say;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid,
};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Lines that an engine may be ahead of the reader; then its writing waits.
const LINES_AHEAD: usize = 4_096;

/// The time between two checks of the stop flag.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// The time between two checks whether a process has ended.
const END_INTERVAL: Duration = Duration::from_millis(5);

/// The wait for an engine to quit before it is killed.
const QUIT_LIMIT: Duration = Duration::from_millis(500);

/// The wait for the exit status and the last lines of an engine that has closed its output.
const LAST_WORDS_LIMIT: Duration = Duration::from_secs(1);

/// How long this program may take to notice the stop whose signal has ended the engine.
const STOP_LIMIT: Duration = Duration::from_millis(500);

/// A line of an engine, and its time.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) at: Instant,
    line: ReadLine,
}

/// A child process that reads and writes lines.
///
/// It runs in a process group of its own: a Ctrl-C at the terminal doesn't reach it. Dropping it ends the processes that it has
/// started too, in whichever group or session they are (Linux; elsewhere those of its group). If this program is killed, the system
/// kills the child (Linux), and the input of its own processes ends.
#[derive(Debug)]
pub(crate) struct EngineProcess {
    child: Child,
    mark: Mark,
    /// Lines for the thread that writes, which may wait for the child to read. None once nothing more may be sent.
    to_write: Option<Sender<String>>,
    heard: Receiver<Heard>,
    last_lines: Arc<LastLines>,
    /// Reads standard error.
    errors: Option<JoinHandle<()>>,
}

impl EngineProcess {
    /// Starts a program. The calling thread must outlive it: the system ends the child with the thread.
    pub(crate) fn start(command: &EngineCommand) -> std::io::Result<Self> {
        let mut to_start = Command::new(&command.program);
        to_start
            .args(&command.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        // An abandoned engine would never end.
        end_with_parent(&mut to_start, Signal::KILL);
        let mark = Mark::new(&mut to_start);
        let mut child = to_start.spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (to_write, written) = channel::<String>();
        let (sender, heard) = sync_channel(LINES_AHEAD);
        // From here on an error drops the process, which kills the child.
        let mut process = Self {
            child,
            mark,
            to_write: Some(to_write),
            heard,
            last_lines: Arc::default(),
            errors: None,
        };
        let (Some(mut input), Some(output), Some(errors)) = pipes else {
            return Err(std::io::Error::other("a pipe to it is missing"));
        };
        let thread = |name: &str| Builder::new().name(name.to_owned());
        thread("engine input").spawn(move || {
            for line in written {
                let sent = input.write_all(line.as_bytes());
                if sent.and_then(|()| input.flush()).is_err() {
                    break;
                }
            }
        })?;
        let last = Arc::clone(&process.last_lines);
        thread("engine output")
            .spawn(move || read_lines(output, |line| hear(line, &last, &sender)))?;
        let last = Arc::clone(&process.last_lines);
        let read_errors = move || {
            read_lines(errors, |line| {
                note(&line, &last);
                true
            });
        };
        process.errors = Some(thread("engine errors").spawn(read_errors)?);
        Ok(process)
    }

    /// Sends a line. One that can't be sent is no error here: the end of the engine's output will show it.
    pub(super) fn send(&self, line: impl std::fmt::Display) {
        if let Some(to_write) = &self.to_write {
            let _ = to_write.send(format!("{line}\n"));
        }
    }

    /// Discards the lines received so far.
    pub(super) fn forget_lines(&self) -> Result<(), EngineFault> {
        let mut heard = self.heard.try_iter();
        match heard.find(|heard| matches!(heard.line, ReadLine::Cut(_))) {
            Some(_) => Err(self.endless_line()),
            None => Ok(()),
        }
    }

    /// The next line and its time; none at the deadline.
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
                }) => return Err(self.endless_line().into()),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let ended = self.ended();
                    // A signal to all programs of a job may end the engine first.
                    let limit = Instant::now() + STOP_LIMIT;
                    while !stop.load(Relaxed) && Instant::now() < limit {
                        std::thread::sleep(END_INTERVAL);
                    }
                    return Err(if stop.load(Relaxed) {
                        Interruption::Stopped
                    } else {
                        ended.into()
                    });
                }
            }
        }
    }

    fn endless_line(&self) -> EngineFault {
        let reason = format!("it wrote a line of more than {MAX_LINE_BYTES} bytes");
        self.fault(FaultKind::Malformed, reason)
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
        let is_read =
            |errors: &Option<JoinHandle<()>>| errors.as_ref().is_none_or(JoinHandle::is_finished);
        while !(self.has_ended() && is_read(&self.errors)) && Instant::now() < limit {
            std::thread::sleep(END_INTERVAL);
        }
        let reason = match self.has_ended().then(|| self.reap()).flatten() {
            Some(status) => format!("it ended by itself ({status})"),
            None => "it closed its output".to_owned(),
        };
        self.fault(FaultKind::Crash, reason)
    }

    /// Whether the process has ended. It isn't reaped, so that its id stays its own.
    fn has_ended(&self) -> bool {
        // A child that the system doesn't know was reaped before.
        !matches!(self.look(), Ok(None))
    }

    fn look(&self) -> rustix::io::Result<Option<WaitIdStatus>> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_child(&self.child)), options)
    }

    /// Kills the child's whole group and all other processes that it has started. Then reaps the child: until then no other group
    /// can have the id. Returns how the child ended.
    fn reap(&mut self) -> Option<ExitStatus> {
        if self.look().is_ok() {
            // The whole group may have ended already.
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        }
        let left = self.mark.end_all();
        if !left.is_empty() {
            let left: Vec<String> = left.iter().map(Pid::to_string).collect();
            say(&format!(
                "processes that an engine has started can't be ended: {}",
                left.join(", ")
            ));
        }
        // The standard library knows the status of a child that was reaped before.
        self.child.wait().ok()
    }
}

/// Tells the engine to quit, then kills what is left of its group.
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

/// Passes a line on; false once the receiver is gone, or after a line that was cut.
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
