//! The losses: what a network's outputs cost against a batch's targets.

use crate::data::BatchTensors;
use engine::network::TrainingOutputs;
use serde::{Deserialize, Serialize};
use tch::{Reduction, TchError, Tensor};

/// The logit that illegal entries get: far enough from any other that nothing is left of it, and finite, so that nothing times
/// it stays nothing.
const ILLEGAL_LOGIT: f64 = -1e9;

/// A sum of weights is not taken for less than this: a batch whose rows all weigh nothing costs nothing.
const LEAST_WEIGHT: f64 = 1e-6;

/// The losses of a batch as tensors without dimensions, in nats.
#[derive(Debug)]
pub(crate) struct LossTensors {
    /// The policy's cross-entropy over the legal entries: the mean by [`BatchTensors::weight`].
    pub(crate) policy: Tensor,
    /// The value's binary cross-entropy: the mean by [`BatchTensors::value_weight`].
    pub(crate) value: Tensor,
}

/// Losses in nats.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Losses {
    /// The policy's cross-entropy a row.
    pub(crate) policy: f64,
    /// The value's binary cross-entropy a turn.
    pub(crate) value: f64,
}

/// What mean losses over many rows are made of.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct LossSums {
    /// The losses of batches, each times the batch's weights.
    losses: Losses,
    /// The weights.
    weights: Losses,
}

impl LossSums {
    /// Adds a batch's mean losses, with the sums of its weights.
    pub(crate) fn add(&mut self, losses: Losses, weights: Losses) {
        self.losses.policy += losses.policy * weights.policy;
        self.losses.value += losses.value * weights.value;
        self.weights.policy += weights.policy;
        self.weights.value += weights.value;
    }

    /// Adds what others have added up.
    pub(crate) fn append(&mut self, other: Self) {
        self.losses.policy += other.losses.policy;
        self.losses.value += other.losses.value;
        self.weights.policy += other.weights.policy;
        self.weights.value += other.weights.value;
    }

    /// The policy's mean loss; none where nothing weighs anything.
    pub(crate) fn policy(&self) -> Option<f64> {
        (self.weights.policy > 0.0).then(|| self.losses.policy / self.weights.policy)
    }

    /// The value's mean loss; none where no game has a result.
    pub(crate) fn value(&self) -> Option<f64> {
        (self.weights.value > 0.0).then(|| self.losses.value / self.weights.value)
    }
}

/// A loss with so many digits, or a dash for none.
pub(crate) fn in_digits(loss: Option<f64>, digits: usize) -> String {
    loss.map_or_else(|| "-".into(), |loss| format!("{loss:.digits$}"))
}

/// The losses of a network's outputs.
pub(crate) fn losses(outputs: &TrainingOutputs, batch: &BatchTensors) -> Result<LossTensors, TchError> {
    let illegal = batch.legal.f_logical_not()?;
    let logits = outputs.policy.f_masked_fill(&illegal, ILLEGAL_LOGIT)?;
    let policy = logits
        .f_log_softmax(-1, None)?
        .f_mul(&batch.policy)?
        .f_sum_dim_intlist([-1i64].as_slice(), false, None)?
        .f_neg()?;
    let value = outputs
        .value_logit
        .f_binary_cross_entropy_with_logits::<Tensor>(&batch.value, None, None, Reduction::None)?;
    Ok(LossTensors {
        policy: weighted_mean(&policy, &batch.weight)?,
        value: weighted_mean(&value, &batch.value_weight)?,
    })
}

fn weighted_mean(losses: &Tensor, weights: &Tensor) -> Result<Tensor, TchError> {
    let sum = losses.f_mul(weights)?.f_sum(None)?;
    sum.f_div(&weights.f_sum(None)?.f_clamp_min(LEAST_WEIGHT)?)
}

impl LossTensors {
    /// What is made small: both losses, each times its weight.
    pub(crate) fn total(&self, policy_weight: f64, value_weight: f64) -> Result<Tensor, TchError> {
        let policy = self.policy.f_mul_scalar(policy_weight)?;
        policy.f_add(&self.value.f_mul_scalar(value_weight)?)
    }

