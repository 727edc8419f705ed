//! The arrays of a file of rows.
//!
//! `N` is the number of rows. Everything is as the side to move sees it, playing north; values are its win probabilities.
//!
//! | name | type | shape | what |
//! |---|---|---|---|
//! | `planes` | uint8 | `(N, 21, 8, 8)` | the bitboards of the input, 0 or 1, by plane ([`engine::encoding::plane`]), rank and file |
//! | `scalars` | float32 | `(N, 12)` | the numbers of the input ([`engine::encoding::scalar`]); a network is shown each as a whole plane behind the 21 |
//! | `legal` | bool | `(N, 321)` | which entries of the policy are legal: steps north, east, south, west from each square (64 each), placements, the end of the turn |
//! | `policy` | float32 | `(N, 321)` | the policy's target, 0 where illegal; the sum is 1 |
//! | `value` | float32 | `(N,)` | the result: 1 won, 0 lost; of an unfinished game its last search's value, 0.5 without one |
//! | `search_value` | float32 | `(N,)` | the search's value of the turn's start; NaN where nothing was searched |
//! | `network_value` | float32 | `(N,)` | the evaluator's own value of the turn's start; NaN where none was asked |
//! | `weight` | float32 | `(N,)` | the row's weight in training |
//! | `surprise` | float32 | `(N,)` | KL(target ‖ evaluator's policy) in nats; 0 where it was not kept |
//! | `visits` | uint32 | `(N,)` | the visits behind the target |
//! | `generator`, `counter` | uint32, uint64 | `(N,)` | the game's id |
//! | `turn` | uint32 | `(N,)` | the turn in its game, both sides' counted, from 0 |
//! | `step` | uint8 | `(N,)` | the actions of the turn before the row's state |
//! | `side` | uint8 | `(N,)` | who is to move: 0 Gold, 1 Silver |
//! | `origin` | uint8 | `(N,)` | how the turn was chosen: 0 given, 1 drawn from the policy, 2 searched in full, 3 searched fast |
//! | `ending` | uint8 | `(N,)` | how the game ended: 0 goal, 1 elimination, 2 immobilization, 3 resigned, 4 forfeited, 5 unfinished |

use super::rows::Row;
use engine::encoding::{PLANES, POLICY_SIZE, SCALARS};
use engine::record::POLICY_TOTAL;
use ndarray::{ArrayView, Dimension, IntoDimension};
use ndarray_npy::{NpzWriter, WritableElement, WriteNpyError, WriteNpzError};
use std::io::{Seek, Write};

/// Rows, column by column.
#[derive(Debug, Default)]
pub(super) struct Arrays {
    planes: Vec<u8>,
    scalars: Vec<f32>,
    legal: Vec<bool>,
    policy: Vec<f32>,
    value: Vec<f32>,
    search_value: Vec<f32>,
    network_value: Vec<f32>,
    weight: Vec<f32>,
    surprise: Vec<f32>,
    visits: Vec<u32>,
    generator: Vec<u32>,
    counter: Vec<u64>,
    turn: Vec<u32>,
    step: Vec<u8>,
    side: Vec<u8>,
    origin: Vec<u8>,
    ending: Vec<u8>,
}

impl Arrays {
    /// The rows.
    pub(super) fn len(&self) -> usize {
        self.step.len()
    }

    /// Adds a row.
    pub(super) fn push(&mut self, row: &Row) {
        for plane in row.input.planes {
            self.planes
                .extend((0..64).map(|square| (plane >> square & 1) as u8));
        }
        self.scalars.extend(row.input.scalars);
        let mut shares = row.policy.iter();
        for index in 0..POLICY_SIZE {
            let is_legal = row.legal.contains(index);
            let share = if is_legal { shares.next() } else { None };
            self.legal.push(is_legal);
            self.policy
                .push(f32::from(share.copied().unwrap_or(0)) / POLICY_TOTAL as f32);
        }
        let facts = &row.turn_facts;
        self.value.push(facts.value);
        self.search_value.push(facts.search_value);
        self.network_value.push(facts.network_value);
        self.weight.push(row.weight);
        self.surprise.push(row.surprise);
        self.visits.push(row.visits);
        self.generator.push(facts.id.generator);
        self.counter.push(facts.id.counter);
        self.turn.push(facts.turn);
        self.step.push(row.step);
        self.side.push(facts.side.index() as u8);
        self.origin.push(facts.origin);
        self.ending.push(facts.ending);
    }

    /// Forgets all rows; their memory is used again.
    pub(super) fn clear(&mut self) {
        self.planes.clear();
        self.scalars.clear();
        self.legal.clear();
        self.policy.clear();
        self.value.clear();
        self.search_value.clear();
        self.network_value.clear();
        self.weight.clear();
        self.surprise.clear();
        self.visits.clear();
        self.generator.clear();
        self.counter.clear();
        self.turn.clear();
        self.step.clear();
        self.side.clear();
        self.origin.clear();
        self.ending.clear();
    }

    /// Writes the rows as a compressed `.npz` file.
    pub(super) fn write(&self, file: impl Write + Seek) -> Result<(), WriteNpzError> {
        let rows = self.len();
        let mut file = NpzWriter::new_compressed(file);
        add(&mut file, "planes", (rows, PLANES, 8, 8), &self.planes)?;
        add(&mut file, "scalars", (rows, SCALARS), &self.scalars)?;
        add(&mut file, "legal", (rows, POLICY_SIZE), &self.legal)?;
        add(&mut file, "policy", (rows, POLICY_SIZE), &self.policy)?;
        add(&mut file, "value", rows, &self.value)?;
        add(&mut file, "search_value", rows, &self.search_value)?;
        add(&mut file, "network_value", rows, &self.network_value)?;
        add(&mut file, "weight", rows, &self.weight)?;
        add(&mut file, "surprise", rows, &self.surprise)?;
        add(&mut file, "visits", rows, &self.visits)?;
        add(&mut file, "generator", rows, &self.generator)?;
        add(&mut file, "counter", rows, &self.counter)?;
        add(&mut file, "turn", rows, &self.turn)?;
        add(&mut file, "step", rows, &self.step)?;
        add(&mut file, "side", rows, &self.side)?;
        add(&mut file, "origin", rows, &self.origin)?;
        add(&mut file, "ending", rows, &self.ending)?;
        file.finish()?;
        Ok(())
    }
}

fn add<T: WritableElement, D: Dimension>(
    file: &mut NpzWriter<impl Write + Seek>,
    name: &str,
    shape: impl IntoDimension<Dim = D>,
    numbers: &[T],
) -> Result<(), WriteNpzError> {
    // The shape is that of the numbers.
    let array = ArrayView::from_shape(shape.into_dimension(), numbers)
        .map_err(|error| WriteNpyError::Io(std::io::Error::other(error)))?;
    file.add_array(name, &array)
}
