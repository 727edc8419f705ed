//! The engine as a child process, with lines to and from it.

use network::{Architecture, Network};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The longest wait for an answer before a test fails: machines are busy.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A setup of each side.
pub(crate) const GOLD: &str = "Ra1 Rb1 Rc1 Cd1 Re1 Rf1 Dg1 Rh1 Ra2 Db2 Mc2 Cd2 Ee2 Hf2 Hg2 Rh2";
pub(crate) const SILVER: &str = "ed7 mg7 he7 df7 ce8 hb7 dc7 cd8 ra7 rh7 ra8 rb8 rc8 rf8 rg8 rh8";

/// A position far from an end: both sides have all pieces.
pub(crate) const OPEN: &str =
    "setposition g [rrrrrrrrhdcemcdh                                HDCMECDHRRRRRRRR]";

/// An engine with `material`, which is fast, unless the arguments name another evaluator.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let is_named = arguments.contains(&"--network");
    let player = ["--network", "material"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_selfplay"));
    command.arg("aei").args(arguments);
    command.args(player.iter().filter(|_| !is_named));
    command
}

/// Passes on the lines of a stream, each with its time.
pub(crate) fn lines(from: impl Read + Send + 'static) -> Receiver<(Instant, String)> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if sender.send((Instant::now(), line)).is_err() {
                break;
            }
        }
    });
    lines
}

/// A running engine.
pub(crate) struct Engine {
    child: Child,
    lines: Receiver<(Instant, String)>,
}

impl Engine {
    /// Starts an engine, and sends nothing.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut child = command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = lines(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// Starts an engine that is ready to play.
    pub(crate) fn ready(arguments: &[&str]) -> Self {
        let mut engine = Self::start(arguments);
        engine.say("aei\nisready");
        engine.until("readyok");
        engine
    }

    /// Sends lines.
    pub(crate) fn say(&mut self, text: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(format!("{text}\n").as_bytes()).unwrap();
        input.flush().unwrap();
    }

    /// Sends lines that the engine need not read.
    pub(crate) fn try_say(&mut self, text: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        let _ = input.write_all(format!("{text}\n").as_bytes());
    }

    /// Sends bytes as a line that the engine need not read.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) {
        let input = self.child.stdin.as_mut().unwrap();
        let _ = input.write_all(&[bytes, b"\n"].concat());
    }

    /// Waits for a line with this text, or the end of the output; says whether there was one.
    pub(crate) fn says(&self, text: &str) -> bool {
        loop {
            match self.lines.recv_timeout(TIMEOUT) {
                Ok((_, line)) if line.contains(text) => return true,
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return false,
                Err(RecvTimeoutError::Timeout) => panic!("the engine neither answers nor ends"),
            }
        }
    }

    /// All lines up to one with this beginning.
    pub(crate) fn until(&self, start: &str) -> Vec<String> {
        self.timed_until(start).0
    }

    /// The same with the time of the last line.
    pub(crate) fn timed_until(&self, start: &str) -> (Vec<String>, Instant) {
        let mut seen = Vec::new();
        loop {
            match self.lines.recv_timeout(TIMEOUT) {
                Ok((at, line)) => {
                    let is_last = line.starts_with(start);
                    seen.push(line);
                    if is_last {
                        return (seen, at);
                    }
                }
                Err(error) => panic!("{error} instead of `{start}` after {seen:#?}"),
            }
        }
    }

    /// The next turn that the engine sends.
    pub(crate) fn best_move(&self) -> String {
        let line = self.until("bestmove").pop().unwrap();
        line["bestmove".len()..].trim().to_owned()
    }

    /// All lines until `readyok` after a new `isready`.
    pub(crate) fn said(&mut self) -> Vec<String> {
        self.say("isready");
        let mut lines = self.until("readyok");
        lines.pop();
        lines
    }

    /// Closes the engine's input; returns its exit status and its last lines.
    pub(crate) fn end(mut self) -> (ExitStatus, Vec<String>, String) {
        drop(self.child.stdin.take());
        let end = Instant::now() + TIMEOUT;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(
                Instant::now() < end,
                "the engine continues without a controller"
            );
            thread::sleep(Duration::from_millis(5));
        };
        let mut rest = Vec::new();
        loop {
            match self.lines.recv_timeout(TIMEOUT) {
                Ok((_, line)) => rest.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the engine's output stays open"),
            }
        }
        let mut complaints = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut complaints)
            .unwrap();
        (status, rest, complaints)
    }

    /// The engine's standard error.
    pub(crate) fn stderr(&mut self) -> ChildStderr {
        self.child.stderr.take().unwrap()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A new network of one block and eight channels in a folder.
pub(crate) fn small_network(folder: &Path) -> PathBuf {
    network(folder, 1, 8)
}

/// A new network in a folder.
pub(crate) fn network(folder: &Path, blocks: u32, channels: u32) -> PathBuf {
    let architecture = Architecture { blocks, channels };
    let path = folder.join("network.safetensors");
    let network = Network::new(architecture, 0).unwrap();
    network.save(&path, &Default::default()).unwrap();
    path
}
