//! The state of a run as its files show it, for `train info` and `selfplay serve`. Parts that can't be read are missing, and
//! [`Problems`] says why.

use super::directory::RunDirectory;
use super::generator_status::GeneratorStatus;
use super::generators::{GeneratorPaths, lost_generators_at, running_generators_at};
use super::published::GenerationTime;
use crate::config::Config;
use serde::Serialize;
use std::fmt;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::SystemTime;

/// The parts of a report that are missing, and why.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(transparent)]
pub struct Problems(Vec<String>);

impl Problems {
    /// Adds a problem, once.
    pub fn add(&mut self, problem: String) {
        if !self.0.contains(&problem) {
            self.0.push(problem);
        }
    }

    /// Adds an error of a file, unless another program has just renamed or removed it.
    pub fn add_unless_gone(&mut self, path: &Path, error: &io::Error) {
        if error.kind() != ErrorKind::NotFound {
            self.add(format!("can't read {}: {error}", path.display()));
        }
    }

    /// A result, or the default with the error as a problem.
    pub fn or_default<T: Default>(&mut self, result: Result<T, impl fmt::Display>) -> T {
        result.unwrap_or_else(|error| {
            self.add(error.to_string());
            T::default()
        })
    }

    /// Whether nothing is missing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The problems, in the order in which they were added.
    pub fn as_slice(&self) -> &[String] {
        &self.0
    }
}

/// A line for each problem.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut problems = self.0.iter();
        problems.try_for_each(|problem| writeln!(f, "problem: {problem}"))
    }
}

/// What a generator does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GeneratorState {
    /// It plays.
    Running,
    /// It can't write to the disk.
    WaitingForDisk,
    /// A stop is requested, and its games come to a rest.
    Stopping,
    /// It has ended with games in flight and is silent.
    Lost,
}

impl GeneratorState {
    /// The state that a running generator has reported.
    fn reported(state: &str) -> Self {
        match state {
            "waiting_for_disk" => Self::WaitingForDisk,
            "stopping" => Self::Stopping,
            _ => Self::Running,
        }
    }
}

/// A generator that runs or is lost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GeneratorReport {
    /// Its number.
    pub number: u32,
    /// What it does.
    pub state: GeneratorState,
    /// Whether it is a lost one of another machine: only there it resumes.
    pub is_elsewhere: bool,
    /// Seconds since it last wrote its status, or its plan before it has one.
    pub seconds_ago: f64,
    /// What it reported last.
    #[serde(flatten)]
    pub status: GeneratorStatus,
}

impl GeneratorReport {
    /// The running generators that have reported, then the lost ones, each in order. `now` is by the clock of the run's files
    /// ([`now_in`](crate::files::now_in)): another machine may have written them.
    pub fn list(paths: &GeneratorPaths, now: SystemTime, problems: &mut Problems) -> Vec<Self> {
        let mut reports = Vec::new();
        for number in problems.or_default(running_generators_at(paths, || now)) {
            let Some(status) = problems.or_default(GeneratorStatus::read(paths, number)) else {
                continue;
            };
            let written = fs::metadata(paths.status(number)).and_then(|about| about.modified());
            let silence = written.ok().and_then(|time| now.duration_since(time).ok());
            reports.push(Self {
                number,
                state: GeneratorState::reported(&status.state),
                is_elsewhere: false,
                seconds_ago: silence.unwrap_or_default().as_secs_f64(),
                status,
            });
        }
        for lost in problems.or_default(lost_generators_at(paths, now)) {
            let status = GeneratorStatus::read(paths, lost.number).ok().flatten();
            reports.push(Self {
                number: lost.number,
                state: GeneratorState::Lost,
                is_elsewhere: lost.is_elsewhere,
                seconds_ago: lost.silence.as_secs_f64(),
                status: GeneratorStatus {
                    worker: lost.worker,
                    ..status.unwrap_or_default()
                },
            });
        }
        reports
    }
}

/// The time until `loop.generations` are trained.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TimeLeft {
    /// Generations to train.
    pub generations: u32,
    /// For all of them; none before the second published network.
    pub seconds: Option<f64>,
    /// The time of one.
    pub measured: Option<GenerationTime>,
}

impl TimeLeft {
    /// The time left of a run whose newest trained generation is `trained`; none if its configuration can't be read.
    pub fn of(
        run: &RunDirectory,
        trained: u32,
        measured: Option<GenerationTime>,
        problems: &mut Problems,
    ) -> Option<Self> {
        let config = problems.or_default(Config::load(&run.config()).map(Some))?;
        let generations = config.training_loop.generations.saturating_sub(trained);
        Some(Self {
            generations,
            seconds: measured.map(|measured| f64::from(generations) * measured.seconds),
            measured,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_age_of_a_status_is_by_the_given_clock() {
        let folder = tempfile::tempdir().unwrap();
        let paths = GeneratorPaths::from(&RunDirectory::new(folder.path()));
        fs::create_dir_all(paths.status(0).parent().unwrap()).unwrap();
        fs::write(paths.status(0), r#"{"worker": "a", "games": 7}"#).unwrap();
        // The clock of the files is years behind this machine's.
        let written = SystemTime::UNIX_EPOCH + Duration::from_hours(1);
        let file = fs::File::options().append(true).open(paths.status(0));
        file.unwrap().set_modified(written).unwrap();
        let mut problems = Problems::default();
        let mut after = |seconds| {
            let now = written + Duration::from_secs(seconds);
            let reports = GeneratorReport::list(&paths, now, &mut problems);
            assert_eq!((reports.len(), reports[0].status.games), (1, 7));
            (reports[0].state, reports[0].seconds_ago)
        };
        assert_eq!(after(4), (GeneratorState::Running, 4.0));
        assert_eq!(after(3_600), (GeneratorState::Lost, 3_600.0));
        assert!(problems.is_empty());
    }
}
