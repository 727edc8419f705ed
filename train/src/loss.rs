//! The losses: what a network's outputs cost against a batch's targets.

use crate::data::BatchTensors;
use engine::config::TrainConfig;
use network::{Heads, TrainingOutputs};
use serde::{Deserialize, Serialize};
use tch::{Kind, Reduction, TchError, Tensor, no_grad_guard};

/// The logit that illegal entries get: far enough from any other that nothing is left of it, and finite, so that nothing times
/// it stays nothing.
const ILLEGAL_LOGIT: f64 = -1e9;

/// A sum of weights is not taken for less than this: a batch whose rows all weigh nothing costs nothing.
const LEAST_WEIGHT: f64 = 1e-6;

/// The turns that count as 1 in the loss of the turns left ...
const TURNS_SCALE: f64 = 20.0;

/// ... and those from which on an error is taken as it is, and not squared. Both are Leela Chess Zero's for its moves left
/// (lczero-training, `moves_left_loss`).
const TURNS_DELTA: f64 = 10.0;

/// The numbers of [`LossTensors::stack`].
pub(crate) const STACKED: usize = 7;

/// The losses of a batch as tensors without dimensions; those of helper heads that were not computed are left out.
#[derive(Debug)]
pub(crate) struct LossTensors {
    /// The policy's cross-entropy over the legal entries: the mean by [`BatchTensors::weight`].
    policy: Tensor,
    /// The value's binary cross-entropy: the mean by [`BatchTensors::value_weight`].
    value: Tensor,
    /// The Huber loss of the turns left, in units of [`TURNS_SCALE`]: the mean by [`BatchTensors::outcome_weight`].
    turns_left: Option<Tensor>,
    /// The ending's cross-entropy: likewise.
    ending: Option<Tensor>,
    /// The binary cross-entropy of whether a piece will be taken, meaned over the squares with pieces: likewise.
    taken: Option<Tensor>,
    /// The reply's cross-entropy over all entries: the mean by [`BatchTensors::reply_weight`].
    reply: Option<Tensor>,
    /// The share of the rows, by [`BatchTensors::weight`], whose likeliest legal entry is the target's largest, or one of them.
    policy_accuracy: Tensor,
}

/// A number for each loss: the losses themselves, in nats a row (that of the turns left is a Huber loss), or their weights.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Losses {
    /// Of the policy.
    pub(crate) policy: f64,
    /// Of the value; by its weights a turn counts once.
    pub(crate) value: f64,
    /// Of the turns left.
    pub(crate) turns_left: f64,
    /// Of how the game ends.
    pub(crate) ending: f64,
    /// Of which pieces will be taken.
    pub(crate) taken: f64,
    /// Of the opponent's reply.
    pub(crate) reply: f64,
}

/// What mean losses over many rows are made of.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct LossSums {
    /// The losses of batches, each times the batch's weights.
    losses: Losses,
    /// The weights.
    weights: Losses,
}

impl Losses {
    /// What each loss counts in what is made small: the policy 1, the others as the configuration says.
    pub(crate) fn weights_of(config: &TrainConfig) -> Self {
        Self {
            policy: 1.0,
            value: config.heads.value,
            turns_left: config.heads.turns_left,
            ending: config.heads.ending,
            taken: config.heads.captures,
            reply: config.heads.reply,
        }
    }

    /// The helper heads whose weights are not 0.
    pub(crate) fn heads(&self) -> Heads {
        Heads {
            turns_left: self.turns_left > 0.0,
            ending: self.ending > 0.0,
            taken: self.taken > 0.0,
            reply: self.reply > 0.0,
        }
    }

    /// The same numbers, and 0 for helper heads that are not among these.
    pub(crate) fn only(self, heads: Heads) -> Self {
        let of = |computed, number| if computed { number } else { 0.0 };
        Self {
            turns_left: of(heads.turns_left, self.turns_left),
            ending: of(heads.ending, self.ending),
            taken: of(heads.taken, self.taken),
            reply: of(heads.reply, self.reply),
            ..self
        }
    }

