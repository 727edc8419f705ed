//! The network as an evaluator for the search.

use super::body::{Body, Outputs};
use super::device::apply_thread_count;
use super::layers::{Folded, Mode};
use super::{Device, Network, NetworkError, unpack_rows};
use crate::encoding::{CHANNELS, LegalMask, POLICY_SIZE, encode};
use crate::rules::Side;
use crate::search::{Evaluations, Evaluator, EvaluatorError, Query};
use tch::{Kind, TchError, Tensor, no_grad_guard};

/// The most queries that are evaluated together; more are split.
const MAX_BATCH: usize = 1_024;

/// The type that a network computes with when it plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// What the device computes fast: bf16 on CUDA and on processors with AMX or AMD's AVX-512 BF16, else fp32.
    #[default]
    Auto,
    /// 32-bit floats.
    Fp32,
    /// 16-bit floats with the exponents of 32-bit ones. Works on every processor, and crawls on those not made for it.
    Bf16,
}

impl Precision {
    fn kind(self, device: Device) -> Kind {
        let fast = match (self, device) {
            (Self::Fp32, _) => false,
            (Self::Bf16, _) | (Self::Auto, Device::Cuda(_)) => true,
            (Self::Auto, Device::Cpu) => processor_has_fast_bf16(),
        };
        if fast { Kind::BFloat16 } else { Kind::Float }
    }
}

/// Whether the processor computes bf16 faster than fp32: with AMX, or AMD's AVX-512 BF16. Intel's AVX-512 BF16 has half the
/// throughput of its fp32 (Emerald Rapids without AMX, 3×3 convolution of 64 channels, batch 64: 2.8 ms against 1.5 ms).
fn processor_has_fast_bf16() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{__cpuid, __cpuid_count};
        let vendor = __cpuid(0);
        let is_amd = [vendor.ebx, vendor.edx, vendor.ecx]
            == [b"Auth", b"enti", b"cAMD"].map(|part| u32::from_le_bytes(*part));
        // Leaf 7 exists on every processor with AVX-512; bit 22 of EDX is AMX-BF16.
        std::is_x86_feature_detected!("avx512bf16")
            && (is_amd || __cpuid_count(7, 0).edx >> 22 & 1 != 0)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// Evaluates step states with a network, one batch at a time, in the thread that asks. Every worker thread has its own.
///
/// Equal queries get equal answers, and a query with exchanged colours the same one seen from the other side. On a CPU they
/// are equal to the last bit, whatever else is in the batch.
#[derive(Debug)]
pub struct NetworkEvaluator {
    name: String,
    body: Body<Folded>,
    device: tch::Device,
    kind: Kind,
    buffers: Buffers,
}

/// What is kept from batch to batch.
#[derive(Debug, Default)]
struct Buffers {
    /// `[batch, 8, 8, CHANNELS]` as the bytes of the network's type.
    input: Vec<u8>,
    /// `[batch, 321]`.
    policy: Vec<f32>,
    /// `[batch]`.
    value_logits: Vec<f32>,
    /// The legal actions' priors of one query.
    priors: Vec<f32>,
}

impl NetworkEvaluator {
    /// Prepares a network for playing on a device: its norms are folded into its convolutions. `name` is what messages and
    /// records call it. The evaluator shares nothing with `network`.
    pub fn new(
        network: &Network,
        device: Device,
        precision: Precision,
        name: impl Into<String>,
    ) -> Result<Self, NetworkError> {
        let kind = precision.kind(device);
        let device = device.open()?;
        let _no_grad = no_grad_guard();
        let body = network.to_device(device)?.body.fold(kind)?;
        Ok(Self {
            name: name.into(),
            body,
            device,
            kind,
            buffers: Buffers::default(),
        })
    }

    fn forward(&mut self, queries: &[Query]) -> Result<(), NetworkError> {
        let input = self.input(queries)?;
        let Outputs {
            policy,
            value_logit,
        } = self.body.forward(&input, Mode::Evaluation)?;
        copy_to_host(
            &policy,
            &mut self.buffers.policy,
            queries.len() * POLICY_SIZE,
        )?;
        copy_to_host(&value_logit, &mut self.buffers.value_logits, queries.len())?;
        Ok(())
    }

