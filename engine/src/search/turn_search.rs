//! The search for one whole turn: what both modes share. Leaves are handed out, answers taken, the decision made.

use super::batch::Batch;
use super::budget::Spent;
use super::decision::{Choice, Decision, proven_targets, turn_of};
use super::gumbel::GumbelTurn;
use super::puct::{Arrived, Descent, Guide};
use super::root_priors::RootPriors;
use super::stepwise::StepwiseTurn;
use super::tree::{
    NodeId, NodeKind, Tree, advantage_of, decided, state_after, win_probability, winning_turn,
};
use super::{Evaluation, Evaluations, Evaluator, EvaluatorError, Mode, Query, SearchOptions};
use crate::rules::{Action, History, Phase, Position, Side, StepState, TurnEnumerator};
use rand::Rng;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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

/// What both modes work on.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) options: SearchOptions,
    pub(super) tree: Tree,
    pub(super) root: NodeId,
    pub(super) position: Position,
    pub(super) root_priors: RootPriors,
    pub(super) spent: Spent,
    /// The turns that simulations completed on their way, and the most of one.
    pub(super) turns_deep: u64,
    pub(super) deepest: u32,
    /// How many positions the game so far forbids: the edges in the tree leave them out.
    forbidden: usize,
    /// Set from outside to end the search.
    stop: Option<Arc<AtomicBool>>,
}

/// How turns are found, in the course of finding one.
#[derive(Debug)]
pub(super) enum Strategy {
    Stepwise(Box<StepwiseTurn>),
    Gumbel(Box<GumbelTurn>),
}