    /// The losses, and the policy's accuracy, 0 to 1, that [`LossTensors::stack`] has put side by side.
    pub(crate) fn from_stack(numbers: [f32; STACKED]) -> (Self, f64) {
        let [policy, value, turns_left, ending, taken, reply, accuracy] = numbers.map(f64::from);
        let losses = Self {
            policy,
            value,
            turns_left,
            ending,
            taken,
            reply,
        };
        (losses, accuracy)
    }

    /// A number for each loss from those of both.
    pub(crate) fn zip(self, other: Self, number: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            policy: number(self.policy, other.policy),
            value: number(self.value, other.value),
            turns_left: number(self.turns_left, other.turns_left),
            ending: number(self.ending, other.ending),
            taken: number(self.taken, other.taken),
            reply: number(self.reply, other.reply),
        }
    }

    /// The numbers with what a person calls the losses.
    pub(crate) fn named(&self) -> [(&'static str, f64); 6] {
        [
            ("policy loss", self.policy),
            ("value loss", self.value),
            ("turns left's loss", self.turns_left),
            ("ending's loss", self.ending),
            ("taken pieces' loss", self.taken),
            ("reply's loss", self.reply),
        ]
    }
}

impl LossSums {
    /// Adds a batch's mean losses, with the sums of its weights.
    pub(crate) fn add(&mut self, losses: Losses, weights: Losses) {
        self.append(Self {
            losses: losses.zip(weights, |loss, weight| loss * weight),
            weights,
        });
    }

    /// Adds what others have added up.
    pub(crate) fn append(&mut self, other: Self) {
        self.losses = self.losses.zip(other.losses, |a, b| a + b);
        self.weights = self.weights.zip(other.weights, |a, b| a + b);
    }

    /// The policy's mean loss; none where nothing weighs anything.
    pub(crate) fn policy(&self) -> Option<f64> {
        self.mean(|losses| losses.policy)
    }

    /// The value's mean loss; none where no game has a result.
    pub(crate) fn value(&self) -> Option<f64> {
        self.mean(|losses| losses.value)
    }

    /// The mean loss of the turns left; none where no game was won on the board, or the head was not computed.
    pub(crate) fn turns_left(&self) -> Option<f64> {
        self.mean(|losses| losses.turns_left)
    }

    /// The ending's mean loss; likewise.
    pub(crate) fn ending(&self) -> Option<f64> {
        self.mean(|losses| losses.ending)
    }

    /// The taken pieces' mean loss; likewise.
    pub(crate) fn taken(&self) -> Option<f64> {
        self.mean(|losses| losses.taken)
    }

    /// The reply's mean loss; none where no row has a reply, or the head was not computed.
    pub(crate) fn reply(&self) -> Option<f64> {
        self.mean(|losses| losses.reply)
    }

    fn mean(&self, of: fn(&Losses) -> f64) -> Option<f64> {
        let weight = of(&self.weights);
        (weight > 0.0).then(|| of(&self.losses) / weight)
    }
}

/// A loss with so many digits, or a dash for none.
pub(crate) fn in_digits(loss: Option<f64>, digits: usize) -> String {
    loss.map_or_else(|| "-".into(), |loss| format!("{loss:.digits$}"))
}