    /// The queries' planes, `[batch, CHANNELS, 8, 8]` with the channels together in memory. To a GPU the bits travel packed.
    /// For a CPU they are unpacked here, straight into its type: five times as fast as by libtorch's operations.
    fn input(&mut self, queries: &[Query]) -> Result<Tensor, NetworkError> {
        let rows = queries
            .iter()
            .map(|query| encode(&query.state, query.repetitions));
        if self.device != tch::Device::Cpu {
            let rows: Vec<_> = rows.collect();
            return Ok(unpack_rows(&rows, self.device)?.f_to_kind(self.kind)?);
        }
        let row_bytes = CHANNELS * 64 * self.kind.elt_size_in_bytes();
        let input = &mut self.buffers.input;
        input.resize(queries.len() * row_bytes, 0);
        for (row, out) in rows.zip(input.chunks_exact_mut(row_bytes)) {
            if self.kind == Kind::Float {
                row.write_squares(f32::to_ne_bytes, out.as_chunks_mut::<4>().0);
            } else {
                row.write_squares(bf16_bytes, out.as_chunks_mut::<2>().0);
            }
        }
        let size = [queries.len() as i64, 8, 8, CHANNELS as i64];
        let squares = Tensor::f_from_data_size(input, &size, self.kind)?;
        Ok(squares.f_permute([0, 3, 1, 2])?)
    }

    /// Adds the answers of one batch, whose outputs are in the buffers.
    fn answer(&mut self, queries: &[Query], out: &mut Evaluations) -> Result<(), EvaluatorError> {
        let Buffers {
            policy,
            value_logits,
            priors,
            ..
        } = &mut self.buffers;
        let rows = policy.chunks_exact(POLICY_SIZE).zip(&*value_logits);
        for (query, (logits, &value_logit)) in queries.iter().zip(rows) {
            let fault = |what: String| EvaluatorError::BadOutput {
                evaluator: self.name.clone(),
                what,
                state: Box::new(query.state),
            };
            if !value_logit.is_finite() {
                return Err(fault(format!("the value head's output is {value_logit}")));
            }
            softmax(logits, query, priors).map_err(fault)?;
            let value = 1.0 / (1.0 + (-value_logit).exp());
            let value = match query.side() {
                Side::Gold => value,
                Side::Silver => 1.0 - value,
            };
            out.push(value, priors.iter().copied());
        }
        Ok(())
    }
}

impl Evaluator for NetworkEvaluator {
    fn name(&self) -> &str {
        &self.name
    }

    fn evaluate(&mut self, queries: &[Query], out: &mut Evaluations) -> Result<(), EvaluatorError> {
        out.clear();
        apply_thread_count();
        let _no_grad = no_grad_guard();
        for batch in queries.chunks(MAX_BATCH) {
            self.forward(batch)
                .map_err(|error| EvaluatorError::Device {
                    evaluator: self.name.clone(),
                    message: error.to_string(),
                })?;
            self.answer(batch, out)?;
        }
        Ok(())
    }
}

/// The softmax of the legal actions' logits, in the order of their indices.
fn softmax(logits: &[f32], query: &Query, priors: &mut Vec<f32>) -> Result<(), String> {
    let mask = LegalMask::new(&query.legal, query.side());
    priors.clear();
    priors.extend(mask.indices().map(|index| logits[index]));
    if let Some(bad) = priors.iter().find(|logit| !logit.is_finite()) {
        return Err(format!("the policy head's output is {bad}"));
    }
    let Some(highest) = priors.iter().copied().reduce(f32::max) else {
        return Err("there is no legal action to give a prior to".into());
    };
    let mut sum = 0.0;
    for prior in priors.iter_mut() {
        *prior = (*prior - highest).exp();
        sum += *prior;
    }
    priors.iter_mut().for_each(|prior| *prior /= sum);
    Ok(())
}

/// A number as bf16. What rows hold (0, 1/2 and 1) is exact; other numbers would be rounded towards zero.
fn bf16_bytes(number: f32) -> [u8; 2] {
    ((number.to_bits() >> 16) as u16).to_ne_bytes()
}

fn copy_to_host(tensor: &Tensor, out: &mut Vec<f32>, count: usize) -> Result<(), TchError> {
    out.resize(count, 0.0);
    tensor.f_copy_data(out, count)
}

#[cfg(test)]
mod tests {
    use super::super::model::tests::{decided_network, rows};
    use super::*;
    use crate::encoding::samples::{Sample, random_states};
    use crate::rules::History;
    use crate::search::Evaluation;
    use tch::no_grad;

