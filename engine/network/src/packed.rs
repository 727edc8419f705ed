//! Rows as they travel to a device, and answers as they travel back: one transfer each way a batch.

use crate::device::Device;
use crate::error::{NetworkError, catch_torch_panics};
use crate::inference::{ANSWER_FLOATS, InferenceLayers, answer_index};
use crate::precision;
use crate::prepare::Check;
use arimaa::rules::Side;
use engine::config::Precision;
use engine::encoding::{CHANNELS, LegalMask, PLANES, encode};
use engine::search::{Evaluations, EvaluatorError, Query};
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use tch::{Kind, TchError, Tensor, no_grad_guard};

/// The bytes of a packed row, `[8, CHANNELS]`: for each rank the bits of each plane, by file, and twice each scalar, which all are
/// multiples of 1/2.
pub(super) const ROW_BYTES: usize = 8 * CHANNELS;

/// Adds a query as a packed row.
pub(super) fn pack(query: &Query, out: &mut Vec<u8>) {
    let row = encode(&query.state, query.repetitions);
    let scalars = row.scalars.map(|scalar| (2.0 * scalar) as u8);
    for rank in 0..8 {
        out.extend(row.planes.map(|set| (set >> (8 * rank)) as u8));
        out.extend(scalars);
    }
}

/// Unpacks rows on a device, in two operations.
#[derive(Debug)]
struct Unpacking {
    /// `[8, CHANNELS]`, bytes: by file, what a channel's bits are.
    bits: Tensor,
    /// `[8, CHANNELS]`: what makes 1 of a plane's bit, and a scalar of its byte.
    scale: Tensor,
}

impl Unpacking {
    fn new(device: tch::Device, kind: Kind) -> Result<Self, TchError> {
        let (mut bits, mut scale) = (Vec::new(), Vec::new());
        for file in 0..8 {
            for channel in 0..CHANNELS {
                let (bit, factor) = if channel < PLANES {
                    (1 << file, 1.0 / f32::from(1u8 << file))
                } else {
                    (u8::MAX, 0.5)
                };
                bits.push(bit);
                scale.push(factor);
            }
        }
        let shape = [8, CHANNELS as i64];
        Ok(Self {
            bits: Tensor::f_from_slice(&bits)?.f_view(shape)?.f_to(device)?,
            scale: Tensor::f_from_slice(&scale)?
                .f_view(shape)?
                .f_to_device_(device, kind, false, false)?,
        })
    }

    /// `[batch, ROW_BYTES]`, bytes, to `[batch, CHANNELS, 8, 8]`, channels-last.
    fn planes(&self, packed: &Tensor) -> Result<Tensor, TchError> {
        packed
            .f_view([-1, 8, 1, CHANNELS as i64])?
            .f_bitwise_and_tensor(&self.bits)?
            .f_mul(&self.scale)?
            .f_permute([0, 3, 1, 2])
    }
}

/// Adds the answer to a query, [`ANSWER_FLOATS`] numbers: its value, and the softmax of its legal actions' logits in the order of
/// their indices.
pub(super) fn read_answer(
    evaluator: &str,
    query: &Query,
    answer: &[f32],
    out: &mut Evaluations,
) -> Result<(), EvaluatorError> {
    let fault = |what: String| EvaluatorError::BadOutput {
        evaluator: evaluator.to_owned(),
        what,
        state: Box::new(query.state),
    };
    let &[.., value_logit] = answer else {
        return Err(fault("the answer is empty".into()));
    };
    if answer.len() != ANSWER_FLOATS {
        return Err(fault(format!("the answer has {} numbers", answer.len())));
    }
    if !value_logit.is_finite() {
        return Err(fault(format!("the value head's output is {value_logit}")));
    }
    let mask = LegalMask::new(&query.legal, query.side());
    let logits = || mask.indices().map(|index| answer[answer_index(index)]);
    if let Some(bad) = logits().find(|logit| !logit.is_finite()) {
        return Err(fault(format!("the policy head's output is {bad}")));
    }
    let Some(highest) = logits().reduce(f32::max) else {
        let what = "there is no legal action to give a prior to";
        return Err(fault(what.into()));
    };
    let sum: f32 = logits().map(|logit| (logit - highest).exp()).sum();
    let value = 1.0 / (1.0 + (-value_logit).exp());
    let value = match query.side() {
        Side::Gold => value,
        Side::Silver => 1.0 - value,
    };
    out.push(value, logits().map(|logit| (logit - highest).exp() / sum));
    Ok(())
}

