//! Format version 1: every turn searched, by the header's evaluator, in a game from the empty board on.

use super::super::record::{
    Ending, Evaluator, GameId, GameRecord, RowRecord, SearchKind, SearchRecord, Start, TurnOrigin,
    TurnRecord,
};
use arimaa::rules::Outcome;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(in super::super) struct GameRecord1 {
    id: GameId,
    seed: u64,
    turns: Vec<TurnRecord1>,
    ending: Ending1,
}

#[derive(Debug, Clone, Copy, Deserialize)]
enum Ending1 {
    Won(Outcome),
    Unfinished,
}

#[derive(Debug, Deserialize)]
struct TurnRecord1 {
    actions: Vec<u16>,
    value: f32,
    network_value: f32,
    visits: u32,
    rows: Vec<RowRecord1>,
}

#[derive(Debug, Deserialize)]
struct RowRecord1 {
    step: u8,
    visits: u32,
    policy: Vec<u16>,
    weight: f32,
}

impl GameRecord1 {
    /// The record today; what was not kept then is 0.
    pub(in super::super) fn upgrade(self, evaluator: &Evaluator) -> GameRecord {
        let value = self.turns.last().map(|turn| turn.value);
        GameRecord {
            id: self.id,
            seed: self.seed,
            start: Start::Empty,
            evaluators: vec![evaluator.clone()],
            turns: self.turns.into_iter().map(TurnRecord1::upgrade).collect(),
            ending: match self.ending {
                Ending1::Won(outcome) => Ending::Won(outcome),
                Ending1::Unfinished => Ending::Unfinished { value },
            },
            resignation_waived: None,
        }
    }
}

impl TurnRecord1 {
    fn upgrade(self) -> TurnRecord {
        TurnRecord {
            actions: self.actions,
            origin: TurnOrigin::Search(SearchRecord {
                evaluator: 0,
                kind: SearchKind::Full,
                budget: 0,
                evaluations: 0,
                visits: self.visits,
                value: self.value,
                value_spread: 0.0,
                network_value: self.network_value,
            }),
            rows: self.rows.into_iter().map(RowRecord1::upgrade).collect(),
        }
    }
}

impl RowRecord1 {
    fn upgrade(self) -> RowRecord {
        RowRecord {
            step: self.step,
            visits: self.visits,
            policy: self.policy,
            surprise: 0.0,
            weight: self.weight,
        }
    }
}
