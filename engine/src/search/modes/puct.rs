//! Mode `puct`: simulations go down step by step; steps of the turn are made final on the way, and its end is drawn from the flow.
//!
//! Once the tree's memory is used up, a state below which it holds no whole turn is a dead end: nothing could be learnt of the turns
//! beyond. They are left to the rules only where the tree holds no whole turn at all.

use crate::search::batch::LeafBatch;
use crate::search::decision::{
    Choice, TurnActions, actions_of, finish_by_the_rules, longest_turn, proven_targets,
};
use crate::search::descent::ends_turn;
use crate::search::flow::{Arrival, Flow, draw, visit_weight};
use crate::search::lost_turns::{Alternative, find_alternative, longest_resistance};
use crate::search::simulations::Simulations;
use crate::search::state::SearchState;
use crate::search::targets::state_target;
use crate::search::tree::{NodeId, NodeKind, Tree, greatest, state_after};
use arimaa::rules::{History, StepState};
use rand::Rng;

/// The least visits of a turn that is chosen at temperature 0, as a share of those of the most visited one.
const VISIT_FLOOR: f64 = 0.25;

/// Standard errors that are subtracted from a turn's value before turns are compared at temperature 0.
const DEVIATIONS: f64 = 2.0;

/// How often another turn is drawn from the tree in place of one that turned out to be lost, before all others are looked at.
const REDRAWS: usize = 2;

/// How many simulations lie between two looks at whether the decision can still change, at least: a look at a large tree takes long.
const DECIDED_INTERVAL: u32 = 16;

/// The root has so many visits for each leaf in flight, since what a leaf shows comes too late for those beside it
/// (`engine/src/search/README.md`).
const VISITS_A_LEAF: u32 = 32;

/// A batch goes out when so many simulations for each leaf that it may hold have gone down: leaves that are in flight already, and
/// ends of the game, add none to it.
const SIMULATIONS_A_LEAF: u32 = 4;

/// The state of one turn's search.
#[derive(Debug, Default)]
pub(in crate::search) struct PuctTurn {
    /// The edges made final so far, from the turn's start on.
    drawn: Vec<(NodeId, usize)>,
    /// Where simulations start: below those edges.
    source: NodeId,
    /// Whether those edges make a whole turn.
    is_complete: bool,
    /// The state below them where the tree has no room for it.
    beyond: Option<StepState>,
    /// The part of the budget that is being spent.
    part: u32,
    /// How many simulations started right below each of those edges.
    started: Vec<u32>,
    /// The simulations at the last look at whether the decision can still change.
    looked_at: u32,
}

impl PuctTurn {
    pub(in crate::search) fn new(root: NodeId) -> Self {
        Self {
            source: root,
            ..Self::default()
        }
    }

    /// Searches up to the next leaves, or to the turn's end.
    pub(in crate::search) fn advance<R: Rng>(
        &mut self,
        search: &mut SearchState,
        simulations: &mut Simulations,
        batch: &mut LeafBatch,
        history: &History,
        rng: &mut R,
    ) -> Option<Choice> {
        loop {
            if !simulations.is_empty() {
                self.finish_simulations(search, simulations);
            }
            if search.is_proven() || self.check_decided(search) {
                return Some(self.finish(search, history, rng));
            }
            let source = search.tree.node_value(self.source);
            if source.loses(search.side()) {
                // The steps made final were wrong: the rest of the budget goes to others.
                self.take_back(search);
                continue;
            }
            let parts = longest_turn(search.position.phase());
            let share = search.budget_used();
            while share * f64::from(parts) >= f64::from(self.part + 1) {
                self.part += 1;
                if self.part < parts && self.needs_final_step(search) {
                    self.draw_step(search, rng);
                }
                if self.part >= parts || self.is_complete || self.beyond.is_some() {
                    return Some(self.finish(search, history, rng));
                }
            }
            self.simulate(search, simulations, batch, history, rng);
            if batch.is_waiting() {
                return None;
            }
        }
    }

