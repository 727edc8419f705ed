//! `logs/train.jsonl`: the trainer's measurements and events, one JSON object a line.
//!
//! The trainer writes [`LogLine`]s, and every other program reads them with a [`LogReader`]. After a kill, steps are made and logged
//! again: the later line counts ([`StepSeries`]).

use super::error::RunError;
use super::published::{GenerationTime, PublishedTimes};
use crate::files::open_regular;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The most bytes of a log.
const MAX_BYTES: u64 = 1 << 34;

/// The most bytes of a line; the usual ones have one to two thousand.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// The kind of a line. The trainer's `metrics` module lists the contents of each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    /// Measurements on training rows.
    Train,
    /// Measurements on validation rows.
    Validation,
    /// What the trainer waits for.
    Waiting,
    /// A changed setting.
    Changed,
    /// A phase of `train loop`.
    Phase,
    /// The self-play for a network.
    SelfPlay,
    /// A published network.
    Published,
    /// The rating of a network.
    Rating,
    /// Another version's kind, or none. Its contents are not read.
    #[default]
    #[serde(other)]
    Other,
}

/// A line of the log.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LogLine<Contents = Map<String, Value>> {
    /// Seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<f64>,
    /// What the line reports.
    #[serde(default)]
    pub kind: LineKind,
    /// The generation in training.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<u32>,
    /// The optimizer's steps since the run began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// The other keys.
    #[serde(flatten)]
    pub contents: Contents,
}

impl LogLine {
    fn parse(line: &[u8]) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Kind {
            #[serde(default)]
            kind: LineKind,
        }
        match serde_json::from_slice(line)? {
            Kind {
                kind: LineKind::Other,
            } => Ok(Self::default()),
            _ => serde_json::from_slice(line),
        }
    }

    /// A number of the contents.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.contents.get(key)?.as_f64()
    }

    /// A text of the contents.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.contents.get(key)?.as_str()
    }
}

/// A part of a log.
#[derive(Debug)]
pub enum LogPart {
    /// The log was removed or has become shorter: earlier parts don't count.
    Restart,
    /// A line.
    Line(LogLine),
    /// A line that can't be read.
    Unreadable,
}

/// Reads a log from where the last reading ended.
#[derive(Debug)]
pub struct LogReader {
    path: PathBuf,
    /// Bytes that have been read.
    read: u64,
    /// Whether half a line at the end is left for the next reading.
    follows: bool,
}

impl LogReader {
    /// A reader of a log as it is. Half a line at its end counts as a line.
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            read: 0,
            follows: false,
        }
    }

    /// A reader of a log that grows. Half a line at its end is read again once it is whole.
    pub fn following(path: PathBuf) -> Self {
        Self {
            follows: true,
            ..Self::new(path)
        }
    }

    /// The log.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Passes on the parts that are new. A missing log has none.
    ///
    /// # Errors
    ///
    /// The log can't be read, is no regular file, or has more than 16 GiB.
    pub fn read_on(&mut self, mut take: impl FnMut(LogPart)) -> Result<(), RunError> {
        let read = self.read_lines(&mut take);
        read.map_err(RunError::io("read", &self.path))
    }

    fn read_lines(&mut self, take: &mut impl FnMut(LogPart)) -> io::Result<()> {
        let opened = match open_regular(&self.path, MAX_BYTES) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            opened => Some(opened?),
        };
        let length = opened.as_ref().map_or(0, |(_, length)| *length);
        if length < self.read {
            self.read = 0;
            take(LogPart::Restart);
        }
        let Some((mut file, _)) = opened else {
            return Ok(());
        };
        file.seek(SeekFrom::Start(self.read))?;
        let mut lines = BufReader::new(file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let mut rest = lines.by_ref().take(MAX_LINE_BYTES);
            let length = rest.read_until(b'\n', &mut line)? as u64;
            let is_whole = line.ends_with(b"\n") || length == MAX_LINE_BYTES;
            if length == 0 || (self.follows && !is_whole) {
                return Ok(());
            }
            self.read += length;
            if !line.trim_ascii().is_empty() {
                take(LogLine::parse(&line).map_or(LogPart::Unreadable, LogPart::Line));
            }
        }
    }
}

