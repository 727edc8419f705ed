//! What is drawn of a run: series read from the JSON lines in its `logs`.
//!
//! Lines of these kinds are read; others, and other keys, are left alone. A key that is missing or `null` is no point.
//!
//! | kind | keys |
//! | --- | --- |
//! | `train`, `validation` | `step`; `policy_loss`, `value_loss` in nats; `policy_accuracy`, the share of rows whose likeliest step is the target's, 0 to 1 |
//! | `validation` also | `calibration`: a list of [`CalibrationBin`]; the newest is drawn |
//!
//! How strong the networks are isn't taken from there: results that come later change what earlier ones said.
//!
//! After a kill, steps are made and logged once more: a line takes the place of those of its kind at and behind its step. A kill
//! leaves half a line at times: lines that can't be read are counted, and the page says how many.

use super::page;
use super::strength::RatedNetwork;
use crate::error::TrainError;
use engine::run::write_file;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};

/// Everything on the page.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Curves {
    /// The policy's cross-entropy, in nats.
    pub(crate) policy_loss: ByRows,
    /// The value's binary cross-entropy, in nats.
    pub(crate) value_loss: ByRows,
    /// The share of rows whose likeliest step is the target's, 0 to 1.
    pub(crate) policy_accuracy: ByRows,
    /// How well the newest values fit the results.
    pub(crate) calibration: Vec<CalibrationBin>,
    /// How strong the networks are; none unless the caller knows.
    pub(crate) ratings: Vec<RatedNetwork>,
    /// Lines of the logs that can't be read.
    pub(crate) unreadable: u64,
}

/// A measurement on rows that are trained on, and on those that never are.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ByRows {
    /// On rows that are trained on.
    pub(crate) training: Series,
    /// On the others.
    pub(crate) validation: Series,
}

/// A measurement by the optimizer's step, steps growing.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Series {
    points: Vec<(u64, f64)>,
}

/// The rows whose predicted values are alike.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct CalibrationBin {
    /// The mean of the predictions, a win probability.
    pub(crate) predicted: f64,
    /// The mean of the results, 0 to 1.
    pub(crate) actual: f64,
    /// How many rows.
    pub(crate) rows: u64,
}

#[derive(Deserialize)]
struct Kind {
    kind: Option<String>,
}

#[derive(Deserialize)]
struct MeasuredLine {
    step: u64,
    policy_loss: Option<f64>,
    value_loss: Option<f64>,
    policy_accuracy: Option<f64>,
    calibration: Option<Vec<CalibrationBin>>,
}

impl Series {
    /// Adds a point, in the place of those at and behind its step.
    pub(crate) fn push(&mut self, step: u64, value: f64) {
        let kept = self.points.partition_point(|&(earlier, _)| earlier < step);
        self.points.truncate(kept);
        self.points.push((step, value));
    }

    /// Steps and what was measured after them.
    pub(crate) fn points(&self) -> &[(u64, f64)] {
        &self.points
    }
}

impl Curves {
    /// Reads the files `*.jsonl` of a folder, by name; without the folder there is nothing to draw.
    ///
    /// # Errors
    ///
    /// What the disk says.
    pub(crate) fn read(logs: &Path) -> Result<Self, TrainError> {
        let mut curves = Self::default();
        for path in log_files(logs).map_err(|error| TrainError::Io {
            what: "list the files of",
            path: logs.to_owned(),
            error,
        })? {
            curves.read_file(&path).map_err(|error| TrainError::Io {
                what: "read",
                path,
                error,
            })?;
        }
        Ok(curves)
    }

