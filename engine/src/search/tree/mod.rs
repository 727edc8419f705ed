//! The turn graph: step states as nodes, merged wherever different step orders or different turns reach the same one.
//!
//! Inside the graph values are Gold's advantage, twice the win probability less 1: exchanging the sides negates them, which floating
//! point does exactly, so that a search of the exchanged position is the exchanged search.
//!
//! All of it lies in a few arrays that one search owns: nodes, edges, links, and a table that finds a state's node.

mod edge;
mod keep;
mod links;
mod memory;
mod node;
mod values;

pub(super) use edge::{Edge, Link, NodeId};
pub(super) use node::{Node, NodeKind, NodeValue, advantage_of, win_probability};
#[cfg(test)]
pub(super) use values::decided;
pub(super) use values::greatest;

use super::evaluator::{Evaluation, Query};
use arimaa::rules::{Action, History, Position, Side, StepState};
use hashbrown::HashTable;
use links::Links;
use node::EdgeRange;

/// Nodes, edges and links, owned by one search.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    /// The value of each node.
    node_values: Vec<NodeValue>,
    edges: Vec<Edge>,
    links: Links,
    table: HashTable<NodeId>,
    /// How many nodes are unexpanded: all of them may still get edges.
    unexpanded: usize,
    /// Whether equal states share a node. Off, every path to a state has its own.
    merges: bool,
    /// Whether wins within the turn are looked for at the starts of turns.
    solves: bool,
    /// The most bytes that the arrays may take.
    most_bytes: usize,
    /// Edges that were followed for the first time, and those of them that led to a node which was there already.
    followed: u64,
    merged: u64,
}

impl Default for Tree {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            node_values: Vec::new(),
            edges: Vec::new(),
            links: Links::default(),
            table: HashTable::new(),
            unexpanded: 0,
            merges: true,
            solves: true,
            most_bytes: usize::MAX,
            followed: 0,
            merged: 0,
        }
    }
}

impl Tree {
    /// Forgets everything and keeps the memory.
    pub(super) fn clear(&mut self, merges: bool, solves: bool, most_bytes: usize) {
        self.nodes.clear();
        self.node_values.clear();
        self.edges.clear();
        self.links.clear();
        self.table.clear();
        self.unexpanded = 0;
        (self.merges, self.solves) = (merges, solves);
        self.set_bound(most_bytes);
        (self.followed, self.merged) = (0, 0);
    }

