//! The losses of a network's outputs against a batch's targets.

use crate::data::BatchTensors;
use engine::config::TrainConfig;
use engine::encoding::plane;
use network::{Head, HeadLoss, PerHead, RowWeight};
use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Reduction, TchError, Tensor, no_grad_guard};

/// The logit of illegal entries: so low that their probability is 0, and finite, so that 0 times it is 0.
const ILLEGAL_LOGIT: f64 = -1e9;

/// The least sum of weights: a batch in which no row has a weight has a loss of 0.
const MIN_WEIGHT: f64 = 1e-6;

/// The planes with pieces: own and enemy ones of each kind.
const PIECE_PLANES: i64 = 12;

/// The numbers of [`LossTensors::stack`].
pub(crate) const STACKED: usize = Head::COUNT + 1;

/// The losses of a batch as tensors without dimensions.
#[derive(Debug)]
pub(crate) struct LossTensors {
    /// The mean of each head's loss by its [`RowWeight`]; none for heads that were not computed.
    losses: PerHead<Option<Tensor>>,
    /// The share of the rows, by their weight, whose likeliest legal entry is the target's largest, or one of them.
    policy_accuracy: Option<Tensor>,
}

/// Sums for mean losses over many rows.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct LossSums {
    /// The losses of batches, each times the batch's weights.
    losses: PerHead<f64>,
    /// The weights.
    weights: PerHead<f64>,
}

/// The weight of each loss in the objective: the policy 1, the others as the configuration says.
pub(crate) fn loss_weights(config: &TrainConfig) -> PerHead<f64> {
    PerHead::from_fn(|head| match head {
        Head::Policy => 1.0,
        _ => config.heads.get(head.name()).map_or(0.0, |weight| weight.0),
    })
}

/// The heads that are computed: those that play, and auxiliary heads whose weights are not 0.
pub(crate) fn enabled(weights: &PerHead<f64>) -> PerHead<bool> {
    PerHead::from_fn(|head| !head.is_auxiliary() || weights[head] > 0.0)
}

/// The numbers of the enabled heads, and 0 for the others.
pub(crate) fn only(numbers: &PerHead<f64>, enabled: &PerHead<bool>) -> PerHead<f64> {
    numbers.zip(
        enabled,
        |&number, &enabled| if enabled { number } else { 0.0 },
    )
}

/// The losses, and the policy's accuracy, 0 to 1, that [`LossTensors::stack`] has put side by side.
pub(crate) fn from_stack(numbers: [f32; STACKED]) -> (PerHead<f64>, f64) {
    let losses = PerHead::from_fn(|head| numbers[head as usize].into());
    (losses, numbers[Head::COUNT].into())
}

impl LossSums {
    /// Adds a batch's mean losses, with the sums of its weights.
    pub(crate) fn add(&mut self, losses: &PerHead<f64>, weights: &PerHead<f64>) {
        self.append(&Self {
            losses: losses.zip(weights, |loss, weight| loss * weight),
            weights: *weights,
        });
    }

    /// Adds other sums.
    pub(crate) fn append(&mut self, other: &Self) {
        self.losses = self.losses.zip(&other.losses, |a, b| a + b);
        self.weights = self.weights.zip(&other.weights, |a, b| a + b);
    }

    /// The mean loss of a head; none where no row has a weight in it, or the head was not computed.
    pub(crate) fn mean(&self, head: Head) -> Option<f64> {
        let weight = self.weights[head];
        (weight > 0.0).then(|| self.losses[head] / weight)
    }

    /// The mean loss of each head.
    pub(crate) fn means(&self) -> PerHead<Option<f64>> {
        PerHead::from_fn(|head| self.mean(head))
    }
}

/// A loss with so many digits, or a dash for none.
pub(crate) fn in_digits(loss: Option<f64>, digits: usize) -> String {
    loss.map_or_else(|| "-".into(), |loss| format!("{loss:.digits$}"))
}

