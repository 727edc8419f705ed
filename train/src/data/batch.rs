//! A batch: rows side by side, first in memory, then as tensors.

use super::rows::RowRef;
use super::targets::Target;
use arimaa::rules::Bitboard;
use engine::encoding::{InputRow, LegalMask, PLANES, POLICY_SIZE, SCALARS, mirror_index};
use engine::record::POLICY_TOTAL;
use network::{
    HEADS, Head, HeadOutput, NetworkError, PerHead, RowWeight, unpack_planes, unpack_sets,
};
use rayon::prelude::*;
use std::ops::Range;
use tch::{Device, Kind, Tensor};

/// Rows that one thread writes before the next ones are shared out.
const ROWS_AT_ONCE: usize = 32;

/// The bytes of a row of a batch in memory.
pub(super) const BYTES_PER_ROW: usize = {
    let mut bytes = size_of::<InputRow>() + size_of::<LegalMask>();
    bytes += RowWeight::ALL.len() * size_of::<f32>();
    let mut head = 0;
    while head < HEADS.len() {
        bytes += match numbers_of(HEADS[head].output) {
            0 => size_of::<u64>(),
            numbers => numbers * size_of::<f32>(),
        };
        head += 1;
    }
    bytes
};

/// The bitboards of a mask: its five, and one whose lowest bit is the end of the turn.
const MASK_SETS: usize = 6;

/// The rows of one step of the optimizer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Batch {
    pub(super) inputs: Vec<InputRow>,
    legal: Vec<LegalMask>,
    pub(super) targets: PerHead<Column>,
    /// `[batch]` each.
    weights: [Vec<f32>; RowWeight::ALL.len()],
}

/// The targets of one head, row by row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Column {
    /// `[batch]`, or of a policy `[batch, 321]`, 0 where illegal.
    Numbers(Vec<f32>),
    /// `[batch]`: classes, or a bitboard each.
    Words(Vec<u64>),
}

/// A batch on a device.
#[derive(Debug)]
pub(crate) struct BatchTensors {
    /// `[batch, CHANNELS, 8, 8]`.
    pub(crate) planes: Tensor,
    /// Which entries of the policy are legal: `[batch, 321]`, bool.
    pub(crate) legal: Tensor,
    /// By the head's output: policies `[batch, 321]`, each row summing to 1 where it has a weight; numbers `[batch]`; classes
    /// `[batch]`, int64; squares `[batch, 64]`, 0 or 1.
    pub(crate) targets: PerHead<Tensor>,
    /// `[batch]` each, by [`RowWeight`].
    pub(crate) weights: [Tensor; RowWeight::ALL.len()],
}

/// The numbers of a row's target; 0 for a target that is a word.
const fn numbers_of(output: HeadOutput) -> usize {
    match output {
        HeadOutput::Policy => POLICY_SIZE,
        HeadOutput::Logit | HeadOutput::Count { .. } => 1,
        HeadOutput::Classes(_) | HeadOutput::Squares => 0,
    }
}

impl Column {
    fn with_rows(head: Head, rows: usize) -> Self {
        match numbers_of(head.spec().output) {
            0 => Self::Words(vec![0; rows]),
            numbers => Self::Numbers(vec![0.0; rows * numbers]),
        }
    }

    /// Writes the targets of some rows over those from row `at` on; policies in parallel.
    fn write(&mut self, at: usize, rows: &[RowRef], head: Head) {
        match self {
            Self::Words(words) => {
                for (word, row) in words[at..].iter_mut().zip(rows) {
                    *word = word_of(row, head);
                }
            }
            Self::Numbers(numbers) if numbers_of(head.spec().output) == 1 => {
                for (number, row) in numbers[at..].chunks_exact_mut(1).zip(rows) {
                    write_numbers(number, row, head);
                }
            }
            Self::Numbers(numbers) => {
                let width = numbers_of(head.spec().output);
                numbers[at * width..(at + rows.len()) * width]
                    .par_chunks_mut(ROWS_AT_ONCE * width)
                    .zip(rows.par_chunks(ROWS_AT_ONCE))
                    .for_each(|(numbers, rows)| {
                        for (numbers, row) in numbers.chunks_exact_mut(width).zip(rows) {
                            write_numbers(numbers, row, head);
                        }
                    });
            }
        }
    }
}

/// A row's class or squares.
fn word_of(row: &RowRef, head: Head) -> u64 {
    match row.target(head) {
        Target::Class(class) => class.into(),
        Target::Squares(set) if row.is_mirrored() => Bitboard(set).mirror().0,
        Target::Squares(set) => set,
        // Numbers and shares are kept in `Column::Numbers`.
        _ => 0,
    }
}

