//! Rows and masks as they travel to a device, and answers as they travel back: one transfer each way a batch.

use super::layers::Mode;
use super::prepare::Prepared;
use super::service::is_out_of_memory;
use super::{NetworkError, body::Body, layers::Folded};
use crate::encoding::{CHANNELS, LegalMask, PLANES, POLICY_SIZE, SCALARS, encode};
use crate::rules::Side;
use crate::search::{Evaluations, EvaluatorError, Query};
use tch::{Device, Kind, TchError, Tensor, no_grad_guard};

/// The bitboards of a mask: its five, and one whose lowest bit is the end of the turn.
const MASK_SETS: usize = 6;

/// The 64-bit words of a packed row: its bitboards, its mask, and its numbers by pairs (264 bytes).
pub(super) const ROW_WORDS: usize = PLANES + MASK_SETS + SCALARS / 2;

/// The floats of an answer: the logarithms of the probabilities, illegal ones negative infinity, and the value's logit.
pub(super) const ANSWER_FLOATS: usize = POLICY_SIZE + 1;

const _: () = assert!(SCALARS.is_multiple_of(2) && POLICY_SIZE == (MASK_SETS - 1) * 64 + 1);

/// Adds a query as a packed row.
pub(super) fn pack(query: &Query, out: &mut Vec<i64>) {
    let row = encode(&query.state, query.repetitions);
    let mask = LegalMask::new(&query.legal, query.side());
    out.extend(row.planes.map(|set| set as i64));
    out.extend(mask.squares.map(|set| set as i64));
    out.push(i64::from(mask.end));
    let pairs = row.scalars.as_chunks::<2>().0;
    out.extend(pairs.iter().map(|[one, other]| {
        let [a, b, c, d] = one.to_ne_bytes();
        let [e, f, g, h] = other.to_ne_bytes();
        i64::from_ne_bytes([a, b, c, d, e, f, g, h])
    }));
}

/// Unpacks `[batch, ROW_WORDS]`, on whatever device it is, to the planes `[batch, CHANNELS, 8, 8]` as `kind`, the channels
/// together in memory, and the masks `[batch, 321]`, bool.
fn unpack(packed: &Tensor, kind: Kind) -> Result<(Tensor, Tensor), TchError> {
    let batch = packed.size2()?.0;
    let (planes, masks, scalars) = (PLANES as i64, MASK_SETS as i64, (SCALARS / 2) as i64);
    let squares = Tensor::f_arange(64, (Kind::Int64, packed.device()))?;

    // The shift is arithmetic, but only its lowest bit is looked at.
    let bits = packed
        .f_narrow(1, 0, planes)?
        .f_unsqueeze(1)?
        .f_bitwise_right_shift(&squares.f_view([1, 64, 1])?)?
        .f_bitwise_and(1)?
        .f_to_kind(kind)?;
    let scalars = packed
        .f_narrow(1, planes + masks, scalars)?
        .f_view_dtype(Kind::Float)?
        .f_to_kind(kind)?
        .f_unsqueeze(1)?
        .f_expand([batch, 64, SCALARS as i64], false)?;
    let unpacked = Tensor::f_cat(&[bits, scalars], 2)?
        .f_view([batch, 8, 8, CHANNELS as i64])?
        .f_permute([0, 3, 1, 2])?;

    let masks = packed
        .f_narrow(1, planes, masks)?
        .f_unsqueeze(2)?
        .f_bitwise_right_shift(&squares.f_view([1, 1, 64])?)?
        .f_bitwise_and(1)?
        .f_to_kind(Kind::Bool)?
        .f_view([batch, masks * 64])?
        .f_narrow(1, 0, POLICY_SIZE as i64)?;
    Ok((unpacked, masks))
}

/// Adds the answer to a query: its value, and the priors of its legal actions gathered in the order of their indices.
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
    let (&value_logit, policy) = answer
        .split_last()
        .filter(|(_, policy)| policy.len() == POLICY_SIZE)
        .ok_or_else(|| fault(format!("the answer has {} numbers", answer.len())))?;
    if !value_logit.is_finite() {
        return Err(fault(format!("the value head's output is {value_logit}")));
    }
    let mask = LegalMask::new(&query.legal, query.side());
    if let Some(index) = mask.indices().find(|&index| !policy[index].is_finite()) {
        let bad = policy[index];
        return Err(fault(format!("the policy head's output is {bad}")));
    }
    let value = 1.0 / (1.0 + (-value_logit).exp());
    let value = match query.side() {
        Side::Gold => value,
        Side::Silver => 1.0 - value,
    };
    out.push(value, mask.indices().map(|index| policy[index].exp()));
    Ok(())
}