/// The losses of a network's outputs.
pub(crate) fn losses(
    outputs: &PerHead<Option<Tensor>>,
    batch: &BatchTensors,
) -> Result<LossTensors, TchError> {
    let mut means = Vec::with_capacity(RowWeight::ALL.len());
    for weights in &batch.weights {
        means.push(Weights::new(weights)?);
    }
    let mut losses = PerHead::default();
    let mut policy_accuracy = None;
    for (head, output) in outputs.iter() {
        let Some(output) = output else { continue };
        let (spec, target) = (head.spec(), &batch.targets[head]);
        let weights = &means[spec.row_weight as usize];
        let rows = match spec.loss {
            HeadLoss::LegalCrossEntropy => {
                let illegal = batch.legal.f_logical_not()?;
                let logits = output.f_masked_fill(&illegal, ILLEGAL_LOGIT)?;
                policy_accuracy = Some(weights.mean(&is_right(&logits, target)?)?);
                cross_entropy(&logits, target)?
            }
            HeadLoss::CrossEntropy => cross_entropy(output, target)?,
            HeadLoss::BinaryCrossEntropy => binary_cross_entropy(output, target)?,
            HeadLoss::ClassCrossEntropy => {
                let probability =
                    output
                        .f_log_softmax(-1, None)?
                        .f_gather(1, &target.f_unsqueeze(1)?, false)?;
                probability.f_squeeze_dim(1)?.f_neg()?
            }
            HeadLoss::PieceCrossEntropy => {
                mean_over_pieces(output, target, &pieces(&batch.planes)?)?
            }
            HeadLoss::Huber { scale, delta } => {
                let scaled = |numbers: &Tensor| numbers.f_div_scalar(scale);
                scaled(output)?.f_huber_loss(&scaled(target)?, Reduction::None, delta / scale)?
            }
        };
        losses[head] = Some(weights.mean(&rows)?);
    }
    Ok(LossTensors {
        losses,
        policy_accuracy,
    })
}

/// The weights of a batch's rows.
struct Weights<'a> {
    of_rows: &'a Tensor,
    sum: Tensor,
}

impl<'a> Weights<'a> {
    /// Weights `[batch]`.
    fn new(of_rows: &'a Tensor) -> Result<Self, TchError> {
        let sum = of_rows.f_sum(None)?.f_clamp_min(MIN_WEIGHT)?;
        Ok(Self { of_rows, sum })
    }

    /// The mean of `[batch]` by these weights.
    fn mean(&self, losses: &Tensor) -> Result<Tensor, TchError> {
        losses.f_mul(self.of_rows)?.f_sum(None)?.f_div(&self.sum)
    }
}

/// Of logits and probabilities `[batch, entries]`: `[batch]`.
fn cross_entropy(logits: &Tensor, targets: &Tensor) -> Result<Tensor, TchError> {
    let terms = logits.f_log_softmax(-1, None)?.f_mul(targets)?;
    sum_of_rows(&terms)?.f_neg()
}

/// Of logits and probabilities of the same shape, element by element.
fn binary_cross_entropy(logits: &Tensor, targets: &Tensor) -> Result<Tensor, TchError> {
    logits.f_binary_cross_entropy_with_logits::<Tensor>(targets, None, None, Reduction::None)
}

/// 1 where a piece stands, else 0, by planes `[batch, CHANNELS, 8, 8]`: `[batch, 64]`.
fn pieces(planes: &Tensor) -> Result<Tensor, TchError> {
    let of_pieces = planes.f_narrow(1, plane::OWN as i64, PIECE_PLANES)?;
    let pieces = of_pieces.f_sum_dim_intlist([1i64].as_slice(), false, None)?;
    pieces.f_reshape([-1, 64])
}

/// The mean binary cross-entropy over each row's squares with pieces: `[batch]`.
fn mean_over_pieces(
    logits: &Tensor,
    targets: &Tensor,
    pieces: &Tensor,
) -> Result<Tensor, TchError> {
    let terms = binary_cross_entropy(logits, targets)?.f_mul(pieces)?;
    let count = sum_of_rows(pieces)?.f_clamp_min(1.0)?;
    sum_of_rows(&terms)?.f_div(&count)
}