/// Writes a row's number, policy or reply over its numbers.
fn write_numbers(numbers: &mut [f32], row: &RowRef, head: Head) {
    numbers.fill(0.0);
    let mut set = |index: usize, share: u16| {
        let index = if row.is_mirrored() {
            mirror_index(index)
        } else {
            index
        };
        numbers[index] = f32::from(share) / POLICY_TOTAL as f32;
    };
    match row.target(head) {
        Target::LegalShares(shares) => {
            let legal = row.legal().indices().zip(shares);
            legal.for_each(|(index, &share)| set(index, share));
        }
        Target::Shares(shares) => {
            let shares = shares.iter();
            shares.for_each(|&[index, share]| set(index.into(), share));
        }
        Target::Number(number) => numbers[0] = number,
        // Classes and squares are kept in `Column::Words`.
        _ => {}
    }
}

impl Batch {
    /// Lays rows side by side.
    pub(crate) fn new(rows: &[RowRef]) -> Self {
        let mut batch = Self::with_rows(rows.len());
        batch.write(0, rows);
        batch
    }

    /// Room for so many rows.
    pub(super) fn with_rows(rows: usize) -> Self {
        Self {
            inputs: vec![InputRow::default(); rows],
            legal: vec![LegalMask::default(); rows],
            targets: PerHead::from_fn(|head| Column::with_rows(head, rows)),
            weights: RowWeight::ALL.map(|_| vec![0.0; rows]),
        }
    }

    /// Writes rows over those from row `at` on. There is room for all of them.
    pub(super) fn write(&mut self, at: usize, rows: &[RowRef]) {
        let range = at..at + rows.len();
        let inputs = self.inputs[range.clone()].par_chunks_mut(ROWS_AT_ONCE);
        let legal = self.legal[range].par_chunks_mut(ROWS_AT_ONCE);
        inputs
            .zip(legal)
            .zip(rows.par_chunks(ROWS_AT_ONCE))
            .for_each(|((inputs, legal), rows)| {
                for ((input, legal), row) in inputs.iter_mut().zip(legal).zip(rows) {
                    (*input, *legal) = if row.is_mirrored() {
                        (row.input().mirror(), row.legal().mirror())
                    } else {
                        (*row.input(), *row.legal())
                    };
                }
            });
        // One entry into the thread pool for all heads.
        rayon::scope(|_| {
            for head in Head::ALL {
                self.targets[head].write(at, rows, head);
            }
        });
        for (of, weights) in RowWeight::ALL.into_iter().zip(&mut self.weights) {
            for (weight, row) in weights[at..].iter_mut().zip(rows) {
                *weight = row.weight(of);
            }
        }
    }

    /// How many rows it has.
    pub(crate) fn len(&self) -> usize {
        self.inputs.len()
    }

    /// The sums of some rows' weights in the losses.
    pub(crate) fn weights(&self, rows: Range<usize>) -> PerHead<f64> {
        PerHead::from_fn(|head| {
            let weights = &self.weights[head.spec().row_weight as usize][rows.clone()];
            weights.iter().map(|&weight| f64::from(weight)).sum()
        })
    }

