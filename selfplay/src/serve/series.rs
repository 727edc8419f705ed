//! The trainer's measurements over time, from `logs/train.jsonl`, which is read on from where the last reading ended.

use engine::run::PublishedTimes;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The most points of a column in an answer.
const MOST_POINTS: usize = 2_000;

/// The most bytes of a line; the usual ones have one to two thousand.
const LONGEST_LINE: usize = 1 << 20;

/// The most lines that are kept of each kind; then every second one goes.
const MOST_LINES: usize = 20_000;

/// The lines of a log, as far as they have been read.
#[derive(Debug)]
pub(super) struct TrainLog {
    path: PathBuf,
    read: u64,
    train: Vec<Measured>,
    validation: Vec<Measured>,
    newest_train: Option<Value>,
    self_play: Vec<Measured>,
    /// Seconds of each phase of `train loop`, by generation.
    phases: BTreeMap<u64, Measured>,
    /// What `train loop` does now.
    phase: Option<Value>,
    /// What the trainer waits for, if the last line says so.
    waiting: Option<String>,
    published: PublishedTimes,
    calibration: Option<Value>,
    changes: Vec<Value>,
    unreadable: u64,
}

/// The numbers of a line, by key.
type Measured = BTreeMap<String, f64>;

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
            path,
            read: 0,
            train: Vec::new(),
            validation: Vec::new(),
            newest_train: None,
            self_play: Vec::new(),
            phases: BTreeMap::new(),
            phase: None,
            waiting: None,
            published: PublishedTimes::default(),
            calibration: None,
            changes: Vec::new(),
            unreadable: 0,
        }
    }

    /// What `train loop` does: its last line of kind `phase`; none if that has ended.
    pub(super) fn phase(&self) -> Option<Value> {
        self.phase.clone()
    }

    /// What the trainer waits for.
    pub(super) fn waiting(&self) -> Option<String> {
        self.waiting.clone()
    }

    /// The seconds from one published network to the next.
    pub(super) fn generation_seconds(&self) -> Option<f64> {
        Some(self.published.generation_time()?.seconds)
    }

    /// What is wrong with the log.
    pub(super) fn problem(&self) -> Option<String> {
        (self.unreadable > 0).then(|| {
            format!(
                "{}: unreadable lines, which are left out: {}",
                self.path.display(),
                self.unreadable
            )
        })
    }

    /// The newest line of kind `train`.
    pub(super) fn newest_train(&self) -> Option<Value> {
        self.newest_train.clone()
    }

    /// The changes of settings: `time`, `generation`, `step` and `text`.
    pub(super) fn changes(&self) -> Vec<Value> {
        self.changes.clone()
    }

    pub(super) fn series(&self) -> Series {
        Series {
            train: columns(&self.train),
            validation: columns(&self.validation),
            self_play: columns(&self.self_play),
            phases: columns(&self.phases.values().cloned().collect::<Vec<_>>()),
            calibration: self
                .calibration
                .clone()
                .unwrap_or_else(|| Value::Array(Vec::new())),
        }
    }

    /// Reads the lines that are new. A log that has become shorter is read from its beginning.
    pub(super) fn read_on(&mut self) -> io::Result<()> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                *self = Self::new(std::mem::take(&mut self.path));
                return Ok(());
            }
            Err(error) => return Err(in_file(&self.path, error)),
        };
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(in_file(
                &self.path,
                io::Error::other("it is no regular file"),
            ));
        }
        if found.len() < self.read {
            *self = Self::new(std::mem::take(&mut self.path));
        }
        self.take_lines(file)
            .map_err(|error| in_file(&self.path, error))
    }

    fn take_lines(&mut self, mut file: File) -> io::Result<()> {
        file.seek(SeekFrom::Start(self.read))?;
        let mut lines = BufReader::new(file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let length =
                io::Read::take(&mut lines, LONGEST_LINE as u64).read_until(b'\n', &mut line)?;
            if length == 0 || (!line.ends_with(b"\n") && length < LONGEST_LINE) {
                // Half a line is read again once it is whole.
                return Ok(());
            }
            self.read += length as u64;
            match serde_json::from_slice(&line) {
                Ok(Value::Object(line)) => self.take_line(line),
                _ if line.trim_ascii().is_empty() => {}
                _ => self.unreadable += 1,
            }
        }
    }

    fn take_line(&mut self, mut line: Map<String, Value>) {
        self.waiting = None;
        match line.get("kind").and_then(Value::as_str) {
            Some("waiting") => {
                let missing = line.get("missing").and_then(Value::as_str);
                self.waiting = missing.map(str::to_owned);
            }
            Some("train") => {
                add(&mut self.train, &line);
                self.newest_train = Some(Value::Object(line));
            }
            Some("self_play") => add(&mut self.self_play, &line),
            Some("phase") => self.take_phase(line),
            Some("published") => {
                let number = |key: &str| line.get(key)?.as_f64();
                if let (Some(generation), Some(time)) = (number("generation"), number("time")) {
                    self.published.add(generation as u32, time);
                }
            }
            Some("validation") => {
                add(&mut self.validation, &line);
                let calibration = line.remove("calibration").filter(Value::is_array);
                self.calibration = calibration.or(self.calibration.take());
            }
            Some("changed") => self.changes.push(Value::Object(line)),
            _ => {}
        }
    }
}

