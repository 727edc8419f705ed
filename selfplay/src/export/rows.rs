//! The rows of a game, with the values of all arrays.

use arimaa::rules::{Reason, Side};
use engine::encoding::{InputRow, LegalMask, encode};
use engine::shard::{
    Ending, GameId, GameRecord, ReplayError, ReplayedTurn, SearchKind, TurnOrigin, replay,
};

/// A recorded step state and its targets. Values are the mover's win probabilities.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) input: InputRow,
    pub(super) legal: LegalMask,
    /// Over the legal entries, in ascending order; the sum is [`POLICY_TOTAL`](engine::shard::POLICY_TOTAL).
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
