//! The network as an evaluator for the search on a CPU, in the calling thread.

use crate::architecture::Architecture;
use crate::device::{Device, apply_thread_count};
use crate::error::{NetworkError, catch_torch_panics};
use crate::inference::{ANSWER_FLOATS, InferenceLayers};
use crate::model::Network;
use crate::packed::read_answer;
use crate::precision;
use crate::prepare::{Drift, Prepared};
use engine::config::Precision;
use engine::encoding::{CHANNELS, encode};
use engine::search::{Evaluations, Evaluator, EvaluatorError, Query};
use tch::{Kind, Tensor, no_grad_guard};

/// The most queries that a CPU evaluates together; more are split. Larger batches are no faster there (10×128: 547
/// evaluations/s of a core in batches of 64, 490 in batches of 782), and libtorch plans and keeps a computation for each size.
pub const MAX_CPU_BATCH: usize = 64;

/// Evaluates step states with a network on the CPU, one batch at a time, in the calling thread. Each worker thread has
/// its own.
///
/// Equal queries get equal answers to the last bit, whatever else is in the batch, and a query with exchanged colours the same one
/// seen from the other side.
#[derive(Debug)]
pub struct NetworkEvaluator {
    name: String,
    body: InferenceLayers,
    precision: Precision,
    drift: Drift,
    notes: Vec<String>,
    leaves_at_once: u32,
    buffers: Buffers,
}

/// What is kept from batch to batch.
#[derive(Debug, Default)]
struct Buffers {
    /// `[batch, 8, 8, CHANNELS]` as the bytes of the network's type.
    input: Vec<u8>,
    /// `[batch, ANSWER_FLOATS]`.
    answers: Vec<f32>,
}

impl NetworkEvaluator {
    /// Prepares a network for playing on the CPU: its norms are folded into its convolutions, and it is cast to the
    /// CPU's fast type. `name` is what messages and records call it. The evaluator shares nothing with `network`.
    ///
    /// The result is compared with the network in fp32 on real positions. A drift beyond [`Drift::bound`] is an error, and so
    /// are numbers that are not finite; under [`Precision::Auto`] they lead to fp32 and a [note](Self::notes).
    pub fn new(
        network: &Network,
        precision: Precision,
        name: impl Into<String>,
    ) -> Result<Self, NetworkError> {
        apply_thread_count();
        let name = name.into();
        let prepared = Prepared::new(network, Device::Cpu, precision, &name)?;
        Ok(Self {
            name,
            body: prepared.body,
            precision: prepared.precision,
            drift: prepared.drift,
            notes: prepared.notes,
            leaves_at_once: leaves_at_once(network.architecture(), Device::Cpu),
            buffers: Buffers::default(),
        })
    }

    /// What the network is computed in: never [`Precision::Auto`].
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// How far this form of the network is from the network itself.
    pub fn drift(&self) -> Drift {
        self.drift
    }

    /// Messages for the user: a precision that was given up. Mostly none.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    fn forward(&mut self, queries: &[Query]) -> Result<(), NetworkError> {
        let answers = self
            .body
            .answers(&self.buffers.input(queries, self.precision)?)?;
        let count = queries.len() * ANSWER_FLOATS;
        self.buffers.answers.resize(count, 0.0);
        Ok(answers.f_copy_data(&mut self.buffers.answers, count)?)
    }
}

impl Buffers {
    /// The queries' planes, `[batch, CHANNELS, 8, 8]` channels-last. They are unpacked straight into the
    /// network's type: five times as fast as by libtorch's operations.
    fn input(&mut self, queries: &[Query], precision: Precision) -> Result<Tensor, NetworkError> {
        let rows = queries
            .iter()
            .map(|query| encode(&query.state, query.repetitions));
        let kind = precision::kind(precision);
        let row_bytes = CHANNELS * 64 * kind.elt_size_in_bytes();
        let input = &mut self.input;
        input.resize(queries.len() * row_bytes, 0);
        for (row, out) in rows.zip(input.chunks_exact_mut(row_bytes)) {
            if kind == Kind::Float {
                row.write_squares(f32::to_ne_bytes, out.as_chunks_mut::<4>().0);
            } else {
                row.write_squares(bf16_bytes, out.as_chunks_mut::<2>().0);
            }
        }
        let size = [queries.len() as i64, 8, 8, CHANNELS as i64];
        let squares = Tensor::f_from_data_size(input, &size, kind)?;
        Ok(squares.f_permute([0, 3, 1, 2])?)
    }
}

