//! Means over some steps, for the log and the progress line.

use crate::terminal::grouped;
use crate::trainer::loss::{LossSums, in_digits};
use crate::trainer::metrics::{MeanLosses, Standing, StepMeasurements};
use crate::trainer::step::StepReport;
use engine::progress::in_words;
use network::Head;
use std::time::{Duration, Instant};

/// Adds up steps between two lines of the log.
#[derive(Debug)]
pub(crate) struct LossMeter {
    batch_size: u32,
    /// When the first step was begun, and how many there have been since.
    first_begun: Instant,
    all_steps: u64,
    /// The same since the last line.
    begun: Instant,
    steps: u64,
    waited: Duration,
    computed: Duration,
    losses: LossSums,
    policy_accuracies: f64,
    gradient_norms: f64,
    learning_rate: f64,
    /// The last line of the log, which is shown until the next.
    last: Option<StepMeasurements>,
}

impl LossMeter {
    /// Begins now.
    pub(crate) fn new(batch_size: u32) -> Self {
        let now = Instant::now();
        Self {
            batch_size,
            first_begun: now,
            all_steps: 0,
            begun: now,
            steps: 0,
            waited: Duration::ZERO,
            computed: Duration::ZERO,
            losses: LossSums::default(),
            policy_accuracies: 0.0,
            gradient_norms: 0.0,
            learning_rate: 0.0,
            last: None,
        }
    }

    /// Adds a step, with the time that it waited for its batch and the time that it computed.
    pub(crate) fn add(&mut self, report: &StepReport, waited: Duration, computed: Duration) {
        self.steps += 1;
        self.all_steps += 1;
        self.waited += waited;
        self.computed += computed;
        self.losses.add(&report.losses, &report.weights);
        self.policy_accuracies += report.policy_accuracy;
        self.gradient_norms += report.gradient_norm;
        self.learning_rate = report.learning_rate;
    }

    /// The means since the last line; the next ones begin here.
    pub(crate) fn take(&mut self, standing: Standing) -> StepMeasurements {
        let means = StepMeasurements {
            standing,
            ..self.means()
        };
        *self = Self {
            last: Some(means),
            first_begun: self.first_begun,
            all_steps: self.all_steps,
            ..Self::new(self.batch_size)
        };
        means
    }

    fn means(&self) -> StepMeasurements {
        let steps = self.steps.max(1) as f64;
        let seconds = self.begun.elapsed().as_secs_f64().max(1e-9);
        StepMeasurements {
            losses: MeanLosses(self.losses.means()),
            policy_accuracy: self.policy_accuracies / steps,
            gradient_norm: self.gradient_norms / steps,
            learning_rate: self.learning_rate,
            rows_per_second: self.steps as f64 * f64::from(self.batch_size) / seconds,
            waiting: self.waited.as_secs_f64() / seconds,
            computing: self.computed.as_secs_f64() / seconds,
            standing: Standing::default(),
        }
    }

    /// The progress in words: the time for `steps_left` steps, the last means, and the window's rows. The time comes first: a narrow
    /// terminal cuts the end off.
    pub(crate) fn message(&self, step: u64, steps_left: u64, window_rows: u64) -> String {
        let means = self.last.unwrap_or_else(|| self.means());
        let next = self.time_for(steps_left).map_or(String::new(), |left| {
            format!("next network in {}, ", in_words(left))
        });
        format!(
            "step {}, {next}{:.0} rows/s, policy loss {}, value loss {}, learning rate {:.1e}, window {} rows",
            grouped(step),
            means.rows_per_second,
            in_digits(means.losses.0[Head::Policy], 3),
            in_digits(means.losses.0[Head::Value], 3),
            means.learning_rate,
            grouped(window_rows),
        )
    }

    /// The time for so many steps, by the steps so far; none for 0 steps and before the first.
    fn time_for(&self, steps: u64) -> Option<Duration> {
        if steps == 0 || self.all_steps == 0 {
            return None;
        }
        let each = self.first_begun.elapsed().as_secs_f64() / self.all_steps as f64;
        Duration::try_from_secs_f64(each * steps as f64).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use network::PerHead;

    #[test]
    fn means_are_over_the_steps_since_the_last_line() {
        let mut meter = LossMeter::new(10);
        let both = |policy, value| {
            let mut numbers = PerHead::default();
            (numbers[Head::Policy], numbers[Head::Value]) = (policy, value);
            numbers
        };
        let report = |policy| StepReport {
            losses: both(policy, 0.5),
            weights: both(10.0, 10.0 * (policy - 1.0)),
            policy_accuracy: 0.5,
            gradient_norm: 2.0,
            learning_rate: policy / 10.0,
        };
        for policy in [1.0, 2.0] {
            meter.add(&report(policy), Duration::ZERO, Duration::ZERO);
        }
        let standing = Standing {
            epoch: 3,
            ..Standing::default()
        };
        let means = meter.take(standing);
        assert_eq!(
            (
                means.losses.0[Head::Policy],
                means.losses.0[Head::Value],
                means.gradient_norm
            ),
            (Some(1.5), Some(0.5), 2.0)
        );
        assert_eq!((means.learning_rate, means.standing), (0.2, standing));
        assert!(means.rows_per_second > 0.0);
        meter.add(&report(7.0), Duration::ZERO, Duration::ZERO);
        let message = meter.message(1_203, 9, 45_678);
        assert!(
            message.starts_with("step 1,203, next network in "),
            "{message}"
        );
        assert!(
            message.contains(
                "policy loss 1.500, value loss 0.500, learning rate 2.0e-1, window 45,678 rows"
            ),
            "{message}"
        );
        let message = meter.message(1_203, 0, 45_678);
        assert!(!message.contains("next network"), "{message}");
        let means = meter.take(Standing::default());
        assert_eq!(means.losses.0[Head::Policy], Some(7.0));
    }

    #[test]
    fn waiting_and_computing_are_shares_of_the_time() {
        let mut meter = LossMeter::new(1);
        meter.begun = Instant::now().checked_sub(Duration::from_hours(1)).unwrap();
        meter.first_begun = meter.begun;
        let report = StepReport {
            losses: PerHead::default(),
            weights: PerHead::default(),
            policy_accuracy: 0.0,
            gradient_norm: 1.0,
            learning_rate: 1.0,
        };
        for _ in 0..2 {
            meter.add(&report, Duration::from_mins(3), Duration::from_mins(24));
        }
        // Half an hour a step.
        let left = meter.time_for(4).unwrap().as_secs_f64();
        assert!((left / 7_200.0 - 1.0).abs() < 0.01, "{left}");
        assert_eq!(meter.time_for(0), None);
        let means = meter.take(Standing::default());
        assert!((means.waiting - 0.1).abs() < 0.001, "{}", means.waiting);
        assert!((means.computing - 0.8).abs() < 0.001, "{}", means.computing);
        assert_eq!(LossMeter::new(1).time_for(4), None);
    }
}
