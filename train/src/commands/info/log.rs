//! The last lines of the trainer's log, and the time of its generations.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Result};
use std::path::Path;

/// The time of a generation is the median of so many of the newest.
const GENERATIONS: usize = 9;

/// The summary of a log.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct LogSummary {
    /// The last line of the kind `train`.
    pub(super) last_steps: Option<Value>,
    /// The last line of the kind `validation`.
    pub(super) last_validation: Option<Value>,
    /// What the trainer waits for, if the last line says so.
    pub(super) waiting: Option<String>,
    /// The time of a generation, from one published network to the next.
    pub(super) generation_time: Option<GenerationTime>,
}

/// The time of a generation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct GenerationTime {
    /// The median: a pause for a night does not count.
    pub(super) seconds: f64,
    /// Of so many generations.
    pub(super) generations: usize,
}

#[derive(Deserialize)]
struct Line {
    kind: Option<String>,
    time: Option<f64>,
    generation: Option<u32>,
    missing: Option<String>,
}

impl LogSummary {
    /// Reads a log, which may be missing. Unreadable lines are skipped.
    pub(super) fn read(path: &Path) -> Result<Self> {
        match File::open(path) {
            Ok(file) => Self::of_lines(BufReader::new(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    fn of_lines(mut lines: impl BufRead) -> Result<Self> {
        let mut summary = Self::default();
        let (mut steps, mut validation) = (Vec::new(), Vec::new());
        let mut published: Vec<(u32, f64)> = Vec::new();
        let mut line = Vec::new();
        loop {
            line.clear();
            if lines.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let Ok(parsed) = serde_json::from_slice::<Line>(&line) else {
                continue;
            };
            summary.waiting = None;
            match parsed.kind.as_deref() {
                Some("train") => steps.clone_from(&line),
                Some("validation") => validation.clone_from(&line),
                Some("waiting") => summary.waiting = parsed.missing,
                Some("published") => {
                    let Some(at) = parsed.generation.zip(parsed.time) else {
                        continue;
                    };
                    // The network was removed and trained again.
                    published.retain(|&(generation, _)| generation < at.0);
                    published.push(at);
                }
                _ => {}
            }
        }
        summary.last_steps = serde_json::from_slice(&steps).ok();
        summary.last_validation = serde_json::from_slice(&validation).ok();
        summary.generation_time = generation_time(&published);
        Ok(summary)
    }
}

fn generation_time(published: &[(u32, f64)]) -> Option<GenerationTime> {
    let pairs = published.iter().zip(published.iter().skip(1));
    let each = pairs.map(|(before, after)| (after.1 - before.1) / f64::from(after.0 - before.0));
    let mut newest: Vec<f64> = each
        .rev()
        .filter(|time| *time > 0.0)
        .take(GENERATIONS)
        .collect();
    newest.sort_by(f64::total_cmp);
    Some(GenerationTime {
        seconds: *newest.get(newest.len() / 2)?,
        generations: newest.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> LogSummary {
        LogSummary::of_lines(text.as_bytes()).unwrap()
    }

    #[test]
    fn the_last_line_of_a_kind_counts() {
        let summary = of(concat!(
            "{\"kind\":\"train\",\"step\":20}\n",
            "{\"kind\":\"validation\",\"step\":30}\n",
            "{\"kind\":\"train\",\"step\":40}\n",
            "{\"kind\":\"rating\",\"generation\":4}\n",
            "{\"kind\":\"waiting\",\"missing\":\"games\"}\n",
            "{\"kind\":\"tra",
        ));
        let step = |line: &Option<Value>| line.as_ref().unwrap()["step"].as_u64();
        assert_eq!(step(&summary.last_steps), Some(40));
        assert_eq!(step(&summary.last_validation), Some(30));
        assert_eq!(summary.waiting.as_deref(), Some("games"));
        let on = of("{\"kind\":\"waiting\",\"missing\":\"games\"}\n{\"kind\":\"train\"}\n");
        assert_eq!(on.waiting, None);
        assert_eq!(of(""), LogSummary::default());
        let folder = tempfile::tempdir().unwrap();
        let none = LogSummary::read(&folder.path().join("none")).unwrap();
        assert_eq!(none, LogSummary::default());
    }

    #[test]
    fn a_generation_takes_the_median_of_the_newest() {
        let line = |(generation, time): &(u32, f64)| {
            format!("{{\"kind\":\"published\",\"generation\":{generation},\"time\":{time}}}\n")
        };
        let time = |published: &[(u32, f64)]| {
            let lines: String = published.iter().map(line).collect();
            of(&lines).generation_time
        };
        let known = |seconds, generations| {
            Some(GenerationTime {
                seconds,
                generations,
            })
        };
        assert_eq!(time(&[(1, 100.0)]), None);
        assert_eq!(time(&[(1, 100.0), (2, 160.0)]), known(60.0, 1));
        // A pause for a night, a lost line of a generation, and a generation that was trained twice.
        let run = [
            (1, 0.0),
            (2, 50.0),
            (3, 9_000.0),
            (4, 9_060.0),
            (6, 9_200.0),
        ];
        assert_eq!(time(&run), known(70.0, 4));
        let again = [(1, 0.0), (2, 50.0), (3, 90.0), (2, 130.0)];
        assert_eq!(time(&again), known(130.0, 1));
        let many: Vec<(u32, f64)> = (0..50)
            .map(|one| {
                (
                    one,
                    if one < 40 {
                        1e3 * f64::from(one)
                    } else {
                        4e4 + f64::from(one)
                    },
                )
            })
            .collect();
        assert_eq!(time(&many), known(1.0, GENERATIONS));
    }
}
