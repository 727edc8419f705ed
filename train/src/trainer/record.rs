//! The records of a training's measurements in the run's `logs`: JSON lines, TensorBoard's event files, and curves.
//!
//! ```text
//! logs/train.jsonl               one JSON object a line
//! logs/tensorboard/training/     event files of training rows …
//! logs/tensorboard/validation/   … and of validation rows: TensorBoard draws equal names of both in one frame
//! logs/curves.svg                redrawn with each network that is published or rated
//! logs/ratings.svg               drawn by the loop whenever ratings change
//! ```
//!
//! A resumed run reads none of it, so no error here ends a training. The first of several errors in a row is reported, and the
//! measurement is lost. On a disk that stays full, the next checkpoint ends the training.

use crate::error::TrainError;
use crate::plots::curves::Curves;
use crate::plots::events::EventFile;
use crate::ratings::{RatingMeasurements, RatingsFile};
use crate::trainer::metrics::{
    EndedPhase, LoopPhase, MeanLosses, Metrics, SelfPlayMeasurements, StepMeasurements,
    ValidationMeasurements,
};
use engine::progress::say;
use engine::run::{LineKind, RunDirectory};
use serde::Serialize;
use serde_json::json;
use std::borrow::Cow;
use std::path::PathBuf;
use std::time::SystemTime;

/// Writes a training's measurements.
#[derive(Debug)]
pub(crate) struct Recorder {
    logs: PathBuf,
    ratings: PathBuf,
    metrics: Metrics,
    log_complaints: Complaints,
    training: Events,
    validation: Events,
    curve_complaints: Complaints,
}

/// An event file that is opened when the first event comes.
#[derive(Debug)]
struct Events {
    folder: PathBuf,
    /// The first step after the start of the training.
    next_step: u64,
    file: Option<EventFile>,
    complaints: Complaints,
}

/// Reports failures; of several in a row only the first.
#[derive(Debug, Default)]
struct Complaints {
    failing: bool,
}

impl Complaints {
    fn hear(&mut self, result: Result<(), TrainError>) {
        if let Some(complaint) = self.complaint(result) {
            say(&complaint);
        }
    }

    fn complaint(&mut self, result: Result<(), TrainError>) -> Option<String> {
        let failed_before = std::mem::replace(&mut self.failing, result.is_err());
        let error = result.err().filter(|_| !failed_before)?;
        Some(format!(
            "{error}; the training continues, and the next time it is tried again"
        ))
    }
}

impl Recorder {
    /// The recorder of a run that has made `step` steps. It replaces what was logged of later ones.
    pub(crate) fn new(run: &RunDirectory, step: u64) -> Self {
        let logs = run.logs();
        let events = |name| Events {
            folder: logs.join("tensorboard").join(name),
            next_step: step.saturating_add(1),
            file: None,
            complaints: Complaints::default(),
        };
        Self {
            metrics: Metrics::new(run.train_log()),
            log_complaints: Complaints::default(),
            training: events("training"),
            validation: events("validation"),
            curve_complaints: Complaints::default(),
            logs,
            ratings: run.ratings(),
        }
    }

    /// Records some steps, the last of which is `step`.
    pub(crate) fn steps(&mut self, generation: u32, step: u64, measured: &StepMeasurements) {
        self.log(LineKind::Train, generation, step, measured);
        let mut scalars = losses(&measured.losses);
        let standing = &measured.standing;
        scalars.extend([
            ("optimizer/gradient_norm".into(), measured.gradient_norm),
            ("optimizer/learning_rate".into(), measured.learning_rate),
            ("speed/rows_per_second".into(), measured.rows_per_second),
            ("speed/waiting".into(), measured.waiting),
            ("speed/computing".into(), measured.computing),
            ("rows/epoch".into(), standing.epoch as f64),
            ("rows/trained".into(), standing.trained_rows as f64),
            ("rows/window".into(), standing.window_rows as f64),
            (
                "generators/at_work".into(),
                standing.generators.generators_running as f64,
            ),
            (
                "generators/lost".into(),
                standing.generators.generators_lost as f64,
            ),
        ]);
        scalars.extend(
            standing
                .data_age
                .map(|age| ("rows/age_seconds".into(), age)),
        );
        self.training.add(step, &scalars);
    }

