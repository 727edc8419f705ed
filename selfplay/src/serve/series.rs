//! The trainer's measurements over time, from its log, which is read on from where the last reading ended.

use engine::run::{LineKind, LogLine, LogPart, LogReader, LogSummary, RunError, StepSeries};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The most points of a column in an answer.
const MAX_POINTS: usize = 2_000;

/// The most lines that are kept of each kind; then every second one goes.
const MAX_LINES: usize = 20_000;

/// The lines of a log, as far as they have been read.
#[derive(Debug)]
pub(super) struct TrainLog {
    reader: LogReader,
    lines: Lines,
}

#[derive(Debug, Default)]
struct Lines {
    summary: LogSummary,
    train: MeasuredSeries,
    validation: MeasuredSeries,
    self_play: MeasuredSeries,
    /// Seconds of each phase of `train loop`, by generation.
    phases: BTreeMap<u64, Measured>,
    calibration: Option<Value>,
    changes: Vec<LogLine>,
    unreadable: u64,
}

/// The numbers of a line, by key.
type Measured = BTreeMap<String, f64>;

/// By step and generation.
type MeasuredSeries = StepSeries<Measured, (u64, Option<u32>)>;

/// Columns by key: the same number of points in each.
type Columns = BTreeMap<String, Vec<Option<f64>>>;

/// `GET /api/run/series`, without what the games' index gives.
#[derive(Debug, Serialize)]
pub(super) struct Series {
    train: Columns,
    validation: Columns,
    self_play: Columns,
    phases: Columns,
    calibration: Value,
}

impl TrainLog {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            reader: LogReader::following(path),
            lines: Lines::default(),
        }
    }

    /// Its newest lines.
    pub(super) fn summary(&self) -> &LogSummary {
        &self.lines.summary
    }

    /// What is wrong with the log.
    pub(super) fn problem(&self) -> Option<String> {
        (self.lines.unreadable > 0).then(|| {
            format!(
                "{}: unreadable lines, which are left out: {}",
                self.reader.path().display(),
                self.lines.unreadable
            )
        })
    }

    /// The changes of settings: `time`, `generation`, `step` and `text`.
    pub(super) fn changes(&self) -> Vec<LogLine> {
        self.lines.changes.clone()
    }

    pub(super) fn series(&self) -> Series {
        let lines = &self.lines;
        let calibration = lines.calibration.clone();
        Series {
            train: columns_of(&lines.train),
            validation: columns_of(&lines.validation),
            self_play: columns_of(&lines.self_play),
            phases: columns(&lines.phases.values().collect::<Vec<_>>()),
            calibration: calibration.unwrap_or_else(|| json!([])),
        }
    }

    /// Reads the lines that are new.
    ///
    /// # Errors
    ///
    /// As [`LogReader::read_on`].
    pub(super) fn read_on(&mut self) -> Result<(), RunError> {
        let lines = &mut self.lines;
        self.reader.read_on(|part| match part {
            LogPart::Restart => *lines = Lines::default(),
            LogPart::Line(line) => lines.add(line),
            LogPart::Unreadable => lines.unreadable += 1,
        })
    }
}

impl Lines {
    fn add(&mut self, mut line: LogLine) {
        self.summary.add(&line);
        match line.kind {
            LineKind::Train => add(&mut self.train, &line),
            LineKind::SelfPlay => add(&mut self.self_play, &line),
            LineKind::Phase => self.add_phase(&line),
            LineKind::Validation => {
                add(&mut self.validation, &line);
                let calibration = line.contents.remove("calibration").filter(Value::is_array);
                self.calibration = calibration.or(self.calibration.take());
            }
            LineKind::Changed => self.changes.push(line),
            _ => {}
        }
    }

    /// Adds the phase that has ended. A generation that was stopped has its phases in parts.
    fn add_phase(&mut self, line: &LogLine) {
        let ended = line.contents.get("ended").unwrap_or(&Value::Null);
        if let (Some(generation), Some(phase), Some(seconds)) = (
            ended["generation"].as_u64(),
            ended["phase"].as_str(),
            ended["seconds"].as_f64(),
        ) {
            let of_generation = self
                .phases
                .entry(generation)
                .or_insert_with(|| Measured::from([("generation".to_owned(), generation as f64)]));
            *of_generation.entry(phase.to_owned()).or_default() += seconds;
        }
    }
}

/// Adds the numbers of a line.
fn add(series: &mut MeasuredSeries, line: &LogLine) {
    let Some(step) = line.step else {
        return;
    };
    let contents = line.contents.iter();
    let contents = contents.filter_map(|(key, value)| Some((key.clone(), value.as_f64()?)));
    let mut measured: Measured = contents.collect();
    let generation = line.generation.map(f64::from);
    for (key, value) in [
        ("time", line.time),
        ("generation", generation),
        ("step", Some(step as f64)),
    ] {
        measured.extend(value.map(|value| (key.to_owned(), value)));
    }
    series.push((step, line.generation), measured);
    series.thin(MAX_LINES);
}

fn columns_of(series: &MeasuredSeries) -> Columns {
    let lines = series.points().iter().map(|(_, measured)| measured);
    columns(&lines.collect::<Vec<_>>())
}

