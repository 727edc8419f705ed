//! What the benchmarks of evaluators ask.

use arimaa::perft::PositionLine;
use arimaa::rules::{History, StepState};
use engine::search::Query;

const POSITIONS: &str = include_str!("../../arimaa/tests/data/oracle/positions_public.jsonl");

/// The turn starts of all positions in which a turn is left.
pub(crate) fn queries() -> Vec<Query> {
    let history = History::default();
    let lines = POSITIONS.lines().map(|line| {
        let line: PositionLine = serde_json::from_str(line).unwrap();
        line.position().unwrap()
    });
    lines
        .filter(|position| position.outcome(&history).is_none())
        .map(|position| {
            let state = StepState::new(&position);
            Query {
                state,
                legal: state.legal_actions(&history),
                repetitions: 0,
            }
        })
        .collect()
}