/// The search for one turn of one game. Make one a game and use it turn after turn: it keeps its memory, and its tree if it is
/// told to [`go_on`](Self::go_on).
#[derive(Debug)]
pub struct Search {
    core: Core,
    batch: Batch,
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
            core: Core {
                options,
                tree: Tree::default(),
                root: NodeId::default(),
                position: *position,
                root_priors: RootPriors::default(),
                spent: Spent::nothing(),
                turns_deep: 0,
                deepest: 0,
                forbidden: 0,
                stop: None,
            },
            batch: Batch::default(),
            strategy: Strategy::Stepwise(Box::default()),
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
        self.core
            .tree
            .clear(options.merges, options.budget.memory_bytes());
        self.begin(position, history, options);
        Ok(())
    }

    /// Starts on a later turn of the same game with the same evaluator. What the tree holds below the position is kept; where the
    /// search has not been there, or where the game forbids a position that it did not forbid before, the tree begins anew.
    ///
    /// # Errors
    /// Where there is nothing to decide or nothing to decide it with; the search stays as it was.
    pub fn go_on(
        &mut self,
        position: &Position,
        history: &History,
        options: SearchOptions,
    ) -> Result<(), SearchError> {
        check(position, history, &options)?;
        let same_rules = self.core.forbidden == history.forbidden_count()
            && self.core.options.merges
            && options.merges;
        if !(same_rules && self.core.tree.keep_below(position, history).is_some()) {
            return self.restart(position, history, options);
        }
        self.core.tree.set_bound(options.budget.memory_bytes());
        self.begin(position, history, options);
        Ok(())
    }

    fn begin(&mut self, position: &Position, history: &History, options: SearchOptions) {
        let core = &mut self.core;
        core.options = options;
        core.position = *position;
        core.root = core.tree.intern(&StepState::new(position));
        core.root_priors.clear(core.root);
        core.spent = Spent::nothing();
        core.spent.is_stopped =
            options.budget.stops_when_decided && has_one_turn(position, history);
        (core.turns_deep, core.deepest) = (0, 0);
        core.forbidden = history.forbidden_count();
        self.batch.clear();
        self.decision = None;
        self.decided_after = None;
        self.strategy = match options.mode {
            Mode::Gumbel if GumbelTurn::fits(position, &options) && !core.spent.is_stopped => {
                let turn = Box::new(GumbelTurn::new(position, &options));
                let bytes = options.budget.memory_bytes() - turn.beam_bytes();
                core.tree.set_bound(bytes);
                Strategy::Gumbel(turn)
            }
            _ => Strategy::Stepwise(Box::new(StepwiseTurn::new(core.root))),
        };
    }

    /// Searches on until evaluations are needed, and says of what: [`answer`](Self::answer) each of them, in any order. None once
    /// the turn is decided: take the [`decision`](Self::decision). While some are awaited, all are asked for again.
    ///
    /// The answers are applied in the order in which the leaves were handed out, once all are there: what is decided doesn't
    /// depend on their order.
    pub fn leaves<R: Rng>(&mut self, history: &History, rng: &mut R) -> &[Query] {
        if self.core.spent.begun.is_none() {
            self.core.spent.begin();
        }
        while self.decision.is_none() && !self.batch.is_waiting() {
            self.core.apply(&mut self.batch);
            if let Some(choice) = self.choose(history, rng) {
                self.decision = Some(self.core.decide(choice));
                self.decided_after = Some(self.core.spent.time());
            }
        }
        self.batch.waiting()
    }

    fn choose<R: Rng>(&mut self, history: &History, rng: &mut R) -> Option<Choice> {
        let Self { core, batch, .. } = self;
        core.tree.judge(core.root);
        if let Some(choice) = core.winning_choice(history) {
            return Some(choice);
        }
        if let Strategy::Gumbel(turn) = &self.strategy
            && turn.is_new()
            && core.is_proven()
        {
            // The search for the turn before has proven it: the tree holds the turns that do it.
            self.strategy = Strategy::Stepwise(Box::new(StepwiseTurn::new(core.root)));
        }
        match &mut self.strategy {
            Strategy::Stepwise(turn) => turn.go_on(core, batch, history, rng),
            Strategy::Gumbel(turn) => turn.go_on(core, batch, history, rng),
        }
    }

    /// Takes the evaluation of leaf `index` of those that [`leaves`](Self::leaves) handed out. A leaf that is answered twice keeps
    /// its first answer, and there is none where nothing is awaited.
    ///
    /// # Errors
    /// Numbers that are none are refused, and the search waits for better ones.
    pub fn answer(
        &mut self,
        index: usize,
        evaluator: &str,
        evaluation: Evaluation<'_>,
    ) -> Result<(), EvaluatorError> {
        self.batch.answer(index, evaluator, evaluation)
    }

    /// Ends the search as soon as it has looked at something: the next call of [`leaves`](Self::leaves) decides with what is
    /// known, or soon after.
    pub fn stop(&mut self) {
        self.core.spent.is_stopped = true;
    }

    /// Gives the search a flag that ends it when it is set, from another thread too: this turn's search and those after it. It is
    /// looked at before every simulation, also while none of them needs an evaluation.
    pub fn stop_with(&mut self, flag: Arc<AtomicBool>) {
        self.core.stop = Some(flag);
    }

    /// The decided turn, once [`leaves`](Self::leaves) has said so.
    pub fn decision(&self) -> Option<&Decision> {
        self.decision.as_ref()
    }

    /// The bytes that the tree takes.
    pub fn bytes(&self) -> usize {
        self.core.tree.bytes()
    }

    /// The time since the first leaf was asked for.
    pub fn time(&self) -> Duration {
        self.core.spent.time()
    }

    /// The time from the first leaf that was asked for to the decision, or to now.
    pub(super) fn time_to_decision(&self) -> Duration {
        self.decided_after.unwrap_or_else(|| self.time())
    }

    pub(super) fn core(&self) -> &Core {
        &self.core
    }

    pub(super) fn strategy(&self) -> &Strategy {
        &self.strategy
    }
}

/// Whether there is nothing to choose from.
fn has_one_turn(position: &Position, history: &History) -> bool {
    position.phase() == Phase::Play && TurnEnumerator::new().enumerate(position, history).len() == 1
}

fn check(
    position: &Position,
    history: &History,
    options: &SearchOptions,
) -> Result<(), SearchError> {
    if options.budget.is_empty() {
        return Err(SearchError::NoBudget);
    }
    if options.mode == Mode::Gumbel && options.gumbel.candidates == Some(0) {
        return Err(SearchError::NoCandidates);
    }
    check_goes_on(position, history)
}

/// Refuses a position where the game is over: any other has a legal turn.
pub(super) fn check_goes_on(position: &Position, history: &History) -> Result<(), SearchError> {
    match position.outcome(history) {
        Some(outcome) => Err(SearchError::GameOver {
            position: *position,
            outcome: outcome.to_string(),
        }),
        None => Ok(()),
    }
}

impl Core {
    /// How much of the budget is used, 0 to 1.
    pub(super) fn share(&mut self) -> f64 {
        if let Some(flag) = &self.stop
            && flag.load(Ordering::Relaxed)
        {
            self.spent.is_stopped = true;
        }
        self.spent.share(&self.options.budget)
    }

    /// Gives the leaves of a complete batch their evaluations.
    fn apply(&mut self, batch: &mut Batch) {
        for (leaf, query, evaluation) in batch.answered() {
            self.tree.expand(leaf, query, &evaluation);
            self.spent.evaluations += 1;
            self.spent.visits_at_evaluation = self.spent.visits;
        }
        batch.clear();
    }

