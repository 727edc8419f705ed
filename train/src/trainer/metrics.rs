//! The log of a training for programs that draw curves: [`LogLine`]s with these contents.
//!
//! | kind | contents |
//! | --- | --- |
//! | `train` | [`StepMeasurements`] |
//! | `validation` | [`ValidationMeasurements`] |
//! | `waiting` | `missing`: what the trainer waits for |
//! | `changed` | `text`: a setting that has changed |
//! | `phase` | `phase`: what `train loop` begins, a [`LoopPhase`] or null: it has ended, or `train run` begins; `ended`: null or an [`EndedPhase`] |
//! | `self_play` | [`SelfPlayMeasurements`] |
//! | `published` | nothing else: the generation's network is published |
//! | `rating` | [`RatingMeasurements`](crate::ratings::RatingMeasurements) |

use crate::error::TrainError;
use crate::plots::curves::CalibrationBin;
use engine::files::append_line;
use engine::run::{LineKind, LogLine, WorkerTimes, make_folder};
use network::PerHead;
use serde::{Serialize, Serializer};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The log that lines are added to.
#[derive(Debug)]
pub(crate) struct Metrics {
    path: PathBuf,
}

/// Mean losses as [`HeadLoss`](network::HeadLoss) has them, none where a head is off or no row has a target for it; logged under
/// the heads' names as `policy_loss` and so on.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct MeanLosses(pub(crate) PerHead<Option<f64>>);

impl Serialize for MeanLosses {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let losses = self.0.iter();
        serializer.collect_map(losses.map(|(head, loss)| (format!("{}_loss", head.name()), loss)))
    }
}

/// Of some steps of the optimizer, `kind` being `train`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct StepMeasurements {
    /// The means since the last line.
    #[serde(flatten)]
    pub(crate) losses: MeanLosses,
    /// The share of rows whose likeliest step is the target's, 0 to 1: the mean over the steps since the last line.
    pub(crate) policy_accuracy: f64,
    /// The mean over the steps since the last line, before clipping.
    pub(crate) gradient_norm: f64,
    /// Of the last step.
    pub(crate) learning_rate: f64,
    /// Rows trained on a second, since the last line.
    pub(crate) rows_per_second: f64,
    /// The share of that time in which the network waited for rows.
    pub(crate) waiting: f64,
    /// The share of that time in which the network computed. The rest is checkpoints and the like.
    pub(crate) computing: f64,
    /// The state of the training after them.
    #[serde(flatten)]
    pub(crate) standing: Standing,
}

/// Where a training stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Standing {
    /// How often the window has been used.
    pub(crate) epoch: u64,
    /// Rows trained on since the run began, each as often as it was.
    pub(crate) trained_rows: u64,
    /// Rows to train on in the window.
    pub(crate) window_rows: u64,
    /// Seconds since the newest shard of the window was written, if its file says when.
    pub(crate) data_age: Option<f64>,
    #[serde(flatten)]
    pub(crate) generators: GeneratorCounts,
}

/// What `train loop` does for a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LoopPhase {
    /// It plays the games for the network, or waits for them.
    SelfPlay,
    /// It trains the network.
    Training,
    /// It plays the network's matches and its game to be shown, and rates it.
    Matches,
}

/// A phase that is over.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct EndedPhase {
    pub(crate) phase: LoopPhase,
    pub(crate) generation: u32,
    pub(crate) seconds: f64,
}

/// Of the self-play of a generation, by all generators together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct SelfPlayMeasurements {
    /// The new games for the network.
    pub(crate) games: u64,
    /// The time in which the speed was measured: from the start of the generators, or from the last such line.
    pub(crate) seconds: f64,
    pub(crate) turns_per_second: Option<f64>,
    pub(crate) evaluations_per_second: Option<f64>,
    /// The shares of the workers' time; none where nothing was played.
    #[serde(flatten)]
    pub(crate) shares: WorkerTimes<Option<f64>>,
}

/// The generators of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct GeneratorCounts {
    /// Those that run.
    #[serde(rename = "generators_at_work")]
    pub(crate) generators_running: usize,
    /// Those that have ended without being done, and have been silent for six minutes.
    pub(crate) generators_lost: usize,
}

/// On validation rows, `kind` being `validation`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct ValidationMeasurements {
    /// The means over the rows.
    #[serde(flatten)]
    pub(crate) losses: MeanLosses,
    /// The share of rows whose likeliest step is the target's, 0 to 1.
    pub(crate) policy_accuracy: Option<f64>,
    /// The calibration of the value; empty if it was not measured.
    pub(crate) calibration: Vec<CalibrationBin>,
    /// The number of rows.
    pub(crate) rows: usize,
}

impl ValidationMeasurements {
    /// The expected calibration error, 0 to 1: the mean over the rows of how far the predictions of their bin are from its results
    /// (Guo et al. 2017, "On Calibration of Modern Neural Networks", equation 3).
    pub(crate) fn calibration_error(&self) -> Option<f64> {
        let rows: u64 = self.calibration.iter().map(|bin| bin.rows).sum();
        let wrong = |bin: &CalibrationBin| bin.rows as f64 * (bin.predicted - bin.actual).abs();
        let sum: f64 = self.calibration.iter().map(wrong).sum();
        (rows > 0).then(|| sum / rows as f64)
    }
}

impl Metrics {
    /// The log in a file. The first line creates it.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The log.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line: the measurements at a step of the generation in training. Each line opens the file anew, at most a few times a
    /// second: so a file that was moved away is created again, and a full disk is tried again.
    ///
    /// # Errors
    ///
    /// The file can't be written. Half a line may stay; the next line begins on its own.
    pub(crate) fn write(
        &self,
        kind: LineKind,
        generation: u32,
        step: u64,
        measurements: &impl Serialize,
    ) -> Result<(), TrainError> {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let line = LogLine {
            time: Some(since_1970.map_or(0.0, |time| time.as_secs_f64())),
            kind,
            generation: Some(generation),
            step: Some(step),
            contents: measurements,
        };
        if let Some(folder) = self.path.parent() {
            make_folder(folder)?;
        }
        let written = serde_json::to_string(&line)
            .map_err(std::io::Error::from)
            .and_then(|text| append_line(&self.path, &text));
        written.map_err(TrainError::io("write to", &self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use network::Head;

    #[test]
    fn lines_are_added_even_behind_half_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let measurements = ValidationMeasurements {
            losses: MeanLosses(PerHead::from_fn(|head| {
                (head == Head::Policy).then_some(1.5)
            })),
            rows: 3,
            ..ValidationMeasurements::default()
        };
        let metrics = Metrics::new(folder.path().join("logs/train.jsonl"));
        let write = |step| {
            metrics
                .write(LineKind::Validation, 2, step, &measurements)
                .unwrap();
        };
        write(7);
        let path = folder.path().join("logs/train.jsonl");
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{\"time\": 1");
        std::fs::write(&path, text).unwrap();
        write(8);
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
        assert!(last["ending_loss"].is_null() && last["calibration"] == serde_json::json!([]));
        // Where logs are moved away, a new one is begun.
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
        write(9);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 1);
    }

    #[test]
    fn the_calibration_error_is_the_mean_distance_over_the_rows() {
        let bin = |predicted, actual, rows| CalibrationBin {
            predicted,
            actual,
            rows,
        };
        let mut measurements = ValidationMeasurements::default();
        assert_eq!(measurements.calibration_error(), None);
        measurements.calibration = vec![bin(0.25, 0.5, 30), bin(0.75, 0.25, 10)];
        assert_eq!(measurements.calibration_error(), Some(0.3125));
    }
}
