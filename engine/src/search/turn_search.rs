//! The search for one whole turn: what both modes share. Leaves are handed out, answers taken, the decision made.

use super::batch::LeafBatch;
use super::budget::Spent;
use super::decision::{Choice, Decision, decide, winning_choice};
use super::evaluator::{Evaluation, Evaluations, Evaluator, EvaluatorError, Query};
use super::modes::Strategy;
use super::options::SearchOptions;
use super::root_priors::RootPriors;
use super::simulations::Simulations;
use super::state::SearchState;
use super::tree::{NodeId, Tree};
use crate::config::{AutoOr, SearchMode};
use arimaa::rules::{History, Phase, Position, StepState, TurnEnumerator};
use rand::Rng;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Why a search can't be run.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// There is nothing to decide.
    #[error("there is no turn to search for: the game is over in {position}, {outcome}")]
    GameOver {
        /// The position.
        position: Position,
        /// How it ended.
        outcome: String,
    },
    /// The budget allows nothing.
    #[error("a search needs a budget of at least one visit, one evaluation, some time and 1 MiB")]
    NoBudget,
    /// Mode `gumbel` has nothing to compare.
    #[error("mode gumbel needs at least one candidate turn")]
    NoCandidates,
    /// The draw of actions has no meaning.
    #[error("turns are drawn at a temperature of 0 or more, not {temperature}")]
    BadTemperature {
        /// The temperature.
        temperature: f32,
    },
    /// The evaluator failed.
    #[error(transparent)]
    Evaluator(#[from] EvaluatorError),
}

/// The search for one turn of one game. Make one a game and use it turn after turn: it keeps its memory, and with
/// [`reuse_tree`](Self::reuse_tree) its tree.
#[derive(Debug)]
pub struct Search {
    state: SearchState,
    /// The simulations in flight.
    simulations: Simulations,
    batch: LeafBatch,
    strategy: Strategy,
    decision: Option<Decision>,
    /// How long the decision took.
    decided_after: Option<Duration>,
}

impl Search {
    /// A search for the turn of a position. `history` is the game's, the position itself counted in it.
    ///
    /// # Errors
    /// Where there is nothing to decide or nothing to decide it with.
    pub fn new(
        position: &Position,
        history: &History,
        options: SearchOptions,
    ) -> Result<Self, SearchError> {
        let mut search = Self {
            state: SearchState {
                options,
                tree: Tree::default(),
                root: NodeId::default(),
                position: *position,
                root_priors: RootPriors::default(),
                spent: Spent::default(),
                turns_deep: 0,
                deepest: 0,
                forbidden_key: 0,
                stop: None,
            },
            simulations: Simulations::default(),
            batch: LeafBatch::default(),
            strategy: Strategy::default(),
            decision: None,
            decided_after: None,
        };
        search.restart(position, history, options)?;
        Ok(search)
    }

    /// Forgets the turn before and starts on another, of any game, with any evaluator.
    ///
    /// # Errors
    /// Where there is nothing to decide or nothing to decide it with; the search stays as it was.
    pub fn restart(
        &mut self,
        position: &Position,
        history: &History,
        options: SearchOptions,
    ) -> Result<(), SearchError> {
        check(position, history, &options)?;
        self.state.tree.clear(
            options.merges,
            options.goal_solver,
            options.budget.memory_bytes(),
        );
        self.begin(position, history, options);
        Ok(())
    }

    /// Starts on a later turn of the same game with the same evaluator. What the tree holds below the position is kept; where the
    /// search has not been there, or where the game forbids other positions than before, the tree begins anew.
    ///
    /// # Errors
    /// Where there is nothing to decide or nothing to decide it with; the search stays as it was.
    pub fn reuse_tree(
        &mut self,
        position: &Position,
        history: &History,
        options: SearchOptions,
    ) -> Result<(), SearchError> {
        check(position, history, &options)?;
        self.simulations.remove_virtual_visits(&mut self.state);
        let same_rules = self.state.forbidden_key == history.forbidden_key()
            && self.state.options.goal_solver == options.goal_solver
            && self.state.options.merges
            && options.merges;
        if !(same_rules && self.state.tree.keep_below(position, history).is_some()) {
            return self.restart(position, history, options);
        }
        self.state.tree.set_bound(options.budget.memory_bytes());
        self.begin(position, history, options);
        Ok(())
    }

    /// Resumes the search for the same turn, in the same tree, within another budget.
    ///
    /// # Errors
    /// The budget is empty; the search stays as it was.
    pub fn resume(&mut self, history: &History, options: SearchOptions) -> Result<(), SearchError> {
        let position = self.state.position;
        if !(self.state.options.merges && options.merges) {
            return self.restart(&position, history, options);
        }
        check(&position, history, &options)?;
        self.simulations.remove_virtual_visits(&mut self.state);
        self.state.tree.set_bound(options.budget.memory_bytes());
        self.begin(&position, history, options);
        Ok(())
    }

    fn begin(&mut self, position: &Position, history: &History, options: SearchOptions) {
        let state = &mut self.state;
        state.options = options;
        state.position = *position;
        state.root = state.tree.intern(&StepState::new(position));
        state.tree.check_goal(state.root);
        state.tree.check_immobilization(state.root);
        state.root_priors.clear(state.root);
        state.spent = Spent::default();
        state.spent.is_stopped =
            options.budget.stops_when_decided && has_one_turn(position, history);
        (state.turns_deep, state.deepest) = (0, 0);
        state.forbidden_key = history.forbidden_key();
        self.simulations.clear();
        self.batch.clear();
        self.decision = None;
        self.decided_after = None;
        self.strategy = Strategy::begin(state, position);
    }

