//! The search for one whole turn: parts of the budget, steps drawn on the way, the turn drawn at the end.

use super::decision::{Decision, StateTarget, turn_of};
use super::flow::{Arrival, Candidate, Flow, draw};
use super::improved::improved_policy;
use super::puct::{Arrived, Descent, ends_turn};
use super::tree::{Edge, NodeId, NodeKind, Tree, gold_value, seen_by};
use super::{
    Evaluation, Evaluations, Evaluator, EvaluatorError, PolicyTarget, Query, SearchOptions,
};
use crate::rules::{
    Action, ActionSet, History, Phase, Position, SETUP_ORDER, StepState, TURN_STEPS, goal_in,
};
use arrayvec::ArrayVec;
use rand::Rng;
use rustc_hash::FxHashMap;

/// Why a search can't be run.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// There is nothing to decide.
    #[error("there is no turn to search for: the game is over in {0:?}")]
    GameOver(Position),
    /// No simulation is allowed.
    #[error("a search needs at least one visit")]
    NoVisits,
    /// The evaluator failed.
    #[error(transparent)]
    Evaluator(#[from] EvaluatorError),
}

/// The search for one turn of one game. Make one a game and use it turn after turn: it keeps its memory.
#[derive(Debug)]
pub struct Search {
    options: SearchOptions,
    tree: Tree,
    descent: Descent,
    /// The edges drawn so far, from the turn's start on.
    drawn: Vec<(NodeId, usize)>,
    /// What the way to a goal adds to them: each action with the actions that are legal there.
    run: Vec<(ActionSet, Action)>,
    root: NodeId,
    /// Where simulations start: below the steps drawn so far.
    source: NodeId,
    waiting: Option<(NodeId, Query)>,
    /// The priors without noise of the nodes whose edges have noise in theirs, and where each node's begin.
    clean_priors: Vec<f32>,
    clean_priors_of: FxHashMap<NodeId, usize>,
    part: u32,
    part_end: u32,
    visits: u32,
    evaluations: u32,
    decided: bool,
}

impl Search {
    /// A search for the turn of a position. `history` is the game's, the position itself counted in it.
    pub fn new(
        position: &Position,
        history: &History,
        options: SearchOptions,
    ) -> Result<Self, SearchError> {
        let mut search = Self {
            options,
            tree: Tree::default(),
            descent: Descent::default(),
            drawn: Vec::new(),
            run: Vec::new(),
            root: NodeId::default(),
            source: NodeId::default(),
            waiting: None,
            clean_priors: Vec::new(),
            clean_priors_of: FxHashMap::default(),
            part: 0,
            part_end: 0,
            visits: 0,
            evaluations: 0,
            decided: false,
        };
        search.restart(position, history, options)?;
        Ok(search)
    }

    /// Forgets the turn before and starts on another.
    pub fn restart(
        &mut self,
        position: &Position,
        history: &History,
        options: SearchOptions,
    ) -> Result<(), SearchError> {
        if options.visits == 0 {
            return Err(SearchError::NoVisits);
        }
        if position.outcome(history).is_some() {
            return Err(SearchError::GameOver(*position));
        }
        self.options = options;
        self.tree.clear();
        self.drawn.clear();
        self.run.clear();
        let root = self.tree.intern(StepState::new(position));
        self.root = root;
        self.source = root;
        self.waiting = None;
        self.clean_priors.clear();
        self.clean_priors_of.clear();
        self.part = 0;
        self.part_end = 0;
        self.visits = 0;
        self.evaluations = 0;
        self.decided = false;
        Ok(())
    }

    /// Searches on until an evaluation is needed, and says of what: give it to [`answer`](Self::answer). None once the turn is
    /// decided: take the [`decision`](Self::decision). While an evaluation is awaited, it is asked for again.
    pub fn advance<R: Rng>(&mut self, history: &History, rng: &mut R) -> Option<Query> {
        loop {
            if let Some((_, query)) = self.waiting {
                return Some(query);
            }
            if self.decided {
                return None;
            }
            if let NodeKind::Over(_) = self.tree.node(self.source).kind {
                self.finish_run(history);
                continue;
            }
            if self.visits >= self.part_end {
                self.begin_part(rng);
                continue;
            }
            let arrived = self
                .descent
                .go(&mut self.tree, self.source, history, &self.options);
            match arrived {
                Arrived::Fresh(node) => {
                    let of_root_turn = self.is_of_root_turn(node);
                    match self.tree.open(node, history, of_root_turn) {
                        Some(query) => self.waiting = Some((node, query)),
                        None => self.finish_simulation(),
                    }
                }
                Arrived::Known => self.finish_simulation(),
            }
        }
    }