    fn query(sample: &Sample) -> Query {
        Query {
            state: sample.state,
            legal: sample.legal,
            repetitions: sample.repetitions,
        }
    }

    fn queries(seed: u64, count: usize) -> Vec<Query> {
        random_states(seed, count).iter().map(query).collect()
    }

    fn evaluator(network: &Network, precision: Precision) -> NetworkEvaluator {
        NetworkEvaluator::new(network, Device::Cpu, precision, "test").unwrap()
    }

    fn evaluate(evaluator: &mut NetworkEvaluator, queries: &[Query]) -> Evaluations {
        let mut out = Evaluations::default();
        evaluator.evaluate(queries, &mut out).unwrap();
        assert_eq!(out.len(), queries.len());
        out
    }

    /// What the unfolded network says in fp32: Gold's win probability, and the policy over the legal actions.
    fn reference(network: &Network, samples: &[Sample]) -> Vec<(f64, Vec<f64>)> {
        let planes = unpack_rows(&rows(samples), tch::Device::Cpu).unwrap();
        let outputs = no_grad(|| network.forward_eval(&planes).unwrap());
        let answer = |(row, sample): (usize, &Sample)| {
            let (side, row) = (sample.state.side(), row as i64);
            let value = outputs.value_logit.sigmoid().double_value(&[row]);
            let weights: Vec<f64> = LegalMask::new(&sample.legal, side)
                .indices()
                .map(|index| outputs.policy.double_value(&[row, index as i64]).exp())
                .collect();
            let sum: f64 = weights.iter().sum();
            let value = if side == Side::Gold {
                value
            } else {
                1.0 - value
            };
            (value, weights.iter().map(|weight| weight / sum).collect())
        };
        samples.iter().enumerate().map(answer).collect()
    }