/// What a thread of the service evaluates batches with; tests have others.
pub(super) trait Forward: Send {
    /// Writes packed rows from `first` on.
    fn load(&mut self, first: usize, packed: &[i64]) -> Result<(), NetworkError>;

    /// Evaluates the first `size` rows, whatever is in those that were not written.
    fn run(&mut self, size: usize) -> Result<(), NetworkError>;

    /// Reads the answers of the last run from row `first` on.
    fn read(&mut self, first: usize, out: &mut [f32]) -> Result<(), NetworkError>;
}

/// A network on a device with what is kept from batch to batch.
#[derive(Debug)]
pub(super) struct PackedForward {
    body: Body<Folded>,
    device: Device,
    kind: Kind,
    /// `[capacity, ROW_WORDS]`, on the host; pinned for CUDA, so that the device fetches it while the host goes on.
    rows: Tensor,
    /// `[capacity, ANSWER_FLOATS]`, on the host; pinned for CUDA.
    answers: Tensor,
}

impl PackedForward {
    /// Shares the network's weights.
    pub(super) fn new(prepared: &Prepared, capacity: usize) -> Result<Self, NetworkError> {
        let device = prepared.device;
        let host = |width: usize, kind| {
            let size = [capacity as i64, width as i64];
            let zeros = Tensor::f_zeros(size, (kind, Device::Cpu))?;
            match device {
                Device::Cuda(_) => zeros.f_pin_memory(device),
                _ => Ok(zeros),
            }
        };
        Ok(Self {
            body: prepared.body.share(),
            device,
            kind: prepared.precision.kind(),
            rows: host(ROW_WORDS, Kind::Int64)?,
            answers: host(ANSWER_FLOATS, Kind::Float)?,
        })
    }
}

impl PackedForward {
    /// Holds what comes back on this way, in batches of each size, against the network itself: bits unpacked, masks and logarithms
    /// taken on the device, and the kernels that it has for that size. Sizes that the memory doesn't hold are left out.
    pub(super) fn check(
        &mut self,
        prepared: &Prepared,
        sizes: &[usize],
    ) -> Result<(), NetworkError> {
        let _no_grad = no_grad_guard();
        for &size in sizes {
            let count = prepared.checked_queries().len().min(size);
            let mut packed = Vec::new();
            for query in &prepared.checked_queries()[..count] {
                pack(query, &mut packed);
            }
            self.load(0, &packed)?;
            match self.run(size) {
                Err(error) if is_out_of_memory(&error) => continue,
                result => result?,
            }
            let mut answers = vec![0.0; count * ANSWER_FLOATS];
            self.read(0, &mut answers)?;
            let (mut policy, mut value_logits) = (Vec::new(), Vec::new());
            for answer in answers.chunks_exact(ANSWER_FLOATS) {
                policy.extend_from_slice(&answer[..POLICY_SIZE]);
                value_logits.push(answer[POLICY_SIZE]);
            }
            prepared.check_answers(policy, value_logits)?;
        }
        Ok(())
    }
}

impl Forward for PackedForward {
    fn load(&mut self, first: usize, packed: &[i64]) -> Result<(), NetworkError> {
        let count = (packed.len() / ROW_WORDS) as i64;
        let packed = Tensor::f_from_slice(packed)?.f_view([count, ROW_WORDS as i64])?;
        let mut rows = self.rows.f_narrow(0, first as i64, count)?;
        Ok(rows.f_copy_(&packed)?)
    }

    fn run(&mut self, size: usize) -> Result<(), NetworkError> {
        let size = size as i64;
        // The last batch's answers have been waited for: nobody reads the rows any more.
        let rows = self.rows.f_narrow(0, 0, size)?;
        let rows = rows.f_to_device_(self.device, Kind::Int64, true, false)?;
        let (planes, masks) = unpack(&rows, self.kind)?;
        let outputs = self.body.forward(&planes, Mode::Evaluation)?;
        let policy = outputs
            .policy
            .f_masked_fill(&masks.f_logical_not()?, f64::NEG_INFINITY)?
            .f_log_softmax(1, Kind::Float)?;
        let answers = Tensor::f_cat(&[policy, outputs.value_logit.f_unsqueeze(1)?], 1)?;
        Ok(self.answers.f_narrow(0, 0, size)?.f_copy_(&answers)?)
    }