    /// Sends simulations down until there are as many leaves as may be in flight, or one simulation where that needs no evaluation
    /// and holds at once. None goes beyond the part of the budget that is being spent.
    fn simulate<R: Rng>(
        &self,
        search: &mut SearchState,
        simulations: &mut Simulations,
        batch: &mut LeafBatch,
        history: &History,
        rng: &mut R,
    ) {
        let visits = search.spent.visits_left_in(
            &search.options.budget,
            self.part,
            longest_turn(search.position.phase()),
        );
        let seen = search.tree.node(search.root).visits.saturating_sub(1) / VISITS_A_LEAF;
        let most_leaves = search.options.parallel_leaves.min(seen).max(1).min(visits);
        let most = visits.min(most_leaves.saturating_mul(SIMULATIONS_A_LEAF)) as usize;
        loop {
            simulations.simulate(search, batch, 0, self.source, history, rng);
            if !batch.is_waiting()
                || batch.len() >= most_leaves as usize
                || simulations.len() >= most
            {
                return;
            }
            if search.budget_used() >= 1.0 {
                simulations.give_up_leaves(search, batch);
                return;
            }
        }
    }

    fn finish_simulations(&mut self, search: &mut SearchState, simulations: &mut Simulations) {
        simulations.finish_simulations(search, false, |search, _| {
            self.update_drawn(search);
            if let Some(started) = self.started.last_mut() {
                *started += 1;
            }
        });
    }

    /// The edges made final, each with the simulations that started below it.
    pub(in crate::search) fn started_below(&self) -> impl Iterator<Item = ((NodeId, usize), u32)> {
        let below = |place: usize| self.started.iter().skip(place).sum();
        (0..)
            .zip(&self.drawn)
            .map(move |(place, &edge)| (edge, below(place)))
    }

    /// What has been learnt below the steps made final holds above them too; their visits stay.
    fn update_drawn(&self, search: &mut SearchState) {
        for &(node, _) in self.drawn.iter().rev() {
            search.tree.update(node);
        }
    }

    fn take_back(&mut self, search: &mut SearchState) {
        self.update_drawn(search);
        self.drawn.clear();
        self.started.clear();
        self.source = search.root;
        self.is_complete = false;
        self.beyond = None;
    }

    /// Whether a step is to be made final before the search continues: where it has seen too few complete turns.
    fn needs_final_step(&self, search: &SearchState) -> bool {
        search.tree.node(self.source).kind == NodeKind::Expanded
            && self.complete_visits(search) < f64::from(search.options.puct.min_turn_visits)
    }

    /// Whether what is left of the budget can't change the choice, unless it proves something: no other turn comes near enough to
    /// the most visited one to be compared with it.
    ///
    /// Let a turn be arrived at by `n` of `N` simulations, and let `s` of these have ended inside the root's turn. Flow splits at
    /// each state as its simulations did, so that the turn gets a share of at least `n / N`: its own, and part of those `s`, which
    /// flow on. `left` more simulations take nothing from its `n`. They and the `s` go to one other turn at most, whose share is
    /// then no more than `(n' + s + left) / (N + left)`. Below a step that was made final other orders' simulations flow in as
    /// well: nothing is said there.
    fn check_decided(&mut self, search: &SearchState) -> bool {
        let options = &search.options;
        if !options.budget.stops_when_decided || options.temperature > 0.0 || !self.drawn.is_empty()
        {
            return false;
        }
        let spent = search.spent.simulations();
        let interval = DECIDED_INTERVAL.max((spent / 64).next_power_of_two());
        let is_due = spent / interval > self.looked_at / interval;
        if !is_due && !spent.is_multiple_of(interval) {
            return false;
        }
        self.looked_at = spent;
        let Some(left) = search.spent.visits_left(&options.budget) else {
            return false;
        };
        let (mut first, mut second, mut ended) = (0.0, 0.0, 0.0);
        for edge in 0..search.tree.edges(self.source).len() {
            ended += visit_weight(&search.tree, self.source, edge);
        }
        // No turn has more than all of these.
        if f64::from(left) >= VISIT_FLOOR * ended {
            return false;
        }
        for visits in Flow::of_visits(&search.tree, self.source).visits_of_turns(&search.tree) {
            ended -= visits;
            second = f64::max(second, f64::min(first, visits));
            first = f64::max(first, visits);
        }
        first >= f64::from(options.puct.min_turn_visits)
            && second + ended + f64::from(left) < VISIT_FLOOR * first
    }

    /// The visits that have flown from the source into complete turns.
    fn complete_visits(&self, search: &SearchState) -> f64 {
        let visits = search.tree.edge_visits(self.source);
        Flow::of_visits(&search.tree, self.source).complete_mass() * f64::from(visits)
    }

