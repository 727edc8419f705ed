//! The log of a training: one JSON object a line, for programs that draw curves.
//!
//! Every line has `time` (seconds since 1970), `kind`, `generation` and `step`. After a kill the steps behind the last checkpoint
//! are made and logged once more: the later line counts.

use crate::error::TrainError;
use crate::show::curves::CalibrationBin;
use engine::run::make_folder;
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The log that lines are added to.
#[derive(Debug)]
pub(crate) struct Metrics {
    path: PathBuf,
    file: File,
}

/// One line.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Line<Measurements> {
    /// What is measured.
    pub(crate) kind: &'static str,
    /// The generation that is being trained.
    pub(crate) generation: u32,
    /// The optimizer's steps since the run began.
    pub(crate) step: u64,
    /// What was measured.
    #[serde(flatten)]
    pub(crate) measurements: Measurements,
}

/// Of some steps of the optimizer, `kind` being `train`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct StepMeasurements {
    /// The mean since the last line.
    pub(crate) policy_loss: Option<f64>,
    /// Likewise; none where no game had a result.
    pub(crate) value_loss: Option<f64>,
    /// The mean over the steps since the last line, before clipping.
    pub(crate) gradient_norm: f64,
    /// Of the last step.
    pub(crate) learning_rate: f64,
    /// Rows trained on a second, since the last line.
    pub(crate) rows_per_second: f64,
    /// The share of that time in which the network waited for rows.
    pub(crate) waiting: f64,
    /// How often the window has been used.
    pub(crate) epoch: u64,
}

/// On validation rows, `kind` being `validation`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct ValidationMeasurements {
    /// The policy's cross-entropy.
    pub(crate) policy_loss: Option<f64>,
    /// The value's; none where no game has a result.
    pub(crate) value_loss: Option<f64>,
    /// The share of rows whose likeliest step is the target's, 0 to 1.
    pub(crate) policy_accuracy: Option<f64>,
    /// How well the values fit the results.
    pub(crate) calibration: Vec<CalibrationBin>,
    /// The rows that were measured with.
    pub(crate) rows: usize,
}

#[derive(Serialize)]
struct Timed<Content> {
    time: f64,
    #[serde(flatten)]
    content: Content,
}

impl Metrics {
    /// Opens `train.jsonl` in a folder, to add to it.
    pub(crate) fn open(folder: &Path) -> Result<Self, TrainError> {
        make_folder(folder)?;
        let path = folder.join("train.jsonl");
        let open = || {
            let mut file = OpenOptions::new()
                .create(true)
                .read(true)
                .append(true)
                .open(&path)?;
            end_last_line(&mut file)?;
            Ok(file)
        };
        match open() {
            Ok(file) => Ok(Self { path, file }),
            Err(error) => Err(TrainError::Io {
                what: "open",
                path,
                error,
            }),
        }
    }

    /// Adds a line.
    pub(crate) fn write(&mut self, line: &Line<impl Serialize>) -> Result<(), TrainError> {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let line = Timed {
            time: since_1970.map_or(0.0, |time| time.as_secs_f64()),
            content: line,
        };
        let written = serde_json::to_string(&line)
            .map_err(std::io::Error::from)
            .and_then(|text| self.file.write_all(format!("{text}\n").as_bytes()));
        written.map_err(|error| TrainError::Io {
            what: "write to",
            path: self.path.clone(),
            error,
        })
    }
}

/// A program that was killed may have left half a line.
fn end_last_line(file: &mut File) -> std::io::Result<()> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(());
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    if last != *b"\n" {
        file.write_all(b"\n")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_added_even_behind_half_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let line = |step| Line {
            kind: "validation",
            generation: 2,
            step,
            measurements: ValidationMeasurements {
                policy_loss: Some(1.5),
                value_loss: Some(0.5),
                rows: 3,
                ..ValidationMeasurements::default()
            },
        };
        Metrics::open(folder.path())
            .unwrap()
            .write(&line(7))
            .unwrap();
        let path = folder.path().join("train.jsonl");
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{\"time\": 1");
        std::fs::write(&path, text).unwrap();
        Metrics::open(folder.path())
            .unwrap()
            .write(&line(8))
            .unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<Option<serde_json::Value>> = text
            .lines()
            .map(|line| serde_json::from_str(line).ok())
            .collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[1], None);
        let last = lines[2].as_ref().unwrap();
        assert_eq!(
            (&last["step"], &last["policy_loss"], &last["kind"]),
            (&8.into(), &1.5.into(), &"validation".into())
        );
        assert!(last["time"].as_f64().unwrap() > 1e9);
    }
}
