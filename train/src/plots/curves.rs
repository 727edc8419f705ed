//! The page of a run's training curves, from its log `train.jsonl`.
//!
//! Lines of these kinds are read; others, and other keys, are ignored. A key that is missing or `null` is no point.
//!
//! | kind | keys |
//! | --- | --- |
//! | `train`, `validation` | `step`; `policy_loss`, `value_loss` in nats; `policy_accuracy`, the share of rows whose likeliest step is the target's, 0 to 1 |
//! | `validation` also | `calibration`: a list of [`CalibrationBin`]; the newest is drawn |
//!
//! Ratings aren't read from there: later results change earlier ratings.
//!
//! A kill may leave half a line: unreadable lines are counted, and the page shows their number.

use super::chart::{Axis, BLUE, Chart, Dot, Line, Page, VERMILION, count, number, percent, whole};
use crate::error::TrainError;
use crate::ratings::RatingMark;
use engine::run::{LineKind, LogLine, LogPart, LogReader, StepSeries};
use plotters::chart::SeriesLabelPosition;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The title of the ratings' chart.
const RATING: &str = "Rating; bars: 95% intervals of the distance to the newest network";

/// More points than this are drawn as means of neighbours.
const MAX_POINTS: usize = 1_000;

/// The measurements on the page.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Curves {
    /// The policy's cross-entropy, in nats.
    pub(crate) policy_loss: ByRows,
    /// The value's binary cross-entropy, in nats.
    pub(crate) value_loss: ByRows,
    /// The share of rows whose likeliest step is the target's, 0 to 1.
    pub(crate) policy_accuracy: ByRows,
    /// The newest calibration of the value.
    pub(crate) calibration: Vec<CalibrationBin>,
    /// The networks' ratings by generation, from the caller.
    pub(crate) ratings: Vec<RatingMark>,
    /// The number of lines that can't be read.
    pub(crate) unreadable: u64,
}

/// A measurement on training rows and on validation rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ByRows {
    pub(crate) training: Series,
    pub(crate) validation: Series,
}

/// A measurement by the optimizer's step.
pub(crate) type Series = StepSeries<f64>;

/// The rows with similar predicted values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct CalibrationBin {
    /// The mean of the predictions, a win probability.
    pub(crate) predicted: f64,
    /// The mean of the results, 0 to 1.
    pub(crate) actual: f64,
    /// The number of rows.
    pub(crate) rows: u64,
}

/// What is read of a line's contents.
#[derive(Deserialize)]
struct Measured {
    policy_loss: Option<f64>,
    value_loss: Option<f64>,
    policy_accuracy: Option<f64>,
    calibration: Option<Vec<CalibrationBin>>,
}

impl Curves {
    /// Reads a log, which may be missing.
    ///
    /// # Errors
    ///
    /// As [`LogReader::read_on`].
    pub(crate) fn read(log: &Path) -> Result<Self, TrainError> {
        let mut curves = Self::default();
        LogReader::new(log.to_owned()).read_on(|part| {
            let read = match part {
                LogPart::Restart => Some(()),
                LogPart::Line(line) => curves.add(line),
                LogPart::Unreadable => None,
            };
            curves.unreadable += u64::from(read.is_none());
        })?;
        Ok(curves)
    }

    /// Adds a line; none if its contents can't be read.
    fn add(&mut self, line: LogLine) -> Option<()> {
        let of: fn(&mut ByRows) -> &mut Series = match line.kind {
            LineKind::Train => |rows| &mut rows.training,
            LineKind::Validation => |rows| &mut rows.validation,
            _ => return Some(()),
        };
        let step = line.step?;
        let measured: Measured = serde_json::from_value(Value::Object(line.contents)).ok()?;
        for (rows, value) in [
            (&mut self.policy_loss, measured.policy_loss),
            (&mut self.value_loss, measured.value_loss),
            (&mut self.policy_accuracy, measured.policy_accuracy),
        ] {
            if let Some(value) = value {
                of(rows).push(step, value);
            }
        }
        // An empty list was not measured.
        if let Some(bins) = measured.calibration.filter(|bins| !bins.is_empty()) {
            self.calibration = bins;
        }
        Some(())
    }

