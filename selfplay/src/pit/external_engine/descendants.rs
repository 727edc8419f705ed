//! The processes that an engine has started, whichever session and parent they have now.

use engine::files::entries;
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The environment variable that an engine's processes inherit.
const VARIABLE: &str = "TUSKER_ENGINE";

/// The most looks for processes, each of which may have started another one since, and the time between two.
const MAX_LOOKS: u32 = 100;
const INTERVAL: Duration = Duration::from_millis(5);

/// A value of the environment that only one engine and its descendants have.
#[derive(Debug)]
pub(super) struct Mark(String);

impl Mark {
    /// A new value, which the command's process gets.
    pub(super) fn new(command: &mut Command) -> Self {
        let value = format!("{}-{:016x}", std::process::id(), rand::random::<u64>());
        command.env(VARIABLE, &value);
        Self(format!("{VARIABLE}={value}"))
    }

    /// Kills all processes with this mark. Returns those that could not be killed. Without `/proc` (Linux) none are found.
    pub(super) fn end_all(&self) -> Vec<Pid> {
        for _ in 1..MAX_LOOKS {
            let found = self.processes();
            if found.is_empty() {
                return found;
            }
            for process in found {
                // It may have ended by itself.
                let _ = kill_process(process, Signal::KILL);
            }
            std::thread::sleep(INTERVAL);
        }
        self.processes()
    }

    fn processes(&self) -> Vec<Pid> {
        let all = entries(Path::new("/proc")).unwrap_or_default();
        all.iter()
            .filter_map(|folder| self.process(folder))
            .collect()
    }

    /// The process of a folder in `/proc`, if it has the mark. Those of other users can't be read; those that have ended have none.
    fn process(&self, folder: &Path) -> Option<Pid> {
        let pid = Pid::from_raw(folder.file_name()?.to_str()?.parse().ok()?)?;
        let environment = std::fs::read(folder.join("environ")).ok()?;
        let mut variables = environment.split(|&byte| byte == 0);
        variables
            .any(|variable| variable == self.0.as_bytes())
            .then_some(pid)
    }
}
