//! The log of a generator: one JSON object a line, for other programs.
//!
//! Every line has `event` and `time` (RFC 3339, UTC). A line `start` has the facts of [`About`], a line `progress` the table of
//! [`super::figures`], a line `end` the `reason` and a last snapshot. Several starts of the program may add to one file.

use super::counters::About;
use super::snapshot::Snapshot;
use engine::files::{append_line, write_whole};
use serde::Serialize;
use std::io;
use std::path::PathBuf;

/// One line.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Event<'a> {
    Start {
        time: &'a str,
        #[serde(flatten)]
        about: &'a About,
    },
    Progress(&'a Snapshot),
    End {
        reason: &'a str,
        #[serde(flatten)]
        snapshot: &'a Snapshot,
    },
}

/// The newest snapshot, in a file for other programs: a sign of life too.
#[derive(Debug, Serialize)]
pub(super) struct Status<'a> {
    #[serde(flatten)]
    pub(super) about: &'a About,
    #[serde(flatten)]
    pub(super) snapshot: &'a Snapshot,
}

/// A file of telemetry. Of several failures in a row, only the first is reported.
#[derive(Debug)]
pub(super) struct OutputFile {
    path: PathBuf,
    /// Whether the last write failed.
    failing: bool,
}

impl OutputFile {
    /// Writes nothing yet.
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            failing: false,
        }
    }

    /// Adds a line to the log. Returns the failure to report.
    pub(super) fn append(&mut self, event: &Event) -> Option<String> {
        let added = self.add_line(event);
        self.failure(added)
    }

    /// Replaces the file. Returns the failure to report.
    pub(super) fn replace(&mut self, contents: &impl Serialize) -> Option<String> {
        let text = serde_json::to_vec_pretty(contents).map_err(io::Error::from);
        let written = text.and_then(|text| write_whole(&self.path, &text));
        self.failure(written)
    }

    fn failure(&mut self, written: io::Result<()>) -> Option<String> {
        let failed_before = std::mem::replace(&mut self.failing, written.is_err());
        let error = written.err().filter(|_| !failed_before)?;
        Some(format!(
            "can't write to {}: {error}; the games continue, and the next write is tried again",
            self.path.display()
        ))
    }

    /// The file is opened for each line, so that a file that a log rotation has moved is begun anew.
    fn add_line(&self, event: &Event) -> io::Result<()> {
        append_line(&self.path, &serde_json::to_string(event)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn progress(snapshot: &Snapshot) -> Event<'_> {
        Event::Progress(snapshot)
    }

    #[test]
    fn lines_are_added_after_half_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        let snapshot = Snapshot::default();
        let add = || {
            let complaint = OutputFile::new(path.clone()).append(&progress(&snapshot));
            assert_eq!(complaint, None);
        };
        add();
        let mut text = fs::read_to_string(&path).unwrap();
        text.push_str("{\"event\":\"progr");
        fs::write(&path, text).unwrap();
        add();
        add();
        let text = fs::read_to_string(&path).unwrap();
        let whole: Vec<bool> = text
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).is_ok())
            .collect();
        assert_eq!(whole, [true, false, true, true]);
        assert!(text.ends_with("}\n"));
    }

    #[test]
    fn a_failure_is_reported_once_and_writing_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("later").join("log.jsonl");
        let mut log = OutputFile::new(path.clone());
        let snapshot = Snapshot::default();
        let complaint = log.append(&progress(&snapshot)).unwrap();
        assert!(
            complaint.contains("later/log.jsonl: No such file"),
            "{complaint}"
        );
        assert_eq!(log.append(&progress(&snapshot)), None);
        fs::create_dir(folder.path().join("later")).unwrap();
        assert_eq!(log.append(&progress(&snapshot)), None);
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1);
        fs::remove_dir_all(folder.path().join("later")).unwrap();
        assert!(
            log.append(&progress(&snapshot)).is_some(),
            "a new failure is reported"
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_device_file_is_refused() {
        let mut log = OutputFile::new("/dev/null".into());
        let complaint = log.append(&progress(&Snapshot::default())).unwrap();
        assert!(complaint.contains("/dev/null: this is not a regular file"));
    }

    #[test]
    fn a_moved_file_is_begun_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        let mut log = OutputFile::new(path.clone());
        let snapshot = Snapshot::default();
        log.append(&progress(&snapshot));
        fs::rename(&path, folder.path().join("log.1.jsonl")).unwrap();
        log.append(&progress(&snapshot));
        for name in ["log.jsonl", "log.1.jsonl"] {
            let text = fs::read_to_string(folder.path().join(name)).unwrap();
            assert_eq!(text.lines().count(), 1, "{name}");
        }
    }
}