fn sum_of_rows(numbers: &Tensor) -> Result<Tensor, TchError> {
    numbers.f_sum_dim_intlist([-1i64].as_slice(), false, None)
}

/// 1 / k where the largest logit's entry is one of the target's k largest, else 0: `[batch]`. Many equal entries are easy to hit.
fn is_right(logits: &Tensor, targets: &Tensor) -> Result<Tensor, TchError> {
    let likeliest = logits.f_detach()?.f_argmax(1, true)?;
    let target = targets.f_gather(1, &likeliest, false)?;
    let largest = targets.f_amax([1], true)?;
    let ties = targets.f_ge_tensor(&largest)?.f_to_kind(Kind::Float)?;
    let right = target.f_ge_tensor(&largest)?.f_to_kind(Kind::Float)?;
    right.f_squeeze_dim(1)?.f_div(&sum_of_rows(&ties)?)
}

impl LossTensors {
    /// The objective: the sum of the losses that were computed, each times its weight.
    pub(crate) fn total(&self, weights: &PerHead<f64>) -> Result<Tensor, TchError> {
        let mut total: Option<Tensor> = None;
        for (head, loss) in self.losses.iter() {
            let Some(loss) = loss else { continue };
            let weighted = loss.f_mul_scalar(weights[head])?;
            total = Some(match total {
                None => weighted,
                Some(total) => total.f_add(&weighted)?,
            });
        }
        total.map_or_else(|| zero(Device::Cpu), Ok)
    }

    /// All numbers side by side, 0 where they were not computed, so that they are read at once: `[STACKED]`, for [`from_stack`].
    pub(crate) fn stack(&self) -> Result<Tensor, TchError> {
        let _no_grad = no_grad_guard();
        let numbers = self.losses.iter().map(|(_, loss)| loss.as_ref());
        let numbers: Vec<_> = numbers.chain([self.policy_accuracy.as_ref()]).collect();
        let known = numbers.iter().find_map(|&number| number);
        let zero = zero(known.map_or(Device::Cpu, Tensor::device))?;
        let numbers = numbers.into_iter().map(|number| number.unwrap_or(&zero));
        let numbers: Vec<Tensor> = numbers.map(Tensor::shallow_clone).collect();
        Tensor::f_stack(&numbers, 0)
    }
}

