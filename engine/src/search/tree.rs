//! The turn graph: step states as nodes, merged wherever different step orders or different turns reach the same one.

use super::Query;
use crate::rules::{Action, History, Outcome, Reason, Side, StepState, TURN_STEPS, goal_in};
use rustc_hash::FxHashMap;

/// A node's place in the tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct NodeId(u32);

/// A legal action at a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    /// The evaluator's probability, with noise where noise is due.
    pub(super) prior: f32,
    /// Simulations that took it.
    pub(super) visits: u32,
    child: u32,
    action: u16,
}

const NO_CHILD: u32 = u32::MAX;

const _: () = assert!(size_of::<Edge>() == 16);

impl Edge {
    /// The action, as the node's side to move numbers it.
    pub(super) fn action(&self, side: Side) -> Action {
        Action::from_index(self.action.into(), side).unwrap_or(Action::End)
    }

    /// The node that it leads to, once it has been visited.
    pub(super) fn child(&self) -> Option<NodeId> {
        (self.child != NO_CHILD).then_some(NodeId(self.child))
    }
}

/// Where a node stands in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeKind {
    /// Not evaluated yet: no edges.
    Fresh,
    /// Evaluated, with an edge for each legal action.
    Open,
    /// The game is over here, or as good as: the side to move reaches its goal within this turn ([`goal_in`]).
    Over(Outcome),
}

/// A step state with what the search knows of it.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) state: StepState,
    pub(super) kind: NodeKind,
    /// The evaluator's value, or the result of a game that is over: win probability of Gold.
    pub(super) own_value: f32,
    /// The value by all simulations so far: win probability of Gold.
    pub(super) value: f32,
    /// Simulations that stopped here or went through one of its edges.
    pub(super) visits: u32,
    first_edge: u32,
    edge_count: u16,
}

/// Nodes and edges, owned by one search.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    ids: FxHashMap<u64, NodeId>,
}

impl Tree {
    /// Forgets everything and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.edges.clear();
        self.ids.clear();
    }

    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    pub(super) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.0 as usize]
    }

    pub(super) fn edges(&self, id: NodeId) -> &[Edge] {
        let node = self.node(id);
        let first = node.first_edge as usize;
        &self.edges[first..first + usize::from(node.edge_count)]
    }

    pub(super) fn edges_mut(&mut self, id: NodeId) -> &mut [Edge] {
        let node = &self.nodes[id.0 as usize];
        let first = node.first_edge as usize;
        &mut self.edges[first..first + usize::from(node.edge_count)]
    }

    /// The node of a step state; made new where no step order has reached it yet. Nodes are told apart by the 64-bit keys of
    /// their states.
    pub(super) fn intern(&mut self, state: StepState) -> NodeId {
        let Self { nodes, ids, .. } = self;
        *ids.entry(state.key()).or_insert_with(|| {
            let outcome = outcome_of(&state);
            let own_value = outcome.map_or(0.5, |outcome| gold_value(outcome.winner));
            nodes.push(Node {
                state,
                kind: outcome.map_or(NodeKind::Fresh, NodeKind::Over),
                own_value,
                value: own_value,
                visits: 0,
                first_edge: 0,
                edge_count: 0,
            });
            NodeId((nodes.len() - 1) as u32)
        })
    }

    /// The node that an edge leads to, made where it is not there yet.
    pub(super) fn follow(&mut self, id: NodeId, edge: usize) -> NodeId {
        if let Some(child) = self.edges(id)[edge].child() {
            return child;
        }
        let state = self.node(id).state;
        let action = self.edges(id)[edge].action(state.side());
        let after = state.after(action);
        let ends = action == Action::End || after.is_complete();
        let child = self.intern(if ends {
            StepState::new(&after.end())
        } else {
            after
        });
        self.edges_mut(id)[edge].child = child.0;
        child
    }

    /// Opens a fresh node: with a legal action it asks for an evaluation; without one, its mover has lost.
    pub(super) fn open(
        &mut self,
        id: NodeId,
        history: &History,
        is_root_turn: bool,
    ) -> Option<Query> {
        let state = self.node(id).state;
        let legal = state.legal_actions(history);
        if legal.is_empty() {
            let node = self.node_mut(id);
            let winner = state.side().opponent();
            node.kind = NodeKind::Over(Outcome {
                winner,
                reason: Reason::Immobilization,
            });
            node.own_value = gold_value(winner);
            node.value = node.own_value;
            return None;
        }
        // The root's own position has been counted by the game already.
        let stood = history.count(&state.start_position());
        let repetitions = if is_root_turn {
            stood.saturating_sub(1)
        } else {
            stood
        }
        .min(2);
        Some(Query {
            state,
            legal,
            repetitions,
        })
    }

    /// Gives a fresh node its evaluation and its edges.
    pub(super) fn expand(
        &mut self,
        id: NodeId,
        query: &Query,
        value: f32,
        priors: impl Iterator<Item = f32>,
    ) {
        let side = query.side();
        let first_edge = self.edges.len();
        self.edges.extend(
            query
                .legal
                .in_index_order(side)
                .zip(priors)
                .map(|(action, prior)| Edge {
                    prior,
                    visits: 0,
                    child: NO_CHILD,
                    action: action.index(side) as u16,
                }),
        );
        let edge_count = (self.edges.len() - first_edge) as u16;
        let node = self.node_mut(id);
        node.kind = NodeKind::Open;
        node.own_value = value;
        node.value = value;
        node.first_edge = first_edge as u32;
        node.edge_count = edge_count;
    }

    /// Recomputes an open node's visits and value from its edges: its own evaluation counts as one visit, each edge's visits
    /// carry its child's present value (Monte-Carlo graph search: Czech, Korus and Kersting 2021; in this form in KataGo's
    /// `GraphSearch.md`).
    pub(super) fn update(&mut self, id: NodeId) {
        let mut visits = 1;
        let mut sum = f64::from(self.node(id).own_value);
        for edge in self.edges(id) {
            if edge.visits > 0
                && let Some(child) = edge.child()
            {
                visits += edge.visits;
                sum += f64::from(edge.visits) * f64::from(self.node(child).value);
            }
        }
        let node = self.node_mut(id);
        node.visits = visits;
        node.value = (sum / f64::from(visits)) as f32;
    }

    /// How many nodes there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// All nodes.
    #[cfg(test)]
    pub(super) fn node_ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// How many edges have been taken.
    #[cfg(test)]
    pub(super) fn visited_edges(&self) -> usize {
        self.edges.iter().filter(|edge| edge.visits > 0).count()
    }
}

/// How the game has ended, or will by a goal in this turn.
fn outcome_of(state: &StepState) -> Option<Outcome> {
    let ended = state
        .turn_start()
        .and_then(|position| position.outcome_on_board());
    ended.or_else(|| {
        goal_in(state, TURN_STEPS).map(|_| Outcome {
            winner: state.side(),
            reason: Reason::Goal,
        })
    })
}

/// 1 for Gold, 0 for Silver.
pub(super) fn gold_value(winner: Side) -> f32 {
    match winner {
        Side::Gold => 1.0,
        Side::Silver => 0.0,
    }
}

/// A value of Gold's as `side` sees it, and back: its own inverse.
pub(super) fn seen_by(side: Side, value: f32) -> f32 {
    match side {
        Side::Gold => value,
        Side::Silver => 1.0 - value,
    }
}
