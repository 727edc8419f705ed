//! What both modes of a search work on: the tree, the budget, the simulations in flight, and the turn that comes out.

use super::batch::LeafBatch;
use super::budget::Spent;
use super::options::SearchOptions;
use super::root_priors::RootPriors;
use super::tree::{NodeId, Tree, state_after, win_probability};
use arimaa::rules::{Action, History, Position, Side, StepState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What both modes work on.
#[derive(Debug)]
pub(super) struct SearchState {
    pub(super) options: SearchOptions,
    pub(super) tree: Tree,
    pub(super) root: NodeId,
    pub(super) position: Position,
    pub(super) root_priors: RootPriors,
    pub(super) spent: Spent,
    /// The turns that simulations completed on their paths, and the most of one.
    pub(super) turns_deep: u64,
    pub(super) deepest: u32,
    /// The key of the positions that the game so far forbids: the edges in the tree leave them out.
    pub(super) forbidden_key: u64,
    /// Set from outside to end the search.
    pub(super) stop: Option<Arc<AtomicBool>>,
}

impl SearchState {
    /// How much of the budget is used, 0 to 1: all of it once the search has been stopped, none before the first visit.
    pub(super) fn budget_used(&mut self) -> f64 {
        self.spent.is_stopped |= self.is_stopped_from_outside();
        self.spent.share(&self.options.budget)
    }

    /// Whether the flag is set that ends the search.
    fn is_stopped_from_outside(&self) -> bool {
        let flag = self.stop.as_ref();
        flag.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// Whether the search is to end now, whatever it does: it has been stopped, or its time is up.
    pub(super) fn has_to_end(&self) -> bool {
        let limit = self.options.budget.time;
        self.spent.is_stopped
            || self.is_stopped_from_outside()
            || limit.is_some_and(|limit| self.spent.time() >= limit)
    }

    /// Gives the leaves of a complete batch their evaluations.
    pub(super) fn apply(&mut self, batch: &mut LeafBatch) {
        for (leaf, query, evaluation) in batch.answered() {
            self.tree.expand(leaf, query, &evaluation);
            self.spent.evaluations += 1;
            self.spent.simulations_at_evaluation = self.spent.simulations();
        }
        batch.clear();
    }

    /// Opens a node, and requests its evaluation where that is needed and it is not in the batch yet.
    pub(super) fn ask(&mut self, batch: &mut LeafBatch, node: NodeId, history: &History) {
        if batch.holds(node) {
            return;
        }
        let of_root_turn = self.tree.node(node).start == self.root;
        if let Some(query) = self.tree.prepare(node, history, of_root_turn) {
            batch.push(node, query);
        }
    }

    /// Whose turn is searched.
    pub(super) fn side(&self) -> Side {
        self.position.side()
    }

    /// A node's value as the win probability of the side whose turn is searched.
    pub(super) fn value_for_mover(&self, node: NodeId) -> f32 {
        win_probability(self.side(), self.tree.node_value(node).value)
    }

    /// Whether a turn lets the enemy win, as far as that is known without evaluations: by the tree, or within the enemy's next
    /// turn. The states of the turn learn it.
    pub(super) fn turn_is_lost(&mut self, actions: &[Action]) -> bool {
        let mut state = StepState::new(&self.position);
        for &action in actions {
            state = state_after(&state, action);
        }
        let Some(end) = self.tree.find(&state) else {
            let decided = self.tree.decided(&state);
            return decided.map_or_else(
                || self.tree.allows_immobilization(&state),
                |(winner, _)| winner != self.side(),
            );
        };
        self.tree.check_goal(end);
        self.tree.check_immobilization(end);
        for node in self.nodes_along(actions).into_iter().rev() {
            self.tree.update(node);
        }
        self.tree.node_value(end).loses(self.side())
    }

    /// The nodes of the root's turn that some actions lead through, the root first, as far as there are nodes: those before
    /// an action.
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

    /// Whether the root is proven, won or lost.
    pub(super) fn is_proven(&self) -> bool {
        self.tree.node_value(self.root).proof.is_some()
    }

    /// Whether more than one leaf may be in flight wherever one is.
    pub(super) fn is_parallel(&self) -> bool {
        self.options.parallel_leaves > 1
    }
}