    fn read_file(&mut self, path: &Path) -> std::io::Result<()> {
        let mut lines = BufReader::new(File::open(path)?);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line)? > 0 {
            if !line.trim_ascii().is_empty() && self.read_line(&line).is_err() {
                self.unreadable += 1;
            }
            line.clear();
        }
        Ok(())
    }

    fn read_line(&mut self, line: &[u8]) -> serde_json::Result<()> {
        let Kind { kind } = serde_json::from_slice(line)?;
        match kind.as_deref() {
            Some("train") => {
                self.add_measured(&serde_json::from_slice(line)?, |rows| &mut rows.training)
            }
            Some("validation") => {
                let mut line: MeasuredLine = serde_json::from_slice(line)?;
                self.add_measured(&line, |rows| &mut rows.validation);
                // An empty list is one that was not measured.
                if let Some(bins) = line.calibration.take().filter(|bins| !bins.is_empty()) {
                    self.calibration = bins;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn add_measured(&mut self, line: &MeasuredLine, of: fn(&mut ByRows) -> &mut Series) {
        for (rows, value) in [
            (&mut self.policy_loss, line.policy_loss),
            (&mut self.value_loss, line.value_loss),
            (&mut self.policy_accuracy, line.policy_accuracy),
        ] {
            if let Some(value) = value {
                of(rows).push(line.step, value);
            }
        }
    }

    /// Draws the page as `curves.svg` in a folder, in the place of what was there, and returns the file.
    ///
    /// # Errors
    ///
    /// What the disk says.
    pub(crate) fn write(&self, logs: &Path) -> Result<PathBuf, TrainError> {
        let path = logs.join("curves.svg");
        let page = page::svg(self).map_err(|error| TrainError::Io {
            what: "draw",
            path: path.clone(),
            error,
        })?;
        write_file(&path, page.as_bytes())?;
        Ok(path)
    }
}

fn log_files(logs: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(logs) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry?.path();
        // Nothing else: a pipe of that name would never end.
        if path.extension().is_some_and(|end| end == "jsonl") && path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use network::{Head, PerHead};

    fn both(policy: f64, value: f64) -> MeanLosses {
        let mut losses = PerHead::default();
        (losses[Head::Policy], losses[Head::Value]) = (Some(policy), Some(value));
        MeanLosses(losses)
    }
    use crate::metrics::{Line, MeanLosses, Metrics, StepMeasurements, ValidationMeasurements};

    #[test]
    fn the_trainers_own_log_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let metrics = Metrics::new(folder.path());
        let line = Line {
            kind: "train",
            generation: 1,
            step: 20,
            measurements: StepMeasurements {
                losses: both(2.5, f64::NAN),
                policy_accuracy: 0.125,
                ..StepMeasurements::default()
            },
        };
        metrics.write(&line).unwrap();
        let bin = CalibrationBin {
            predicted: 0.25,
            actual: 0.5,
            rows: 9,
        };
        let line = Line {
            kind: "validation",
            generation: 1,
            step: 30,
            measurements: ValidationMeasurements {
                losses: both(2.75, 0.5),
                policy_accuracy: Some(0.25),
                calibration: vec![bin],
                rows: 9,
            },
        };
        metrics.write(&line).unwrap();
        let curves = Curves::read(folder.path()).unwrap();
        assert_eq!(curves.policy_loss.training.points(), [(20, 2.5)]);
        assert_eq!(curves.policy_loss.validation.points(), [(30, 2.75)]);
        assert_eq!(curves.value_loss.training.points(), []);
        assert_eq!(curves.value_loss.validation.points(), [(30, 0.5)]);
        assert_eq!(curves.policy_accuracy.training.points(), [(20, 0.125)]);
        assert_eq!(curves.policy_accuracy.validation.points(), [(30, 0.25)]);
        assert_eq!(curves.calibration, [bin]);
        assert_eq!(curves.unreadable, 0);
    }

    #[test]
    fn steps_that_are_made_again_count_once() {
        let folder = tempfile::tempdir().unwrap();
        let line = |kind, step, accuracy| {
            format!("{{\"kind\":\"{kind}\",\"step\":{step},\"policy_accuracy\":{accuracy}}}\n")
        };
        let text = [
            line("train", 10, 0.1),
            line("train", 20, 0.2),
            line("validation", 25, 0.25),
            line("train", 30, 0.3),
            line("train", 15, 0.15),
        ];
        std::fs::write(folder.path().join("train.jsonl"), text.concat()).unwrap();
        let curves = Curves::read(folder.path()).unwrap();
        let accuracy = &curves.policy_accuracy;
        assert_eq!(accuracy.training.points(), [(10, 0.1), (15, 0.15)]);
        assert_eq!(accuracy.validation.points(), [(25, 0.25)]);
    }

    #[test]
    fn calibration_is_the_newest_of_all_files() {
        let folder = tempfile::tempdir().unwrap();
        let first = "{\"kind\":\"validation\",\"step\":9,\"calibration\":[{\"predicted\":0.5,\"actual\":0.5,\"rows\":1}]}\n";
        let second = concat!(
            "{\"kind\":\"validation\",\"step\":1,\"calibration\":[]}\n",
            "{\"kind\":\"validation\",\"step\":2,\"calibration\":[{\"predicted\":0.25,\"actual\":0.5,\"rows\":8}]}\n",
            "{\"kind\":\"validation\",\"step\":3}\n",
            "{\"kind\":\"validation\",\"step\":4,\"calibration\":[]}\n",
        );
        std::fs::write(folder.path().join("a.jsonl"), first).unwrap();
        std::fs::write(folder.path().join("b.jsonl"), second).unwrap();
        std::fs::write(folder.path().join("b.json"), "not read").unwrap();
        let curves = Curves::read(folder.path()).unwrap();
        let bin = CalibrationBin {
            predicted: 0.25,
            actual: 0.5,
            rows: 8,
        };
        assert_eq!(curves.calibration, [bin]);
        assert_eq!(curves.unreadable, 0);
    }

    #[test]
    fn what_can_not_be_read_is_counted_and_the_rest_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let text = concat!(
            "{\"kind\":\"train\",\"step\":1,\"policy_loss\":3}\n",
            "{\"kind\":\"train\",\"st\n",
            "{\"kind\":\"train\",\"policy_loss\":3}\n",
            "{\"kind\":\"train\",\"step\":2,\"policy_loss\":1e999}\n",
            "7\n",
            "\n",
            "{\"games\":12}\n",
            "{\"kind\":\"another\",\"step\":\"x\"}\n",
            "{\"kind\":\"train\",\"step\":3,\"policy_loss\":2}\r\n",
        );
        let mut bytes = text.as_bytes().to_vec();
        bytes.extend(b"\xff\xfe");
        std::fs::write(folder.path().join("train.jsonl"), bytes).unwrap();
        let curves = Curves::read(folder.path()).unwrap();
        let points = [(1, 3.0), (3, 2.0)];
        assert_eq!(curves.policy_loss.training.points(), points);
        assert_eq!(curves.unreadable, 5);
    }

    #[test]
    fn a_run_without_logs_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let none = Curves::read(&folder.path().join("logs")).unwrap();
        assert_eq!(none, Curves::default());
        let path = folder.path().join("file");
        std::fs::write(&path, "").unwrap();
        let message = Curves::read(&path).unwrap_err().to_string();
        assert!(message.contains("can't list the files of "), "{message}");
        assert!(message.contains("/file: "), "{message}");
    }

    #[test]
    fn the_page_takes_the_place_of_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("curves.svg");
        std::fs::write(&path, "old").unwrap();
        let curves = Curves::default();
        assert_eq!(curves.write(folder.path()).unwrap(), path);
        let page = std::fs::read_to_string(&path).unwrap();
        assert_eq!(page, super::page::svg(&curves).unwrap());
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1);
        let error = curves.write(&folder.path().join("missing")).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("missing/curves.svg"), "{message}");
    }
}