/// The losses of a network's outputs.
pub(crate) fn losses(
    outputs: &TrainingOutputs,
    batch: &BatchTensors,
) -> Result<LossTensors, TchError> {
    let illegal = batch.legal.f_logical_not()?;
    let logits = outputs.policy.f_masked_fill(&illegal, ILLEGAL_LOGIT)?;
    let policy = cross_entropy(&logits, &batch.policy)?;
    let value = binary_cross_entropy(&outputs.value_logit, &batch.value)?;
    let helper = |output: &Option<Tensor>,
                  loss: &dyn Fn(&Tensor) -> Result<Tensor, TchError>,
                  weights: &Weights| match output {
        Some(output) => weights.mean(&loss(output)?).map(Some),
        None => Ok(None),
    };
    let turns_left = |turns: &Tensor| huber(turns, &batch.turns_left);
    let ending = |logits: &Tensor| {
        let ending = batch.ending.f_unsqueeze(1)?;
        let probability = logits
            .f_log_softmax(-1, None)?
            .f_gather(1, &ending, false)?;
        probability.f_squeeze_dim(1)?.f_neg()
    };
    let taken = |logits: &Tensor| mean_over_pieces(logits, batch);
    let reply = |logits: &Tensor| cross_entropy(logits, &batch.reply);
    let (weight, outcome) = (
        &Weights::new(&batch.weight)?,
        &Weights::new(&batch.outcome_weight)?,
    );
    Ok(LossTensors {
        policy: weight.mean(&policy)?,
        value: Weights::new(&batch.value_weight)?.mean(&value)?,
        turns_left: helper(&outputs.turns_left, &turns_left, outcome)?,
        ending: helper(&outputs.ending, &ending, outcome)?,
        taken: helper(&outputs.taken, &taken, outcome)?,
        reply: helper(&outputs.reply, &reply, &Weights::new(&batch.reply_weight)?)?,
        policy_accuracy: weight.mean(&is_right(&logits, &batch.policy)?)?,
    })
}

/// What the rows of a batch weigh.
struct Weights<'a> {
    of_rows: &'a Tensor,
    sum: Tensor,
}

