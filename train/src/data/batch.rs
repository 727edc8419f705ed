//! A batch: rows side by side, first in memory, then as tensors.

use super::TrainingRow;
use super::game_rows::RowView;
use crate::loss::Losses;
use arimaa::rules::Bitboard;
use engine::encoding::{InputRow, LegalMask, PLANES, POLICY_SIZE, SCALARS, mirror_index};
use engine::shard::POLICY_TOTAL;
use ndarray::parallel::prelude::*;
use ndarray::{Array1, Array2, Axis, s};
use network::{NetworkError, unpack_planes, unpack_sets};
use rayon::prelude::{ParallelSlice, ParallelSliceMut};
use std::ops::Range;
use tch::{Device, Kind, Tensor};

/// Rows that one thread writes before the next ones are shared out.
const ROWS_AT_ONCE: usize = 32;

/// What a row of a batch takes in memory.
pub(super) const BYTES_PER_ROW: usize = size_of::<InputRow>()
    + size_of::<LegalMask>()
    + 2 * POLICY_SIZE * size_of::<f32>()
    + 6 * size_of::<f32>()
    + 3 * size_of::<u64>();

/// The bitboards of a mask: its five, and one whose lowest bit is the end of the turn.
const MASK_SETS: i64 = 6;

/// The bitboards that a row travels as: those of its input and its mask, the pieces, and those that will be taken.
const SETS: i64 = PLANES as i64 + MASK_SETS + 2;

/// The numbers beside them, without the ending: scalars, two policies and six columns.
const NUMBERS: usize = SCALARS + 2 * POLICY_SIZE + 6;

// By pairs they fill words.
const _: () = assert!(NUMBERS.is_multiple_of(2));

/// The rows of one step of the optimizer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Batch {
    pub(super) inputs: Vec<InputRow>,
    legal: Vec<LegalMask>,
    /// `[batch, 321]`, 0 where illegal.
    pub(super) policy: Array2<f32>,
    /// `[batch]`.
    weight: Array1<f32>,
    /// `[batch]`.
    pub(super) value: Array1<f32>,
    /// `[batch]`.
    value_weight: Array1<f32>,
    /// `[batch]`.
    turns_left: Array1<f32>,
    /// `[batch]`.
    ending: Array1<i64>,
    /// `[batch]`: a bitboard each.
    pieces: Array1<u64>,
    /// `[batch]`: a bitboard each.
    taken: Array1<u64>,
    /// `[batch]`.
    outcome_weight: Array1<f32>,
    /// `[batch, 321]`.
    reply: Array2<f32>,
    /// `[batch]`.
    reply_weight: Array1<f32>,
}

/// A batch on a device.
#[derive(Debug)]
pub(crate) struct BatchTensors {
    /// `[batch, CHANNELS, 8, 8]`.
    pub(crate) planes: Tensor,
    /// Which entries of the policy are legal: `[batch, 321]`, bool.
    pub(crate) legal: Tensor,
    /// The policy's targets, each row summing to 1: `[batch, 321]`.
    pub(crate) policy: Tensor,
    /// `[batch]`.
    pub(crate) weight: Tensor,
    /// The mover's win probability: `[batch]`.
    pub(crate) value: Tensor,
    /// `[batch]`.
    pub(crate) value_weight: Tensor,
    /// The turns until the game's end: `[batch]`.
    pub(crate) turns_left: Tensor,
    /// How the game ends, 0 to 5 as in [`HelperTargets::ending`](super::rows::HelperTargets::ending): `[batch]`, int64.
    pub(crate) ending: Tensor,
    /// 1 where a piece stands, else 0: `[batch, 64]`.
    pub(crate) pieces: Tensor,
    /// 1 where a piece stands that will be taken, else 0: `[batch, 64]`.
    pub(crate) taken: Tensor,
    /// The weight of the three targets above: `[batch]`.
    pub(crate) outcome_weight: Tensor,
    /// The policy's target at the start of the opponent's next turn, as the mover sees the board, each row summing to 1 where it has
    /// a weight: `[batch, 321]`.
    pub(crate) reply: Tensor,
    /// `[batch]`.
    pub(crate) reply_weight: Tensor,
}

impl Batch {
    /// Lays rows side by side, each as it is or, where the flag says so, mirrored.
    pub(crate) fn new(rows: &[(&TrainingRow, bool)]) -> Self {
        let mut batch = Self::with_rows(rows.len());
        let rows: Vec<_> = rows
            .iter()
            .map(|&(row, mirrored)| (row.into(), mirrored))
            .collect();
        batch.write(0, &rows);
        batch
    }

