//! The distinct turns that a search knows, in the order of its mode.

use super::super::decision::{Decision, TurnActions, actions_of};
use super::super::flow::{Flow, visit_weight};
use super::super::modes::Strategy;
use super::super::modes::gumbel::GumbelTurn;
use super::super::modes::puct::PuctTurn;
use super::super::state::SearchState;
use super::super::tree::{NodeId, NodeKind, Tree, advantage_of, win_probability};
use arimaa::notation::format_turn;
use arimaa::rules::{History, Position, Side, StepState, Turn};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::cmp::Ordering;

/// A result that is certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Proven {
    /// The winner.
    pub winner: Side,
    /// In how many turns, of both sides together and the present one counted, if the winner hurries and the loser does not.
    pub turns: u16,
}

/// A turn, named by the position that it ends in: without merging, several nodes stand for that.
#[derive(Debug)]
pub(super) struct KnownTurn {
    pub(super) end: Position,
    /// The node of its end, of several the most visited one's.
    pub(super) node: Option<NodeId>,
    pub(super) is_chosen: bool,
    pub(super) visits: f64,
    pub(super) prior: Option<f64>,
    pub(super) proven: Option<Proven>,
    /// What it is ordered by among equally visited ones.
    order: f64,
    /// The most visits of one node.
    most: f64,
    /// Its actions, where the tree may hold no path to it.
    actions: Option<TurnActions>,
}

/// All of them.
#[derive(Debug)]
pub(super) struct KnownTurns<'a> {
    search: &'a SearchState,
    decision: Option<&'a Decision>,
    turns: Vec<KnownTurn>,
    places: FxHashMap<Position, usize>,
    /// Where the steps of turns are looked for: in the first flow that reaches them.
    flows: Vec<Flow>,
    pub(super) shared_visits: f64,
    pub(super) unfinished_visits: f64,
}

impl<'a> KnownTurns<'a> {
    pub(super) fn new(
        search: &'a SearchState,
        strategy: &Strategy,
        decision: Option<&'a Decision>,
    ) -> Self {
        let mut turns = Self {
            search,
            decision,
            turns: Vec::new(),
            places: FxHashMap::default(),
            flows: Vec::new(),
            shared_visits: 0.0,
            unfinished_visits: 0.0,
        };
        match strategy {
            Strategy::Gumbel(turn) => turns.add_compared(turn),
            Strategy::Puct(turn) => turns.add_arrivals(turn),
        }
        if let Some(decision) = decision {
            turns.mark(decision);
        }
        let side = search.side();
        turns.turns.sort_by(|one, other| one.cmp(other, side));
        turns
    }

    pub(super) fn len(&self) -> usize {
        self.turns.len()
    }

