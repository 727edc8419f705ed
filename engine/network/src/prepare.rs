//! From a network to the form of it that plays on a device: folded, cast, and compared with the network itself.

use crate::batch::unpack_rows;
use crate::device::Device;
use crate::error::{NetworkError, catch_torch_panics};
use crate::inference::{ANSWER_FLOATS, InferenceLayers, answer_index};
use crate::model::Network;
use crate::positions::real_positions;
use crate::precision;
use engine::config::Precision;
use engine::encoding::{LegalMask, POLICY_SIZE, encode};
use engine::search::Query;
use std::sync::Arc;
use tch::{TchError, Tensor, no_grad_guard};

/// Positions on which the forms are compared on a CPU: enough to meet every kind of state, and soon done.
const POSITIONS_ON_CPU: usize = 64;

/// Positions on which the forms are compared on a GPU.
const POSITIONS_ON_CUDA: usize = 1_024;

/// Positions that are evaluated together: a size of batches that a GPU is planned for in any case.
const ROWS: usize = 256;

/// How far a network's fast form is from the network itself, in fp32 with its norms unfolded.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Drift {
    /// The root of the mean square of the win probabilities' differences.
    pub value_error: f64,
    /// The mean Kullback-Leibler divergence of the policies over the legal actions, from the reference, in nats.
    pub divergence: f64,
}

impl Drift {
    /// The largest drift that a precision may bring. What such drifts cost in play was measured: `engine/network/trained/first/README.md`.
    pub fn bound(precision: Precision) -> Self {
        match precision {
            Precision::Auto | Precision::Fp32 => Self {
                value_error: 1e-3,
                divergence: 1e-5,
            },
            Precision::Bf16 | Precision::Fp16 => Self {
                value_error: 0.01,
                divergence: 0.01,
            },
        }
    }
}

/// A network that is ready to play on a device.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) body: InferenceLayers,
    /// Never [`Precision::Auto`].
    pub(super) precision: Precision,
    pub(super) drift: Drift,
    /// Decisions that the user should know of.
    pub(super) notes: Vec<String>,
    pub(super) check: Arc<Check>,
}

/// The answers of the inference form on some positions: the reference for other ways to compute it.
#[derive(Debug)]
pub(super) struct Check {
    network: String,
    on: Device,
    /// What the form computes in.
    precision: Precision,
    queries: Vec<Query>,
    masks: Vec<LegalMask>,
    form: Answers,
}

/// Answers on positions.
#[derive(Debug, Default)]
struct Answers {
    /// The logarithms of the legal actions' probabilities.
    policies: Vec<Vec<f64>>,
    /// The mover's win probabilities.
    values: Vec<f64>,
}

impl Prepared {
    /// Tries the choices of a precision on a device, the best first. A drift beyond the bound and
    /// numbers that are not finite are an error, or a note where there is another choice.
    pub(super) fn new(
        network: &Network,
        device: Device,
        precision: Precision,
        name: &str,
    ) -> Result<Self, NetworkError> {
        let choices = precision::choices(precision, device)?;
        Self::try_choices(network, device, choices, name)
    }

    pub(super) fn try_choices(
        network: &Network,
        on: Device,
        choices: &[Precision],
        name: &str,
    ) -> Result<Self, NetworkError> {
        catch_torch_panics(|| {
            let device = on.open()?;
            let _no_grad = no_grad_guard();
            let network = network.to_device(device)?;
            let mut check = Check::new(name, on)?;
            let (reference, planes) = check.reference(&network, device)?;
            let mut notes = Vec::new();
            for (index, &precision) in choices.iter().enumerate() {
                let tried = catch_torch_panics(|| -> Result<_, NetworkError> {
                    let body = network.body.fold(precision::kind(precision))?;
                    check.precision = precision;
                    check.form = check.answers_of_body(&body, &planes)?;
                    let drift = check.judge(&reference, &check.form, 1.0)?;
                    Ok((body, drift))
                });
                let error = match tried {
                    Ok((body, drift)) => {
                        return Ok(Self {
                            body,
                            precision,
                            drift,
                            notes,
                            check: Arc::new(check),
                        });
                    }
                    Err(error) => error,
                };
                match choices.get(index + 1) {
                    // The device may be unable to compute in it at all. A lack of memory does not depend on the precision.
                    Some(next) if !error.is_failed_allocation() => {
                        notes.push(format!("{error}; it is computed in {next} instead"));
                    }
                    _ => return Err(error),
                }
            }
            Err(NetworkError::Torch(format!(
                "there is no precision to compute in on {on}"
            )))
        })
    }
}

impl Check {
    /// The positions for a device, in the order of the answers; without answers.
    fn new(network: &str, on: Device) -> Result<Self, NetworkError> {
        let queries = real_positions(if on.is_cuda() {
            POSITIONS_ON_CUDA
        } else {
            POSITIONS_ON_CPU
        })?;
        let masks = queries
            .iter()
            .map(|query| LegalMask::new(&query.legal, query.side()))
            .collect();
        Ok(Self {
            network: network.to_owned(),
            on,
            precision: Precision::Fp32,
            queries,
            masks,
            form: Answers::default(),
        })
    }

    /// The positions, in the order of the answers.
    pub(super) fn queries(&self) -> &[Query] {
        &self.queries
    }