impl TrainLog {
    /// A phase begins, or none, and another has ended. A generation that was stopped has its phases in parts.
    fn take_phase(&mut self, line: Map<String, Value>) {
        let line = Value::Object(line);
        let ended = &line["ended"];
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
        self.phase = (!line["phase"].is_null()).then_some(line);
    }
}

fn in_file(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        format!("can't read {}: {error}", path.display()),
    )
}

/// Adds the numbers of a line. After a kill, steps are made and logged again: a line replaces those at and after its step.
fn add(lines: &mut Vec<Measured>, line: &Map<String, Value>) {
    let numbers = line
        .iter()
        .filter_map(|(key, value)| Some((key.clone(), value.as_f64()?)));
    let measured: Measured = numbers.collect();
    if !measured.contains_key("step") {
        return;
    }
    let place = |line: &Measured| (line.get("step").copied(), line.get("generation").copied());
    let new = place(&measured);
    while lines.last().is_some_and(|last| place(last) >= new) {
        lines.pop();
    }
    lines.push(measured);
    if lines.len() > MOST_LINES {
        // The newest stays.
        let mut left = lines.len();
        lines.retain(|_| {
            left -= 1;
            left.is_multiple_of(2)
        });
    }
}

fn columns(lines: &[Measured]) -> Columns {
    let every = lines.len().div_ceil(MOST_POINTS).max(1);
    // The newest line is always there.
    let chosen: Vec<&Measured> = lines.iter().rev().step_by(every).collect();
    let mut columns = Columns::new();
    for key in lines.iter().flat_map(BTreeMap::keys) {
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
                log.newest_train().unwrap()["step"].as_f64(),
                log.changes().len()
            ),
            (Some(30.0), 1)
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
        assert_eq!(read(&lines).phase(), None);
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
        assert_eq!(log.phase().unwrap()["phase"], "matches");
        assert_eq!(log.generation_seconds(), Some(40.0));
        let phases = log.series().phases;
        assert_eq!(phases["generation"], [Some(1.0), Some(2.0)]);
        assert_eq!(phases["training"], [Some(20.0), Some(11.0)]);
        assert_eq!(phases["matches"], [Some(4.0), None]);
        // The loop was killed, and `train run` begins.
        lines.push(phase(None, None));
        assert_eq!(read(&lines).phase(), None);
        lines.push(r#"{"kind":"waiting","missing":"7 more games"}"#.into());
        assert_eq!(read(&lines).waiting().as_deref(), Some("7 more games"));
        lines.push(r#"{"kind":"train","step":3}"#.into());
        assert_eq!(read(&lines).waiting(), None);
    }

    #[test]
    fn long_logs_are_thinned_and_keep_their_newest_line() {
        let mut lines = Vec::new();
        for step in 0..50_000 {
            let line = serde_json::json!({ "step": step });
            add(&mut lines, line.as_object().unwrap());
            assert_eq!(lines.last().unwrap()["step"], f64::from(step));
        }
        assert!(lines.len() <= MOST_LINES);
        let steps = &columns(&lines)["step"];
        assert!(steps.len() <= MOST_POINTS && steps.len() > MOST_POINTS / 3);
        assert_eq!(steps.last(), Some(&Some(49_999.0)));
    }
}