impl Evaluator for NetworkEvaluator {
    fn name(&self) -> &str {
        &self.name
    }

    fn leaves_at_once(&self) -> u32 {
        self.leaves_at_once
    }

    fn evaluate(&mut self, queries: &[Query], out: &mut Evaluations) -> Result<(), EvaluatorError> {
        out.clear();
        apply_thread_count();
        let _no_grad = no_grad_guard();
        // Parts of equal size: a part of a few queries would be slow.
        let parts = queries.len().div_ceil(MAX_CPU_BATCH).max(1);
        for batch in queries.chunks(queries.len().div_ceil(parts).max(1)) {
            catch_torch_panics(|| self.forward(batch)).map_err(|error| EvaluatorError::Device {
                evaluator: self.name.clone(),
                message: error.to_string(),
            })?;
            let answers = self.buffers.answers.chunks_exact(ANSWER_FLOATS);
            for (query, answer) in batch.iter().zip(answers) {
                read_answer(&self.name, query, answer, out)?;
            }
        }
        Ok(())
    }
}

/// Leaves of one search that a GPU evaluates together.
const LEAVES_ON_GPU: u32 = 64;

/// Leaves of one search that a core evaluates together: beyond that a batch is hardly faster (`engine/src/search/README.md`), ...
const LEAVES_ON_CORE: u64 = 32;

/// ... and a search that has to stop waits for its batch: floating-point operations that a core does in some 20 ms.
const OPERATIONS_A_BATCH: u64 = 4_000_000_000;

/// See [`Evaluator::leaves_at_once`]. It depends on no measurement, so that a search is the same whenever it is repeated.
pub(super) fn leaves_at_once(architecture: Architecture, device: Device) -> u32 {
    if device != Device::Cpu {
        return LEAVES_ON_GPU;
    }
    let (blocks, channels) = (
        u64::from(architecture.blocks),
        u64::from(architecture.channels),
    );
    // Two 3x3 convolutions a block on 64 squares, a multiplication and an addition each.
    let operations = blocks * 2 * 9 * channels * channels * 64 * 2;
    (OPERATIONS_A_BATCH / operations.max(1)).clamp(1, LEAVES_ON_CORE) as u32
}

/// A number as bf16. What rows hold (0, 1/2 and 1) is exact; other numbers would be rounded towards zero.
fn bf16_bytes(number: f32) -> [u8; 2] {
    ((number.to_bits() >> 16) as u16).to_ne_bytes()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::model::tests::{cpu_precisions, decided_network};
    use crate::samples::{Sample, random_states};

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

    pub(in super::super) fn evaluator(network: &Network, precision: Precision) -> NetworkEvaluator {
        NetworkEvaluator::new(network, precision, "test").unwrap()
    }

    pub(in super::super) fn evaluate(
        evaluator: &mut NetworkEvaluator,
        queries: &[Query],
    ) -> Evaluations {
        let mut out = Evaluations::default();
        evaluator.evaluate(queries, &mut out).unwrap();
        assert_eq!(out.len(), queries.len());
        out
    }

    #[test]
    fn answers_do_not_depend_on_the_batch() {
        let network = decided_network(2, 16);
        for &precision in cpu_precisions() {
            let mut evaluator = evaluator(&network, precision);
            let queries = queries(13, 1_027);
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
    fn nan_in_an_output_names_the_head() {
        let queries = queries(14, 3);
        for head in ["value", "policy"] {
            let mut evaluator = evaluator(&decided_network(1, 8), Precision::Fp32);
            evaluator.body.spoil(head);
            let error = evaluator
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
}
