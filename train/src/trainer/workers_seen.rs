//! Which generators of a run have come and gone, for the trainer's messages and its log.

use super::metrics::GeneratorCounts;
use crate::error::TrainError;
use engine::progress::say;
use engine::run::{GeneratorPaths, RunDirectory, lost_generators, running_generators};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// The time between two looks.
const INTERVAL: Duration = Duration::from_secs(30);

/// The generators that ran at the last look.
#[derive(Debug, Default)]
pub(crate) struct WorkersSeen {
    last: Option<Instant>,
    /// By number, with the names of their workers.
    running: BTreeMap<u32, String>,
    /// Those that were reported as lost.
    lost: BTreeSet<u32>,
}

impl WorkersSeen {
    /// Says which generators have come and gone, if the last look was a while ago. An error of the disk is said and nothing more:
    /// the training does not depend on it.
    pub(crate) fn look(&mut self, run: &RunDirectory, now: Instant) {
        if self.last.is_some_and(|last| now - last < INTERVAL) {
            return;
        }
        self.last = Some(now);
        match self.changes(run) {
            Ok(lines) => lines.iter().for_each(|line| say(line)),
            Err(error) => say(&format!("which generators run is not known: {error}")),
        }
    }

    /// The generators of the last look.
    pub(crate) fn counts(&self) -> GeneratorCounts {
        GeneratorCounts {
            generators_running: self.running.len(),
            generators_lost: self.lost.len(),
        }
    }

    /// The number of generators in words.
    pub(crate) fn in_words(&self) -> String {
        match self.running.len() {
            0 => "no generator is running: `selfplay generate --run DIR` starts one".to_owned(),
            1 => "1 generator is running".to_owned(),
            several => format!("{several} generators are running"),
        }
    }

    fn changes(&mut self, run: &RunDirectory) -> Result<Vec<String>, TrainError> {
        let paths = GeneratorPaths::from(run);
        let numbers = running_generators(&paths)?.into_iter();
        let now: BTreeMap<u32, String> = numbers
            .map(|number| (number, paths.worker(number).unwrap_or_default()))
            .collect();
        let lost = lost_generators(&paths)?;
        let mut lines = Vec::new();
        for (number, worker) in &now {
            if !self.running.contains_key(number) {
                lines.push(format!("generator {number} of worker {worker} is running"));
            }
        }
        for (number, worker) in &self.running {
            if !now.contains_key(number) {
                lines.push(format!("generator {number} of worker {worker} has ended"));
            }
        }
        for one in lost.iter().filter(|one| !self.lost.contains(&one.number)) {
            let resumes = if one.is_elsewhere {
                "it resumes them when it starts again"
            } else {
                "the next generator that starts takes them over"
            };
            lines.push(format!(
                "generator {} of worker {} is lost: silent for {} minutes, with games in flight; {resumes}",
                one.number,
                one.worker,
                one.silence.as_secs() / 60
            ));
        }
        self.lost = lost.iter().map(|one| one.number).collect();
        self.running = now;
        Ok(lines)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use engine::run::{Generator, GeneratorPlan};

    /// A generator of a run, as one that runs.
    pub(crate) fn start(run: &RunDirectory, worker: &str) -> Generator {
        let plan = GeneratorPlan {
            worker: worker.to_owned(),
            seed: 0,
            games: None,
            config_digest: String::new(),
            evaluator: String::new(),
        };
        let started = Generator::start(&GeneratorPaths::from(run), &plan);
        started.unwrap().0
    }

    #[test]
    fn generators_are_named_when_they_come_and_go() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path());
        let mut seen = WorkersSeen::default();
        assert!(seen.changes(&run).unwrap().is_empty());
        let (first, second) = (start(&run, "a"), start(&run, "b"));
        let come = [
            "generator 0 of worker a is running",
            "generator 1 of worker b is running",
        ];
        assert_eq!(seen.changes(&run).unwrap(), come);
        assert_eq!(seen.in_words(), "2 generators are running");
        drop(first);
        assert_eq!(
            seen.changes(&run).unwrap(),
            ["generator 0 of worker a has ended"]
        );
        assert!(seen.changes(&run).unwrap().is_empty());
        drop(second);
        assert_eq!(
            seen.changes(&run).unwrap(),
            ["generator 1 of worker b has ended"]
        );
        assert!(seen.in_words().starts_with("no generator is running"));
    }
}