/// Evaluates a network's batches in a thread of the service; tests have other implementations.
pub(super) trait Forward: Send {
    /// Writes packed rows from `first` on.
    fn load(&mut self, first: usize, packed: &[u8]) -> Result<(), NetworkError>;

    /// Evaluates the first `size` rows, whatever is in those that were not written, and waits for the answers.
    fn run(&mut self, size: usize) -> Result<(), NetworkError>;

    /// Reads the answers of the last run from row `first` on.
    fn read(&mut self, first: usize, out: &mut [f32]) -> Result<(), NetworkError>;
}

/// A network on a device, and where its thread keeps rows and answers.
#[derive(Debug)]
pub(super) struct PackedForward {
    pub(super) body: InferenceLayers,
    device: tch::Device,
    unpacking: Unpacking,
    host: HostMemory,
}

/// Room on the host for rows and answers. For CUDA it is pinned, so that the device fetches rows while the host continues.
#[derive(Debug)]
struct HostMemory {
    device: tch::Device,
    /// `[capacity, ROW_BYTES]`, bytes.
    rows: Tensor,
    /// `[capacity, ANSWER_FLOATS]`.
    answers: Tensor,
}

impl HostMemory {
    /// The memory of this thread, for all its networks: a thread evaluates one batch at a time. Pinned memory is never freed: after
    /// an error of the device libtorch ends the process when it tries.
    fn of_thread(device: tch::Device, capacity: usize) -> Result<Self, TchError> {
        thread_local!(static OWN: RefCell<Option<ManuallyDrop<HostMemory>>> = const { RefCell::new(None) });
        OWN.with_borrow_mut(|own| {
            if let Some(own) = own
                && own.device == device
                && own.rows.size()[0] >= capacity as i64
            {
                return Ok(own.shallow_clone());
            }
            let made = Self::new(device, capacity)?;
            *own = Some(ManuallyDrop::new(made.shallow_clone()));
            Ok(made)
        })
    }

    fn new(device: tch::Device, capacity: usize) -> Result<Self, TchError> {
        let room = |width: usize, kind| {
            let size = [capacity as i64, width as i64];
            let zeros = Tensor::f_zeros(size, (kind, tch::Device::Cpu))?;
            match device {
                // `f_pin_memory` warns of an argument that tch always gives.
                tch::Device::Cuda(_) => zeros.f_internal_pin_memory(device),
                _ => Ok(zeros),
            }
        };
        Ok(Self {
            device,
            rows: room(ROW_BYTES, Kind::Uint8)?,
            answers: room(ANSWER_FLOATS, Kind::Float)?,
        })
    }

    fn shallow_clone(&self) -> Self {
        Self {
            device: self.device,
            rows: self.rows.shallow_clone(),
            answers: self.answers.shallow_clone(),
        }
    }
}

/// On how many positions at least each size of batches is compared.
const COMPARED: usize = 256;

impl PackedForward {
    /// A network for batches of up to `capacity` rows, in this thread.
    pub(super) fn new(
        body: InferenceLayers,
        device: Device,
        precision: Precision,
        capacity: usize,
    ) -> Result<Self, NetworkError> {
        let device = device.open()?;
        Ok(Self {
            body,
            unpacking: Unpacking::new(device, precision::kind(precision))?,
            host: HostMemory::of_thread(device, capacity)?,
            device,
        })
    }

