//! The names of workers: they outlive restarts, so that a worker that starts again takes up its own games.

use rustix::system::uname;
use std::fmt;
use std::str::FromStr;

/// The longest name, which is the longest of a host too.
const MAX_NAME_LENGTH: usize = 64;

/// The name of a worker, which makes games for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerName {
    name: String,
    /// Whether no other worker of the run has it.
    is_unique: bool,
}

/// A text is no name of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a worker's name has 1 to {MAX_NAME_LENGTH} letters, digits, `.`, `_` and `-`")]
pub struct WrongWorkerName;

impl WorkerName {
    /// The name that the scheduler gives, which it gives again after a restart: `SLURM_ARRAY_JOB_ID`_`SLURM_ARRAY_TASK_ID` of Slurm, or
    /// `JOB_COMPLETION_INDEX` of Kubernetes. Elsewhere the host's name, which several workers may have.
    pub fn of_environment() -> Self {
        Self::of_variables(|name| std::env::var(name).ok()).unwrap_or_else(Self::of_host)
    }

    /// The host's name.
    pub fn of_host() -> Self {
        Self::of_node(&uname().nodename().to_string_lossy())
    }

    fn of_variables(read: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let of_slurm = || {
            let [job, task] = ["SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID"].map(&read);
            Some(format!("{}_{}", job?, task?))
        };
        let given = of_slurm().or_else(|| read("JOB_COMPLETION_INDEX"));
        given?.parse().ok()
    }

    fn of_node(host: &str) -> Self {
        let allowed = |letter| if is_allowed(letter) { letter } else { '-' };
        let name: String = host.chars().map(allowed).take(MAX_NAME_LENGTH).collect();
        Self {
            name: if name.is_empty() {
                "host".to_owned()
            } else {
                name
            },
            is_unique: false,
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// Whether no other worker of the run has it: it is not the host's.
    pub fn is_unique(&self) -> bool {
        self.is_unique
    }
}

impl FromStr for WorkerName {
    type Err = WrongWorkerName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if (1..=MAX_NAME_LENGTH).contains(&text.len()) && text.chars().all(is_allowed) {
            Ok(Self {
                name: text.to_owned(),
                is_unique: true,
            })
        } else {
            Err(WrongWorkerName)
        }
    }
}

impl fmt::Display for WorkerName {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.name)
    }
}

fn is_allowed(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || ".-_".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedulers_give_names_and_hosts_where_there_is_none() {
        let of = |variables: &[(&str, &str)], host: &str| {
            let read = |name: &str| {
                let found = variables.iter().find(|(variable, _)| *variable == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            let name = WorkerName::of_variables(read);
            let name = name.unwrap_or_else(|| WorkerName::of_node(host));
            (name.to_string(), name.is_unique())
        };
        let array = [("SLURM_ARRAY_JOB_ID", "812"), ("SLURM_ARRAY_TASK_ID", "3")];
        let index = ("JOB_COMPLETION_INDEX", "7");
        let unique = |name: &str| (name.to_owned(), true);
        let shared = |name: &str| (name.to_owned(), false);
        assert_eq!(of(&array, "node"), unique("812_3"));
        assert_eq!(of(&[array[0], array[1], index], "node"), unique("812_3"));
        assert_eq!(of(&[index], "node"), unique("7"));
        assert_eq!(of(&array[..1], "node-1.local"), shared("node-1.local"));
        assert_eq!(
            of(&[("JOB_COMPLETION_INDEX", "")], "a/b é"),
            shared("a-b--")
        );
        assert_eq!(of(&[], ""), shared("host"));
        assert_eq!(of(&[], &"x".repeat(80)), shared(&"x".repeat(64)));
    }

    #[test]
    fn wrong_names_are_refused() {
        for text in ["", "a b", "../x", "a/b", "é", &"x".repeat(65)] {
            assert_eq!(text.parse::<WorkerName>(), Err(WrongWorkerName), "{text}");
        }
        assert!("gpu-3.rack_1".parse::<WorkerName>().unwrap().is_unique());
    }
}