    /// The turn: drawn from what the search found, and another one where that lets the enemy win and there is one that doesn't.
    fn finish<R: Rng>(
        &mut self,
        search: &mut SearchState,
        history: &History,
        rng: &mut R,
    ) -> Choice {
        if search.is_proven() {
            self.take_back(search);
            let actions = self.draw_rest(search, history, rng);
            return choice(search, actions, history);
        }
        let drawn = self.draw_rest(search, history, rng);
        let mut actions = drawn.clone();
        for redrawn in 0..=REDRAWS {
            if !search.turn_is_lost(&actions) {
                return choice(search, actions, history);
            }
            if redrawn == REDRAWS {
                break;
            }
            self.take_back(search);
            if search.is_proven() {
                break;
            }
            actions = self.draw_rest(search, history, rng);
        }
        let actions = match find_alternative(search, history) {
            Alternative::Found(actions) => actions,
            Alternative::AllLost => longest_resistance(search, rng).unwrap_or(drawn),
            Alternative::NotFound => drawn,
        };
        choice(search, actions, history)
    }

    /// Draws among all that the flow arrives at: distinct whole turns, and states that the search has not gone beyond. Where
    /// nothing is left to chance, it draws step by step until complete turns hold enough visits. The visits of a step that leads to
    /// many turns are spread thin over them, and a short turn would win by that alone.
    ///
    /// With the tree's memory used up, steps made final that lead to none of the whole turns that it holds are taken back.
    fn draw_rest<R: Rng>(
        &mut self,
        search: &mut SearchState,
        history: &History,
        rng: &mut R,
    ) -> TurnActions {
        if self.is_at_dead_end(search) {
            self.take_back(search);
        }
        while !self.is_complete {
            let state = match self.beyond {
                Some(state) => Some(state),
                None if search.tree.node(self.source).kind != NodeKind::Expanded => {
                    Some(search.tree.state(self.source))
                }
                None => None,
            };
            if let Some(state) = state {
                let mut actions = actions_of(&search.tree, &self.drawn);
                finish_by_the_rules(&state, history, &mut actions, rng);
                return actions;
            }
            let by_steps = !search.is_proven()
                && search.options.temperature == 0.0
                && self.needs_final_step(search);
            let path = if by_steps {
                Vec::new()
            } else {
                self.draw_path(search, rng)
            };
            for &(_, edge) in &path {
                self.take(search, edge);
            }
            if path.is_empty() {
                self.draw_step(search, rng);
            }
        }
        actions_of(&search.tree, &self.drawn)
    }

    /// Whether the steps made final lead to no whole turn that was evaluated, and can't any more as the tree has no room, while there
    /// are such turns behind other steps.
    fn is_at_dead_end(&self, search: &SearchState) -> bool {
        let tree = &search.tree;
        if tree.has_room() || self.drawn.is_empty() {
            return false;
        }
        let is_evaluated = match (self.beyond, self.is_complete) {
            (Some(_), _) => false,
            (None, true) => tree.node(self.source).kind != NodeKind::Unexpanded,
            (None, false) => holds_turns(tree, self.source),
        };
        !is_evaluated && holds_turns(tree, search.root)
    }

    /// The path to one of the arrivals of the flow; empty where it goes nowhere.
    fn draw_path<R: Rng>(&self, search: &SearchState, rng: &mut R) -> Vec<(NodeId, usize)> {
        let flow = Flow::of_visits(&search.tree, self.source);
        let mut arrivals = flow.arrivals().to_vec();
        if !search.tree.has_room() && flow.complete_mass() > 0.0 {
            arrivals.retain(|arrival| arrival.complete);
        }
        let temperature = search.options.temperature;
        let drawn = if temperature == 0.0 {
            let visits = f64::from(search.tree.edge_visits(self.source));
            best_bound(search, &arrivals, visits)
        } else {
            let masses: Vec<f64> = arrivals.iter().map(|arrival| arrival.mass).collect();
            draw(&masses, temperature, rng)
        };
        drawn.map_or_else(Vec::new, |place| flow.path_to(arrivals[place].node, rng))
    }