    /// Compares what comes back in batches of each size with the network itself, which also makes the device ready for them. Small
    /// sizes evaluate several batches, since the drift of a few positions is uncertain. Returns the sizes that the device's memory
    /// holds, ascending like those given.
    ///
    /// # Errors
    /// A drift beyond the bound, a device that fails, and memory that does not hold the first size.
    pub(super) fn check(
        &mut self,
        check: &Check,
        sizes: &[usize],
    ) -> Result<Vec<usize>, NetworkError> {
        let mut fitting = Vec::new();
        for &size in sizes {
            let queries = check.queries();
            let queries = &queries[..queries.len().min(size.max(COMPARED))];
            let mut answers = vec![0.0; queries.len() * ANSWER_FLOATS];
            let batches = queries
                .chunks(size)
                .zip(answers.chunks_mut(size * ANSWER_FLOATS));
            let compared = batches.into_iter().try_for_each(|(queries, answers)| {
                let mut packed = Vec::new();
                queries.iter().for_each(|query| pack(query, &mut packed));
                self.load(0, &packed)?;
                self.run(size)?;
                self.read(0, answers)
            });
            match compared {
                Err(error) if error.is_out_of_memory() && !fitting.is_empty() => break,
                result => result?,
            }
            check.compare(&answers)?;
            fitting.push(size);
        }
        Ok(fitting)
    }
}

impl Forward for PackedForward {
    fn load(&mut self, first: usize, packed: &[u8]) -> Result<(), NetworkError> {
        let count = (packed.len() / ROW_BYTES) as i64;
        let size = [count, ROW_BYTES as i64];
        let packed = Tensor::f_from_data_size(packed, &size, Kind::Uint8)?;
        let mut rows = self.host.rows.f_narrow(0, first as i64, count)?;
        Ok(rows.f_copy_(&packed)?)
    }

    fn run(&mut self, size: usize) -> Result<(), NetworkError> {
        // Callers handle a lack of memory, and a fused convolution that cuDNN refuses: neither may be a panic.
        catch_torch_panics(|| {
            let (_no_grad, size) = (no_grad_guard(), size as i64);
            // The last batch's answers have been waited for: the device has read its rows.
            let rows = self.host.rows.f_narrow(0, 0, size)?;
            let rows = rows.f_to_device_(self.device, Kind::Uint8, true, false)?;
            let answers = self.body.answers(&self.unpacking.planes(&rows)?)?;
            Ok(self.host.answers.f_narrow(0, 0, size)?.f_copy_(&answers)?)
        })
    }