    /// Takes the evaluation that [`advance`](Self::advance) asked for: the win probability of Gold, and the priors of the
    /// query's legal actions. Numbers that are none are refused, and the tree stays as it was.
    pub fn answer<R: Rng>(
        &mut self,
        evaluator: &str,
        evaluation: Evaluation<'_>,
        rng: &mut R,
    ) -> Result<(), EvaluatorError> {
        let Some((node, query)) = self.waiting else {
            return Ok(());
        };
        evaluation.check(evaluator, &query)?;
        let Evaluation { value, priors, .. } = evaluation;
        self.waiting = None;
        self.evaluations += 1;
        let noise = self.options.noise.filter(|_| self.is_of_root_turn(node));
        match noise {
            Some(noise) => {
                self.clean_priors_of.insert(node, self.clean_priors.len());
                self.clean_priors.extend(priors);
                let mixed = noise.mix(priors, rng);
                self.tree.expand(node, &query, value, mixed.into_iter());
            }
            None => self
                .tree
                .expand(node, &query, value, priors.iter().copied()),
        }
        self.tree.update(node);
        self.finish_simulation();
        Ok(())
    }

    /// The decided turn, once [`advance`](Self::advance) has said so.
    pub fn decision(&self) -> Option<Decision> {
        if !self.decided {
            return None;
        }
        let root = self.tree.node(self.root);
        let side = root.state.side();
        let drawn = self
            .drawn
            .iter()
            .map(|&(node, edge)| self.tree.edges(node)[edge].action(side));
        let run = self.run.iter().map(|&(_, action)| action);
        let actions: ArrayVec<Action, 8> = drawn
            .chain(run)
            .filter(|&action| action != Action::End)
            .collect();
        let turn = turn_of(&actions, root.state.phase(), side)?;
        let searched = self
            .drawn
            .iter()
            .enumerate()
            .filter_map(|(step, &(node, _))| self.target(step, node));
        let proven = self
            .run
            .iter()
            .enumerate()
            .map(|(step, (legal, action))| StateTarget {
                step: (self.drawn.len() + step) as u8,
                visits: self.visits,
                proven: true,
                policy: legal
                    .in_index_order(side)
                    .map(|other| f32::from(other == *action))
                    .collect(),
            });
        let targets = searched.chain(proven).collect();
        let value = if self.run.is_empty() {
            root.value
        } else {
            gold_value(side)
        };
        Some(Decision {
            turn,
            actions,
            value,
            own_value: root.own_value,
            visits: self.visits,
            evaluations: self.evaluations,
            targets,
        })
    }

    fn target(&self, step: usize, node: NodeId) -> Option<StateTarget> {
        let edges = self.tree.edges(node);
        let visits: u32 = edges.iter().map(|edge| edge.visits).sum();
        let policy = match self.options.policy_target {
            PolicyTarget::Visits => edges
                .iter()
                .map(|edge| edge.visits as f32 / visits as f32)
                .collect(),
            PolicyTarget::Improved { value_scale } => {
                let priors: Vec<f32> = match self.clean_priors_of.get(&node) {
                    Some(&first) => self.clean_priors[first..first + edges.len()].into(),
                    None => edges.iter().map(|edge| edge.prior).collect(),
                };
                improved_policy(&self.tree, node, &priors, value_scale)
            }
        };
        (visits > 0).then_some(StateTarget {
            step: step as u8,
            visits,
            proven: false,
            policy,
        })
    }

    fn is_of_root_turn(&self, node: NodeId) -> bool {
        self.tree.node(node).state.start_position()
            == self.tree.node(self.root).state.start_position()
    }

    /// Ends the turn by the goal that the source has.
    fn finish_run(&mut self, history: &History) {
        let mut state = self.tree.node(self.source).state;
        for step in goal_in(&state, TURN_STEPS).unwrap_or_default() {
            self.run
                .push((state.legal_actions(history), Action::Step(step)));
            state = state.after_step(step);
        }
        if !state.is_complete() {
            self.run.push((state.legal_actions(history), Action::End));
        }
        self.decided = true;
    }

    fn finish_simulation(&mut self) {
        self.descent.back_up(&mut self.tree);
        // What has been learnt below the drawn steps holds above them too; their visits stay.
        for &(node, _) in self.drawn.iter().rev() {
            self.tree.update(node);
        }
        self.visits += 1;
    }