    /// Draws the page as `curves.svg` in a folder, in the place of the previous one, and returns the file.
    ///
    /// # Errors
    ///
    /// Fails where the file can't be written.
    pub(crate) fn write(&self, logs: &Path) -> Result<PathBuf, TrainError> {
        let path = logs.join("curves.svg");
        self.page().write(&path)?;
        Ok(path)
    }

    fn page(&self) -> Page {
        let unreadable = Some(self.unreadable).filter(|&lines| lines > 0);
        let above = SeriesLabelPosition::UpperRight;
        let below = SeriesLabelPosition::LowerRight;
        let nats = || Axis::new("nats", number);
        let rows = Axis::new("rows", percent);
        Page {
            size: (1_000, 1_020),
            title: "Training curves".to_owned(),
            note: unreadable.map(|lines| format!("{lines} lines of the log can't be read")),
            rows: vec![
                vec![
                    by_step("Policy loss", nats(), above.clone(), &self.policy_loss),
                    by_step("Value loss", nats(), above, &self.value_loss),
                ],
                vec![
                    by_step("Policy accuracy", rows, below, &self.policy_accuracy),
                    self.calibration(),
                ],
                vec![self.rating()],
            ],
        }
    }

    fn calibration(&self) -> Chart {
        let axis = |name| Axis {
            range: Some((0.0, 1.0)),
            ..Axis::new(name, percent)
        };
        let most = self.calibration.iter().map(|bin| bin.rows).max();
        let most = most.unwrap_or(0).max(1) as f64;
        let mut bins = self.calibration.clone();
        bins.sort_by(|a, b| a.predicted.total_cmp(&b.predicted));
        let dots = bins.iter().map(|bin| Dot {
            at: (bin.predicted, bin.actual),
            radius: 2 + (6.0 * (bin.rows as f64 / most).sqrt()) as i32,
        });
        let points = bins.iter().map(|bin| (bin.predicted, bin.actual));
        Chart {
            lines: vec![Line {
                name: String::new(),
                color: VERMILION,
                points: points.collect(),
            }],
            dots: dots.collect(),
            diagonal: true,
            ..Chart::new(
                "Value calibration",
                axis("predicted (size of a dot: rows)"),
                axis("actual"),
            )
        }
    }

    fn rating(&self) -> Chart {
        let generation = Axis::new("generation", whole);
        Chart::of_ratings(RATING, generation, "", &self.ratings)
    }
}

fn by_step(
    title: &'static str,
    vertical: Axis,
    legend: SeriesLabelPosition,
    rows: &ByRows,
) -> Chart {
    let line = |name: &str, color, series| Line {
        name: name.to_owned(),
        color,
        points: thin(series),
    };
    Chart {
        lines: vec![
            line("training rows", BLUE, &rows.training),
            line("validation rows", VERMILION, &rows.validation),
        ],
        legend,
        ..Chart::new(title, Axis::new("step", count), vertical)
    }
}

/// A series' points, means of neighbours where they are many.
fn thin(series: &Series) -> Vec<(f64, f64)> {
    let points = series.points();
    let together = points.len().div_ceil(MAX_POINTS).max(1);
    let mean = |points: &[(u64, f64)]| {
        let finite = points.iter().filter(|point| point.1.is_finite());
        let (mut steps, mut values, mut count) = (0.0, 0.0, 0.0);
        for &(step, value) in finite {
            steps += step as f64;
            values += value;
            count += 1.0;
        }
        // The mean of none is NaN, which is a gap.
        (steps / count, values / count)
    };
    points.chunks(together).map(mean).collect()
}

#[cfg(test)]
mod tests;