    /// Some rows as tensors on a device. To a GPU they travel in one piece, the bits packed. The memory on the host is not pinned:
    /// behind an error of the device libtorch would end the process when it is freed.
    pub(crate) fn to_device(
        &self,
        rows: Range<usize>,
        device: Device,
    ) -> Result<BatchTensors, NetworkError> {
        let packed = Tensor::f_from_slice(&self.pack(rows.clone()))?;
        let rows = rows.len() as i64;
        let packed = packed.f_to_device_(device, Kind::Int64, true, false)?;
        let mut begin = 0;
        let mut words = |width: usize| {
            let words = packed.f_narrow(0, begin, rows * width as i64);
            begin += rows * width as i64;
            words
        };
        let of_squares = Head::ALL.map(|head| head.spec().output == HeadOutput::Squares);
        let squares = of_squares.into_iter().filter(|&is| is).count();
        let sets = PLANES + MASK_SETS + squares;
        let table = words(sets)?.f_view([rows, sets as i64])?;
        let planes = table.f_narrow(1, 0, PLANES as i64)?;
        let others = table.f_narrow(1, PLANES as i64, (MASK_SETS + squares) as i64)?;
        let others = unpack_sets(&others)?;
        let legal = others
            .f_narrow(1, 0, MASK_SETS as i64)?
            .f_to_kind(Kind::Bool)?;
        let squares = others
            .f_narrow(1, MASK_SETS as i64, squares as i64)?
            .f_to_kind(Kind::Float)?;

        let mut targets = PerHead::<Tensor>::default();
        let mut squares_before = 0;
        for head in Head::ALL {
            match head.spec().output {
                HeadOutput::Classes(_) => targets[head] = words(1)?,
                HeadOutput::Squares => {
                    targets[head] = squares.f_select(1, squares_before)?;
                    squares_before += 1;
                }
                HeadOutput::Policy | HeadOutput::Logit | HeadOutput::Count { .. } => {}
            }
        }
        let numbers = packed
            .f_narrow(0, begin, packed.size1()? - begin)?
            .f_view_dtype(Kind::Float)?;
        let mut begin = 0;
        let mut column = |width: usize| {
            let column = numbers.f_narrow(0, begin, rows * width as i64);
            begin += rows * width as i64;
            column
        };
        let scalars = column(SCALARS)?.f_view([rows, SCALARS as i64])?;
        for head in Head::ALL {
            match numbers_of(head.spec().output) {
                0 => {}
                1 => targets[head] = column(1)?,
                width => targets[head] = column(width)?.f_view([rows, width as i64])?,
            }
        }
        let mut weights = RowWeight::ALL.map(|_| Tensor::default());
        for weight in &mut weights {
            *weight = column(1)?;
        }
        Ok(BatchTensors {
            planes: unpack_planes(&planes, &scalars)?,
            legal: legal.f_reshape([rows, MASK_SETS as i64 * 64])?.f_narrow(
                1,
                0,
                POLICY_SIZE as i64,
            )?,
            targets,
            weights,
        })
    }

    /// Some rows as 64-bit words: each row's bitboards; the classes, head by head; then the numbers by pairs, each kind of them in
    /// one piece.
    fn pack(&self, rows: Range<usize>) -> Vec<i64> {
        let (inputs, legal) = (&self.inputs[rows.clone()], &self.legal[rows.clone()]);
        let (mut squares, mut classes) = (Vec::new(), Vec::new());
        let mut numbers: Vec<f32> = Vec::new();
        numbers.extend(inputs.iter().flat_map(|input| input.scalars));
        for (head, column) in self.targets.iter() {
            let output = head.spec().output;
            match column {
                Column::Numbers(column) => {
                    let width = numbers_of(output);
                    numbers.extend(&column[rows.start * width..rows.end * width]);
                }
                Column::Words(words) if output == HeadOutput::Squares => {
                    squares.push(&words[rows.clone()]);
                }
                Column::Words(words) => classes.push(&words[rows.clone()]),
            }
        }
        for weights in &self.weights {
            numbers.extend(&weights[rows.clone()]);
        }
        if !numbers.len().is_multiple_of(2) {
            numbers.push(0.0);
        }
        let mut words: Vec<i64> = Vec::new();
        for (row, (input, legal)) in inputs.iter().zip(legal).enumerate() {
            let sets = input.planes.into_iter().chain(legal.squares);
            let sets = sets.chain([u64::from(legal.end)]);
            let sets = sets.chain(squares.iter().map(|squares| squares[row]));
            words.extend(sets.map(|set| set as i64));
        }
        words.extend(classes.into_iter().flatten().map(|&class| class as i64));
        let pairs = numbers.as_chunks().0.iter();
        words.extend(pairs.map(|[one, other]: &[f32; 2]| {
            let [a, b, c, d] = one.to_ne_bytes();
            let [e, f, g, h] = other.to_ne_bytes();
            i64::from_ne_bytes([a, b, c, d, e, f, g, h])
        }));
        words
    }

