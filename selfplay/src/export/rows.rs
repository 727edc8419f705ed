//! The rows of games, and the arrays of a file of rows.
//!
//! `N` is the number of rows. Everything is as the side to move sees it, playing north; values are its win probabilities.
//!
//! | name | type | shape | what |
//! |---|---|---|---|
//! | `planes` | uint8 | `(N, 27, 8, 8)` | the bitboards of the input, 0 or 1, by plane ([`engine::encoding::plane`]), rank and file |
//! | `scalars` | float32 | `(N, 12)` | the numbers of the input ([`engine::encoding::scalar`]); a network gets each as a whole plane after the 27 |
//! | `legal` | bool | `(N, 321)` | which entries of the policy are legal: steps north, east, south, west from each square (64 each), placements, the end of the turn |
//! | `policy` | float32 | `(N, 321)` | the policy's target, 0 where illegal; the sum is 1 |
//! | `value` | float32 | `(N,)` | the result: 1 won, 0 lost; of an unfinished game its last search's value, 0.5 without one |
//! | `search_value` | float32 | `(N,)` | the search's value of the turn's start; NaN where nothing was searched |
//! | `network_value` | float32 | `(N,)` | the evaluator's own value of the turn's start; NaN where no evaluator was used |
//! | `weight` | float32 | `(N,)` | the row's weight in training |
//! | `surprise` | float32 | `(N,)` | KL(target ‖ evaluator's policy) in nats; 0 where it was not kept |
//! | `visits` | uint32 | `(N,)` | the visits behind the target |
//! | `generator`, `counter` | uint32, uint64 | `(N,)` | the game's id |
//! | `turn` | uint32 | `(N,)` | the turn in its game, both sides' counted, from 0 |
//! | `step` | uint8 | `(N,)` | the actions of the turn before the row's state |
//! | `side` | uint8 | `(N,)` | the side to move: 0 Gold, 1 Silver |
//! | `origin` | uint8 | `(N,)` | how the turn was chosen: 0 given, 1 drawn from the policy, 2 searched in full, 3 searched fast |
//! | `ending` | uint8 | `(N,)` | how the game ended: 0 goal, 1 elimination, 2 immobilization, 3 resigned, 4 forfeited, 5 unfinished |

use arimaa::rules::{Reason, Side};
use engine::encoding::{InputRow, LegalMask, PLANES, POLICY_SIZE, SCALARS, encode};
use engine::record::{
    Ending, GameId, GameRecord, POLICY_TOTAL, ReplayError, ReplayedTurn, SearchKind, TurnOrigin,
    replay,
};
use ndarray::{Array, Dimension, IntoDimension};
use ndarray_npy::{NpzWriter, WritableElement, WriteNpyError, WriteNpzError};
use std::io::{Seek, Write};

/// A recorded step state and its targets. Values are the mover's win probabilities.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) input: InputRow,
    pub(super) legal: LegalMask,
    /// Over the legal entries, in ascending order; the sum is [`POLICY_TOTAL`].
    pub(super) policy: Vec<u16>,
    pub(super) turn_facts: TurnFacts,
    pub(super) surprise: f32,
    pub(super) weight: f32,
    pub(super) visits: u32,
    pub(super) step: u8,
}

/// Facts of all rows of a turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TurnFacts {
    pub(super) id: GameId,
    /// From 0; counts the turns of both sides.
    pub(super) turn: u32,
    pub(super) side: Side,
    /// The game's result, or its estimate where the game is unfinished.
    pub(super) value: f32,
    /// NaN where nothing was searched.
    pub(super) search_value: f32,
    /// NaN where no evaluator was used.
    pub(super) network_value: f32,
    /// See [`origin_code`].
    pub(super) origin: u8,
    /// See [`ending_code`].
    pub(super) ending: u8,
}

/// All rows of a game in order, checked under the rules.
pub(super) fn rows_of(record: &GameRecord) -> Result<Vec<Row>, ReplayError> {
    let mut rows = Vec::new();
    for (number, (turn, recorded)) in replay(record)?.iter().zip(&record.turns).enumerate() {
        let turn_facts = TurnFacts::new(record, number, turn);
        let steps = recorded.rows.iter().map(|row| row.step);
        rows.extend(turn.rows.iter().zip(steps).map(|(row, step)| Row {
            input: encode(&row.state, turn.repetitions),
            legal: LegalMask::new(&row.legal, turn_facts.side),
            policy: row.policy.to_vec(),
            turn_facts,
            surprise: row.surprise,
            weight: row.weight,
            visits: row.visits,
            step,
        }));
    }
    Ok(rows)
}