    /// Room for so many rows.
    pub(super) fn with_rows(rows: usize) -> Self {
        let column = || Array1::zeros(rows);
        Self {
            inputs: vec![InputRow::default(); rows],
            legal: vec![LegalMask::default(); rows],
            policy: Array2::zeros((rows, POLICY_SIZE)),
            weight: column(),
            value: column(),
            value_weight: column(),
            turns_left: column(),
            ending: Array1::zeros(rows),
            pieces: Array1::zeros(rows),
            taken: Array1::zeros(rows),
            outcome_weight: column(),
            reply: Array2::zeros((rows, POLICY_SIZE)),
            reply_weight: column(),
        }
    }

    /// Writes rows over those from row `at` on, in parallel, each as it is or, where the flag says so, mirrored. There is room for
    /// all of them.
    pub(super) fn write(&mut self, at: usize, rows: &[(RowView, bool)]) {
        let range = at..at + rows.len();
        let mut policy = self.policy.slice_mut(s![range.clone(), ..]);
        let mut reply = self.reply.slice_mut(s![range.clone(), ..]);
        let policies = policy
            .axis_chunks_iter_mut(Axis(0), ROWS_AT_ONCE)
            .into_par_iter();
        let replies = reply
            .axis_chunks_iter_mut(Axis(0), ROWS_AT_ONCE)
            .into_par_iter();
        let inputs = self.inputs[range.clone()].par_chunks_mut(ROWS_AT_ONCE);
        let legal = self.legal[range.clone()].par_chunks_mut(ROWS_AT_ONCE);
        policies
            .zip(replies)
            .zip(inputs.zip(legal))
            .zip(rows.par_chunks(ROWS_AT_ONCE))
            .for_each(|(((mut policies, mut replies), (inputs, legal)), rows)| {
                let outputs = policies.rows_mut().into_iter().zip(replies.rows_mut());
                let inputs = inputs.iter_mut().zip(legal);
                for ((outputs, (input, legal)), &(row, mirrored)) in outputs.zip(inputs).zip(rows) {
                    let (mut policy, mut reply) = outputs;
                    policy.fill(0.0);
                    reply.fill(0.0);
                    let entry = |index| if mirrored { mirror_index(index) } else { index };
                    for (index, &share) in row.legal.indices().zip(row.policy) {
                        policy[entry(index)] = f32::from(share) / POLICY_TOTAL as f32;
                    }
                    for &(index, share) in row.reply {
                        reply[entry(index.into())] = f32::from(share) / POLICY_TOTAL as f32;
                    }
                    (*input, *legal) = match mirrored {
                        true => (row.input.mirror(), row.legal.mirror()),
                        false => (*row.input, *row.legal),
                    };
                }
            });
        for (at, &(row, mirrored)) in range.zip(rows) {
            let squares = |set: u64| {
                if mirrored {
                    Bitboard(set).mirror().0
                } else {
                    set
                }
            };
            self.weight[at] = row.weight;
            self.value[at] = row.value;
            self.value_weight[at] = row.value_weight;
            self.turns_left[at] = row.turns_left;
            self.ending[at] = row.ending.into();
            self.pieces[at] = squares(row.input.pieces());
            self.taken[at] = squares(row.taken);
            self.outcome_weight[at] = row.outcome_weight;
            self.reply_weight[at] = row.reply_weight;
        }
    }

    /// How many rows it has.
    pub(crate) fn len(&self) -> usize {
        self.inputs.len()
    }

    /// Some of its rows.
    pub(crate) fn part(&self, rows: Range<usize>) -> Self {
        let column = |numbers: &Array1<f32>| numbers.slice(s![rows.clone()]).to_owned();
        Self {
            inputs: self.inputs[rows.clone()].to_vec(),
            legal: self.legal[rows.clone()].to_vec(),
            policy: self.policy.slice(s![rows.clone(), ..]).to_owned(),
            weight: column(&self.weight),
            value: column(&self.value),
            value_weight: column(&self.value_weight),
            turns_left: column(&self.turns_left),
            ending: self.ending.slice(s![rows.clone()]).to_owned(),
            pieces: self.pieces.slice(s![rows.clone()]).to_owned(),
            taken: self.taken.slice(s![rows.clone()]).to_owned(),
            outcome_weight: column(&self.outcome_weight),
            reply: self.reply.slice(s![rows.clone(), ..]).to_owned(),
            reply_weight: column(&self.reply_weight),
        }
    }

    /// The sums of the rows' weights in the losses.
    pub(crate) fn weights(&self) -> Losses {
        let sum = |weights: &Array1<f32>| weights.iter().map(|&weight| f64::from(weight)).sum();
        Losses {
            policy: sum(&self.weight),
            value: sum(&self.value_weight),
            turns_left: sum(&self.outcome_weight),
            ending: sum(&self.outcome_weight),
            taken: sum(&self.outcome_weight),
            reply: sum(&self.reply_weight),
        }
    }