    /// The answers of the network itself, and the positions' planes by parts of up to [`ROWS`], float, on the device.
    fn reference(
        &self,
        network: &Network,
        device: tch::Device,
    ) -> Result<(Answers, Vec<Tensor>), NetworkError> {
        let (mut parts, mut logits, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for queries in self.queries.chunks(ROWS) {
            let rows: Vec<_> = queries
                .iter()
                .map(|query| encode(&query.state, query.repetitions))
                .collect();
            let planes = unpack_rows(&rows, device)?;
            let outputs = network.forward_eval(&planes)?;
            let policy = to_vec(&outputs.policy)?;
            let value = to_vec(&outputs.value_logit)?;
            if !policy.iter().chain(&value).all(|number| number.is_finite()) {
                return Err(self.not_finite(network.body.not_finite(&planes)?));
            }
            logits.extend(policy);
            values.extend(value.into_iter().map(probability));
            parts.push(planes);
        }
        let logits = logits.chunks_exact(POLICY_SIZE).zip(&self.masks);
        let policies = logits.map(|(logits, mask)| log_softmax(mask, |entry| logits[entry]));
        let policies = policies.collect();
        Ok((Answers { policies, values }, parts))
    }

    /// The answers of a form of the network, given the positions' planes by parts.
    fn answers_of_body(
        &self,
        body: &InferenceLayers,
        planes: &[Tensor],
    ) -> Result<Answers, NetworkError> {
        let mut answers = Vec::new();
        for planes in planes {
            let planes = planes.f_to_kind(precision::kind(self.precision))?;
            let part = to_vec(&body.answers(&planes)?)?;
            if !part.iter().all(|number| number.is_finite()) {
                return Err(self.not_finite(body.not_finite(&planes)?));
            }
            answers.extend(part);
        }
        Ok(self.answers_of(&answers))
    }

    /// The answers on the first positions, from [`ANSWER_FLOATS`] numbers each.
    fn answers_of(&self, answers: &[f32]) -> Answers {
        let rows = || answers.chunks_exact(ANSWER_FLOATS).zip(&self.masks);
        let policy = |(answer, mask): (&[f32], &LegalMask)| {
            log_softmax(mask, |entry| answer[answer_index(entry)])
        };
        Answers {
            policies: rows().map(policy).collect(),
            values: rows()
                .map(|(answer, _)| probability(answer[POLICY_SIZE]))
                .collect(),
        }
    }

    /// The error of outputs that are not finite. The place is unknown if a second pass was finite.
    fn not_finite(&self, place: Option<String>) -> NetworkError {
        NetworkError::NotFinite {
            network: self.network.clone(),
            precision: self.precision,
            device: self.on.to_string(),
            place: place.unwrap_or_else(|| "a layer".into()),
        }
    }

    /// Compares answers on the first positions, [`ANSWER_FLOATS`] numbers each, with those of the form. The positions may be few and
    /// alike: twice the drift is allowed that the form may have from the network itself over all positions. A larger one is an error.
    pub(super) fn compare(&self, answers: &[f32]) -> Result<Drift, NetworkError> {
        self.judge(&self.form, &self.answers_of(answers), 2.0)
    }

    /// How far answers are from others; a drift of more than so many times the bound is an error.
    fn judge(&self, from: &Answers, to: &Answers, times: f64) -> Result<Drift, NetworkError> {
        let drift = to.drift(from);
        let bound = Drift::bound(self.precision);
        let bound = Drift {
            value_error: times * bound.value_error,
            divergence: times * bound.divergence,
        };
        // NaN is within no bound.
        let is_close =
            drift.value_error <= bound.value_error && drift.divergence <= bound.divergence;
        if !is_close {
            return Err(NetworkError::Drift {
                network: self.network.clone(),
                precision: self.precision,
                device: self.on.to_string(),
                value_error: drift.value_error,
                value_bound: bound.value_error,
                divergence: drift.divergence,
                divergence_bound: bound.divergence,
            });
        }
        Ok(drift)
    }
}

impl Answers {
    /// How far these are from others, on as many positions as these are for.
    fn drift(&self, from: &Self) -> Drift {
        let count = self.values.len().max(1) as f64;
        let values = self.values.iter().zip(&from.values);
        let squares: f64 = values.map(|(one, other)| (one - other).powi(2)).sum();
        let policies = self.policies.iter().zip(&from.policies);
        let terms = policies.flat_map(|(found, expected)| expected.iter().zip(found));
        let divergence: f64 = terms.map(|(p, q)| p.exp() * (p - q)).sum();
        Drift {
            value_error: (squares / count).sqrt(),
            divergence: divergence / count,
        }
    }
}

fn to_vec(tensor: &Tensor) -> Result<Vec<f32>, TchError> {
    let mut numbers = vec![0.0; tensor.numel()];
    let count = numbers.len();
    tensor.f_copy_data(&mut numbers, count)?;
    Ok(numbers)
}

fn probability(logit: f32) -> f64 {
    1.0 / (1.0 + (-f64::from(logit)).exp())
}

/// The logarithms of the legal actions' probabilities, given the logit of each entry.
fn log_softmax(mask: &LegalMask, logit: impl Fn(usize) -> f32) -> Vec<f64> {
    let legal: Vec<f64> = mask.indices().map(|entry| logit(entry).into()).collect();
    let highest = legal.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = legal.iter().map(|logit| (logit - highest).exp()).sum();
    let shift = highest + sum.ln();
    legal.iter().map(|logit| logit - shift).collect()
}