    /// The way down of one simulation from a node of the root's turn or below it.
    pub(super) fn descend<R: Rng>(
        &mut self,
        descent: &mut Descent,
        from: NodeId,
        history: &History,
        rng: &mut R,
    ) -> Arrived {
        let mut guide = Guide {
            history,
            options: &self.options,
            root_priors: &mut self.root_priors,
            rng,
        };
        let arrived = descent.go(&mut self.tree, from, &self.position, &mut guide);
        let turns = descent.turns() as u32;
        self.turns_deep += u64::from(turns);
        self.deepest = self.deepest.max(turns);
        arrived
    }

    /// Opens a node, and asks for its evaluation where that is needed and it is not in the batch yet.
    pub(super) fn ask(&mut self, batch: &mut Batch, node: NodeId, history: &History) {
        if batch.holds(node) {
            return;
        }
        let of_root_turn = self.tree.node(node).start() == self.root;
        if let Some(query) = self.tree.open(node, history, of_root_turn) {
            batch.push(node, query);
        }
    }

    /// Whose turn is searched.
    pub(super) fn side(&self) -> Side {
        self.position.side()
    }

    /// A node's value as the win probability of the side whose turn is searched.
    pub(super) fn movers_value(&self, node: NodeId) -> f32 {
        win_probability(self.side(), self.tree.worth(node).value)
    }

    /// Whether a turn lets the enemy win, as far as that is known without evaluations: by the tree, or within the enemy's next
    /// turn. The states of the turn learn it.
    pub(super) fn turn_is_lost(&mut self, actions: &[Action]) -> bool {
        let mut state = StepState::new(&self.position);
        for &action in actions {
            state = state_after(&state, action);
        }
        let Some(end) = self.tree.find(&state) else {
            return decided(&state).is_some_and(|(winner, _)| winner != self.side());
        };
        self.tree.judge(end);
        for node in self.nodes_along(actions).into_iter().rev() {
            self.tree.update(node);
        }
        self.tree.worth(end).proof.loses(self.side())
    }

    /// The nodes of the root's turn that some actions lead through, the root first, as far as there are nodes: those from which an
    /// action goes on.
    pub(super) fn nodes_along(&self, actions: &[Action]) -> Vec<NodeId> {
        let mut nodes = Vec::new();
        let mut node = Some(self.root);
        for &action in actions {
            let Some(id) = node else { break };
            nodes.push(id);
            let edges = self.tree.edges(id).iter();
            let edge = edges.map(|edge| edge.index());
            let wanted = action.index(self.side());
            node = edge
                .enumerate()
                .find_map(|(place, index)| (index == wanted).then_some(place))
                .and_then(|place| self.tree.child(id, place));
        }
        nodes
    }

    /// Whether the root is proven, either way.
    pub(super) fn is_proven(&self) -> bool {
        self.tree.worth(self.root).proof.is_some()
    }

    /// The turn that wins at once, if there is one.
    fn winning_choice(&self, history: &History) -> Option<Choice> {
        let root = self.tree.node(self.root);
        if root.kind != NodeKind::Over {
            return None;
        }
        let start = StepState::new(&self.position);
        let (steps, _) = winning_turn(&start)?;
        let mut actions: arrayvec::ArrayVec<Action, 9> =
            steps.iter().map(|&step| Action::Step(step)).collect();
        if steps.len() < usize::from(crate::rules::TURN_STEPS) {
            actions.push(Action::End);
        }
        Some(Choice {
            targets: proven_targets(self, &actions, history),
            actions,
            advantage: advantage_of(self.side()),
            value_spread: 0.0,
        })
    }

    fn decide(&self, choice: Choice) -> Decision {
        let root = self.tree.node(self.root);
        let mut actions = choice.actions;
        actions.retain(|action| *action != Action::End);
        let turn = turn_of(&actions, self.position.phase(), self.side());
        let proven_winner = self.tree.worth(self.root).proof.winner();
        Decision {
            // Strategies choose whole turns: a setup is complete.
            turn: turn.unwrap_or_else(|| unreachable!("a setup of {} pieces", actions.len())),
            actions: actions.into_iter().collect(),
            value: win_probability(Side::Gold, choice.advantage),
            value_spread: match proven_winner {
                Some(_) => 0.0,
                None => choice.value_spread,
            },
            own_value: win_probability(Side::Gold, root.own_value),
            proven_winner,
            visits: self.spent.visits,
            evaluations: self.spent.evaluations,
            targets: choice.targets,
        }
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