impl TurnFacts {
    fn new(record: &GameRecord, number: usize, turn: &ReplayedTurn) -> Self {
        let side = turn.position.side();
        let result = match record.ending {
            Ending::Unfinished { value } => value.unwrap_or(0.5),
            ending => f32::from(u8::from(ending.winner() == Some(Side::Gold))),
        };
        let (search, network) = match turn.origin {
            TurnOrigin::Given => (f32::NAN, f32::NAN),
            TurnOrigin::Policy { network_value, .. } => (f32::NAN, network_value),
            TurnOrigin::Search(search) => (search.value, search.network_value),
        };
        let of_mover = |gold: f32| match side {
            Side::Gold => gold,
            Side::Silver => 1.0 - gold,
        };
        Self {
            id: record.id,
            turn: u32::try_from(number).unwrap_or(u32::MAX),
            side,
            value: of_mover(result),
            search_value: of_mover(search),
            network_value: of_mover(network),
            origin: origin_code(&turn.origin),
            ending: ending_code(&record.ending),
        }
    }
}

/// 0 given, 1 drawn from the policy, 2 searched in full, 3 searched fast.
fn origin_code(origin: &TurnOrigin) -> u8 {
    match origin {
        TurnOrigin::Given => 0,
        TurnOrigin::Policy { .. } => 1,
        TurnOrigin::Search(search) => match search.kind {
            SearchKind::Full => 2,
            SearchKind::Fast => 3,
        },
    }
}

/// 0 goal, 1 elimination, 2 immobilization, 3 resigned, 4 forfeited, 5 unfinished.
fn ending_code(ending: &Ending) -> u8 {
    match ending {
        Ending::Won(outcome) => match outcome.reason {
            Reason::Goal => 0,
            Reason::Elimination => 1,
            Reason::Immobilization => 2,
        },
        Ending::Resigned { .. } => 3,
        Ending::Forfeited { .. } => 4,
        Ending::Unfinished { .. } => 5,
    }
}

/// Writes rows as a compressed `.npz` file, one array after another.
pub(super) fn write(rows: &[Row], file: impl Write + Seek) -> Result<(), WriteNpzError> {
    let count = rows.len();
    let rows = || rows.iter();
    let turns = || rows().map(|row| &row.turn_facts);
    let squares = |plane: u64| (0..64).map(move |square| (plane >> square & 1) as u8);
    let planes = rows().flat_map(|row| row.input.planes.into_iter().flat_map(squares));
    let legal = |row: &Row| std::array::from_fn::<_, POLICY_SIZE, _>(|it| row.legal.contains(it));
    let mut file = NpzWriter::new_compressed(file);
    add(&mut file, "planes", (count, PLANES, 8, 8), planes)?;
    let scalars = rows().flat_map(|row| row.input.scalars);
    add(&mut file, "scalars", (count, SCALARS), scalars)?;
    let shape = (count, POLICY_SIZE);
    add(&mut file, "legal", shape, rows().flat_map(legal))?;
    add(&mut file, "policy", shape, rows().flat_map(policy))?;
    add(&mut file, "value", count, turns().map(|it| it.value))?;
    let search_value = turns().map(|it| it.search_value);
    add(&mut file, "search_value", count, search_value)?;
    let network_value = turns().map(|it| it.network_value);
    add(&mut file, "network_value", count, network_value)?;
    add(&mut file, "weight", count, rows().map(|row| row.weight))?;
    add(&mut file, "surprise", count, rows().map(|row| row.surprise))?;
    add(&mut file, "visits", count, rows().map(|row| row.visits))?;
    add(
        &mut file,
        "generator",
        count,
        turns().map(|it| it.id.generator),
    )?;
    add(&mut file, "counter", count, turns().map(|it| it.id.counter))?;
    add(&mut file, "turn", count, turns().map(|it| it.turn))?;
    add(&mut file, "step", count, rows().map(|row| row.step))?;
    add(
        &mut file,
        "side",
        count,
        turns().map(|it| it.side.index() as u8),
    )?;
    add(&mut file, "origin", count, turns().map(|it| it.origin))?;
    add(&mut file, "ending", count, turns().map(|it| it.ending))?;
    file.finish()?;
    Ok(())
}

/// The policy's target over all entries, 0 where illegal.
fn policy(row: &Row) -> [f32; POLICY_SIZE] {
    let mut shares = row.policy.iter();
    std::array::from_fn(|index| {
        if row.legal.contains(index) {
            f32::from(shares.next().copied().unwrap_or(0)) / POLICY_TOTAL as f32
        } else {
            0.0
        }
    })
}

fn add<T: WritableElement, D: Dimension>(
    file: &mut NpzWriter<impl Write + Seek>,
    name: &str,
    shape: impl IntoDimension<Dim = D>,
    numbers: impl Iterator<Item = T>,
) -> Result<(), WriteNpzError> {
    // The shape is that of the numbers.
    let array = Array::from_shape_vec(shape.into_dimension(), numbers.collect())
        .map_err(|error| WriteNpyError::Io(std::io::Error::other(error)))?;
    file.add_array(name, &array)
}