/// The newest lines of a log, and what follows from them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LogSummary {
    /// The last line of kind `train`.
    pub train: Option<LogLine>,
    /// The last line of kind `validation`.
    pub validation: Option<LogLine>,
    /// The last line of kind `phase`; none if `train loop` has ended.
    pub phase: Option<LogLine>,
    /// What the trainer waits for, if the last line says so.
    pub waiting: Option<String>,
    published: PublishedTimes,
}

impl LogSummary {
    /// Reads a log, which may be missing. Unreadable lines are skipped.
    ///
    /// # Errors
    ///
    /// As [`LogReader::read_on`].
    pub fn read(path: PathBuf) -> Result<Self, RunError> {
        let mut summary = Self::default();
        LogReader::new(path).read_on(|part| {
            if let LogPart::Line(line) = part {
                summary.add(&line);
            }
        })?;
        Ok(summary)
    }

    /// Adds the next line.
    pub fn add(&mut self, line: &LogLine) {
        self.waiting = None;
        match line.kind {
            LineKind::Train => self.train = Some(line.clone()),
            LineKind::Validation => self.validation = Some(line.clone()),
            LineKind::Phase => self.phase = line.text("phase").map(|_| line.clone()),
            LineKind::Waiting => self.waiting = line.text("missing").map(str::to_owned),
            LineKind::Published => {
                if let Some((generation, time)) = line.generation.zip(line.time) {
                    self.published.add(generation, time);
                }
            }
            _ => {}
        }
    }

    /// The time from one published network to the next; none before the second.
    pub fn generation_time(&self) -> Option<GenerationTime> {
        self.published.generation_time()
    }
}

/// Values by step, in growing order.
#[derive(Debug, Clone, PartialEq)]
pub struct StepSeries<T, Step = u64> {
    points: Vec<(Step, T)>,
}

impl<T, Step> Default for StepSeries<T, Step> {
    fn default() -> Self {
        Self { points: Vec::new() }
    }
}

impl<T, Step: Ord> StepSeries<T, Step> {
    /// Adds a value, which replaces those at and after its step.
    pub fn push(&mut self, step: Step, value: T) {
        let kept = self.points.partition_point(|(earlier, _)| *earlier < step);
        self.points.truncate(kept);
        self.points.push((step, value));
    }

    /// Removes every second value if there are more than `most`. The newest stays.
    pub fn thin(&mut self, most: usize) {
        let mut left = self.points.len();
        if left > most {
            self.points.retain(|_| {
                left -= 1;
                left.is_multiple_of(2)
            });
        }
    }

    /// The steps, each with its value.
    pub fn points(&self) -> &[(Step, T)] {
        &self.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> LogSummary {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.jsonl");
        std::fs::write(&path, text).unwrap();
        LogSummary::read(path).unwrap()
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
        let step = |line: &Option<LogLine>| line.as_ref().unwrap().step;
        assert_eq!(step(&summary.train), Some(40));
        assert_eq!(step(&summary.validation), Some(30));
        assert_eq!(summary.waiting.as_deref(), Some("games"));
        let phase = |lines: &str| {
            let line = of(lines).phase?;
            Some((line.text("phase")?.to_owned(), line.generation?, line.time?))
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
        let none = LogSummary::read(folder.path().join("none")).unwrap();
        assert_eq!(none, LogSummary::default());
    }

    #[test]
    fn a_written_line_is_read_back() {
        let line = LogLine {
            time: Some(5.5),
            kind: LineKind::SelfPlay,
            generation: Some(2),
            step: Some(7),
            contents: Map::from_iter([("games".to_owned(), 9.into())]),
        };
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(
            text,
            r#"{"time":5.5,"kind":"self_play","generation":2,"step":7,"games":9}"#
        );
        assert_eq!(LogLine::parse(text.as_bytes()).unwrap(), line);
        // Another version's line is read, whatever it holds.
        let other = LogLine::parse(br#"{"kind":"another","step":"x"}"#).unwrap();
        assert_eq!(other, LogLine::default());
    }
}