    fn read(&mut self, first: usize, out: &mut [f32]) -> Result<(), NetworkError> {
        let count = out.len() / ANSWER_FLOATS;
        let answers = self.host.answers.f_narrow(0, first as i64, count as i64)?;
        Ok(answers.f_copy_data(out, count * ANSWER_FLOATS)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::unpack_rows;
    use crate::evaluator::NetworkEvaluator;
    use crate::model::Network;
    use crate::model::tests::{cpu_precisions, decided_network};
    use crate::positions::real_positions;
    use crate::prepare::Prepared;
    use engine::search::Evaluator;

    fn packed(queries: &[Query]) -> Vec<u8> {
        let mut packed = Vec::new();
        queries.iter().for_each(|query| pack(query, &mut packed));
        packed
    }

    fn prepared(network: &Network, precision: Precision) -> Prepared {
        Prepared::new(network, Device::Cpu, precision, "test").unwrap()
    }

    fn forward(network: &Network, precision: Precision, capacity: usize) -> PackedForward {
        let body = prepared(network, precision).body;
        PackedForward::new(body, Device::Cpu, precision, capacity).unwrap()
    }

    fn answers(forward: &mut PackedForward, queries: &[Query], size: usize) -> Vec<f32> {
        let mut answers = vec![7.0; queries.len() * ANSWER_FLOATS];
        forward.load(0, &packed(queries)).unwrap();
        forward.run(size).unwrap();
        forward.read(0, &mut answers).unwrap();
        answers
    }

    fn read(queries: &[Query], answers: &[f32]) -> Result<Evaluations, EvaluatorError> {
        let mut out = Evaluations::default();
        for (query, answer) in queries.iter().zip(answers.chunks_exact(ANSWER_FLOATS)) {
            read_answer("test", query, answer, &mut out)?;
        }
        Ok(out)
    }

    #[test]
    fn packed_rows_unpack_to_the_planes_of_rows() {
        let queries = real_positions(300).unwrap();
        let size = [300, ROW_BYTES as i64];
        let packed = Tensor::f_from_data_size(&packed(&queries), &size, Kind::Uint8).unwrap();
        let rows: Vec<_> = queries
            .iter()
            .map(|query| encode(&query.state, query.repetitions))
            .collect();
        let device = tch::Device::Cpu;
        let expected = unpack_rows(&rows, device).unwrap();
        for kind in [Kind::Float, Kind::BFloat16, Kind::Half] {
            let planes = Unpacking::new(device, kind)
                .unwrap()
                .planes(&packed)
                .unwrap();
            assert_eq!(planes.kind(), kind);
            assert_eq!(planes.stride(), expected.stride(), "channels together");
            assert!(planes.to_kind(Kind::Float).equal(&expected));
        }
    }

    #[test]
    fn packed_evaluation_agrees_with_the_evaluator() {
        let network = decided_network(3, 16);
        let queries = real_positions(200).unwrap();
        for &precision in cpu_precisions() {
            let mut evaluator = NetworkEvaluator::new(&network, precision, "test").unwrap();
            let mut expected = Evaluations::default();
            evaluator.evaluate(&queries, &mut expected).unwrap();
            let mut forward = forward(&network, precision, 256);
            let found = read(&queries, &answers(&mut forward, &queries, 200)).unwrap();
            for index in 0..queries.len() {
                let (one, other) = (expected.get(index).unwrap(), found.get(index).unwrap());
                assert!((one.value - other.value).abs() < 1e-5);
                assert_eq!(one.priors.len(), other.priors.len());
                let pairs = one.priors.iter().zip(other.priors);
                assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-5));
            }
            // Padding changes nothing, whatever an earlier batch left in it.
            let alone = read(&queries[..70], &answers(&mut forward, &queries[..70], 128)).unwrap();
            for index in 0..70 {
                assert_eq!(alone.get(index), found.get(index));
            }
        }
    }

    #[test]
    fn wrong_answers_fail_the_check() {
        let network = decided_network(2, 16);
        let own = prepared(&network, Precision::Fp32);
        let other = Network::new(network.architecture(), 8).unwrap();
        let sizes = [1, 16, 128];
        let mut forward = forward(&network, Precision::Fp32, 128);
        assert_eq!(forward.check(&own.check, &sizes).unwrap(), sizes);
        forward.body = prepared(&other, Precision::Fp32).body;
        let error = forward.check(&own.check, &[16]).unwrap_err();
        assert!(matches!(error, NetworkError::Drift { .. }), "{error}");
        forward.body = own.body;
        forward.body.spoil("value");
        let error = forward.check(&own.check, &[16]).unwrap_err();
        assert!(matches!(error, NetworkError::Drift { .. }), "{error}");
    }

    #[test]
    fn a_fused_convolution_that_is_refused_is_an_error() {
        // tch panics there. A CPU has no cuDNN.
        let network = decided_network(1, 8);
        let own = prepared(&network, Precision::Fp32);
        let mut forward = forward(&network, Precision::Fp32, 8);
        forward.body.set_fused(true);
        assert!(forward.check(&own.check, &[8]).is_err());
        forward.body.set_fused(false);
        assert_eq!(forward.check(&own.check, &[8]).unwrap(), [8]);
    }

    #[test]
    fn nan_in_an_output_names_the_head() {
        let queries = real_positions(5).unwrap();
        for head in ["value", "policy"] {
            let mut forward = forward(&decided_network(1, 8), Precision::Fp32, 8);
            forward.body.spoil(head);
            let answers = answers(&mut forward, &queries, 8);
            let message = read(&queries, &answers).unwrap_err().to_string();
            assert!(
                message.starts_with(&format!("test: the {head} head's output is NaN in ")),
                "{message}"
            );
        }
        assert!(read(&queries, &[0.0; ANSWER_FLOATS]).is_ok());
        let mut out = Evaluations::default();
        for answer in [&[][..], &[0.0; 7]] {
            assert!(read_answer("test", &queries[0], answer, &mut out).is_err());
        }
    }
}
