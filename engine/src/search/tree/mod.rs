//! The turn graph: step states as nodes, merged wherever different step orders or different turns reach the same one.
//!
//! Inside the graph values are Gold's advantage, twice the win probability less 1: exchanging the sides negates them, which floating
//! point does exactly, so that a search of the exchanged position is the exchanged search.
//!
//! All of it lies in a few arrays that one search owns: nodes, edges, links, and a table that finds a state's node.

mod edge;
mod keep;
mod links;
mod node;

pub(super) use edge::{Edge, Link};
pub(super) use node::{Node, NodeId, NodeKind, Worth};

use super::{Evaluation, Query};
use crate::rules::{
    Action, History, Outcome, Position, Reason, Side, StepState, TURN_STEPS, elimination_in,
    goal_in,
};
use hashbrown::HashTable;
use links::Links;
use node::EdgeRange;

/// Nodes, edges and links, owned by one search.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    /// What each of the nodes is worth.
    worths: Vec<Worth>,
    edges: Vec<Edge>,
    links: Links,
    table: HashTable<NodeId>,
    /// How many nodes are fresh: all of them may still get edges.
    fresh: usize,
    /// Whether equal states share a node. Off, every way to a state has its own.
    merges: bool,
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
            worths: Vec::new(),
            edges: Vec::new(),
            links: Links::default(),
            table: HashTable::new(),
            fresh: 0,
            merges: true,
            most_bytes: usize::MAX,
            followed: 0,
            merged: 0,
        }
    }
}

impl Tree {
    /// Forgets everything and keeps the memory.
    pub(super) fn clear(&mut self, merges: bool, most_bytes: usize) {
        self.nodes.clear();
        self.worths.clear();
        self.edges.clear();
        self.links.clear();
        self.table.clear();
        self.fresh = 0;
        self.merges = merges;
        self.set_bound(most_bytes);
        (self.followed, self.merged) = (0, 0);
    }

    /// The most bytes that the tree may take from now on. What it holds already stays.
    pub(super) fn set_bound(&mut self, most_bytes: usize) {
        self.most_bytes = most_bytes;
        if self.bytes() > most_bytes {
            self.nodes.shrink_to_fit();
            self.worths.shrink_to_fit();
            self.edges.shrink_to_fit();
            self.links.storage_mut().shrink_to_fit();
            self.shrink_table();
        }
    }

    fn shrink_table(&mut self) {
        let Self { nodes, table, .. } = self;
        table.shrink_to_fit(|&id| key_of(nodes, &nodes[id.place()]));
    }

