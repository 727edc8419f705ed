//! From a network to the form of it that plays on a device: folded, cast, and held against the network itself.

use super::body::{Body, Outputs};
use super::layers::{Folded, Mode};
use super::positions::real_positions;
use super::{Device, Network, NetworkError, Precision, unpack_rows};
use crate::encoding::{LegalMask, POLICY_SIZE, encode};
use crate::search::Query;
use std::rc::Rc;
use tch::{TchError, Tensor, no_grad_guard};

/// On how many positions the forms are compared on a processor: enough to meet every kind of state, and soon done ...
const POSITIONS_ON_CPU: usize = 64;

/// ... and on a GPU, which is fast.
const POSITIONS_ON_CUDA: usize = 1_000;

/// How far a network's fast form is from the network itself, in fp32 with its norms unfolded.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Accuracy {
    /// The largest difference of two win probabilities.
    pub value_error: f64,
    /// The mean Kullback-Leibler divergence of the policies over the legal actions, from the reference, in nats.
    pub divergence: f64,
}

impl Accuracy {
    /// The largest drift that a precision may bring.
    pub fn bound(precision: Precision) -> Self {
        match precision {
            Precision::Auto | Precision::Fp32 => Self {
                value_error: 1e-3,
                divergence: 1e-5,
            },
            Precision::Bf16 | Precision::Fp16 => Self {
                value_error: 0.02,
                divergence: 0.01,
            },
        }
    }
}

/// A network that is ready to play on a device.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) name: String,
    pub(super) body: Body<Folded>,
    pub(super) on: Device,
    pub(super) device: tch::Device,
    /// Never [`Precision::Auto`].
    pub(super) precision: Precision,
    pub(super) accuracy: Accuracy,
    /// What was decided on the way, for people to read.
    pub(super) notes: Vec<String>,
    check: Rc<Check>,
}

/// What the network itself says of the checked positions.
#[derive(Debug)]
struct Check {
    /// `[positions, CHANNELS, 8, 8]`, float.
    planes: Tensor,
    queries: Vec<Query>,
    masks: Vec<LegalMask>,
    reference: Answers,
}

#[derive(Debug)]
struct Answers {
    /// `[positions, 321]`.
    policy: Vec<f32>,
    /// `[positions]`.
    value_logits: Vec<f32>,
}

impl Prepared {
    /// Tries the choices of a precision on a device, the best first. One whose numbers drift too far, or are none, is an error;
    /// where there is another choice, a note.
    pub(super) fn new(
        network: &Network,
        device: Device,
        precision: Precision,
        name: String,
    ) -> Result<Self, NetworkError> {
        Self::try_choices(network, device, precision.choices(device)?, name)
    }

    pub(super) fn try_choices(
        network: &Network,
        on: Device,
        choices: &[Precision],
        name: String,
    ) -> Result<Self, NetworkError> {
        let device = on.open()?;
        let _no_grad = no_grad_guard();
        let network = network.to_device(device)?;
        let check = Rc::new(Check::new(&network, on, device, &name)?);
        let mut notes = Vec::new();
        for (index, &precision) in choices.iter().enumerate() {
            let mut prepared = Self {
                body: network.body.fold(precision.kind())?,
                accuracy: Accuracy::default(),
                check: check.clone(),
                name: name.clone(),
                notes: Vec::new(),
                on,
                device,
                precision,
            };
            match (prepared.check(), choices.get(index + 1)) {
                (Ok(accuracy), _) => {
                    prepared.accuracy = accuracy;
                    prepared.notes = notes;
                    return Ok(prepared);
                }
                // A device may also be unable to compute it at all.
                (Err(error), Some(next)) => {
                    notes.push(format!("{error}; it is computed in {next} instead"));
                }
                (Err(error), None) => return Err(error),
            }
        }
        Err(NetworkError::Torch(format!(
            "there is no precision to compute in on {on}"
        )))
    }

    /// Compares the body as it stands with the reference.
    pub(super) fn check(&self) -> Result<Accuracy, NetworkError> {
        let _no_grad = no_grad_guard();
        let planes = self.check.planes.f_to_kind(self.precision.kind())?;
        let answers = Answers::new(self.body.forward(&planes, Mode::Evaluation)?)?;
        if !answers.are_finite() {
            return Err(NetworkError::NotFinite {
                network: self.name.clone(),
                precision: self.precision,
                device: self.on,
                place: place(self.body.not_finite(&planes)?),
            });
        }
        self.judge(&answers)
    }

    /// The positions on which it is compared.
    pub(super) fn checked_queries(&self) -> &[Query] {
        &self.check.queries
    }

