//! Means over some steps, for the log and the progress line.

use crate::loss::{LossSums, in_digits};
use crate::metrics::StepMeasurements;
use crate::trainer::StepReport;
use std::time::{Duration, Instant};

/// Adds up steps between two lines of the log.
#[derive(Debug)]
pub(crate) struct Meter {
    batch_size: u32,
    begun: Instant,
    steps: u64,
    waited: Duration,
    losses: LossSums,
    sums: StepMeasurements,
    /// What the last line said, which is shown until the next.
    last: Option<StepMeasurements>,
}

impl Meter {
    /// Begins now.
    pub(crate) fn new(batch_size: u32) -> Self {
        Self {
            batch_size,
            begun: Instant::now(),
            steps: 0,
            waited: Duration::ZERO,
            losses: LossSums::default(),
            sums: StepMeasurements::default(),
            last: None,
        }
    }

    /// Adds a step, before which the network waited for its batch.
    pub(crate) fn add(&mut self, report: &StepReport, waited: Duration) {
        self.steps += 1;
        self.waited += waited;
        self.losses.add(report.losses, report.weights);
        self.sums.gradient_norm += report.gradient_norm;
        self.sums.learning_rate = report.learning_rate;
    }

    /// The means since the last time, and begins anew.
    pub(crate) fn take(&mut self, epoch: u64) -> StepMeasurements {
        let means = StepMeasurements {
            epoch,
            ..self.means()
        };
        *self = Self {
            last: Some(means),
            ..Self::new(self.batch_size)
        };
        means
    }

    fn means(&self) -> StepMeasurements {
        let steps = self.steps.max(1) as f64;
        let seconds = self.begun.elapsed().as_secs_f64().max(1e-9);
        StepMeasurements {
            policy_loss: self.losses.policy(),
            value_loss: self.losses.value(),
            gradient_norm: self.sums.gradient_norm / steps,
            learning_rate: self.sums.learning_rate,
            rows_per_second: self.steps as f64 * f64::from(self.batch_size) / seconds,
            waiting: self.waited.as_secs_f64() / seconds,
            epoch: 0,
        }
    }

    /// The last means in words.
    pub(crate) fn message(&self) -> String {
        let means = self.last.unwrap_or_else(|| self.means());
        format!(
            "{:.0} rows/s, policy loss {}, value loss {}, learning rate {:.1e}",
            means.rows_per_second,
            in_digits(means.policy_loss, 3),
            in_digits(means.value_loss, 3),
            means.learning_rate
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::Losses;

    #[test]
    fn means_are_over_the_steps_since_the_last_line() {
        let mut meter = Meter::new(10);
        let report = |policy| StepReport {
            losses: Losses {
                policy,
                value: 0.5,
                ..Losses::default()
            },
            weights: Losses {
                policy: 10.0,
                value: 10.0 * (policy - 1.0),
                ..Losses::default()
            },
            policy_accuracy: 0.5,
            gradient_norm: 2.0,
            learning_rate: policy / 10.0,
        };
        for policy in [1.0, 2.0] {
            meter.add(&report(policy), Duration::ZERO);
        }
        let means = meter.take(3);
        assert_eq!(
            (means.policy_loss, means.value_loss, means.gradient_norm),
            (Some(1.5), Some(0.5), 2.0)
        );
        assert_eq!((means.learning_rate, means.epoch), (0.2, 3));
        assert!(means.rows_per_second > 0.0);
        meter.add(&report(7.0), Duration::ZERO);
        assert!(
            meter.message().contains("policy loss 1.500"),
            "{}",
            meter.message()
        );
        assert_eq!(meter.take(0).policy_loss, Some(7.0));
    }
}