    /// The batch as tensors on a device. To a GPU it travels in one piece, the bits packed. The memory on the host is not pinned:
    /// behind an error of the device libtorch would end the process when it is freed.
    pub(crate) fn to_device(&self, device: Device) -> Result<BatchTensors, NetworkError> {
        let rows = self.len() as i64;
        let packed = Tensor::f_from_slice(&self.pack())?;
        let packed = packed.f_to_device_(device, Kind::Int64, true, false)?;
        let sets = packed.f_narrow(0, 0, rows * SETS)?.f_view([rows, SETS])?;
        let ending = packed.f_narrow(0, rows * SETS, rows)?;
        let numbers = rows * (SETS + 1);
        let numbers = packed
            .f_narrow(0, numbers, packed.size1()? - numbers)?
            .f_view_dtype(Kind::Float)?;
        let mut begin = 0;
        let mut column = |width: i64| {
            let column = numbers.f_narrow(0, begin, rows * width);
            begin += rows * width;
            column
        };
        let mut table = |width: usize| column(width as i64)?.f_view([rows, width as i64]);
        let (scalars, policy, reply) = (table(SCALARS)?, table(POLICY_SIZE)?, table(POLICY_SIZE)?);

        let others = unpack_sets(&sets.f_narrow(1, PLANES as i64, MASK_SETS + 2)?)?;
        let legal = others.f_narrow(1, 0, MASK_SETS)?.f_to_kind(Kind::Bool)?;
        let pieces = others.f_narrow(1, MASK_SETS, 2)?.f_to_kind(Kind::Float)?;
        Ok(BatchTensors {
            planes: unpack_planes(&sets.f_narrow(1, 0, PLANES as i64)?, &scalars)?,
            legal: legal
                .f_reshape([rows, MASK_SETS * 64])?
                .f_narrow(1, 0, POLICY_SIZE as i64)?,
            policy,
            reply,
            weight: column(1)?,
            value: column(1)?,
            value_weight: column(1)?,
            turns_left: column(1)?,
            outcome_weight: column(1)?,
            reply_weight: column(1)?,
            ending,
            taken: pieces.f_select(1, 1)?,
            pieces: pieces.f_select(1, 0)?,
        })
    }

    /// All of it as 64-bit words: each row's bitboards, the endings, then the numbers by pairs, each kind of them in one piece.
    fn pack(&self) -> Vec<i64> {
        let squares = self.pieces.iter().zip(&self.taken);
        let rows = self.inputs.iter().zip(&self.legal).zip(squares);
        let sets = rows.flat_map(|((input, legal), (&pieces, &taken))| {
            let sets = input.planes.into_iter().chain(legal.squares);
            sets.chain([u64::from(legal.end), pieces, taken])
        });
        let mut words: Vec<i64> = sets.map(|set| set as i64).collect();
        words.extend(&self.ending);
        let mut numbers: Vec<f32> = Vec::with_capacity(self.len() * NUMBERS);
        numbers.extend(self.inputs.iter().flat_map(|input| input.scalars));
        numbers.extend(self.policy.iter().chain(&self.reply));
        for column in [
            &self.weight,
            &self.value,
            &self.value_weight,
            &self.turns_left,
            &self.outcome_weight,
            &self.reply_weight,
        ] {
            numbers.extend(column);
        }
        let pairs = numbers.as_chunks().0.iter();
        words.extend(pairs.map(|[one, other]: &[f32; 2]| {
            let [a, b, c, d] = one.to_ne_bytes();
            let [e, f, g, h] = other.to_ne_bytes();
            i64::from_ne_bytes([a, b, c, d, e, f, g, h])
        }));
        words
    }