impl<'a> Weights<'a> {
    /// Weights `[batch]`.
    fn new(of_rows: &'a Tensor) -> Result<Self, TchError> {
        let sum = of_rows.f_sum(None)?.f_clamp_min(LEAST_WEIGHT)?;
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

/// Of turns and turns, element by element.
fn huber(turns: &Tensor, targets: &Tensor) -> Result<Tensor, TchError> {
    let scaled = |turns: &Tensor| turns.f_div_scalar(TURNS_SCALE);
    scaled(turns)?.f_huber_loss(
        &scaled(targets)?,
        Reduction::None,
        TURNS_DELTA / TURNS_SCALE,
    )
}

/// The mean binary cross-entropy over each row's squares with pieces: `[batch]`.
fn mean_over_pieces(logits: &Tensor, batch: &BatchTensors) -> Result<Tensor, TchError> {
    let terms = binary_cross_entropy(logits, &batch.taken)?.f_mul(&batch.pieces)?;
    let pieces = sum_of_rows(&batch.pieces)?.f_clamp_min(1.0)?;
    sum_of_rows(&terms)?.f_div(&pieces)
}

fn sum_of_rows(numbers: &Tensor) -> Result<Tensor, TchError> {
    numbers.f_sum_dim_intlist([-1i64].as_slice(), false, None)
}

/// 1 / k where the largest logit's entry is one of the target's k largest, else 0: `[batch]`. Where many entries are equal there is
/// little to be right about.
fn is_right(logits: &Tensor, targets: &Tensor) -> Result<Tensor, TchError> {
    let likeliest = logits.f_detach()?.f_argmax(1, true)?;
    let target = targets.f_gather(1, &likeliest, false)?;
    let largest = targets.f_amax([1], true)?;
    let ties = targets.f_ge_tensor(&largest)?.f_to_kind(Kind::Float)?;
    let right = target.f_ge_tensor(&largest)?.f_to_kind(Kind::Float)?;
    right.f_squeeze_dim(1)?.f_div(&sum_of_rows(&ties)?)
}

impl LossTensors {
    /// What is made small: all losses that there are, each times its weight.
    pub(crate) fn total(&self, weights: Losses) -> Result<Tensor, TchError> {
        let mut total = self.policy.f_mul_scalar(weights.policy)?;
        for (loss, weight) in [
            (Some(&self.value), weights.value),
            (self.turns_left.as_ref(), weights.turns_left),
            (self.ending.as_ref(), weights.ending),
            (self.taken.as_ref(), weights.taken),
            (self.reply.as_ref(), weights.reply),
        ] {
            if let Some(loss) = loss {
                total = total.f_add(&loss.f_mul_scalar(weight)?)?;
            }
        }
        Ok(total)
    }

    /// All numbers side by side, those of the losses 0 where they were not computed, so that they are read at once:
    /// `[STACKED]`, for [`Losses::from_stack`].
    pub(crate) fn stack(&self) -> Result<Tensor, TchError> {
        let _no_grad = no_grad_guard();
        let zero = self.policy.f_zeros_like()?;
        let or_zero = |loss: &'_ Option<Tensor>| loss.as_ref().unwrap_or(&zero).shallow_clone();
        let numbers = [
            self.policy.shallow_clone(),
            self.value.shallow_clone(),
            or_zero(&self.turns_left),
            or_zero(&self.ending),
            or_zero(&self.taken),
            or_zero(&self.reply),
            self.policy_accuracy.shallow_clone(),
        ];
        Tensor::f_stack(&numbers, 0)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use engine::config::{Config, HeadWeights};
    use engine::encoding::POLICY_SIZE;
    use tch::{Device, Kind};

    /// Two rows. The first has three legal entries with logits 0, ln 2, ln 5 (probabilities 1/8, 2/8, 5/8) and targets 1/2, 1/2,
    /// 0; the second one legal entry. Illegal entries have large logits.
    pub(crate) fn example(
        weights: [f32; 2],
        value_weights: [f32; 2],
    ) -> (TrainingOutputs, BatchTensors) {
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
        // The first row's pieces stand on 3, 10 and 63, and the last of them will be taken; the second's on 5.
        let (mut pieces, mut taken, mut taken_logits) = ([0f32; 128], [0f32; 128], [9f32; 128]);
        for (square, will_be, logit) in [
            (3, 0.0, 0.0),
            (10, 0.0, -(3f32.ln())),
            (63, 1.0, 3f32.ln()),
            (64 + 5, 1.0, 0.0),
        ] {
            (pieces[square], taken[square], taken_logits[square]) = (1.0, will_be, logit);
        }
        let mut reply = [0f32; 2 * POLICY_SIZE];
        (reply[7], reply[9], reply[POLICY_SIZE]) = (0.25, 0.75, 1.0);
        let mut reply_logits = [0f32; 2 * POLICY_SIZE];
        reply_logits[9] = 320f32.ln();
        let tensor = |numbers: &[f32]| Tensor::from_slice(numbers);
        let table = |numbers: &[f32]| tensor(numbers).view([2, POLICY_SIZE as i64]);
        let outputs = TrainingOutputs {
            policy: table(&logits).set_requires_grad(true),
            // Win probabilities 3/4 and 1/5.
            value_logit: tensor(&[3f32.ln(), -(4f32.ln())]),
            turns_left: Some(tensor(&[14.0, 90.0])),
            // The first row's probabilities are 1/8 for all but the last, which has 3/8.
            ending: Some(
                tensor(&[
                    0.0,
                    0.0,
                    0.0,
                    0.0,
                    0.0,
                    3f32.ln(),
                    7.0,
                    7.0,
                    7.0,
                    7.0,
                    7.0,
                    7.0,
                ])
                .view([2, 6]),
            ),
            taken: Some(tensor(&taken_logits).view([2, 64])),
            reply: Some(table(&reply_logits)),
        };
        let batch = BatchTensors {
            planes: Tensor::zeros([2, 1], (Kind::Float, Device::Cpu)),
            legal: Tensor::from_slice(&legal).view([2, POLICY_SIZE as i64]),
            policy: table(&policy),
            weight: tensor(&weights),
            value: tensor(&[1.0, 0.25]),
            value_weight: tensor(&value_weights),
            turns_left: tensor(&[10.0, 30.0]),
            ending: Tensor::from_slice(&[5i64, 2]),
            pieces: tensor(&pieces).view([2, 64]),
            taken: tensor(&taken).view([2, 64]),
            outcome_weight: tensor(&value_weights),
            reply: table(&reply),
            reply_weight: tensor(&weights),
        };
        (outputs, batch)
    }

    /// The losses and the policy's accuracy as numbers.
    pub(crate) fn numbers(tensors: &LossTensors) -> (Losses, f64) {
        let numbers: Vec<f32> = tensors.stack().unwrap().try_into().unwrap();
        Losses::from_stack(numbers.try_into().unwrap())
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
        close(numbers.policy, first / 4.0);
        let won = -(0.75f64.ln());
        let mixed = -(0.25 * 0.2f64.ln() + 0.75 * 0.8f64.ln());
        close(numbers.value, (won + 0.5 * mixed) / 1.5);
        // An error of 4 turns of 20 is squared, one of 60 isn't: 1/2 (3 - 1/4).
        close(numbers.turns_left, (0.5 * 0.04 + 0.5 * 1.375) / 1.5);
        let (first, second) = ((8f64 / 3.0).ln(), 6f64.ln());
        close(numbers.ending, (first + 0.5 * second) / 1.5);
        let first = (2f64.ln() + 2.0 * (4f64 / 3.0).ln()) / 3.0;
        close(numbers.taken, (first + 0.5 * 2f64.ln()) / 1.5);
        // Of 640 parts the entry 9 has 320.
        let first = 0.25 * 640f64.ln() + 0.75 * 2f64.ln();
        close(numbers.reply, (first + 3.0 * 321f64.ln()) / 4.0);
        // The first row's likeliest entry is not among its target's largest; the second row has but one.
        close(accuracy, 0.75);
    }

    #[test]
    fn what_is_made_small_is_the_sum_of_the_weighted_losses() {
        let (mut outputs, batch) = example([1.0, 3.0], [1.0, 0.5]);
        let weights = Losses {
            policy: 0.5,
            value: 2.0,
            turns_left: 3.0,
            ending: 5.0,
            taken: 7.0,
            reply: 11.0,
        };
        let check = |outputs: &TrainingOutputs| {
            let tensors = losses(outputs, &batch).unwrap();
            let (numbers, _) = numbers(&tensors);
            let products = numbers.zip(weights, |loss, weight| loss * weight);
            let expected = products.named().map(|(_, product)| product).iter().sum();
            close(tensors.total(weights).unwrap().double_value(&[]), expected);
            numbers
        };
        let all = check(&outputs);
        (outputs.ending, outputs.reply) = (None, None);
        let fewer = Losses {
            ending: 0.0,
            reply: 0.0,
            ..all
        };
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
    fn heads_of_no_weight_are_not_computed() {
        let mut config = Config::default().train;
        config.heads = HeadWeights {
            value: 1.0,
            turns_left: 0.0,
            reply: 0.0,
            ending: 0.1,
            captures: 2.0,
        };
        let weights = Losses::weights_of(&config);
        let heads = Heads {
            turns_left: false,
            ending: true,
            taken: true,
            reply: false,
        };
        assert_eq!(weights.heads(), heads);
        assert_eq!(
            (weights.policy, weights.ending, weights.taken),
            (1.0, 0.1, 2.0)
        );
        let ones = Losses::default().zip(weights, |_, _| 1.0).only(heads);
        let sum: f64 = ones.named().iter().map(|(_, number)| number).sum();
        assert_eq!((sum, ones.taken, ones.reply), (4.0, 1.0, 0.0));
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
        let losses = |policy, value| Losses {
            policy,
            value,
            ..Losses::default()
        };
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
        let (numbers, _) = numbers(&losses(&outputs, &batch).unwrap());
        assert_eq!(numbers, Losses::default());
    }
}
