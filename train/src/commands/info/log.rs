//! The last lines of the trainer's log.

use engine::run::{GenerationTime, PublishedTimes};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Result};
use std::path::Path;

/// The summary of a log.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct LogSummary {
    /// The last line of the kind `train`.
    pub(super) last_steps: Option<Value>,
    /// The last line of the kind `validation`.
    pub(super) last_validation: Option<Value>,
    /// What the trainer waits for, if the last line says so.
    pub(super) waiting: Option<String>,
    /// What `train loop` does, if the last lines say so.
    pub(super) phase: Option<PhaseReport>,
    /// The time of a generation, from one published network to the next.
    pub(super) generation_time: Option<GenerationTime>,
}

/// What `train loop` does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct PhaseReport {
    /// `self_play`, `training` or `matches`.
    pub(super) phase: String,
    pub(super) generation: u32,
    /// Seconds since 1970.
    pub(super) since: f64,
}

#[derive(Deserialize)]
struct Line {
    kind: Option<String>,
    time: Option<f64>,
    generation: Option<u32>,
    missing: Option<String>,
    phase: Option<String>,
}

impl Line {
    fn phase(self) -> Option<PhaseReport> {
        Some(PhaseReport {
            phase: self.phase?,
            generation: self.generation?,
            since: self.time?,
        })
    }
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
        let mut published = PublishedTimes::default();
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
                Some("phase") => summary.phase = parsed.phase(),
                Some("validation") => validation.clone_from(&line),
                Some("waiting") => summary.waiting = parsed.missing,
                Some("published") => {
                    if let Some((generation, time)) = parsed.generation.zip(parsed.time) {
                        published.add(generation, time);
                    }
                }
                _ => {}
            }
        }
        summary.last_steps = serde_json::from_slice(&steps).ok();
        summary.last_validation = serde_json::from_slice(&validation).ok();
        summary.generation_time = published.generation_time();
        Ok(summary)
    }
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
        let phase = |lines: &str| {
            of(lines)
                .phase
                .map(|it| (it.phase, it.generation, it.since))
        };
        let begun =
            r#"{"kind":"phase","phase":"self_play","generation":8,"time":5.5,"ended":null}"#;
        let playing = Some(("self_play".to_owned(), 8, 5.5));
        assert_eq!(phase(begun), playing);
        assert_eq!(
            phase(&format!("{begun}\n{{\"kind\":\"rating\"}}\n")),
            playing
        );
        let ended = r#"{"kind":"phase","phase":null,"generation":8,"time":6.5}"#;
        assert_eq!(phase(&format!("{begun}\n{ended}\n")), None);
        let on = of("{\"kind\":\"waiting\",\"missing\":\"games\"}\n{\"kind\":\"train\"}\n");
        assert_eq!(on.waiting, None);
        assert_eq!(of(""), LogSummary::default());
        let folder = tempfile::tempdir().unwrap();
        let none = LogSummary::read(&folder.path().join("none")).unwrap();
        assert_eq!(none, LogSummary::default());
    }
}