    #[inline]
    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    #[inline]
    pub(super) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.index()]
    }

    /// A node's value.
    #[inline]
    pub(super) fn node_value(&self, id: NodeId) -> &NodeValue {
        &self.node_values[id.index()]
    }

    #[inline]
    pub(super) fn node_value_mut(&mut self, id: NodeId) -> &mut NodeValue {
        &mut self.node_values[id.index()]
    }

    /// A node's step state.
    pub(super) fn state(&self, id: NodeId) -> StepState {
        let node = self.node(id);
        node.state.with_start(self.node(node.start).state.board())
    }

    /// Whose turn it is at a node.
    #[inline]
    pub(super) fn side(&self, id: NodeId) -> Side {
        self.node(id).state.side()
    }

    /// A node's edges, the likeliest first.
    #[inline]
    pub(super) fn edges(&self, id: NodeId) -> &[Edge] {
        let range = self.node(id).edges;
        let first = range.first as usize;
        &self.edges[first..first + usize::from(range.count)]
    }

    /// The links of a node's first edges; the others have not been followed.
    #[inline]
    pub(super) fn links(&self, id: NodeId) -> &[Link] {
        self.links.get(self.node(id).links)
    }

    /// The link of a node's edge, which is counted as empty where there is none.
    #[inline]
    pub(super) fn link(&self, id: NodeId, edge: usize) -> Link {
        self.links(id).get(edge).copied().unwrap_or(Link::EMPTY)
    }

    /// The node that an edge leads to, if it has been followed.
    #[inline]
    pub(super) fn child(&self, id: NodeId, edge: usize) -> Option<NodeId> {
        self.link(id, edge).child()
    }

    /// The simulations that have continued from a node.
    pub(super) fn edge_visits(&self, id: NodeId) -> u32 {
        self.links(id).iter().map(|link| link.visits).sum()
    }

    /// The node of a step state; made new where no step order has reached it yet.
    pub(super) fn intern(&mut self, state: &StepState) -> NodeId {
        match self.find(state) {
            Some(id) => id,
            None => {
                let start = (state.steps_used() > 0)
                    .then(|| self.intern(&StepState::new(&state.start_position())));
                self.insert(state, start)
            }
        }
    }

    /// The node of a step state, made where it is not there yet; none where the tree's memory is used up.
    pub(super) fn intern_if_room(&mut self, state: &StepState) -> Option<NodeId> {
        self.find(state)
            .or_else(|| self.has_room().then(|| self.intern(state)))
    }

    /// The node of a step state, if it has one.
    pub(super) fn find(&self, state: &StepState) -> Option<NodeId> {
        let in_turn = state.in_turn();
        let is_same = |&id: &NodeId| {
            let node = self.node(id);
            node.state == in_turn && self.node(node.start).state.board() == state.start()
        };
        self.table.find(state.key(), is_same).copied()
    }

    /// A new node; a turn's start is its own.
    fn insert(&mut self, state: &StepState, start: Option<NodeId>) -> NodeId {
        self.grow();
        let id = NodeId(self.nodes.len() as u32);
        self.nodes
            .push(Node::unexpanded(state.in_turn(), start.unwrap_or(id)));
        self.node_values
            .push(NodeValue::unknown(state.steps_used() == 0));
        self.unexpanded += 1;
        if self.merges {
            let Self { nodes, table, .. } = self;
            table.insert_unique(state.key(), id, |&id| key_of(nodes, &nodes[id.index()]));
        }
        id
    }

    /// The node that an edge leads to, made where it is not there yet. None where the tree's memory is used up.
    pub(super) fn follow(&mut self, id: NodeId, edge: usize) -> Option<NodeId> {
        if let Some(child) = self.child(id, edge) {
            return Some(child);
        }
        if !self.has_room() {
            return None;
        }
        self.grow();
        let state = self.state(id);
        let after = state_after(&state, self.edges(id)[edge].action(state.side()));
        let known = if self.merges { self.find(&after) } else { None };
        self.followed += 1;
        self.merged += u64::from(known.is_some());
        let child = match known {
            Some(child) => child,
            None => {
                let start = (after.steps_used() > 0).then_some(self.node(id).start);
                self.insert(&after, start)
            }
        };
        let block = self.links.grown(self.node(id).links, edge + 1);
        self.node_mut(id).links = block;
        self.links.get_mut(block)[edge].child = child.0;
        Some(child)
    }

    /// Counts a simulation on an edge that has been followed.
    pub(super) fn count_visit(&mut self, id: NodeId, edge: usize) {
        let block = self.node(id).links;
        if let Some(link) = self.links.get_mut(block).get_mut(edge) {
            link.visits = link.visits.saturating_add(1);
        }
    }

    /// Counts a simulation in flight on an edge that has been followed, until [`remove_virtual_visit`](Self::remove_virtual_visit).
    pub(super) fn add_virtual_visit(&mut self, id: NodeId, edge: usize) {
        self.count_visit(id, edge);
        let node = self.node_mut(id);
        node.visits = node.visits.saturating_add(1);
    }

    /// Takes back what [`add_virtual_visit`](Self::add_virtual_visit) has counted.
    pub(super) fn remove_virtual_visit(&mut self, id: NodeId, edge: usize) {
        let block = self.node(id).links;
        if let Some(link) = self.links.get_mut(block).get_mut(edge) {
            link.visits = link.visits.saturating_sub(1);
        }
        let node = self.node_mut(id);
        node.visits = node.visits.saturating_sub(1);
    }

    /// Prepares an unexpanded node for its evaluation. Its value is final where the game is over, or the side to move has a goal or an
    /// elimination within this turn, or no legal action; everything else needs an evaluation.
    ///
    /// Goals and eliminations are looked for at the starts of turns alone: a state inside a turn has none where its start had
    /// none, and no simulation continues from a start that has.
    pub(super) fn prepare(
        &mut self,
        id: NodeId,
        history: &History,
        is_root_turn: bool,
    ) -> Option<Query> {
        self.check_goal(id);
        if self.node(id).kind == NodeKind::Terminal {
            return None;
        }
        let state = self.state(id);
        let legal = state.legal_actions(history);
        if legal.is_empty() {
            self.make_terminal(id, state.side().opponent(), 0);
            return None;
        }
        let repetitions = repetitions(&state.start_position(), history, is_root_turn);
        self.node_mut(id).repetitions = repetitions;
        Some(Query {
            state,
            legal,
            repetitions,
        })
    }

    /// Gives an unexpanded node its evaluation and its edges.
    pub(super) fn expand(&mut self, id: NodeId, query: &Query, evaluation: &Evaluation<'_>) {
        self.unexpanded -= 1;
        self.grow_edges();
        let side = query.side();
        let first = self.edges.len();
        let actions = query.legal.in_index_order(side);
        let edges = actions
            .zip(evaluation.priors)
            .map(|(action, &prior)| Edge::new(action.index(side), prior));
        self.edges.extend(edges);
        let added = &mut self.edges[first..];
        if !added.is_sorted() {
            added.sort_unstable();
        }
        let range = EdgeRange {
            first: first as u32,
            count: added.len() as u16,
        };
        let advantage = 2.0 * evaluation.value - 1.0;
        let node = self.node_mut(id);
        node.kind = NodeKind::Expanded;
        node.own_value = advantage;
        node.edges = range;
        node.visits = 1;
        self.node_value_mut(id).evaluated(advantage);
    }

    /// How many nodes there are.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Of the edges that were followed for the first time, the share that led to a node which was there already.
    pub(super) fn merged_share(&self) -> f64 {
        self.merged as f64 / self.followed.max(1) as f64
    }

    /// All nodes.
    #[cfg(test)]
    pub(super) fn node_ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }
}

/// The key of a node's step state.
fn key_of(nodes: &[Node], node: &Node) -> u64 {
    node.state
        .with_start(nodes[node.start.index()].state.board())
        .key()
}

/// How often the start of a turn has stood in the game before the search's root, at most 2 times.
pub(super) fn repetitions(start: &Position, history: &History, is_root_turn: bool) -> u8 {
    // The root's own position has been counted by the game already.
    let stood = history.count(start);
    stood.saturating_sub(u8::from(is_root_turn)).min(2)
}

/// The state after an action: inside the turn, or the start of the next one.
pub(super) fn state_after(state: &StepState, action: Action) -> StepState {
    let after = state.after(action);
    if action == Action::End || after.is_complete() {
        StepState::new(&after.end())
    } else {
        after
    }
}

#[cfg(test)]
mod tests;
