//! How many turns are compared, and how wide the beam is that finds them: by the options, the budget and the memory.

use crate::search::decision::longest_turn;
use crate::search::options::SearchOptions;
use arimaa::rules::{Phase, Position};

/// Below this many evaluations there is nothing to halve.
const MIN_BUDGET: u32 = 8;

/// Candidates where neither the options nor the budget say how many.
const USUAL_CANDIDATES: u32 = 32;

/// Bytes that a beam holds for each prefix of its width: in eight levels of a setup, or four of a turn, what follows a prefix, with
/// its place in a table.
const BEAM_BYTES: usize = 16 << 10;

/// How many candidates there are to be, and how wide the beam is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sizes {
    /// The most turns that are compared.
    pub(super) candidates: u32,
    /// The most prefixes and whole turns that the beam holds at once.
    pub(super) beam_width: u32,
}

impl Sizes {
    /// The beam evaluates `1 + steps · width` prefixes, steps being those before the last one, and then the candidates: together at
    /// most half of the budget.
    pub(super) fn new(position: &Position, options: &SearchOptions) -> Option<Self> {
        let steps = longest_turn(position.phase()) - 1;
        let is_setup = position.phase() == Phase::Setup;
        let (candidates, beam_width) = (
            options.gumbel.candidates.fixed(),
            options.gumbel.beam_width.fixed(),
        );
        let of_memory = widest_within(options);
        // Where time limits the search, the number of evaluations is unknown, and no more is sampled than without limits.
        let usual = |most: u32| match options.budget.time {
            Some(_) => most.min(USUAL_CANDIDATES),
            None => most,
        };
        let Some(budget) = options.budget.most_visits() else {
            let candidates = candidates.unwrap_or(USUAL_CANDIDATES).min(of_memory);
            let beam_width = beam_width.unwrap_or(candidates);
            let beam_width = beam_width.min(of_memory).max(candidates);
            return Some(Self {
                candidates,
                beam_width,
            });
        };
        if budget < MIN_BUDGET {
            return None;
        }
        let half = budget / 2;
        let halved = |most: u32| if is_setup { most.div_ceil(2) } else { most };
        let most = candidates.map_or_else(|| usual(halved(budget.isqrt())), halved);
        let candidates = most.min(half / (steps + 1)).min(of_memory).max(1);
        let widest = (half.saturating_sub(candidates) / steps)
            .min(of_memory)
            .max(1);
        let beam_width = beam_width.map_or_else(|| usual(widest), halved);
        Some(Self {
            candidates,
            beam_width: beam_width.min(widest).max(candidates),
        })
    }

    /// Bytes that the beam may hold beside the tree.
    pub(super) fn beam_bytes(self) -> usize {
        self.beam_width as usize * BEAM_BYTES
    }
}

/// How often a number of candidates is halved until one is left.
pub(super) fn halvings_to_one(candidates: usize) -> u32 {
    candidates.max(1).next_power_of_two().trailing_zeros()
}

/// How wide a beam may be. What it holds beside the tree takes no more than half of the memory.
fn widest_within(options: &SearchOptions) -> u32 {
    let most = options.budget.memory_bytes() / 2 / BEAM_BYTES;
    most.clamp(1, 1 << 20) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{AutoOr, SearchConfig};
    use crate::search::Budget;
    use crate::search::testing::position;
    use arimaa::rules::Side;
    use std::time::Duration;

    #[test]
    fn a_time_limit_bounds_sizes_that_are_not_set() {
        let sizes = |candidates, beam_width, evaluations| {
            let mut options = SearchOptions::strongest(&SearchConfig::default(), 1);
            options.gumbel.candidates = candidates;
            options.gumbel.beam_width = beam_width;
            options.budget = Budget {
                evaluations,
                time: Some(Duration::from_secs(1)),
                ..Budget::unlimited()
            };
            let position = position(Side::Gold, "Ra1 ra8");
            let sizes = Sizes::new(&position, &options).unwrap();
            (sizes.candidates, sizes.beam_width)
        };
        let (auto, fixed) = (AutoOr::Auto, AutoOr::Fixed);
        for evaluations in [None, Some(10_000)] {
            assert_eq!(sizes(auto, auto, evaluations), (32, 32));
            assert_eq!(sizes(fixed(64), auto, evaluations), (64, 64));
            assert_eq!(sizes(fixed(64), fixed(200), evaluations), (64, 200));
            assert_eq!(sizes(auto, fixed(200), evaluations), (32, 200));
        }
    }
}
