//! The log of a generator: one JSON object a line, for other programs.
//!
//! Every line has `event` and `time` (RFC 3339, UTC). A line `start` has the facts of [`About`], a line `progress` the table of
//! [`super::figures`], a line `end` the `reason` and a last snapshot. Several starts of the program may add to one file.

use super::counters::About;
use super::snapshot::Snapshot;
use engine::files::write_whole;
use serde::Serialize;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
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
        let mut line = serde_json::to_string(event)?;
        line.push('\n');
        // Opening a pipe without a reader would block.
        match fs::metadata(&self.path) {
            Ok(about) if !about.is_file() => {
                return Err(io::Error::new(
                    ErrorKind::InvalidInput,
                    "this is not a regular file",
                ));
            }
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(&self.path)?;
        if ends_in_half_a_line(&mut file)? {
            line.insert(0, '\n');
        }
        write_at_once(&mut file, line.as_bytes())
    }
}

/// A kill or a full disk may have left half a line.
fn ends_in_half_a_line(file: &mut File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// Writes with a single call: a kill leaves the line or nothing, and the lines of two programs don't mix.
fn write_at_once(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    loop {
        match file.write(bytes) {
            Ok(written) if written == bytes.len() => return Ok(()),
            Ok(written) => {
                let reason = format!("only {written} of {} bytes found room", bytes.len());
                return Err(io::Error::new(ErrorKind::WriteZero, reason));
            }
            // Nothing was written yet.
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_and_a_device_file_are_failures() {
        let snapshot = Snapshot::default();
        let complaint = |path: &str| {
            OutputFile::new(path.into())
                .append(&progress(&snapshot))
                .unwrap()
        };
        assert!(complaint("/dev/null").contains("/dev/null: this is not a regular file"));
        let mut full = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let error = write_at_once(&mut full, b"line\n").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
    }
}