    /// The turns, the best first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &KnownTurn> {
        self.turns.iter()
    }

    /// The turns that the simulations of mode `puct` have completed.
    fn add_arrivals(&mut self, puct: &PuctTurn) {
        let search = self.search;
        let (tree, root) = (&search.tree, search.root);
        let started: FxHashMap<(NodeId, usize), u32> = puct.started_below().collect();
        let started = |id, edge| f64::from(started.get(&(id, edge)).copied().unwrap_or(0));
        let counted = |tree: &Tree, id, edge| match visit_weight(tree, id, edge) {
            weight if weight > 0.0 => weight + started(id, edge),
            _ => 0.0,
        };
        let taken =
            |tree: &Tree, id, edge| f64::from(tree.link(id, edge).visits) + started(id, edge);
        let mut by_visits = [
            Flow::of_weights(tree, root, counted),
            Flow::of_weights(tree, root, taken),
        ];
        if tree.node_value(root).loses(search.side()) {
            // Nothing weighs anything but the longest resistance.
            by_visits.reverse();
        }
        let later: f64 = (0..tree.links(root).len())
            .map(|edge| started(root, edge))
            .sum();
        self.shared_visits = f64::from(tree.edge_visits(root)) + later;
        let [counted, beside] = by_visits;
        for arrival in counted.arrivals() {
            let visits = arrival.mass * self.shared_visits;
            if arrival.complete {
                self.add(arrival.node, visits);
            } else {
                self.unfinished_visits += visits;
            }
        }
        let priors = Flow::of_priors(tree, root);
        for flow in [&beside, &priors] {
            for arrival in flow.arrivals().iter().filter(|arrival| arrival.complete) {
                self.add(arrival.node, 0.0);
            }
        }
        for turn in &mut self.turns {
            turn.prior = Some(0.0);
        }
        for arrival in priors.arrivals().iter().filter(|arrival| arrival.complete) {
            let place = self.add(arrival.node, 0.0);
            let turn = &mut self.turns[place];
            turn.order += arrival.mass;
            turn.prior = Some(turn.order);
        }
        self.flows = vec![counted, beside, priors];
    }

    /// The turns that mode `gumbel` compares.
    fn add_compared(&mut self, gumbel: &GumbelTurn) {
        let search = self.search;
        for candidate in gumbel.candidates() {
            let visits = f64::from(candidate.visits);
            let place = self.add(candidate.end, visits);
            let turn = &mut self.turns[place];
            turn.prior = Some(turn.prior.unwrap_or(0.0) + candidate.log_prior.exp());
            turn.order = candidate.rank;
            turn.actions = candidate.actions.clone();
            self.shared_visits += visits;
        }
        // Priors are kept to 2^-31; what is legal is possible.
        let possible =
            |tree: &Tree, id, edge: usize| f64::from(tree.edges(id)[edge].prior()) + 1e-10;
        self.flows = vec![
            Flow::of_priors(&search.tree, search.root),
            Flow::of_weights(&search.tree, search.root, possible),
        ];
    }

    /// Adds visits to a turn that ends at a node; returns its place.
    fn add(&mut self, node: NodeId, visits: f64) -> usize {
        let search = self.search;
        let end = search.tree.state(node).start_position();
        let place = self.place_of(end, Some(node));
        let turn = &mut self.turns[place];
        turn.visits += visits;
        if visits > turn.most {
            (turn.most, turn.node) = (visits, Some(node));
            turn.proven = turn.proven.or(proven(search, &end, Some(node)));
        }
        place
    }

    fn place_of(&mut self, end: Position, node: Option<NodeId>) -> usize {
        let Self {
            search,
            turns,
            places,
            ..
        } = self;
        *places.entry(end).or_insert_with(|| {
            turns.push(KnownTurn {
                end,
                node,
                is_chosen: false,
                visits: 0.0,
                prior: None,
                proven: proven(search, &end, node),
                order: 0.0,
                most: 0.0,
                actions: None,
            });
            turns.len() - 1
        })
    }

    /// Marks the chosen turn.
    fn mark(&mut self, decision: &Decision) {
        let search = self.search;
        let start = StepState::new(&search.position);
        let after = decision
            .actions
            .iter()
            .fold(start, |state, &action| state.after(action));
        let end = after.end();
        let place = self.place_of(end, search.tree.find(&StepState::new(&end)));
        self.turns[place].is_chosen = true;
    }

    /// A turn in standard notation.
    pub(super) fn text(&self, turn: &KnownTurn) -> String {
        let position = &self.search.position;
        let written = match self.decision.filter(|_| turn.is_chosen) {
            Some(decision) => Some(decision.turn.clone()),
            None => Turn::from_actions(&self.actions(turn), position),
        };
        written.map_or_else(String::new, |turn| format_turn(&turn, position))
    }

    fn actions(&self, turn: &KnownTurn) -> TurnActions {
        if let Some(actions) = &turn.actions {
            return actions.clone();
        }
        let path = self.flows.iter().find_map(|flow| {
            let path = flow.shortest_path_to(turn.node?);
            (!path.is_empty()).then_some(path)
        });
        actions_of(&self.search.tree, &path.unwrap_or_default())
    }
}

impl KnownTurn {
    /// The value for the side whose turn is searched.
    pub(super) fn value(&self, search: &SearchState) -> Option<f32> {
        if let Some(Proven { winner, .. }) = self.proven {
            return Some(win_probability(search.side(), advantage_of(winner)));
        }
        let node = self
            .node
            .filter(|&node| search.tree.node(node).kind != NodeKind::Unexpanded);
        node.map(|node| search.value_for_mover(node))
    }

    /// Wins before what is open before losses, as `side` sees it; then as [`SearchReport::turns`](super::SearchReport::turns) says.
    fn cmp(&self, other: &Self, side: Side) -> Ordering {
        let class = |turn: &Self| match turn.proven {
            Some(Proven { winner, turns }) if winner == side => (0, i32::from(turns)),
            None => (1, 0),
            Some(Proven { turns, .. }) => (2, -i32::from(turns)),
        };
        class(self)
            .cmp(&class(other))
            .then(other.visits.total_cmp(&self.visits))
            .then(other.order.total_cmp(&self.order))
    }
}

/// The winner by a turn with this end, as far as the rules, the tree or the solvers of goals and eliminations know.
fn proven(search: &SearchState, end: &Position, node: Option<NodeId>) -> Option<Proven> {
    let known = node.filter(|&node| search.tree.node(node).kind != NodeKind::Unexpanded);
    let (winner, turns) = match known.map(|node| search.tree.node_value(node)) {
        Some(node_value) => (node_value.proof?, node_value.turns_to_end),
        None => {
            let over = end.outcome(&History::default());
            let winner = over.map(|outcome| (outcome.winner, 0));
            winner.or_else(|| search.tree.decided(&StepState::new(end)))?
        }
    };
    Some(Proven {
        winner,
        turns: turns + 1,
    })
}
