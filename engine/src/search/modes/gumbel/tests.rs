//! Tests of the sampling, the halving and the targets.

mod comparison;
mod sampling;
mod targets;

use super::GumbelTurn;
use crate::config::{AutoOr, SearchConfig, SearchMode};
use crate::search::modes::Strategy;
use crate::search::state::SearchState;
use crate::search::testing::{Hashed, answer, history_of};
use crate::search::{Budget, Search, SearchOptions};
use arimaa::rules::{Action, History, Position, StepState};
use rand::rngs::ChaCha8Rng;

/// Mode `gumbel` with so many candidates and a beam of that width, as far as the budget lets it.
fn options(budget: Budget, candidates: u32, beam_width: u32) -> SearchOptions {
    let mut options = SearchOptions::strongest(&SearchConfig::default(), 1);
    options.mode = SearchMode::Gumbel;
    options.budget = budget;
    options.gumbel.candidates = AutoOr::Fixed(candidates);
    options.gumbel.beam_width = AutoOr::Fixed(beam_width);
    options
}

/// The strategy of a search in mode `gumbel`.
fn of(search: &Search) -> (&SearchState, &GumbelTurn) {
    match search.strategy() {
        Strategy::Gumbel(turn) => (search.state(), turn),
        Strategy::Puct(_) => panic!("a search step by step"),
    }
}

/// The search of a position, run to its end.
fn decided(
    position: &Position,
    evaluator: Hashed,
    options: SearchOptions,
    rng: &mut ChaCha8Rng,
) -> Search {
    let history = history_of(position);
    let mut search = Search::new(position, &history, options).unwrap();
    while answer(&mut search, evaluator, &history, rng) {}
    search
}

/// The orders of the steps from a state on, each with its end: the turn's, or where it does not continue.
fn each_order(
    state: &StepState,
    history: &History,
    orders: &mut Vec<(Vec<Action>, StepState)>,
    so_far: &mut Vec<Action>,
    continues: &impl Fn(&StepState) -> bool,
) {
    let is_start = state.steps_used() == 0 && !so_far.is_empty();
    if is_start || !continues(state) {
        orders.push((so_far.clone(), *state));
        return;
    }
    for action in state.legal_actions(history).in_index_order(state.side()) {
        so_far.push(action);
        let after = crate::search::tree::state_after(state, action);
        each_order(&after, history, orders, so_far, continues);
        so_far.pop();
    }
}