    /// The mean entropy of the policy's targets, in nats: the lower bound of its loss.
    #[cfg(test)]
    pub(crate) fn policy_entropy(&self) -> f64 {
        let Column::Numbers(policies) = &self.targets[Head::Policy] else {
            panic!("policies are numbers");
        };
        let information = |&share: &f32| match f64::from(share) {
            0.0 => 0.0,
            share => -share * share.ln(),
        };
        policies.iter().map(information).sum::<f64>() / self.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::GameRows;
    use crate::data::samples::targets;
    use engine::encoding::{CHANNELS, mirror_policy};
    use engine::record::{GameId, samples::random_game};

    fn game() -> GameRows {
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
        GameRows::all(&record, targets(0.0)).unwrap()
    }

    fn numbers(tensor: &Tensor) -> Vec<f32> {
        let tensor = tensor.to_kind(Kind::Float).contiguous().view([-1]);
        tensor.try_into().unwrap()
    }

    #[test]
    fn a_batch_holds_each_row_at_its_place() {
        let game = game();
        let rows: Vec<RowRef> = game.rows().collect();
        // An odd number of rows: the numbers fill no whole words.
        for rows in [&rows[..], &rows[..rows.len() - 1]] {
            let batch = Batch::new(rows);
            assert_eq!(batch.len(), rows.len());
            let tensors = batch.to_device(0..rows.len(), Device::Cpu).unwrap();
            let policy = numbers(&tensors.targets[Head::Policy]);
            let planes = numbers(&tensors.planes);
            let legal = Vec::<bool>::try_from(tensors.legal.reshape([-1])).unwrap();
            let mut expected = vec![0.0; CHANNELS * 64];
            for (number, row) in rows.iter().enumerate() {
                let at = number * POLICY_SIZE..(number + 1) * POLICY_SIZE;
                let mut shares = row.policy().iter();
                let entries = policy[at.clone()].iter().zip(&legal[at]);
                for (index, (&share, &legal)) in entries.enumerate() {
                    assert_eq!(legal, row.legal().contains(index));
                    let expected = if legal {
                        f32::from(*shares.next().unwrap())
                    } else {
                        0.0
                    };
                    assert_eq!(share, expected / 65_535.0);
                }
                row.input().write_planes(&mut expected);
                let found = &planes[number * expected.len()..][..expected.len()];
                assert_eq!(found, expected);
            }
            for (of, tensor) in RowWeight::ALL.into_iter().zip(&tensors.weights) {
                let expected: Vec<f32> = rows.iter().map(|row| row.weight(of)).collect();
                assert_eq!(numbers(tensor), expected, "{of:?}");
            }
            for (head, tensor) in tensors.targets.iter() {
                let expected: Vec<f32> = match (&batch.targets[head], head.spec().output) {
                    (Column::Numbers(policies), HeadOutput::Policy) => policies.clone(),
                    (Column::Numbers(_), _) => rows.iter().map(|row| row.number(head)).collect(),
                    (Column::Words(_), HeadOutput::Classes(_)) => {
                        rows.iter().map(|row| row.class(head).into()).collect()
                    }
                    (Column::Words(_), _) => {
                        let sets = rows.iter().map(|row| row.squares(head));
                        let bits = |set: u64| (0..64).map(move |square| set >> square & 1);
                        sets.flat_map(bits).map(|bit| bit as f32).collect()
                    }
                };
                assert_eq!(numbers(tensor), expected, "{head:?}");
            }
        }
    }

    #[test]
    fn a_mirrored_row_is_mirrored_in_all_its_parts() {
        let game = game();
        let batch = |mirrored| {
            let rows = game.rows().map(|row| row.mirrored(mirrored));
            Batch::new(&rows.collect::<Vec<_>>())
        };
        let (plain, mirrored) = (batch(false), batch(true));
        assert_eq!(mirrored.weights, plain.weights);
        for head in Head::ALL {
            let output = head.spec().output;
            match (&plain.targets[head], &mirrored.targets[head]) {
                (Column::Numbers(plain), Column::Numbers(mirrored))
                    if output == HeadOutput::Policy =>
                {
                    let rows = |policies: &[f32]| policies.as_chunks::<POLICY_SIZE>().0.to_vec();
                    for (plain, mirrored) in rows(plain).iter().zip(rows(mirrored)) {
                        assert_eq!(mirrored, mirror_policy(plain));
                    }
                    let sum: f64 = plain[..POLICY_SIZE]
                        .iter()
                        .map(|&share| f64::from(share))
                        .sum();
                    assert!((sum - 1.0).abs() < 1e-6, "{sum}");
                }
                (Column::Words(plain), Column::Words(mirrored))
                    if output == HeadOutput::Squares =>
                {
                    let pairs = plain.iter().zip(mirrored);
                    for (&plain, &mirrored) in pairs {
                        assert_eq!(Bitboard(mirrored), Bitboard(plain).mirror());
                    }
                    assert_ne!(plain, mirrored);
                }
                (plain, mirrored) => assert_eq!(plain, mirrored),
            }
        }
        let Column::Numbers(policies) = &mirrored.targets[Head::Policy] else {
            panic!("policies are numbers");
        };
        let policies = policies.as_chunks::<POLICY_SIZE>().0;
        for (number, row) in game.rows().enumerate() {
            assert_eq!(mirrored.inputs[number], row.input().mirror());
            assert_eq!(mirrored.legal[number], row.legal().mirror());
            let shares = policies[number].iter().enumerate();
            let mut likely = shares.filter(|&(_, &share)| share > 0.0);
            assert!(likely.all(|(index, _)| mirrored.legal[number].contains(index)));
        }
        assert_ne!(mirrored.inputs, plain.inputs);
    }
}
