//! All distinct turns of a position.

use super::{Action, History, Phase, Position, StepState, Steps, Turn};
use rustc_hash::{FxHashMap, FxHashSet};

/// The distinct turns of a position: for each position that a legal turn can end in, one shortest turn that leads there.
///
/// Step states that different step orders reach are followed once. A setup's 64,864,800 turns are not enumerated: for a setup
/// position the result is empty.
///
/// ```
/// use engine::rules::{History, distinct_turns};
/// let position = engine::notation::parse_position("g [r                                  Er                          R]")?;
/// assert!(distinct_turns(&position, &History::default()).iter().all(|(end, _)| end.board() != position.board()));
/// # Ok::<(), engine::notation::NotationError>(())
/// ```
pub fn distinct_turns(position: &Position, history: &History) -> Vec<(Position, Turn)> {
    if position.phase() == Phase::Setup {
        return Vec::new();
    }
    let mut ends: FxHashMap<Position, Turn> = FxHashMap::default();
    let mut seen: FxHashSet<StepState> = FxHashSet::default();
    let mut level = vec![(StepState::new(position), Steps::new())];
    let mut order = Vec::new();
    // Level by level, so that the first turn found to an end is a shortest one.
    while !level.is_empty() {
        let mut next_level = Vec::new();
        for (state, steps) in level {
            if state.can_end(history) {
                ends.entry(state.end()).or_insert_with_key(|end| {
                    order.push(*end);
                    Turn::Steps(steps.clone())
                });
            }
            for step in state.legal_actions(history).steps() {
                let next = state.after(Action::Step(step));
                if seen.insert(next) {
                    let mut steps = steps.clone();
                    steps.push(step);
                    next_level.push((next, steps));
                }
            }
        }
        level = next_level;
    }
    order
        .into_iter()
        .filter_map(|end| ends.remove_entry(&end))
        .collect()
}
