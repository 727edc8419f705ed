//! Measurements on validation rows: the losses, the policy's accuracy, and the calibration of the value.

use crate::data::BatchTensors;
use crate::plots::curves::CalibrationBin;
use crate::trainer::loss::{LossSums, LossTensors, STACKED, from_stack};
use crate::trainer::metrics::{MeanLosses, ValidationMeasurements};
use network::{END_REASONS, Head, PerHead, RowWeight};
use tch::{Kind, TchError, Tensor};

/// The bins of predicted win probabilities.
const BINS: usize = 10;

/// Measurements of a network on rows; they add up over batches.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Measurement {
    /// The losses.
    pub(crate) losses: LossSums,
    /// The weights of the rows whose likeliest legal entry is the target's largest.
    right: f64,
    /// The weights of all rows.
    weight: f64,
    bins: [Bin; BINS],
}

/// Sums over the rows with similar predictions.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Bin {
    rows: u64,
    weight: f64,
    predicted: f64,
    actual: f64,
}

impl Measurement {
    /// The measurements on a batch with these sums of weights.
    pub(crate) fn new(
        outputs: &PerHead<Option<Tensor>>,
        losses: &LossTensors,
        batch: &BatchTensors,
        weights: &PerHead<f64>,
    ) -> Result<Self, TchError> {
        let mut sums = LossSums::default();
        let mut stack = [0.0; STACKED];
        losses.stack()?.f_copy_data(&mut stack, STACKED)?;
        let (means, accuracy) = from_stack(stack);
        sums.add(&means, weights);
        let mut bins = [Bin::default(); BINS];
        let predicted = match &outputs[Head::Value] {
            Some(logits) => numbers(&logits.f_sigmoid()?)?,
            None => Vec::new(),
        };
        // The mover wins in the first half of the endings.
        let won = batch.targets[Head::Ending].f_lt(END_REASONS)?;
        let won = numbers(&won.f_to_kind(Kind::Float)?)?;
        let weights_of_rows = numbers(&batch.weights[RowWeight::Outcome as usize])?;
        let rows = predicted.iter().zip(won);
        for ((&predicted, actual), weight) in rows.zip(weights_of_rows) {
            let number = ((predicted * BINS as f64) as usize).min(BINS - 1);
            if weight > 0.0 {
                bins[number].append(Bin {
                    rows: 1,
                    weight,
                    predicted: predicted * weight,
                    actual: actual * weight,
                });
            }
        }
        Ok(Self {
            losses: sums,
            right: accuracy * weights[Head::Policy],
            weight: weights[Head::Policy],
            bins,
        })
    }

    /// The measurements as the log keeps them, of `rows` rows.
    pub(crate) fn report(&self, rows: usize) -> ValidationMeasurements {
        ValidationMeasurements {
            losses: MeanLosses(self.losses.means()),
            policy_accuracy: self.policy_accuracy(),
            calibration: self.calibration(),
            rows,
        }
    }

    /// Adds the measurements on other rows.
    pub(crate) fn append(&mut self, other: Self) {
        self.losses.append(&other.losses);
        self.right += other.right;
        self.weight += other.weight;
        for (bin, other) in self.bins.iter_mut().zip(other.bins) {
            bin.append(other);
        }
    }

    /// The share of the rows, by the weight of the policy's loss, whose likeliest legal entry is the target's largest, or one of
    /// them; none if no row has a weight.
    pub(crate) fn policy_accuracy(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.right / self.weight)
    }

    /// The calibration: for win probabilities predicted from 0 to 0.1, from 0.1 to 0.2, …, the mean results in games that were won on
    /// the board. Means count each turn once. Bins without rows are left out.
    pub(crate) fn calibration(&self) -> Vec<CalibrationBin> {
        let filled = self.bins.iter().filter(|bin| bin.weight > 0.0);
        let means = filled.map(|bin| CalibrationBin {
            predicted: bin.predicted / bin.weight,
            actual: bin.actual / bin.weight,
            rows: bin.rows,
        });
        means.collect()
    }
}

impl Bin {
    fn append(&mut self, other: Self) {
        self.rows += other.rows;
        self.weight += other.weight;
        self.predicted += other.predicted;
        self.actual += other.actual;
    }
}

/// A column's numbers, from any device.
fn numbers(column: &Tensor) -> Result<Vec<f64>, TchError> {
    let mut numbers = vec![0f32; column.numel()];
    let count = numbers.len();
    column.f_copy_data(&mut numbers, count)?;
    Ok(numbers.into_iter().map(f64::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trainer::loss::losses;
    use crate::trainer::loss::tests::example;

    fn measured(weights: [f32; 2], value_weights: [f32; 2]) -> Measurement {
        let (outputs, mut batch) = example(weights, value_weights);
        // The first is won, the second lost.
        batch.targets[Head::Ending] = Tensor::from_slice(&[0i64, 4]);
        let tensors = losses(&outputs, &batch).unwrap();
        let sum = |weights: [f32; 2]| f64::from(weights[0] + weights[1]);
        let mut sums = PerHead::default();
        (sums[Head::Policy], sums[Head::Value]) = (sum(weights), sum(value_weights));
        Measurement::new(&outputs, &tensors, &batch, &sums).unwrap()
    }

    /// Rounded to six digits.
    fn calibration(measurement: &Measurement) -> Vec<(f64, f64, u64)> {
        let round = |number: f64| (number * 1e6).round() / 1e6;
        let bins = measurement.calibration().into_iter();
        bins.map(|bin| (round(bin.predicted), round(bin.actual), bin.rows))
            .collect()
    }

    /// The example's predictions are 3/4 in a game that was won and 1/5 in one that was lost; its policy is wrong and right.
    #[test]
    fn predictions_are_held_against_what_became_of_them() {
        let mut all = measured([1.0, 3.0], [1.0, 0.5]);
        assert_eq!(all.policy_accuracy(), Some(0.75));
        // 1/5 in floats is a little more.
        assert_eq!(calibration(&all), [(0.2, 0.0, 1), (0.75, 1.0, 1)]);
        all.append(measured([4.0, 0.0], [3.0, 0.0]));
        assert_eq!(all.policy_accuracy(), Some(3.0 / 8.0));
        assert_eq!(calibration(&all), [(0.2, 0.0, 1), (0.75, 1.0, 2)]);
    }

    #[test]
    fn without_weights_nothing_is_measured() {
        for measurement in [measured([0.0; 2], [0.0; 2]), Measurement::default()] {
            assert_eq!(measurement.policy_accuracy(), None);
            assert_eq!(measurement.calibration(), []);
            assert_eq!(measurement.losses.mean(Head::Policy), None);
        }
    }
}