    /// Draws the next step by the visits, or by the priors where there are none, and makes it final.
    fn draw_step<R: Rng>(&mut self, search: &mut SearchState, rng: &mut R) {
        let SearchState { tree, options, .. } = &*search;
        let source = self.source;
        let mover = search.side();
        let count = tree.edges(source).len();
        let mut by_visits: Vec<f64> = (0..count)
            .map(|edge| visit_weight(tree, source, edge))
            .collect();
        if !tree.has_room() {
            leave_dead_ends(tree, source, &mut by_visits);
        }
        let value = |edge: usize| {
            let child = tree.child(source, edge);
            child.map_or(0.0, |child| search.value_for_mover(child))
        };
        let by_priors = || -> Vec<f64> {
            let weight = |edge: usize| {
                let lost = tree
                    .child(source, edge)
                    .is_some_and(|child| tree.node_value(child).loses(mover));
                if lost {
                    0.0
                } else {
                    f64::from(tree.edges(source)[edge].prior()).max(1e-12)
                }
            };
            (0..count).map(weight).collect()
        };
        let drawn = if options.temperature == 0.0 {
            heaviest(&by_visits, value)
        } else {
            draw(&by_visits, options.temperature, rng)
        };
        let drawn = drawn.or_else(|| draw(&by_priors(), options.temperature, rng));
        self.take(search, drawn.unwrap_or(0));
    }

    /// Makes a step of the turn final.
    fn take(&mut self, search: &mut SearchState, edge: usize) {
        let node = self.source;
        self.drawn.push((node, edge));
        self.started.push(0);
        self.is_complete = ends_turn(&search.tree, node, edge);
        match search.tree.follow(node, edge) {
            Some(child) => self.source = child,
            None => {
                let state = search.tree.state(node);
                let action = search.tree.edges(node)[edge].action(state.side());
                self.beyond = Some(state_after(&state, action));
            }
        }
    }
}

/// Whether the visits have flown from a state into whole turns.
fn holds_turns(tree: &Tree, id: NodeId) -> bool {
    Flow::of_visits(tree, id).complete_mass() > 0.0
}

/// Takes the weight off a node's edges below which the tree holds no whole turn, unless there are no others.
fn leave_dead_ends(tree: &Tree, id: NodeId, weights: &mut [f64]) {
    let continues = |edge: usize| {
        ends_turn(tree, id, edge)
            || tree
                .child(id, edge)
                .is_some_and(|child| holds_turns(tree, child))
    };
    let continues: Vec<bool> = (0..weights.len())
        .map(|edge| weights[edge] > 0.0 && continues(edge))
        .collect();
    if continues.contains(&true) {
        for (weight, continues) in weights.iter_mut().zip(continues) {
            *weight *= f64::from(u8::from(continues));
        }
    }
}

/// The greatest of the weights; among equal ones that of the greatest value, among these the first. None where all weights are 0.
fn heaviest(weights: &[f64], value: impl Fn(usize) -> f32) -> Option<usize> {
    let most = weights.iter().copied().fold(0.0, f64::max);
    let best = (0..weights.len()).filter(|&place| weights[place] == most && most > 0.0);
    greatest(best, value)
}

/// The arrival of the greatest lower confidence bound among those with enough visits.
fn best_bound(search: &SearchState, arrivals: &[Arrival], visits: f64) -> Option<usize> {
    let most = arrivals
        .iter()
        .map(|arrival| arrival.mass)
        .fold(0.0, f64::max);
    let bound = |arrival: &Arrival| {
        let count = arrival.mass * visits;
        // One more value at each end: few equal ones prove little.
        let variance = f64::from(search.tree.node_value(arrival.node).variance());
        let error = ((variance + 0.25 / (count + 1.0)) / (count + 1.0)).sqrt();
        f64::from(search.value_for_mover(arrival.node)) - DEVIATIONS * error
    };
    let enough = (0..arrivals.len()).filter(|&place| {
        let mass = arrivals[place].mass;
        mass > 0.0 && mass >= VISIT_FLOOR * most
    });
    greatest(enough, |place| bound(&arrivals[place]))
}

/// A turn with what is to be learned from it.
fn choice(search: &SearchState, actions: TurnActions, history: &History) -> Choice {
    let tree = &search.tree;
    let root = tree.node_value(search.root);
    let is_lost = root.loses(search.side());
    let targets = if root.wins(search.side()) {
        proven_targets(search, &actions, history)
    } else {
        search
            .nodes_along(&actions)
            .into_iter()
            .enumerate()
            .filter(|&(_, node)| tree.node(node).kind == NodeKind::Expanded)
            .filter_map(|(step, node)| state_target(tree, node, step, is_lost, &search.options))
            .collect()
    };
    Choice {
        actions,
        advantage: root.value,
        targets,
    }
}
