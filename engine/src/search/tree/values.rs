//! The values of nodes: by their edges, and by proof.

use super::Tree;
use super::edge::NodeId;
use super::node::{NodeKind, advantage_of};
use arimaa::rules::{
    Outcome, Side, StepState, Steps, TURN_STEPS, elimination_in, goal_in, immobilization_in,
};

impl Tree {
    /// The game is over at a node, or will be in this turn.
    pub(super) fn make_terminal(&mut self, id: NodeId, winner: Side, turns: u16) {
        self.unexpanded -= 1;
        self.node_value_mut(id).prove(winner, turns);
        let node = self.node_mut(id);
        node.kind = NodeKind::Terminal;
        node.own_value = advantage_of(winner);
        node.visits = 1;
    }

    /// The winner at the start of a turn, or within the turn as far as that is looked for; and in how many turns: 0 or 1.
    pub(in crate::search) fn decided(&self, state: &StepState) -> Option<(Side, u16)> {
        if self.solves {
            decided(state)
        } else {
            won(state)
        }
    }

    /// Looks for wins at an unexpanded node that starts a turn: it needs no evaluation where there is one.
    pub(in crate::search) fn check_goal(&mut self, id: NodeId) {
        if self.node(id).kind == NodeKind::Unexpanded
            && let Some((winner, turns)) = self.decided(&self.state(id))
        {
            self.make_terminal(id, winner, turns);
        }
    }

    /// Looks for a win by immobilization at a node that starts a turn. It is too rare, and takes too long, to be looked for at each.
    pub(in crate::search) fn check_immobilization(&mut self, id: NodeId) {
        let kind = self.node(id).kind;
        if kind == NodeKind::Terminal || !self.allows_immobilization(&self.state(id)) {
            return;
        }
        let winner = self.side(id);
        if kind == NodeKind::Unexpanded {
            self.make_terminal(id, winner, 1);
        } else {
            self.node_value_mut(id).prove(winner, 1);
        }
    }

    /// Whether the side to move at the start of a turn can win by immobilization, if that is looked for.
    pub(in crate::search) fn allows_immobilization(&self, state: &StepState) -> bool {
        self.solves && immobilization_in(state, TURN_STEPS).is_some()
    }

    /// Recomputes a node from its edges. Its own evaluation counts as one visit, each edge's visits carry its child's present value
    /// (Monte-Carlo graph search: Czech, Korus and Kersting 2021; in this form in KataGo's `GraphSearch.md`). Edges that are proven
    /// lost for the mover count no longer, as it will not take them. With an edge that is proven won the node is won, and lost if
    /// all are lost: the former as soon, the latter as late as possible.
    pub(in crate::search) fn update(&mut self, id: NodeId) {
        let node = self.node(id);
        let node_value = self.node_value(id);
        if node.kind != NodeKind::Expanded {
            return;
        }
        if node_value.proof.is_some() {
            let visits = 1 + self.edge_visits(id);
            self.node_mut(id).visits = visits;
            return;
        }
        let mover = node.state.side();
        let mut visits = 1;
        let mut weight = 1.0;
        let mut sum = f64::from(node.own_value);
        let mut squares = sum * sum;
        let mut won_in = None;
        let (mut lost_edges, mut lost_in) = (0, 0);
        for link in self.links(id) {
            let Some(child) = link.child().map(|child| self.node_value(child)) else {
                continue;
            };
            visits += link.visits;
            if child.loses(mover) {
                lost_edges += 1;
                lost_in = lost_in.max(child.turns_from_before());
                continue;
            }
            if child.wins(mover) {
                let turns = child.turns_from_before();
                won_in = Some(won_in.map_or(turns, |least: u16| least.min(turns)));
            }
            let count = f64::from(link.visits);
            weight += count;
            sum += count * f64::from(child.value);
            squares += count * f64::from(child.square);
        }
        let all_lost = lost_edges == usize::from(node.edges.count);
        let proven = match won_in {
            Some(turns) => Some((mover, turns)),
            None => all_lost.then_some((mover.opponent(), lost_in)),
        };
        self.node_mut(id).visits = visits;
        let node_value = self.node_value_mut(id);
        match proven {
            Some((winner, turns)) => node_value.prove(winner, turns),
            None => {
                node_value.value = (sum / weight) as f32;
                node_value.square = (squares / weight) as f32;
            }
        }
    }

    /// Makes an open node a loss for its mover where all its turns are known to be lost: in as many turns as the longest of those
    /// that it holds, and in two where it holds none.
    pub(in crate::search) fn prove_lost(&mut self, id: NodeId) {
        let mover = self.side(id);
        let ends = self.links(id).iter().filter_map(|link| link.child());
        let lost = ends
            .map(|child| self.node_value(child))
            .filter(|child| child.loses(mover));
        let turns = lost.map(|node| node.turns_to_end).max().unwrap_or(0).max(2);
        self.node_value_mut(id).prove(mover.opponent(), turns);
    }
}

/// The winner at the start of a turn, or within the turn by goal or by taking the last rabbits; and in how many turns: 0 or 1.
pub(in crate::search) fn decided(state: &StepState) -> Option<(Side, u16)> {
    state.turn_start()?;
    won(state).or_else(|| common_win(state).map(|_| (state.side(), 1)))
}

/// The winner at the start of a turn, 0 turns ago.
fn won(state: &StepState) -> Option<(Side, u16)> {
    let Outcome { winner, .. } = state.turn_start()?.outcome_on_board()?;
    Some((winner, 0))
}

/// Steps that win the game within the turn, by goal or by taking the last rabbits.
fn common_win(state: &StepState) -> Option<Steps> {
    goal_in(state, TURN_STEPS).or_else(|| elimination_in(state, TURN_STEPS))
}

/// The item of the greatest value; among equal ones the first.
#[inline]
pub(in crate::search) fn greatest<Item: Copy, Value: PartialOrd>(
    items: impl Iterator<Item = Item>,
    value: impl Fn(Item) -> Value,
) -> Option<Item> {
    items.reduce(|best, item| {
        if value(item) > value(best) {
            item
        } else {
            best
        }
    })
}