    /// The numbers; waits for the device.
    pub(crate) fn to_numbers(&self) -> Result<Losses, TchError> {
        Ok(Losses {
            policy: self.policy.f_double_value(&[])?,
            value: self.value.f_double_value(&[])?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::encoding::POLICY_SIZE;
    use tch::{Device, Kind};

    /// Two rows. The first has three legal entries with logits 0, ln 2, ln 5 (probabilities 1/8, 2/8, 5/8) and targets 1/2, 1/2,
    /// 0; the second one legal entry. Illegal entries have large logits.
    fn example(weights: [f32; 2], value_weights: [f32; 2]) -> (TrainingOutputs, BatchTensors) {
        let mut logits = [50f32; 2 * POLICY_SIZE];
        let mut legal = [false; 2 * POLICY_SIZE];
        let mut policy = [0f32; 2 * POLICY_SIZE];
        for (index, logit, share) in [
            (0, 0.0, 0.5),
            (100, 2f32.ln(), 0.5),
            (320, 5f32.ln(), 0.0),
            (321 + 7, -3.0, 1.0),
        ] {
            (logits[index], legal[index], policy[index]) = (logit, true, share);
        }
        let tensor = |numbers: &[f32]| Tensor::from_slice(numbers);
        let table = |numbers: &[f32]| tensor(numbers).view([2, POLICY_SIZE as i64]);
        let outputs = TrainingOutputs {
            policy: table(&logits).set_requires_grad(true),
            // Win probabilities 3/4 and 1/5.
            value_logit: tensor(&[3f32.ln(), -(4f32.ln())]),
            turns_left: None,
            ending: None,
            taken: None,
            reply: None,
        };
        let batch = BatchTensors {
            planes: Tensor::zeros([2, 1], (Kind::Float, Device::Cpu)),
            legal: Tensor::from_slice(&legal).view([2, POLICY_SIZE as i64]),
            policy: table(&policy),
            weight: tensor(&weights),
            value: tensor(&[1.0, 0.25]),
            value_weight: tensor(&value_weights),
            turns_left: tensor(&[0.0; 2]),
            ending: Tensor::from_slice(&[0i64; 2]),
            pieces: tensor(&[0.0; 128]).view([2, 64]),
            taken: tensor(&[0.0; 128]).view([2, 64]),
            outcome_weight: tensor(&[0.0; 2]),
            reply: table(&[0.0; 2 * POLICY_SIZE]),
            reply_weight: tensor(&[0.0; 2]),
        };
        (outputs, batch)
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-5, "{found} is not {expected}");
    }

    #[test]
    fn the_losses_are_those_of_the_formulas() {
        let (outputs, batch) = example([1.0, 3.0], [1.0, 0.5]);
        let tensors = losses(&outputs, &batch).unwrap();
        let numbers = tensors.to_numbers().unwrap();
        // -(ln(1/8) + ln(2/8)) / 2 = (5 ln 2) / 2; the row with one entry costs nothing.
        let first = 2.5 * 2f64.ln();
        close(numbers.policy, first / 4.0);
        let won = -(0.75f64.ln());
        let mixed = -(0.25 * 0.2f64.ln() + 0.75 * 0.8f64.ln());
        close(numbers.value, (won + 0.5 * mixed) / 1.5);
        let total = tensors.total(0.5, 2.0).unwrap().double_value(&[]);
        close(total, 0.5 * numbers.policy + 2.0 * numbers.value);
    }

    #[test]
    fn the_gradient_is_prediction_less_target_and_none_where_illegal() {
        let (outputs, batch) = example([1.0, 3.0], [1.0, 1.0]);
        losses(&outputs, &batch).unwrap().policy.backward();
        let gradient = Vec::<f32>::try_from(outputs.policy.grad().view([-1])).unwrap();
        for (index, &slope) in gradient.iter().enumerate() {
            // The first row has a quarter of the weight.
            let expected = match index {
                0 => (0.125 - 0.5) / 4.0,
                100 => (0.25 - 0.5) / 4.0,
                320 => 0.625 / 4.0,
                _ => 0.0,
            };
            close(slope.into(), expected);
        }
    }

    #[test]
    fn means_are_by_weight_and_none_where_nothing_weighs() {
        let losses = |policy, value| Losses { policy, value };
        let mut sums = LossSums::default();
        assert_eq!((sums.policy(), sums.value()), (None, None));
        sums.add(losses(3.0, 0.0), losses(1.0, 0.0));
        assert_eq!((sums.policy(), sums.value()), (Some(3.0), None));
        let mut others = LossSums::default();
        others.add(losses(5.0, 0.5), losses(3.0, 2.0));
        sums.append(others);
        assert_eq!((sums.policy(), sums.value()), (Some(4.5), Some(0.5)));
        assert_eq!(
            (in_digits(sums.policy(), 2), in_digits(None, 2)),
            ("4.50".into(), "-".into())
        );
    }

    #[test]
    fn rows_without_weight_cost_nothing() {
        let (outputs, batch) = example([0.0, 0.0], [0.0, 0.0]);
        let numbers = losses(&outputs, &batch).unwrap().to_numbers().unwrap();
        assert_eq!(numbers, Losses::default());
    }
}