fn zero(device: Device) -> Result<Tensor, TchError> {
    Tensor::f_zeros([0i64; 0], (Kind::Float, device))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use engine::config::{Config, LossWeight};
    use engine::encoding::{CHANNELS, POLICY_SIZE};

    /// Two rows. The first has three legal entries with logits 0, ln 2, ln 5 (probabilities 1/8, 2/8, 5/8) and targets 1/2, 1/2,
    /// 0; the second one legal entry. Illegal entries have large logits.
    pub(crate) fn example(
        weights: [f32; 2],
        value_weights: [f32; 2],
    ) -> (PerHead<Option<Tensor>>, BatchTensors) {
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
        // The first row's pieces stand on 3, 10 and 63, and the last of them will be captured; the second's on 5.
        let (mut pieces, mut captures, mut captures_logits) =
            ([0f32; 128], [0f32; 128], [9f32; 128]);
        for (square, will_be, logit) in [
            (3, 0.0, 0.0),
            (10, 0.0, -(3f32.ln())),
            (63, 1.0, 3f32.ln()),
            (64 + 5, 1.0, 0.0),
        ] {
            (pieces[square], captures[square], captures_logits[square]) = (1.0, will_be, logit);
        }
        let mut reply = [0f32; 2 * POLICY_SIZE];
        (reply[7], reply[9], reply[POLICY_SIZE]) = (0.25, 0.75, 1.0);
        let mut reply_logits = [0f32; 2 * POLICY_SIZE];
        reply_logits[9] = 320f32.ln();
        let tensor = |numbers: &[f32]| Tensor::from_slice(numbers);
        let table = |numbers: &[f32]| tensor(numbers).view([2, POLICY_SIZE as i64]);
        let planes = Tensor::zeros([2, CHANNELS as i64, 8, 8], (Kind::Float, Device::Cpu));
        let rabbits = planes.narrow(1, plane::ENEMY as i64, 1);
        rabbits
            .shallow_clone()
            .copy_(&tensor(&pieces).view([2, 1, 8, 8]));
        let logits_and_targets = |head| match head {
            Head::Policy => (table(&logits).set_requires_grad(true), table(&policy)),
            // Win probabilities 3/4 and 1/5.
            Head::Value => (tensor(&[3f32.ln(), -(4f32.ln())]), tensor(&[1.0, 0.25])),
            Head::TurnsLeft => (tensor(&[14.0, 90.0]), tensor(&[10.0, 30.0])),
            // The first row's probabilities are 1/8 for all but the last, which has 3/8.
            Head::Ending => {
                let first = [0.0, 0.0, 0.0, 0.0, 0.0, 3f32.ln()];
                let logits = tensor(&[first, [7.0; 6]].concat()).view([2, 6]);
                (logits, Tensor::from_slice(&[5i64, 2]))
            }
            Head::Captures => (
                tensor(&captures_logits).view([2, 64]),
                tensor(&captures).view([2, 64]),
            ),
            Head::Reply => (table(&reply_logits), table(&reply)),
        };
        let outputs = PerHead::from_fn(|head| Some(logits_and_targets(head).0));
        let batch = BatchTensors {
            planes,
            legal: Tensor::from_slice(&legal).view([2, POLICY_SIZE as i64]),
            targets: PerHead::from_fn(|head| logits_and_targets(head).1),
            weights: RowWeight::ALL.map(|of| match of {
                RowWeight::Policy | RowWeight::Reply => tensor(&weights),
                RowWeight::Value | RowWeight::Outcome => tensor(&value_weights),
            }),
        };
        (outputs, batch)
    }

    /// The losses and the policy's accuracy as numbers.
    pub(crate) fn numbers(tensors: &LossTensors) -> (PerHead<f64>, f64) {
        let numbers: Vec<f32> = tensors.stack().unwrap().try_into().unwrap();
        from_stack(numbers.try_into().unwrap())
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-5, "{found} is not {expected}");
    }

    #[test]
    fn the_losses_are_those_of_the_formulas() {
        let (outputs, batch) = example([1.0, 3.0], [1.0, 0.5]);
        let tensors = losses(&outputs, &batch).unwrap();
        let (numbers, accuracy) = numbers(&tensors);
        // -(ln(1/8) + ln(2/8)) / 2 = (5 ln 2) / 2; the row with one entry costs nothing.
        let first = 2.5 * 2f64.ln();
        close(numbers[Head::Policy], first / 4.0);
        let won = -(0.75f64.ln());
        let mixed = -(0.25 * 0.2f64.ln() + 0.75 * 0.8f64.ln());
        close(numbers[Head::Value], (won + 0.5 * mixed) / 1.5);
        // An error of 4 turns of 20 is squared, one of 60 isn't: 1/2 (3 - 1/4).
        close(numbers[Head::TurnsLeft], (0.5 * 0.04 + 0.5 * 1.375) / 1.5);
        let (first, second) = ((8f64 / 3.0).ln(), 6f64.ln());
        close(numbers[Head::Ending], (first + 0.5 * second) / 1.5);
        let first = (2f64.ln() + 2.0 * (4f64 / 3.0).ln()) / 3.0;
        close(numbers[Head::Captures], (first + 0.5 * 2f64.ln()) / 1.5);
        // Of 640 parts the entry 9 has 320.
        let first = 0.25 * 640f64.ln() + 0.75 * 2f64.ln();
        close(numbers[Head::Reply], (first + 3.0 * 321f64.ln()) / 4.0);
        // The first row's likeliest entry is not among its target's largest; the second row has but one.
        close(accuracy, 0.75);
    }

    #[test]
    fn the_objective_is_the_sum_of_the_weighted_losses() {
        let (mut outputs, batch) = example([1.0, 3.0], [1.0, 0.5]);
        let weights = PerHead::from_fn(|head| 0.5 + 2.0 * head as usize as f64);
        let check = |outputs: &PerHead<Option<Tensor>>| {
            let tensors = losses(outputs, &batch).unwrap();
            let (numbers, _) = numbers(&tensors);
            let products = numbers.zip(&weights, |loss, weight| loss * weight);
            let expected = products.iter().map(|(_, product)| product).sum();
            close(tensors.total(&weights).unwrap().double_value(&[]), expected);
            numbers
        };
        let mut fewer = check(&outputs);
        for head in [Head::Ending, Head::Reply] {
            (outputs[head], fewer[head]) = (None, 0.0);
        }
        assert_eq!(check(&outputs), fewer);
    }

    #[test]
    fn a_tie_in_the_target_is_shared() {
        let right = |logits: [f32; 3]| {
            let targets = Tensor::from_slice(&[0.4f32, 0.2, 0.4]).view([1, 3]);
            let logits = Tensor::from_slice(&logits).view([1, 3]);
            is_right(&logits, &targets).unwrap().double_value(&[0])
        };
        assert_eq!(
            [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]].map(right),
            [0.5, 0.0, 0.5]
        );
    }

    #[test]
    fn every_head_but_the_policy_has_a_weight_in_the_configuration() {
        let heads = Config::default().train.heads;
        let names = Head::ALL.map(Head::name).into_iter().skip(1);
        assert!(heads.keys().map(String::as_str).is_sorted());
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        assert!(heads.keys().eq(names), "{heads:?}");
    }

    #[test]
    fn heads_of_weight_0_are_not_computed() {
        let mut config = Config::default().train;
        for (name, weight) in [
            ("value", 0.0),
            ("turns_left", 0.0),
            ("ending", 0.1),
            ("captures", 2.0),
            ("reply", 0.0),
        ] {
            config.heads.insert(name.into(), LossWeight(weight));
        }
        let weights = loss_weights(&config);
        let expected = [
            (Head::Policy, 1.0, true),
            (Head::Value, 0.0, true),
            (Head::TurnsLeft, 0.0, false),
            (Head::Ending, 0.1, true),
            (Head::Captures, 2.0, true),
            (Head::Reply, 0.0, false),
        ];
        let ones = only(&PerHead::from_fn(|_| 1.0), &enabled(&weights));
        for (head, weight, computed) in expected {
            assert_eq!(weights[head], weight);
            assert_eq!(enabled(&weights)[head], computed);
            assert_eq!(ones[head], f64::from(u8::from(computed)));
        }
    }

    #[test]
    fn the_gradient_is_prediction_less_target_and_none_where_illegal() {
        let (outputs, batch) = example([1.0, 3.0], [1.0, 1.0]);
        let tensors = losses(&outputs, &batch).unwrap();
        tensors.losses[Head::Policy].as_ref().unwrap().backward();
        let gradient = outputs[Head::Policy].as_ref().unwrap().grad();
        let gradient = Vec::<f32>::try_from(gradient.view([-1])).unwrap();
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
        let both = |policy, value| {
            let mut numbers = PerHead::default();
            (numbers[Head::Policy], numbers[Head::Value]) = (policy, value);
            numbers
        };
        let means = |sums: &LossSums| (sums.mean(Head::Policy), sums.mean(Head::Value));
        let mut sums = LossSums::default();
        assert_eq!(means(&sums), (None, None));
        sums.add(&both(3.0, 0.0), &both(1.0, 0.0));
        assert_eq!(means(&sums), (Some(3.0), None));
        let mut others = LossSums::default();
        others.add(&both(5.0, 0.5), &both(3.0, 2.0));
        sums.append(&others);
        assert_eq!(means(&sums), (Some(4.5), Some(0.5)));
        assert_eq!(
            (in_digits(Some(4.5), 2), in_digits(None, 2)),
            ("4.50".into(), "-".into())
        );
    }

    #[test]
    fn rows_without_weight_cost_nothing() {
        let (outputs, batch) = example([0.0, 0.0], [0.0, 0.0]);
        let (numbers, _) = numbers(&losses(&outputs, &batch).unwrap());
        assert_eq!(numbers, PerHead::default());
    }
}