    fn read(&mut self, first: usize, out: &mut [f32]) -> Result<(), NetworkError> {
        let count = out.len() / ANSWER_FLOATS;
        let answers = self.answers.f_narrow(0, first as i64, count as i64)?;
        Ok(answers.f_copy_data(out, count * ANSWER_FLOATS)?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::tests::decided_network;
    use super::super::positions::real_positions;
    use super::super::{Network, NetworkEvaluator, Precision, unpack_masks, unpack_rows};
    use super::*;
    use crate::search::Evaluator;
    use tch::no_grad;

    fn packed(queries: &[Query]) -> Vec<i64> {
        let mut packed = Vec::new();
        queries.iter().for_each(|query| pack(query, &mut packed));
        packed
    }

    fn forward(network: &Network, precision: Precision, capacity: usize) -> PackedForward {
        let device = super::super::Device::Cpu;
        let prepared = Prepared::new(network, device, precision, "test".into()).unwrap();
        PackedForward::new(&prepared, capacity).unwrap()
    }

    fn answers(forward: &mut PackedForward, queries: &[Query], size: usize) -> Vec<f32> {
        let mut answers = vec![7.0; queries.len() * ANSWER_FLOATS];
        no_grad(|| {
            forward.load(0, &packed(queries)).unwrap();
            forward.run(size).unwrap();
            forward.read(0, &mut answers).unwrap();
        });
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
    fn packed_rows_unpack_to_what_rows_and_masks_say() {
        let queries = real_positions(300).unwrap();
        let words = Tensor::from_slice(&packed(&queries)).view([300, ROW_WORDS as i64]);
        let rows: Vec<_> = queries
            .iter()
            .map(|query| encode(&query.state, query.repetitions))
            .collect();
        let masks: Vec<_> = queries
            .iter()
            .map(|query| LegalMask::new(&query.legal, query.side()))
            .collect();
        let expected = unpack_rows(&rows, Device::Cpu).unwrap();
        for kind in [Kind::Float, Kind::BFloat16] {
            let (planes, unpacked) = unpack(&words, kind).unwrap();
            assert_eq!(planes.kind(), kind);
            assert_eq!(planes.stride(), expected.stride(), "channels together");
            assert!(planes.to_kind(Kind::Float).equal(&expected));
            assert!(unpacked.equal(&unpack_masks(&masks, Device::Cpu).unwrap()));
        }
    }

    #[test]
    fn the_packed_way_says_what_the_evaluator_says() {
        let network = decided_network(3, 16);
        let queries = real_positions(200).unwrap();
        for (precision, tolerance) in [(Precision::Fp32, 1e-5), (Precision::Bf16, 1e-5)] {
            let mut evaluator =
                NetworkEvaluator::new(&network, super::super::Device::Cpu, precision, "test")
                    .unwrap();
            let mut expected = Evaluations::default();
            evaluator.evaluate(&queries, &mut expected).unwrap();
            let mut forward = forward(&network, precision, 256);
            let found = read(&queries, &answers(&mut forward, &queries, 200)).unwrap();
            for index in 0..queries.len() {
                let (one, other) = (expected.get(index).unwrap(), found.get(index).unwrap());
                assert!((one.value - other.value).abs() < tolerance);
                assert_eq!(one.priors.len(), other.priors.len());
                let pairs = one.priors.iter().zip(other.priors);
                assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() < tolerance));
            }
            // Padding changes nothing, whatever an earlier batch left in it.
            let alone = read(&queries[..70], &answers(&mut forward, &queries[..70], 128)).unwrap();
            for index in 0..70 {
                assert_eq!(alone.get(index), found.get(index));
            }
        }
    }

    #[test]
    fn a_way_that_spoils_answers_is_found_out() {
        let network = decided_network(2, 16);
        let device = super::super::Device::Cpu;
        let prepared = Prepared::new(&network, device, Precision::Fp32, "test".into()).unwrap();
        let mut forward = PackedForward::new(&prepared, 128).unwrap();
        forward.check(&prepared, &[1, 16, 128]).unwrap();
        let other = Network::new(network.architecture(), 8).unwrap();
        for spoilt in [Some(&other), None] {
            forward.body = match spoilt {
                Some(other) => {
                    let other =
                        Prepared::new(other, device, Precision::Fp32, "other".into()).unwrap();
                    other.body.share()
                }
                None => {
                    forward.body.spoil("value");
                    forward.body.share()
                }
            };
            let error = forward.check(&prepared, &[16]).unwrap_err();
            assert!(matches!(error, NetworkError::Drift { .. }), "{error}");
        }
    }

    #[test]
    fn numbers_that_are_none_name_their_head() {
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
        assert!(read_answer("test", &queries[0], &[], &mut out).is_err());
    }
}
