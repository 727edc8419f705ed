//! Generators as processes: how they are started, signalled and waited for.

use engine::run::{GeneratorPaths, RunDirectory};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Small games of a generator that knows nothing.
const SMALL: [&str; 9] = [
    "selfplay.evaluations=8",
    "selfplay.loss_proof_limit=0",
    "selfplay.targets.min_visits=2",
    "selfplay.targets.truncated_weight=1",
    "selfplay.openings.sparse_share=0",
    "selfplay.openings.policy_share=0",
    "selfplay.handicap.share=0",
    "selfplay.max_turns=40",
    "selfplay.games_in_flight=4",
];

/// A command: the same command again are the same command.
#[derive(Debug, Clone)]
pub(crate) struct GeneratorCommand {
    paths: GeneratorPaths,
    arguments: Vec<String>,
}

impl GeneratorCommand {
    /// Shards in a folder, by `uniform`.
    pub(crate) fn for_folder(out: &Path) -> Self {
        let paths = GeneratorPaths {
            root: out.to_owned(),
            journal: out.join("journal"),
            shards: out.to_owned(),
            numbers: GeneratorPaths::ALL,
        };
        Self::new(paths, "--out").with(&["--network", "uniform"])
    }

    /// Shards in a run, by `uniform`.
    pub(crate) fn for_run(run: &Path) -> Self {
        Self::following(run).with(&["--network", "uniform"])
    }

    /// Shards in a run, by its networks.
    pub(crate) fn following(run: &Path) -> Self {
        Self::new(GeneratorPaths::from(&RunDirectory::new(run)), "--run")
    }

    fn new(paths: GeneratorPaths, target: &str) -> Self {
        let root = paths.root.display().to_string();
        let this = Self {
            paths,
            arguments: vec!["generate".into(), target.into(), root],
        };
        this.set(&SMALL)
    }

    /// With more arguments.
    pub(crate) fn with(mut self, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|&argument| argument.to_owned());
        self.arguments.extend(arguments);
        self
    }

    /// With keys of the configuration.
    pub(crate) fn set(mut self, keys: &[&str]) -> Self {
        for key in keys {
            self = self.with(&["--set", key]);
        }
        self
    }

    /// Where it writes.
    pub(crate) fn paths(&self) -> &GeneratorPaths {
        &self.paths
    }

    /// Starts it.
    pub(crate) fn start(&self) -> Running {
        self.start_as(Command::new(env!("CARGO_BIN_EXE_selfplay")))
    }

    /// Starts it by a command of the shell, in which `"$@"` is this one.
    pub(crate) fn start_in_shell(&self, script: &str) -> Running {
        let mut shell = Command::new("sh");
        let program = env!("CARGO_BIN_EXE_selfplay");
        shell.args(["-c", script, "sh", program]);
        self.start_as(shell)
    }

    /// Starts it with something else as its standard output.
    pub(crate) fn start_printing_to(&self, output: impl Into<Stdio>) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_selfplay"));
        command.stdout(output);
        self.spawn(command, tempfile::tempdir().unwrap())
    }

    fn start_as(&self, mut command: Command) -> Running {
        let output = tempfile::tempdir().unwrap();
        command.stdout(File::create(output.path().join("printed")).unwrap());
        self.spawn(command, output)
    }

    fn spawn(&self, mut command: Command, output: TempDir) -> Running {
        command.args(&self.arguments);
        command.stderr(File::create(output.path().join("stderr")).unwrap());
        let child = command.spawn().unwrap();
        Running { child, output }
    }

    /// Lets it end by itself, and well. Returns what it printed.
    pub(crate) fn finish(&self) -> Ended {
        let ended = self.start().wait();
        assert!(ended.status.success(), "{ended:?}");
        ended
    }
}

/// A generator that runs. It is killed where a test fails before its end.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    output: TempDir,
}

/// One that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) printed: String,
    pub(crate) stderr: String,
}

impl Running {
    /// Its standard error so far.
    pub(crate) fn stderr(&self) -> String {
        self.read("stderr")
    }

    fn read(&self, what: &str) -> String {
        fs::read_to_string(self.output.path().join(what)).unwrap_or_default()
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Sends it a signal: `TERM` say.
    pub(crate) fn signal(&self, name: &str) {
        signal(name, &self.child.id().to_string());
    }

    /// Sends its only child a signal.
    #[cfg(target_os = "linux")]
    pub(crate) fn signal_child(&self, name: &str) {
        signal(name, &self.children()[0].to_string());
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn children(&self) -> Vec<u32> {
        children(self.child.id())
    }

    /// Waits until something holds.
    pub(crate) fn wait_until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        wait_until(what, || {
            let ended = self.child.try_wait().unwrap();
            holds(self) || {
                assert_eq!(ended, None, "{what}: ended before: {}", self.stderr());
                false
            }
        });
    }

    /// Waits until it ends.
    pub(crate) fn wait(mut self) -> Ended {
        wait_until("the generator ends", || self.has_ended());
        self.ended()
    }

    /// Kills it as nothing else does: at once, and without a word.
    pub(crate) fn kill(mut self) -> Ended {
        self.child.kill().unwrap();
        self.ended()
    }

    fn ended(&mut self) -> Ended {
        Ended {
            status: self.child.wait().unwrap(),
            printed: self.read("printed"),
            stderr: self.stderr(),
        }
    }

    /// Asks it to stop, and waits until it has done so.
    pub(crate) fn stop(self) -> Ended {
        self.signal("TERM");
        let ended = self.wait();
        assert_eq!(ended.status.code(), Some(75), "{ended:?}");
        ended
    }
}

/// The children of a process's first thread, zombies too.
#[cfg(target_os = "linux")]
pub(crate) fn children(process: u32) -> Vec<u32> {
    let listed = fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let of = |word: &str| word.parse().unwrap();
    listed.unwrap().split_whitespace().map(of).collect()
}

fn signal(name: &str, process: &str) {
    let mut kill = Command::new("kill");
    let status = kill.args(["-s", name, process]).status();
    assert!(status.unwrap().success());
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until something holds, and not for ever.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        let waited = begun.elapsed();
        assert!(waited < Duration::from_secs(120), "{what}: not in minutes");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The names in a folder, in order. None where there is no such folder.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

/// The file that marks a generator's command as done.
pub(crate) fn done_file(paths: &GeneratorPaths, generator: u32) -> PathBuf {
    let folder = paths.root.join("generators");
    folder.join(format!("{generator:03}")).join("done")
}