    #[inline]
    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.place()]
    }

    #[inline]
    pub(super) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.place()]
    }

    /// What a node is worth.
    #[inline]
    pub(super) fn worth(&self, id: NodeId) -> &Worth {
        &self.worths[id.place()]
    }

    #[inline]
    pub(super) fn worth_mut(&mut self, id: NodeId) -> &mut Worth {
        &mut self.worths[id.place()]
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

    /// The simulations that have gone on from a node.
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
            .push(Node::fresh(state.in_turn(), start.unwrap_or(id)));
        self.worths.push(Worth::unknown(state.steps_used() == 0));
        self.fresh += 1;
        if self.merges {
            let Self { nodes, table, .. } = self;
            table.insert_unique(state.key(), id, |&id| key_of(nodes, &nodes[id.place()]));
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

    /// Opens a fresh node. Where the game is over, or the side to move wins within this turn, or has no legal action, its value is
    /// final; everything else asks for an evaluation.
    ///
    /// Goals and eliminations are looked for at the starts of turns alone: a state inside a turn has none where its start had
    /// none, and nobody goes on from a start that has.
    pub(super) fn open(
        &mut self,
        id: NodeId,
        history: &History,
        is_root_turn: bool,
    ) -> Option<Query> {
        self.judge(id);
        if self.node(id).kind == NodeKind::Over {
            return None;
        }
        let state = self.state(id);
        let legal = state.legal_actions(history);
        if legal.is_empty() {
            self.close(id, state.side().opponent(), 0);
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

    /// The game is over at a node, or will be in this turn.
    fn close(&mut self, id: NodeId, winner: Side, turns: u16) {
        self.fresh -= 1;
        self.worth_mut(id).prove(winner, turns);
        let node = self.node_mut(id);
        node.kind = NodeKind::Over;
        node.own_value = advantage_of(winner);
        node.visits = 1;
    }

    /// Looks for wins at a fresh node that starts a turn: it asks for no evaluation where there is one.
    pub(super) fn judge(&mut self, id: NodeId) {
        if self.node(id).kind == NodeKind::Fresh
            && let Some((winner, turns)) = decided(&self.state(id))
        {
            self.close(id, winner, turns);
        }
    }

    /// Gives a fresh node its evaluation and its edges.
    pub(super) fn expand(&mut self, id: NodeId, query: &Query, evaluation: &Evaluation<'_>) {
        self.fresh -= 1;
        EDGES.make(&mut self.edges);
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
        node.kind = NodeKind::Open;
        node.own_value = advantage;
        node.edges = range;
        node.visits = 1;
        self.worth_mut(id)
            .evaluated(advantage, evaluation.turns_left);
    }

    /// Recomputes a node from its edges. Its own evaluation counts as one visit, each edge's visits carry its child's present value
    /// (Monte-Carlo graph search: Czech, Korus and Kersting 2021; in this form in KataGo's `GraphSearch.md`). Edges that are proven
    /// lost for the mover count no longer, as it will not take them. With an edge that is proven won the node is won, and lost if
    /// all are lost: the former as soon, the latter as late as possible.
    pub(super) fn update(&mut self, id: NodeId) {
        let node = self.node(id);
        let worth = self.worth(id);
        if node.kind != NodeKind::Open || worth.proof.is_some() {
            let visits = 1 + self.edge_visits(id);
            self.node_mut(id).visits = visits;
            return;
        }
        let mover = node.state.side();
        let mut visits = 1;
        let mut weight = 1.0;
        let mut sum = f64::from(node.own_value);
        let mut squares = sum * sum;
        let (mut turns_weight, mut turns) = (0.0, 0.0);
        let mut won_in = None;
        let (mut lost_edges, mut lost_in) = (0, 0);
        for link in self.links(id) {
            let Some(child) = link.child().map(|child| self.worth(child)) else {
                continue;
            };
            visits += link.visits;
            if child.proof.loses(mover) {
                lost_edges += 1;
                lost_in = lost_in.max(child.turns_from_before());
                continue;
            }
            if child.proof.wins(mover) {
                let turns = child.turns_from_before();
                won_in = Some(won_in.map_or(turns, |least: u16| least.min(turns)));
            }
            let count = f64::from(link.visits);
            weight += count;
            sum += count * f64::from(child.value);
            squares += count * f64::from(child.square);
            if let Some(left) = child.turns_left_from_before() {
                turns_weight += count;
                turns += count * f64::from(left);
            }
        }
        let all_lost = lost_edges == usize::from(node.edges.count);
        let proven = match won_in {
            Some(turns) => Some((mover, turns)),
            None => all_lost.then_some((mover.opponent(), lost_in)),
        };
        self.node_mut(id).visits = visits;
        let worth = self.worth_mut(id);
        match proven {
            Some((winner, turns)) => worth.prove(winner, turns),
            None => {
                worth.value = (sum / weight) as f32;
                worth.square = (squares / weight) as f32;
                if turns_weight > 0.0 {
                    worth.set_turns_left((turns / turns_weight) as f32);
                }
            }
        }
    }

    /// Makes a loss for its mover of an open node whose turns, as is known from elsewhere, are all lost: in as many turns as the
    /// longest of those that it holds, and in two where it holds none.
    pub(super) fn prove_lost(&mut self, id: NodeId) {
        let mover = self.side(id);
        let ends = self.links(id).iter().filter_map(|link| link.child());
        let lost = ends
            .map(|child| self.worth(child))
            .filter(|child| child.proof.loses(mover));
        let turns = lost.map(|node| node.turns_to_end).max().unwrap_or(0).max(2);
        self.worth_mut(id).prove(mover.opponent(), turns);
    }

    /// Makes a node proven from elsewhere.
    pub(super) fn prove(&mut self, id: NodeId, winner: Side, turns: u16) {
        self.worth_mut(id).prove(winner, turns);
    }

    /// The node of a step state, made where it is not there yet; none where the tree's memory is used up.
    pub(super) fn intern_if_room(&mut self, state: &StepState) -> Option<NodeId> {
        self.find(state)
            .or_else(|| self.has_room().then(|| self.intern(state)))
    }

    /// How many nodes there are.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The bytes that the arrays take, in use or not.
    pub(super) fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + self.worths.capacity() * size_of::<Worth>()
            + self.edges.capacity() * size_of::<Edge>()
            + self.links.bytes()
            + self.table.allocation_size()
    }

    /// Of the edges that were followed for the first time, the share that led to a node which was there already.
    pub(super) fn merged_share(&self) -> f64 {
        self.merged as f64 / self.followed.max(1) as f64
    }

    /// Whether there is room for one more node with all that it may need.
    pub(super) fn has_room(&self) -> bool {
        if self.most_bytes == usize::MAX {
            return true;
        }
        let more = NODES.more(&self.nodes)
            + NODES.more(&self.worths)
            + self.edges_to_come()
            + LINKS.more(self.links.storage())
            + self.table_growth();
        self.bytes() + more <= self.most_bytes
    }

    /// The bytes that the table takes more if it has to grow for one more node: it doubles.
    fn table_growth(&self) -> usize {
        let is_full = self.table.len() == self.table.capacity();
        if is_full {
            self.table.allocation_size().max(1_024)
        } else {
            0
        }
    }

    /// The most bytes that the edges of all fresh nodes and of one more can take beyond those that there are: their evaluations may
    /// all come before anybody asks for room again.
    fn edges_to_come(&self) -> usize {
        let needed = self.edges.len() + EDGES.needed * (self.fresh + 1);
        if needed <= self.edges.capacity() {
            return 0;
        }
        let most = needed + needed / 4 + EDGES.least;
        (most - self.edges.capacity()) * size_of::<Edge>()
    }

    /// Makes room for one more node.
    fn grow(&mut self) {
        NODES.make(&mut self.nodes);
        NODES.make(&mut self.worths);
        EDGES.make(&mut self.edges);
        LINKS.make(self.links.storage_mut());
    }

    /// All nodes.
    #[cfg(test)]
    pub(super) fn node_ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }
}

/// How an array grows: by a quarter, which takes less memory than doubling.
struct Growth {
    /// What one more node can need.
    needed: usize,
    /// What is made room for at least.
    least: usize,
}

const NODES: Growth = Growth {
    needed: 1,
    least: 64,
};

/// More edges than all but the strangest states have.
const EDGES: Growth = Growth {
    needed: 128,
    least: 2_048,
};

/// The larger block that the node before a new one may need.
const LINKS: Growth = Growth {
    needed: 128,
    least: 256,
};

impl Growth {
    /// By how many elements an array is to grow now.
    fn elements<T>(&self, array: &Vec<T>) -> usize {
        if array.len() + self.needed <= array.capacity() {
            0
        } else {
            (array.capacity() / 4).max(self.least)
        }
    }

    /// The same in bytes.
    fn more<T>(&self, array: &Vec<T>) -> usize {
        self.elements(array) * size_of::<T>()
    }

    fn make<T>(&self, array: &mut Vec<T>) {
        let more = self.elements(array);
        if more > 0 {
            array.reserve_exact(array.capacity() - array.len() + more);
        }
    }
}

/// The key of a node's step state.
fn key_of(nodes: &[Node], node: &Node) -> u64 {
    node.state
        .with_start(nodes[node.start.place()].state.board())
        .key()
}

/// How often the start of a turn has stood in the game before the search's root, at most 2 times.
fn repetitions(start: &Position, history: &History, is_root_turn: bool) -> u8 {
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

/// Who has won at the start of a turn, or wins within the turn; and in how many turns: 0 or 1.
pub(super) fn decided(state: &StepState) -> Option<(Side, u16)> {
    let start = state.turn_start()?;
    if let Some(Outcome { winner, .. }) = start.outcome_on_board() {
        return Some((winner, 0));
    }
    winning_turn(state).map(|_| (state.side(), 1))
}

/// Steps that win the game within the turn, by goal or by taking the last rabbits.
pub(super) fn winning_turn(state: &StepState) -> Option<(crate::rules::Steps, Reason)> {
    goal_in(state, TURN_STEPS)
        .map(|steps| (steps, Reason::Goal))
        .or_else(|| elimination_in(state, TURN_STEPS).map(|steps| (steps, Reason::Elimination)))
}

/// A win of Gold's as an advantage: 1; a win of Silver's: -1.
#[inline]
pub(super) fn advantage_of(winner: Side) -> f32 {
    match winner {
        Side::Gold => 1.0,
        Side::Silver => -1.0,
    }
}

/// An advantage of Gold's as the win probability of `side`.
#[inline]
pub(super) fn win_probability(side: Side, advantage: f32) -> f32 {
    0.5 + 0.5 * advantage_of(side) * advantage
}

#[cfg(test)]
mod tests;