    /// Ends a part of the budget: draws the next step, or the rest of the turn after the last part.
    fn begin_part<R: Rng>(&mut self, rng: &mut R) {
        let parts = match self.tree.node(self.root).state.phase() {
            Phase::Setup => SETUP_ORDER.len() as u32,
            Phase::Play => u32::from(TURN_STEPS),
        };
        if self.tree.node(self.source).kind == NodeKind::Fresh {
            // The first part, or a step that was drawn before it had ever been visited.
            self.part_end = self.visits + 1;
            if self.part > 0 {
                return;
            }
        } else if self.part >= parts || self.visits >= self.options.visits {
            return self.draw_rest(rng);
        } else if self.complete_visits() < f64::from(self.options.min_turn_visits) {
            self.draw_step(rng);
            if self.decided {
                return;
            }
        }
        let left = self.options.visits.saturating_sub(self.visits);
        self.part_end = self.visits + left.div_ceil(parts - self.part);
        self.part += 1;
    }

    /// The visits that have flown from the source into complete turns.
    fn complete_visits(&self) -> f64 {
        let visits: u32 = self
            .tree
            .edges(self.source)
            .iter()
            .map(|edge| edge.visits)
            .sum();
        Flow::below(&self.tree, self.source).complete_mass() * f64::from(visits)
    }

    /// Draws the next step by the visits, or by the priors where there are none.
    fn draw_step<R: Rng>(&mut self, rng: &mut R) {
        let edges = self.tree.edges(self.source);
        let candidates = |weight: fn(&Edge) -> f64| -> Vec<Candidate> {
            let candidate = |edge: &Edge| Candidate {
                weight: weight(edge),
                value: edge.child().map_or(0.0, |child| self.movers_value(child)),
            };
            edges.iter().map(candidate).collect()
        };
        let temperature = self.options.temperature;
        let drawn = draw(&candidates(|edge| edge.visits.into()), temperature, rng)
            .or_else(|| draw(&candidates(|edge| edge.prior.into()), temperature, rng));
        self.take(drawn.unwrap_or(0));
    }

    /// Draws among all that the flow arrives at: distinct whole turns, and states that the search has not gone beyond. Where
    /// nothing is left to chance, that is done only once complete turns hold enough visits, and step by step until then: the
    /// visits of a step that leads to many turns are spread thin over them, and a short turn would win by that alone.
    fn draw_rest<R: Rng>(&mut self, rng: &mut R) {
        let flow = Flow::below(&self.tree, self.source);
        let few = self.complete_visits() < f64::from(self.options.min_turn_visits);
        if self.options.temperature == 0.0 && few {
            return self.draw_step(rng);
        }
        let candidate = |arrival: &Arrival| Candidate {
            weight: arrival.mass,
            value: self.movers_value(arrival.node),
        };
        let candidates: Vec<Candidate> = flow.arrivals().iter().map(candidate).collect();
        let arrival =
            draw(&candidates, self.options.temperature, rng).map(|place| flow.arrivals()[place]);
        match arrival {
            Some(arrival) if arrival.node != self.source => {
                for (_, edge) in flow.way_to(&arrival, rng) {
                    self.take(edge);
                }
            }
            _ => self.draw_step(rng),
        }
    }

    /// A node's value in the view of the side whose turn is searched.
    fn movers_value(&self, node: NodeId) -> f32 {
        let side = self.tree.node(self.root).state.side();
        seen_by(side, self.tree.node(node).value)
    }

    /// Makes a step of the turn final.
    fn take(&mut self, edge: usize) {
        let node = self.source;
        self.decided = ends_turn(&self.tree, node, edge);
        self.drawn.push((node, edge));
        self.source = self.tree.follow(node, edge);
    }
}

/// Searches for one turn of one game.
pub fn search_turn<R: Rng>(
    evaluator: &mut dyn Evaluator,
    position: &Position,
    history: &History,
    options: SearchOptions,
    rng: &mut R,
) -> Result<Decision, SearchError> {
    let mut search = Search::new(position, history, options)?;
    let mut answers = Evaluations::default();
    loop {
        while let Some(query) = search.advance(history, rng) {
            evaluator.evaluate(&[query], &mut answers)?;
            let evaluation = answers.get(0).unwrap_or(Evaluation {
                value: f32::NAN,
                turns_left: None,
                priors: &[],
            });
            search.answer(evaluator.name(), evaluation, rng)?;
        }
        if let Some(decision) = search.decision() {
            return Ok(decision);
        }
    }
}

#[cfg(test)]
mod tests;
