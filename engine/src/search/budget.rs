//! How long a search may take.

use std::time::{Duration, Instant};

/// What a search may use up. It ends with the first limit that is reached, and without any when it is stopped. Without a limit on
/// simulations it also ends when it finds nothing more to evaluate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Evaluations. They cap the simulations too: a simulation that ends where the game is decided costs no evaluation.
    pub evaluations: Option<u32>,
    /// Simulations.
    pub visits: Option<u32>,
    /// Time from the first call of [`leaves`](super::Search::leaves) on, as far as the evaluator lets the search look at the clock.
    pub time: Option<Duration>,
    /// Whether to stop as soon as the rest of the budget can't change the turn, unless it proves a win or a loss. That is so with
    /// one legal turn; in mode `puct` without temperature, when the simulations left are too few for any other turn to be compared
    /// with the most visited one; in mode `gumbel`, when one candidate is left. Time alone does not tell how many are left. Meant
    /// for play: what training learns from a search, its value above all, still changes.
    pub stops_when_decided: bool,
    /// MiB that the tree may take. Once they are used up it grows no more, and simulations continue with the nodes that there are. In
    /// mode `puct` one that would have to go beyond them is no visit, but uses up as much of the budget as one. At most
    /// 16,384 count.
    pub memory_mib: u32,
}

impl Budget {
    /// So many evaluations, and no more simulations than that.
    pub fn evaluations(evaluations: u32) -> Self {
        Self {
            evaluations: Some(evaluations),
            ..Self::unlimited()
        }
    }

    /// So many simulations.
    pub fn visits(visits: u32) -> Self {
        Self {
            visits: Some(visits),
            ..Self::unlimited()
        }
    }

    /// No limit but the memory.
    pub fn unlimited() -> Self {
        Self {
            evaluations: None,
            visits: None,
            time: None,
            stops_when_decided: false,
            memory_mib: DEFAULT_MEMORY_MIB,
        }
    }

    /// Whether it allows nothing at all.
    pub(super) fn is_empty(&self) -> bool {
        self.evaluations == Some(0)
            || self.visits == Some(0)
            || self.time == Some(Duration::ZERO)
            || self.memory_mib == 0
    }

    /// Whether only a stop ends it.
    pub(super) fn has_no_end(&self) -> bool {
        self.most_visits().is_none() && self.time.is_none()
    }

    /// Bytes that the tree may take.
    pub(super) fn memory_bytes(&self) -> usize {
        self.memory_mib.min(MAX_MEMORY_MIB) as usize * (1 << 20)
    }

    /// The simulations that it allows, if it limits them.
    pub(super) fn most_visits(&self) -> Option<u32> {
        match (self.evaluations, self.visits) {
            (Some(evaluations), Some(visits)) => Some(evaluations.min(visits)),
            (one, other) => one.or(other),
        }
    }
}

/// The most MiB that a tree may take: its edges, of 4 bytes each, are numbered in 32 bits.
const MAX_MEMORY_MIB: u32 = 16_384;

/// MiB that a tree may take by default: some 4 million visits.
pub(super) const DEFAULT_MEMORY_MIB: u32 = 1_024;

/// A search without a limit on simulations ends after this many in a row that needed no evaluation: its tree is full, or it has seen all
/// that it can.
const MAX_IDLE_SIMULATIONS: u32 = 100_000;

/// What has been used of a budget.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spent {
    pub(super) visits: u32,
    /// Simulations that ended where the tree had no room, and are no visits.
    pub(super) idle: u32,
    pub(super) evaluations: u32,
    /// The simulations before the last evaluation came.
    pub(super) simulations_at_evaluation: u32,
    pub(super) begun: Option<Instant>,
    /// Set to end the search.
    pub(super) is_stopped: bool,
}

impl Spent {
    pub(super) fn time(&self) -> Duration {
        self.begun.map_or(Duration::ZERO, |begun| begun.elapsed())
    }

    /// The simulations, those among them that are no visits: what a limit on visits counts.
    pub(super) fn simulations(&self) -> u32 {
        self.visits.saturating_add(self.idle)
    }

    /// How much of the budget is used, 0 to 1: of that limit which is nearest. One visit is always allowed.
    pub(super) fn share(&self, budget: &Budget) -> f64 {
        if self.simulations() == 0 && self.evaluations == 0 {
            return 0.0;
        }
        if self.is_stopped {
            return 1.0;
        }
        let in_a_row = self.simulations() - self.simulations_at_evaluation;
        if budget.most_visits().is_none() && in_a_row >= MAX_IDLE_SIMULATIONS {
            return 1.0;
        }
        let part = |used: u32, of: Option<u32>| {
            of.map_or(0.0, |limit| f64::from(used) / f64::from(limit.max(1)))
        };
        let of_time = budget.time.map_or(0.0, |limit| {
            self.time().as_secs_f64() / limit.as_secs_f64().max(1e-9)
        });
        part(self.simulations(), budget.most_visits())
            .max(part(self.evaluations, budget.evaluations))
            .max(of_time)
            .min(1.0)
    }

    /// The simulations left until this share of the budget is used, 0 to 1; `u32::MAX` where they are not limited.
    pub(super) fn visits_until(&self, budget: &Budget, share: f64) -> u32 {
        budget.most_visits().map_or(u32::MAX, |limit| {
            let end = (f64::from(limit) * share).ceil() as u32;
            end.saturating_sub(self.simulations())
        })
    }

    /// The simulations left, as far as they are limited.
    pub(super) fn visits_left(&self, budget: &Budget) -> Option<u32> {
        if self.is_stopped {
            return Some(0);
        }
        let limit = budget.most_visits()?;
        Some(limit.saturating_sub(self.simulations()))
    }

    /// The simulations left in part `part` of so many equal ones of the budget, 1 at least; `u32::MAX` where they are not limited.
    pub(super) fn visits_left_in(&self, budget: &Budget, part: u32, parts: u32) -> u32 {
        let left = |used: u32, limit: Option<u32>| {
            limit.map_or(u32::MAX, |limit| {
                let end = u64::from(limit) * u64::from(part + 1);
                let end = end.div_ceil(u64::from(parts.max(1))) as u32;
                end.saturating_sub(used)
            })
        };
        left(self.simulations(), budget.most_visits())
            .min(left(self.evaluations, budget.evaluations))
            .max(1)
    }

    /// The evaluations left, as far as they are limited.
    pub(super) fn evaluations_left(&self, budget: &Budget) -> Option<u32> {
        if self.is_stopped {
            return Some(0);
        }
        let limit = budget.evaluations?;
        Some(limit.saturating_sub(self.evaluations))
    }
}