fn columns(lines: &[&Measured]) -> Columns {
    let every = lines.len().div_ceil(MAX_POINTS).max(1);
    // The newest line is always there.
    let chosen: Vec<&Measured> = lines.iter().rev().step_by(every).copied().collect();
    let mut columns = Columns::new();
    for key in lines.iter().flat_map(|line| line.keys()) {
        if !columns.contains_key(key) {
            let column = chosen.iter().rev().map(|line| line.get(key).copied());
            columns.insert(key.clone(), column.collect());
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, OpenOptions};
    use std::io::Write;

    #[test]
    fn lines_are_read_on_and_replaced_after_a_kill() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.jsonl");
        let mut log = TrainLog::new(path.clone());
        log.read_on().unwrap();
        assert!(log.series().train.is_empty());
        let append = |text: &str| {
            let mut file = OpenOptions::new()
                .create(true)
                .append(true)
                .open(&path)
                .unwrap();
            file.write_all(text.as_bytes()).unwrap();
        };
        append(
            "{\"kind\":\"train\",\"step\":20,\"policy_loss\":2.5}\nnonsense\n{\"kind\":\"train\",\"step\":40,",
        );
        log.read_on().unwrap();
        assert_eq!(log.series().train["step"], [Some(20.0)]);
        assert!(log.problem().unwrap().ends_with("left out: 1"));
        append("\"policy_loss\":2.0}\n{\"kind\":\"train\",\"step\":30,\"value_loss\":0.5}\n");
        append(
            "{\"kind\":\"validation\",\"step\":30,\"calibration\":[{\"predicted\":0.5}]}\n{\"kind\":\"changed\",\"text\":\"a\"}\n",
        );
        log.read_on().unwrap();
        let series = log.series();
        assert_eq!(series.train["step"], [Some(20.0), Some(30.0)]);
        assert_eq!(series.train["policy_loss"], [Some(2.5), None]);
        assert_eq!(series.calibration[0]["predicted"], 0.5);
        assert_eq!(
            (
                log.summary().train.as_ref().unwrap().step,
                log.changes().len()
            ),
            (Some(30), 1)
        );
        fs::write(&path, "{\"kind\":\"train\",\"step\":1}\n").unwrap();
        log.read_on().unwrap();
        assert_eq!(log.series().train["step"], [Some(1.0)]);
        fs::remove_file(&path).unwrap();
        log.read_on().unwrap();
        assert!(log.series().train.is_empty());
    }

    #[test]
    fn phases_add_up_and_the_last_is_the_present_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.jsonl");
        let phase = |phase: Option<&str>, ended: Option<(&str, u32, f64)>| {
            let ended = ended.map(|(phase, generation, seconds)| {
                serde_json::json!({ "phase": phase, "generation": generation, "seconds": seconds })
            });
            serde_json::json!({ "kind": "phase", "generation": 2, "time": 9.0, "phase": phase, "ended": ended })
                .to_string()
        };
        let mut lines = vec![
            phase(Some("self_play"), None),
            phase(Some("training"), Some(("self_play", 1, 30.0))),
            phase(Some("matches"), Some(("training", 1, 20.0))),
            phase(None, Some(("matches", 1, 4.0))),
        ];
        let read = |lines: &[String]| {
            fs::write(&path, lines.join("\n") + "\n").unwrap();
            let mut log = TrainLog::new(path.clone());
            log.read_on().unwrap();
            log
        };
        assert_eq!(read(&lines).summary().phase, None);
        lines.push(phase(Some("self_play"), None));
        lines.push(phase(Some("training"), Some(("self_play", 2, 10.0))));
        lines.push(r#"{"kind":"train","step":1,"generation":2}"#.into());
        // It was stopped while it trained.
        lines.push(phase(None, Some(("training", 2, 5.0))));
        lines.push(phase(Some("training"), None));
        lines.push(phase(Some("matches"), Some(("training", 2, 6.0))));
        for (generation, time) in [(1, 50.0), (2, 90.0)] {
            lines.push(format!(
                r#"{{"kind":"published","generation":{generation},"time":{time}}}"#
            ));
        }
        let log = read(&lines);
        let begun = log.summary().phase.as_ref().unwrap();
        assert_eq!(begun.text("phase"), Some("matches"));
        assert_eq!(log.summary().generation_time().unwrap().seconds, 40.0);
        let phases = log.series().phases;
        assert_eq!(phases["generation"], [Some(1.0), Some(2.0)]);
        assert_eq!(phases["training"], [Some(20.0), Some(11.0)]);
        assert_eq!(phases["matches"], [Some(4.0), None]);
        // The loop was killed, and `train run` begins.
        lines.push(phase(None, None));
        assert_eq!(read(&lines).summary().phase, None);
        lines.push(r#"{"kind":"waiting","missing":"7 more games"}"#.into());
        assert_eq!(
            read(&lines).summary().waiting.as_deref(),
            Some("7 more games")
        );
        lines.push(r#"{"kind":"train","step":3}"#.into());
        assert_eq!(read(&lines).summary().waiting, None);
    }

    #[test]
    fn long_logs_are_thinned_and_keep_their_newest_line() {
        let mut lines = MeasuredSeries::default();
        for step in 0..50_000 {
            let line = LogLine {
                step: Some(step),
                ..LogLine::default()
            };
            add(&mut lines, &line);
            assert_eq!(lines.points().last().unwrap().1["step"], step as f64);
        }
        assert!(lines.points().len() <= MAX_LINES);
        let steps = &columns_of(&lines)["step"];
        assert!(steps.len() <= MAX_POINTS && steps.len() > MAX_POINTS / 3);
        assert_eq!(steps.last(), Some(&Some(49_999.0)));
    }
}