    /// The largest error of the values, and the mean divergence of the policies.
    fn compare(network: &Network, precision: Precision) -> (f64, f64) {
        let samples = random_states(11, 200);
        let queries: Vec<_> = samples.iter().map(query).collect();
        let answers = evaluate(&mut evaluator(network, precision), &queries);
        let (mut value_error, mut divergence) = (0f64, 0.0);
        let (mut lowest, mut highest, mut peaked) = (1f64, 0f64, 0);
        for (index, (value, policy)) in reference(network, &samples).into_iter().enumerate() {
            let Evaluation {
                value: answer,
                priors,
                ..
            } = answers.get(index).unwrap();
            assert_eq!(priors.len(), policy.len());
            assert!((priors.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            value_error = value_error.max((f64::from(answer) - value).abs());
            let terms = policy
                .iter()
                .zip(priors)
                .map(|(p, &q)| p * (p / f64::from(q)).ln());
            divergence += terms.sum::<f64>() / 200.0;
            (lowest, highest) = (lowest.min(value), highest.max(value));
            peaked += usize::from(policy.iter().any(|&p| p > 3.0 / policy.len() as f64));
        }
        assert!(
            lowest < 0.3 && highest > 0.7 && peaked > 50,
            "{lowest} {highest} {peaked}"
        );
        (value_error, divergence)
    }

    #[test]
    fn folded_and_cast_the_network_says_the_same() {
        let network = decided_network(6, 32);
        let (value_error, divergence) = compare(&network, Precision::Fp32);
        assert!(
            value_error < 1e-4 && divergence < 1e-7,
            "fp32: {value_error} {divergence}"
        );
        let (value_error, divergence) = compare(&network, Precision::Bf16);
        assert!(
            value_error < 0.02 && divergence < 0.01,
            "bf16: {value_error} {divergence}"
        );
        assert!(value_error > 1e-4, "bf16 is not fp32");
    }

    #[test]
    fn exchanged_colours_get_the_answer_of_the_other_side() {
        let network = decided_network(2, 16);
        for precision in [Precision::Fp32, Precision::Auto] {
            let mut evaluator = evaluator(&network, precision);
            let mut queries = queries(12, 128);
            for query in &mut queries {
                query.legal = query.state.legal_actions(&History::default());
            }
            let swapped: Vec<_> = queries
                .iter()
                .map(|query| {
                    let state = query.state.swap_colours();
                    let legal = state.legal_actions(&History::default());
                    Query {
                        state,
                        legal,
                        ..*query
                    }
                })
                .collect();
            let here = evaluate(&mut evaluator, &queries);
            let there = evaluate(&mut evaluator, &swapped);
            for (index, query) in queries.iter().enumerate() {
                let (one, other) = (here.get(index).unwrap(), there.get(index).unwrap());
                assert_eq!(one.priors, other.priors);
                match query.side() {
                    Side::Gold => assert_eq!(1.0 - one.value, other.value),
                    Side::Silver => assert_eq!(one.value, 1.0 - other.value),
                }
            }
        }
    }

    #[test]
    fn answers_do_not_depend_on_the_batch() {
        let network = decided_network(2, 16);
        for precision in [Precision::Fp32, Precision::Bf16] {
            let mut evaluator = evaluator(&network, precision);
            let queries = queries(13, MAX_BATCH + 3);
            let together = evaluate(&mut evaluator, &queries);
            for (first, size) in [(0, 1), (9, 2), (70, 3), (200, 7), (300, 18), (1_000, 27)] {
                let part = evaluate(&mut evaluator, &queries[first..first + size]);
                for index in 0..size {
                    assert_eq!(part.get(index), together.get(first + index), "{size} rows");
                }
            }
            assert!(evaluate(&mut evaluator, &[]).is_empty());
        }
    }

    #[test]
    fn numbers_that_are_none_name_their_head() {
        let queries = queries(14, 3);
        for (tensor, head) in [
            ("value.output.bias", "value"),
            ("policy.squares.bias", "policy"),
        ] {
            let network = decided_network(1, 8);
            let parameter = network
                .parameters()
                .find(|parameter| parameter.name == tensor);
            let _ = parameter.unwrap().tensor.shallow_clone().fill_(f64::NAN);
            let error = evaluator(&network, Precision::Fp32)
                .evaluate(&queries, &mut Evaluations::default())
                .unwrap_err();
            let message = error.to_string();
            assert!(
                message.starts_with(&format!("test: the {head} head's output is NaN in ")),
                "{message}"
            );
        }
    }

    #[test]
    fn workers_have_their_own_evaluators() {
        let network = decided_network(1, 8);
        let queries = queries(15, 20);
        let expected = evaluate(&mut evaluator(&network, Precision::Auto), &queries);
        let workers: Vec<_> = (0..2)
            .map(|_| {
                let (mut evaluator, queries) =
                    (evaluator(&network, Precision::Auto), queries.clone());
                std::thread::spawn(move || evaluate(&mut evaluator, &queries))
            })
            .collect();
        for worker in workers {
            assert_eq!(worker.join().unwrap(), expected);
        }
    }

    /// The seconds that this thread has computed for: other work on the machine doesn't count.
    fn seconds_computed() -> f64 {
        let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        let nanoseconds = statistics
            .split(' ')
            .next()
            .unwrap()
            .parse::<f64>()
            .unwrap();
        nanoseconds / 1e9
    }

    fn print_rate(what: &str, batch: usize, mut work: impl FnMut()) {
        work();
        let start = seconds_computed();
        let mut rounds = 0;
        while seconds_computed() - start < 1.5 {
            work();
            rounds += 1;
        }
        let rate = f64::from(rounds) * batch as f64 / (seconds_computed() - start);
        println!("{what}, batch {batch}: {rate:.0} a second");
    }

    #[test]
    #[ignore = "a measurement for Linux: run it alone, with --nocapture"]
    fn evaluations_a_second_of_one_thread() {
        super::super::set_single_threaded();
        for (blocks, channels) in [(4, 32), (6, 64)] {
            let network = decided_network(blocks, channels);
            for precision in [Precision::Fp32, Precision::Bf16] {
                let mut evaluator = evaluator(&network, precision);
                for batch in [1, 64, 256] {
                    let queries = queries(16, batch);
                    let mut out = Evaluations::default();
                    let what = format!("{blocks}x{channels} {precision:?}");
                    print_rate(&what, batch, || {
                        evaluator.evaluate(&queries, &mut out).unwrap()
                    });
                }
            }
        }
        let queries = queries(16, 64);
        let mut evaluator = evaluator(&decided_network(1, 8), Precision::Fp32);
        print_rate("rows encoded and unpacked by hand", 64, || {
            let _ = evaluator.input(&queries).unwrap();
        });
        let rows: Vec<_> = queries
            .iter()
            .map(|query| encode(&query.state, 0))
            .collect();
        print_rate("rows unpacked by libtorch", 64, || {
            let _ = unpack_rows(&rows, tch::Device::Cpu).unwrap();
        });
    }
}