    /// The mean entropy of the policy's targets, in nats: what its loss can't go below.
    #[cfg(test)]
    pub(crate) fn policy_entropy(&self) -> f64 {
        let information = |&share: &f32| match f64::from(share) {
            0.0 => 0.0,
            share => -share * share.ln(),
        };
        self.policy.iter().map(information).sum::<f64>() / self.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::rows_of;
    use crate::data::samples::targets;
    use engine::encoding::{CHANNELS, mirror_policy};
    use engine::shard::{GameId, samples::random_game};

    fn rows() -> Vec<TrainingRow> {
        let id = GameId {
            generator: 0,
            counter: 4,
        };
        let mut record = random_game(id, 1, 1_000);
        // Targets with which no two entries can be confused.
        for row in record.turns.iter_mut().flat_map(|turn| &mut turn.rows) {
            let count = row.policy.len() as u16;
            for (index, share) in row.policy.iter_mut().enumerate() {
                *share = index as u16;
            }
            row.policy[0] = u16::MAX - count * (count - 1) / 2;
        }
        rows_of(&record, targets(0.0)).unwrap()
    }

    #[test]
    fn a_batch_holds_each_row_at_its_place() {
        let rows = rows();
        let batch = Batch::new(&rows.iter().map(|row| (row, false)).collect::<Vec<_>>());
        assert_eq!(batch.len(), rows.len());
        let tensors = batch.to_device(Device::Cpu).unwrap();
        let numbers =
            |tensor: &Tensor| Vec::<f32>::try_from(tensor.contiguous().view([-1])).unwrap();
        let (policy, planes) = (numbers(&tensors.policy), numbers(&tensors.planes));
        let legal = Vec::<bool>::try_from(tensors.legal.reshape([-1])).unwrap();
        let mut expected = vec![0.0; CHANNELS * 64];
        for (number, row) in rows.iter().enumerate() {
            let at = number * POLICY_SIZE..(number + 1) * POLICY_SIZE;
            let mut shares = row.policy.iter();
            for (index, (&share, &legal)) in policy[at.clone()].iter().zip(&legal[at]).enumerate() {
                assert_eq!(legal, row.legal.contains(index));
                let expected = if legal {
                    f32::from(*shares.next().unwrap())
                } else {
                    0.0
                };
                assert_eq!(share, expected / 65_535.0);
            }
            row.input.write_planes(&mut expected);
            assert_eq!(
                planes[number * expected.len()..][..expected.len()],
                expected
            );
        }
        for (tensor, column) in [
            (&tensors.weight, &batch.weight),
            (&tensors.value, &batch.value),
            (&tensors.value_weight, &batch.value_weight),
            (&tensors.turns_left, &batch.turns_left),
            (&tensors.outcome_weight, &batch.outcome_weight),
            (&tensors.reply_weight, &batch.reply_weight),
        ] {
            assert_eq!(numbers(tensor), column.to_vec());
        }
        assert_eq!(
            numbers(&tensors.value),
            rows.iter().map(|row| row.value).collect::<Vec<_>>()
        );
        assert_eq!(numbers(&tensors.reply), batch.reply.flatten().to_vec());
        let ending = Vec::<i64>::try_from(&tensors.ending).unwrap();
        assert_eq!(ending, batch.ending.to_vec());
        for (tensor, sets) in [
            (&tensors.pieces, &batch.pieces),
            (&tensors.taken, &batch.taken),
        ] {
            let squares = numbers(tensor);
            for (squares, set) in squares.chunks(64).zip(sets) {
                let has = |square: usize| f32::from(set >> square & 1 != 0);
                assert!((0..64).all(|square| squares[square] == has(square)));
            }
        }
    }

    #[test]
    fn a_mirrored_row_is_mirrored_in_all_its_parts() {
        let rows = rows();
        let batch =
            |mirrored| Batch::new(&rows.iter().map(|row| (row, mirrored)).collect::<Vec<_>>());
        let (plain, mirrored) = (batch(false), batch(true));
        for (number, row) in rows.iter().enumerate() {
            assert_eq!(mirrored.inputs[number], row.input.mirror());
            assert_eq!(mirrored.legal[number], row.legal.mirror());
            let policy = |batch: &Batch| -> [f32; POLICY_SIZE] {
                batch.policy.row(number).to_vec().try_into().unwrap()
            };
            assert_eq!(policy(&mirrored), mirror_policy(&policy(&plain)));
            let reply = |batch: &Batch| -> [f32; POLICY_SIZE] {
                batch.reply.row(number).to_vec().try_into().unwrap()
            };
            assert_eq!(reply(&mirrored), mirror_policy(&reply(&plain)));
            let columns: [fn(&Batch) -> &Array1<u64>; 2] =
                [|batch| &batch.pieces, |batch| &batch.taken];
            for squares in columns {
                let of = |batch| Bitboard(squares(batch)[number]);
                assert_eq!(of(&mirrored), of(&plain).mirror());
            }
            assert_eq!(mirrored.pieces[number], mirrored.inputs[number].pieces());
            let legal: Vec<usize> = (0..POLICY_SIZE)
                .filter(|&index| policy(&mirrored)[index] > 0.0)
                .collect();
            assert!(
                legal
                    .iter()
                    .all(|&index| mirrored.legal[number].contains(index))
            );
        }
        assert_eq!(mirrored.value, plain.value);
        assert_ne!(mirrored.inputs, plain.inputs);
        assert_ne!(mirrored.taken, plain.taken);
        assert_eq!(plain.reply.row(0).sum(), 1.0);
    }
}