    /// Searches until evaluations are needed, and returns their step states: [`answer`](Self::answer) each of them, in any order.
    /// None once the turn is decided: take the [`decision`](Self::decision). While some are awaited, all are handed out again.
    ///
    /// The answers are applied in the order in which the leaves were handed out, once all are there: what is decided doesn't
    /// depend on their order.
    pub fn leaves<R: Rng>(&mut self, history: &History, rng: &mut R) -> &[Query] {
        let begun = &mut self.state.spent.begun;
        begun.get_or_insert_with(Instant::now);
        while self.decision.is_none() && !self.batch.is_waiting() {
            self.state.apply(&mut self.batch);
            if let Some(choice) = self.choose(history, rng) {
                self.decision = Some(decide(&self.state, choice));
                self.decided_after = Some(self.state.spent.time());
            }
        }
        self.batch.waiting()
    }

    fn choose<R: Rng>(&mut self, history: &History, rng: &mut R) -> Option<Choice> {
        let Self {
            state,
            simulations,
            batch,
            ..
        } = self;
        if let Some(choice) = winning_choice(state, history) {
            return Some(choice);
        }
        self.strategy
            .advance(state, simulations, batch, history, rng)
    }

    /// Takes the evaluation of leaf `index` of those that [`leaves`](Self::leaves) handed out. A leaf that is answered twice keeps
    /// its first answer, and there is none where nothing is awaited.
    ///
    /// # Errors
    /// An evaluation that fails [`Evaluation::check`]; the leaf stays unanswered.
    pub fn answer(
        &mut self,
        index: usize,
        evaluator: &str,
        evaluation: Evaluation<'_>,
    ) -> Result<(), EvaluatorError> {
        self.batch.answer(index, evaluator, evaluation)?;
        if !self.batch.is_waiting() {
            self.simulations.remove_virtual_visits(&mut self.state);
        }
        Ok(())
    }

    /// Ends the search as soon as it has looked at something: the next call of [`leaves`](Self::leaves) decides with what is
    /// known, or soon after.
    pub fn stop(&mut self) {
        self.state.spent.is_stopped = true;
    }

    /// Gives the search a flag that ends it when it is set, from another thread too: this turn's search and those after it. It is
    /// looked at before every simulation, also while none of them needs an evaluation.
    pub fn stop_with(&mut self, flag: Arc<AtomicBool>) {
        self.state.stop = Some(flag);
    }

    /// The decided turn, once [`leaves`](Self::leaves) has said so.
    pub fn decision(&self) -> Option<&Decision> {
        self.decision.as_ref()
    }

    /// The bytes that the tree takes.
    pub fn bytes(&self) -> usize {
        self.state.tree.bytes()
    }

    /// The step states that the tree holds.
    pub fn nodes(&self) -> usize {
        self.state.tree.len()
    }

    /// The time since the first leaf was handed out.
    pub fn time(&self) -> Duration {
        self.state.spent.time()
    }

    /// The time from the first leaf that was handed out to the decision, or to now.
    pub(super) fn time_to_decision(&self) -> Duration {
        self.decided_after.unwrap_or_else(|| self.time())
    }

    #[cfg(test)]
    pub(super) fn simulations(&self) -> &Simulations {
        &self.simulations
    }

    pub(super) fn state(&self) -> &SearchState {
        &self.state
    }

    pub(super) fn strategy(&self) -> &Strategy {
        &self.strategy
    }
}

/// Whether there is nothing to choose from.
fn has_one_turn(position: &Position, history: &History) -> bool {
    if position.phase() == Phase::Setup {
        return false;
    }
    // No more of what is found can be illegal than the game forbids.
    let enough = history.forbidden_count() + 2;
    let mut enumerator = TurnEnumerator::new();
    let (turns, are_all) = enumerator.enumerate_while(position, history, |found| found < enough);
    are_all && turns.len() == 1
}

fn check(
    position: &Position,
    history: &History,
    options: &SearchOptions,
) -> Result<(), SearchError> {
    if options.budget.is_empty() {
        return Err(SearchError::NoBudget);
    }
    if options.mode == SearchMode::Gumbel && options.gumbel.candidates == AutoOr::Fixed(0) {
        return Err(SearchError::NoCandidates);
    }
    check_not_over(position, history)
}

/// Refuses a position where the game is over: any other has a legal turn.
pub(super) fn check_not_over(position: &Position, history: &History) -> Result<(), SearchError> {
    match position.outcome(history) {
        Some(outcome) => Err(SearchError::GameOver {
            position: *position,
            outcome: outcome.to_string(),
        }),
        None => Ok(()),
    }
}

/// Searches for one turn of one game, one leaf or one small batch after the other.
///
/// # Errors
/// Those of [`Search::new`], and the evaluator's.
pub fn search_turn<R: Rng>(
    evaluator: &mut dyn Evaluator,
    position: &Position,
    history: &History,
    options: SearchOptions,
    rng: &mut R,
) -> Result<Decision, SearchError> {
    let mut search = Search::new(position, history, options)?;
    run_search(&mut search, evaluator, history, rng)
}

/// Runs a search to its end with one evaluator.
///
/// # Errors
/// The evaluator's.
pub fn run_search<R: Rng>(
    search: &mut Search,
    evaluator: &mut dyn Evaluator,
    history: &History,
    rng: &mut R,
) -> Result<Decision, SearchError> {
    let mut answers = Evaluations::default();
    loop {
        let queries = search.leaves(history, rng);
        evaluator.evaluate(queries, &mut answers)?;
        let count = queries.len();
        for index in 0..count {
            let evaluation = answers.get(index).unwrap_or(Evaluation::NONE);
            search.answer(index, evaluator.name(), evaluation)?;
        }
        if let Some(decision) = search.decision() {
            return Ok(decision.clone());
        }
    }
}

#[cfg(test)]
mod tests;
