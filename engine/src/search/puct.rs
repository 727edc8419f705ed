//! One simulation: the way down from the root by PUCT, and the values on the way back.

use super::SearchOptions;
use super::tree::{Edge, NodeId, NodeKind, Tree, seen_by};
use crate::rules::{Action, History, Position, Side};

/// A state on the way down.
#[derive(Debug)]
struct Frame {
    node: NodeId,
    edge: usize,
    /// Edges without an option below them on this way.
    avoided: Vec<usize>,
}

/// The way down of one simulation.
#[derive(Debug, Default)]
pub(super) struct Descent {
    frames: Vec<Frame>,
    /// The turn starts entered below the root.
    starts: Vec<Position>,
}

/// How the way down ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrived {
    /// At a node that has not been opened.
    Fresh(NodeId),
    /// Where there is nothing to open: the game is over, the node lies on this way already, or repetition leaves it no turn.
    Known,
}

impl Descent {
    /// Goes down from `from` until there is something to back up.
    ///
    /// A turn that would make a third occurrence (game and way together) is no option. A state inside a turn that is left
    /// without options is backed out of and avoided on this way; none of this is stored. A second occurrence on the way is
    /// legal: the way ends there, and counts with that node's present value, as does one at the start of a turn that repetition
    /// leaves without options.
    pub(super) fn go(
        &mut self,
        tree: &mut Tree,
        from: NodeId,
        history: &History,
        options: &SearchOptions,
    ) -> Arrived {
        self.frames.clear();
        self.starts.clear();
        let root_start = tree.node(from).state.start_position();
        let mut node = from;
        let mut avoided = Vec::new();
        loop {
            match tree.node(node).kind {
                NodeKind::Fresh => return Arrived::Fresh(node),
                NodeKind::Over(_) => return Arrived::Known,
                NodeKind::Open => {}
            }
            let Some(edge) = select(tree, node, &avoided, options) else {
                let inside = tree.node(node).state.steps_used() > 0;
                let Some(frame) = self.frames.pop_if(|_| inside) else {
                    return Arrived::Known;
                };
                node = frame.node;
                avoided = frame.avoided;
                avoided.push(frame.edge);
                continue;
            };
            let child = tree.follow(node, edge);
            let start = tree.node(child).state.turn_start();
            if let Some(start) = start {
                let on_way = self.starts.iter().filter(|&&other| other == start).count();
                if usize::from(history.count(&start)) + on_way >= 2 {
                    avoided.push(edge);
                    continue;
                }
                self.starts.push(start);
                if on_way > 0 || start == root_start {
                    self.frames.push(Frame {
                        node,
                        edge,
                        avoided,
                    });
                    return Arrived::Known;
                }
            }
            self.frames.push(Frame {
                node,
                edge,
                avoided: std::mem::take(&mut avoided),
            });
            node = child;
        }
    }

    /// Counts the simulation on every edge of the way and recomputes the values above them.
    pub(super) fn back_up(&self, tree: &mut Tree) {
        for frame in self.frames.iter().rev() {
            tree.edges_mut(frame.node)[frame.edge].visits += 1;
            tree.update(frame.node);
        }
    }
}

/// The edge of the greatest upper bound, `Q + c(N)·P·√N / (1 + n)` in the mover's view (Silver et al. 2018, "AlphaZero"), with
/// the exploration factor `c(N) = exploration + ln((N + base + 1) / base)`. An unvisited edge counts as the state's own value
/// less `first_play_reduction` times the square root of the prior visited so far (as in Leela Chess Zero).
fn select(tree: &Tree, id: NodeId, avoided: &[usize], options: &SearchOptions) -> Option<usize> {
    let node = tree.node(id);
    let side = node.state.side();
    let edges = tree.edges(id);
    let visits = node.visits as f32;
    let base = options.exploration_base;
    let factor = (options.exploration + ((visits + base + 1.0) / base).ln()) * visits.sqrt();
    let visited: f32 = edges
        .iter()
        .filter(|edge| edge.visits > 0)
        .map(|edge| edge.prior)
        .sum();
    let first_play = seen_by(side, node.value) - options.first_play_reduction * visited.sqrt();
    let mut best = None;
    let mut best_bound = f32::NEG_INFINITY;
    for (index, edge) in edges.iter().enumerate() {
        if avoided.contains(&index) {
            continue;
        }
        let bound = child_value(tree, edge, side).unwrap_or(first_play)
            + factor * edge.prior / (1 + edge.visits) as f32;
        if bound > best_bound {
            best_bound = bound;
            best = Some(index);
        }
    }
    best
}

/// The value of what an edge leads to, in the view of `side`, once the edge has been visited.
fn child_value(tree: &Tree, edge: &Edge, side: Side) -> Option<f32> {
    let child = edge.child().filter(|_| edge.visits > 0)?;
    Some(seen_by(side, tree.node(child).value))
}

/// Whether taking an edge of a node ends the turn.
pub(super) fn ends_turn(tree: &Tree, id: NodeId, edge: usize) -> bool {
    let state = &tree.node(id).state;
    state.steps_left() == 1 || tree.edges(id)[edge].action(state.side()) == Action::End
}