    /// Compares what came of the first checked positions on another way: each one's `policy`, as logits or logarithms of
    /// probabilities (`[positions, 321]`), and the logits of the values (`[positions]`).
    pub(super) fn check_answers(
        &self,
        policy: Vec<f32>,
        value_logits: Vec<f32>,
    ) -> Result<Accuracy, NetworkError> {
        self.judge(&Answers {
            policy,
            value_logits,
        })
    }

    fn judge(&self, answers: &Answers) -> Result<Accuracy, NetworkError> {
        let accuracy = self.check.compare(answers);
        let bound = Accuracy::bound(self.precision);
        // A number that is none is within no bound.
        let is_close =
            accuracy.value_error <= bound.value_error && accuracy.divergence <= bound.divergence;
        if !is_close {
            return Err(NetworkError::Drift {
                network: self.name.clone(),
                precision: self.precision,
                device: self.on,
                value_error: accuracy.value_error,
                value_bound: bound.value_error,
                divergence: accuracy.divergence,
                divergence_bound: bound.divergence,
            });
        }
        Ok(accuracy)
    }
}

/// What to call the layer or head at fault; where numbers were infinite but once, nobody knows.
fn place(found: Option<String>) -> String {
    found.unwrap_or_else(|| "something".into())
}

impl Check {
    fn new(
        network: &Network,
        on: Device,
        device: tch::Device,
        name: &str,
    ) -> Result<Self, NetworkError> {
        let queries = real_positions(match on {
            Device::Cpu => POSITIONS_ON_CPU,
            Device::Cuda(_) => POSITIONS_ON_CUDA,
        })?;
        let rows: Vec<_> = queries
            .iter()
            .map(|query| encode(&query.state, query.repetitions))
            .collect();
        let planes = unpack_rows(&rows, device)?;
        let reference = Answers::new(network.forward_eval(&planes)?)?;
        if !reference.are_finite() {
            return Err(NetworkError::NotFinite {
                network: name.to_owned(),
                precision: Precision::Fp32,
                device: on,
                place: place(network.body.not_finite(&planes)?),
            });
        }
        let masks = queries
            .iter()
            .map(|query| LegalMask::new(&query.legal, query.side()));
        Ok(Self {
            planes,
            masks: masks.collect(),
            queries,
            reference,
        })
    }

    /// Compares as many positions as were answered.
    fn compare(&self, answers: &Answers) -> Accuracy {
        let count = answers.value_logits.len();
        let values = self
            .reference
            .value_logits
            .iter()
            .zip(&answers.value_logits);
        let errors = values.map(|(&one, &other)| (probability(one) - probability(other)).abs());
        let policies = |answers: &Answers, row: usize| {
            let logits = &answers.policy[row * POLICY_SIZE..][..POLICY_SIZE];
            log_softmax(logits, &self.masks[row])
        };
        let divergences = (0..count).map(|row| {
            let expected = policies(&self.reference, row);
            let terms = expected.iter().zip(policies(answers, row));
            terms.map(|(p, q)| p.exp() * (p - q)).sum::<f64>()
        });
        Accuracy {
            // Unlike the floats' own maximum this one is not a number where one error is none.
            value_error: errors.fold(0.0, |most: f64, error| {
                if most.is_nan() || error <= most {
                    most
                } else {
                    error
                }
            }),
            divergence: divergences.sum::<f64>() / count as f64,
        }
    }
}

impl Answers {
    fn new(outputs: Outputs) -> Result<Self, TchError> {
        Ok(Self {
            policy: numbers(&outputs.policy)?,
            value_logits: numbers(&outputs.value_logit)?,
        })
    }

    fn are_finite(&self) -> bool {
        let mut all = self.policy.iter().chain(&self.value_logits);
        all.all(|number| number.is_finite())
    }
}

fn numbers(tensor: &Tensor) -> Result<Vec<f32>, TchError> {
    let mut numbers = vec![0.0; tensor.numel()];
    let count = numbers.len();
    tensor.f_copy_data(&mut numbers, count)?;
    Ok(numbers)
}

fn probability(logit: f32) -> f64 {
    1.0 / (1.0 + (-f64::from(logit)).exp())
}

/// The logarithms of the legal actions' probabilities.
fn log_softmax(logits: &[f32], mask: &LegalMask) -> Vec<f64> {
    let legal: Vec<f64> = mask.indices().map(|index| logits[index].into()).collect();
    let highest = legal.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = legal.iter().map(|logit| (logit - highest).exp()).sum();
    let shift = highest + sum.ln();
    legal.iter().map(|logit| logit - shift).collect()
}