    /// Records the measurements on validation rows after `step`.
    pub(crate) fn validation(
        &mut self,
        generation: u32,
        step: u64,
        measured: &ValidationMeasurements,
    ) {
        self.log(LineKind::Validation, generation, step, measured);
        let mut scalars = losses(&measured.losses);
        scalars.extend(
            measured
                .policy_accuracy
                .map(|share| ("policy_accuracy".into(), share)),
        );
        let error = measured.calibration_error();
        scalars.extend(error.map(|error| ("value_calibration_error".into(), error)));
        self.validation.add(step, &scalars);
    }

    /// Records changes of settings after `step`, a line each.
    pub(crate) fn changed(&mut self, generation: u32, step: u64, changes: &[String]) {
        for change in changes {
            self.log(
                LineKind::Changed,
                generation,
                step,
                &json!({ "text": change }),
            );
        }
    }

    /// Records that the training waits, and what for.
    pub(crate) fn waiting(&mut self, generation: u32, step: u64, missing: &str) {
        self.log(
            LineKind::Waiting,
            generation,
            step,
            &json!({ "missing": missing }),
        );
    }

    /// Records the phase that the loop begins, or none, and the one that has ended.
    pub(crate) fn phase(
        &mut self,
        generation: u32,
        step: u64,
        phase: Option<LoopPhase>,
        ended: Option<EndedPhase>,
    ) {
        let contents = json!({ "phase": phase, "ended": ended });
        self.log(LineKind::Phase, generation, step, &contents);
    }

    /// Records the self-play for a generation's network.
    pub(crate) fn self_play(
        &mut self,
        generation: u32,
        step: u64,
        measured: &SelfPlayMeasurements,
    ) {
        self.log(LineKind::SelfPlay, generation, step, measured);
        let scalars = [
            ("self_play/turns_per_second", measured.turns_per_second),
            (
                "self_play/evaluations_per_second",
                measured.evaluations_per_second,
            ),
        ];
        let scalars = scalars.map(|(name, value)| value.map(|value| (name.into(), value)));
        let scalars: Vec<_> = scalars.into_iter().flatten().collect();
        self.training.add(step, &scalars);
    }

    /// Records that the generation's network is published, and redraws the curves.
    pub(crate) fn published(&mut self, generation: u32, step: u64) {
        self.log(LineKind::Published, generation, step, &json!({}));
        // The curves are useful without ratings too.
        let file = RatingsFile::load(&self.ratings).unwrap_or_else(|error| {
            say(&format!("{error}; the curves are drawn without ratings"));
            None
        });
        self.draw(&file.unwrap_or_default());
    }

    /// Records the rating of the generation's network, and redraws the curves.
    pub(crate) fn rated(
        &mut self,
        generation: u32,
        step: u64,
        measured: &RatingMeasurements,
        ratings: &RatingsFile,
    ) {
        self.log(LineKind::Rating, generation, step, measured);
        self.validation
            .add(step, &[("rating".into(), measured.rating)]);
        self.draw(ratings);
    }

    fn draw(&mut self, ratings: &RatingsFile) {
        let drawn = Curves::read(self.metrics.path()).and_then(|mut curves| {
            curves.ratings = ratings.marks(|network| network.generation.map(f64::from));
            curves.write(&self.logs)
        });
        self.curve_complaints.hear(drawn.map(|_| ()));
    }

    fn log(&mut self, kind: LineKind, generation: u32, step: u64, measured: &impl Serialize) {
        let written = self.metrics.write(kind, generation, step, measured);
        self.log_complaints.hear(written);
    }
}

impl Events {
    fn add(&mut self, step: u64, scalars: &[(Cow<str>, f64)]) {
        let written = self.try_to_add(step, scalars);
        self.complaints.hear(written);
    }

    fn try_to_add(&mut self, step: u64, scalars: &[(Cow<str>, f64)]) -> Result<(), TrainError> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let opened = EventFile::open(&self.folder, self.next_step)?;
                self.file.insert(opened)
            }
        };
        file.scalars(step, SystemTime::now(), scalars)
    }
}

/// The measured losses, under the names that TensorBoard shows.
fn losses(losses: &MeanLosses) -> Vec<(Cow<'static, str>, f64)> {
    let measured = losses
        .0
        .iter()
        .filter_map(|(head, loss)| Some((head, (*loss)?)));
    measured
        .map(|(head, loss)| (format!("loss/{}", head.name()).into(), loss))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use network::{Head, PerHead};
    use std::fs;

    fn measured(loss: f64) -> StepMeasurements {
        StepMeasurements {
            losses: MeanLosses(PerHead::from_fn(|head| {
                (head == Head::Policy).then_some(loss)
            })),
            ..StepMeasurements::default()
        }
    }

    fn validation(loss: f64) -> ValidationMeasurements {
        ValidationMeasurements {
            losses: measured(loss).losses,
            ..ValidationMeasurements::default()
        }
    }

    #[test]
    fn everything_goes_to_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path());
        let mut recorder = Recorder::new(&run, 0);
        recorder.steps(1, 20, &measured(3.0));
        recorder.validation(1, 20, &validation(3.5));
        assert!(!run.logs().join("curves.svg").exists());
        let marks = || {
            let page = fs::read_to_string(run.logs().join("curves.svg")).unwrap();
            page.matches("<circle").count()
        };
        fs::write(run.ratings(), "half").unwrap();
        recorder.published(1, 20);
        let without = marks();
        let rated = |generation: u32, behind: f64| {
            format!(
                r#"{{"player": "{generation:05}", "generation": {generation}, "rating": 5.0, "low": 2.0, "high": 9.0, "games": 20,
                "behind_newest": [{behind}, {behind}]}}"#
            )
        };
        let ratings = [rated(0, 3.0), rated(1, 0.0)].join(",");
        let file = format!(r#"{{"reference": "00000", "ratings": [{ratings}], "results": []}}"#);
        fs::write(run.ratings(), file).unwrap();
        recorder.published(1, 20);
        assert_eq!(marks(), without + 2);
        let lines = fs::read_to_string(run.logs().join("train.jsonl")).unwrap();
        let kinds: Vec<String> = lines
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .map(|line| format!("{} {} {}", line["kind"], line["generation"], line["step"]))
            .collect();
        assert_eq!(
            kinds,
            [
                "\"train\" 1 20",
                "\"validation\" 1 20",
                "\"published\" 1 20",
                "\"published\" 1 20"
            ]
        );
        let page = fs::read_to_string(run.logs().join("curves.svg")).unwrap();
        assert!(page.contains("training rows") && page.contains("validation rows"));
        for name in ["training", "validation"] {
            let events = run.logs().join("tensorboard").join(name);
            let file = fs::read_dir(events).unwrap().next().unwrap().unwrap();
            let bytes = fs::read(file.path()).unwrap();
            let has = |text: &[u8]| bytes.windows(text.len()).any(|bytes| bytes == text);
            assert!(has(b"loss/policy") && !has(b"loss/value"), "{name}");
        }
    }

    #[test]
    fn what_can_t_be_written_ends_no_training_and_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path());
        // A file where the folder should be: even root can't write there.
        fs::write(run.logs(), "").unwrap();
        let mut recorder = Recorder::new(&run, 0);
        recorder.steps(1, 20, &measured(3.0));
        recorder.published(1, 20);
        assert!(recorder.log_complaints.failing && recorder.training.complaints.failing);
        assert!(recorder.curve_complaints.failing);
        fs::remove_file(run.logs()).unwrap();
        recorder.steps(1, 40, &measured(2.0));
        recorder.published(1, 40);
        assert!(!recorder.log_complaints.failing && !recorder.training.complaints.failing);
        assert!(!recorder.curve_complaints.failing);
        let curves = Curves::read(&run.train_log()).unwrap();
        assert_eq!(curves.policy_loss.training.points(), [(40, 2.0)]);
    }

    #[test]
    fn of_several_failures_in_a_row_the_first_is_said() {
        let mut complaints = Complaints::default();
        let failure = || {
            Err(TrainError::Io {
                what: "write to",
                path: "run/log".into(),
                error: std::io::ErrorKind::StorageFull.into(),
            })
        };
        let first = complaints.complaint(failure()).unwrap();
        assert!(
            first.contains("run/log") && first.contains("continues"),
            "{first}"
        );
        assert_eq!(complaints.complaint(failure()), None);
        assert_eq!(complaints.complaint(Ok(())), None);
        assert!(complaints.complaint(failure()).is_some());
    }
}
