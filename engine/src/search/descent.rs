//! One simulation: the descent from a node by PUCT, and the backup of values along its path.

use super::options::SearchOptions;
use super::root_priors::RootPriors;
use super::tree::{NodeId, NodeKind, Tree, greatest, win_probability};
use crate::config::PuctConfig;
use arimaa::rules::{Action, History, Position};
use rand::Rng;

/// A state of the path.
#[derive(Debug)]
struct Frame {
    node: NodeId,
    edge: usize,
    /// Edges without an option below them on this path.
    avoided: Vec<usize>,
}

/// The path of one simulation.
#[derive(Debug, Default)]
pub(super) struct Descent {
    frames: Vec<Frame>,
    /// The turn starts entered below the root.
    starts: Vec<Position>,
    /// How many of them are before the path.
    before: usize,
}

/// Where a descent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeafKind {
    /// At an unexpanded node.
    Unexpanded(NodeId),
    /// Where there is nothing to expand: the node is proven or lies on this path already, or repetition leaves it no turn.
    Known,
    /// At a step that the tree does not hold, and has no room for: its memory is used up.
    NoRoom,
}

/// The inputs of a descent.
#[derive(Debug)]
pub(super) struct Selection<'a, R> {
    pub(super) history: &'a History,
    pub(super) options: &'a SearchOptions,
    /// The priors at the states of the root's turn, where they are not the evaluator's own.
    pub(super) root_priors: &'a mut RootPriors,
    pub(super) rng: &'a mut R,
}

impl Descent {
    /// Descends from `from` until there is something to back up.
    ///
    /// A turn that would make a third occurrence (game and path together) is no option. A state inside a turn that is left without
    /// options is left again and avoided on this path; none of this is stored. A second occurrence on the path is legal: the path
    /// ends there, and counts with that node's present value. So does one at the start of a turn that repetition leaves without
    /// options.
    pub(super) fn descend<R: Rng>(
        &mut self,
        tree: &mut Tree,
        from: NodeId,
        root: &Position,
        selection: &mut Selection<'_, R>,
    ) -> LeafKind {
        self.frames.clear();
        self.starts.clear();
        // A path that begins below the root's turn begins with a turn start that has just been reached.
        let begins_with_start = tree.node(from).state.steps_used() == 0;
        self.starts
            .extend(begins_with_start.then(|| tree.state(from).start_position()));
        self.starts.retain(|start| start != root);
        self.before = self.starts.len();
        let mut node = from;
        let mut avoided = Vec::new();
        loop {
            match tree.node(node).kind {
                NodeKind::Unexpanded => return LeafKind::Unexpanded(node),
                NodeKind::Terminal => return LeafKind::Known,
                NodeKind::Expanded if tree.node_value(node).proof.is_some() => {
                    return LeafKind::Known;
                }
                NodeKind::Expanded => {}
            }
            let priors = selection
                .root_priors
                .of(tree, node, selection.options, selection.rng);
            let puct = &selection.options.puct;
            let selected = match selection.options.parallel_leaves {
                0 | 1 => select::<false>(tree, node, &avoided, puct, priors),
                _ => select::<true>(tree, node, &avoided, puct, priors),
            };
            let Some(edge) = selected else {
                let inside = tree.node(node).state.steps_used() > 0;
                let Some(frame) = self.frames.pop_if(|_| inside) else {
                    return LeafKind::Known;
                };
                node = frame.node;
                avoided = frame.avoided;
                avoided.push(frame.edge);
                continue;
            };
            // With the memory used up the path ends before what the tree doesn't hold.
            let Some(child) = tree.follow(node, edge) else {
                return LeafKind::NoRoom;
            };
            if tree.node(child).state.steps_used() == 0 {
                let start = tree.state(child).start_position();
                let on_path = self.starts.iter().filter(|&&other| other == start).count();
                if usize::from(selection.history.count(&start)) + on_path >= 2 {
                    avoided.push(edge);
                    continue;
                }
                self.starts.push(start);
                if on_path > 0 || start == *root {
                    self.frames.push(Frame {
                        node,
                        edge,
                        avoided,
                    });
                    return LeafKind::Known;
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

    /// Counts the simulation on every edge of the path as long as it is in flight.
    pub(super) fn add_virtual_visit(&self, tree: &mut Tree) {
        for frame in &self.frames {
            tree.add_virtual_visit(frame.node, frame.edge);
        }
    }

    /// Takes that back.
    pub(super) fn remove_virtual_visit(&self, tree: &mut Tree) {
        for frame in &self.frames {
            tree.remove_virtual_visit(frame.node, frame.edge);
        }
    }

    /// Counts the simulation on every edge of the path and recomputes the values above them.
    pub(super) fn back_up(&self, tree: &mut Tree) {
        for frame in self.frames.iter().rev() {
            tree.count_visit(frame.node, frame.edge);
            tree.update(frame.node);
        }
    }

    /// Recomputes the values on the path without counting the simulation.
    pub(super) fn update(&self, tree: &mut Tree) {
        for frame in self.frames.iter().rev() {
            tree.update(frame.node);
        }
    }

    /// The number of edges on the path.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    /// How many turns were completed on the path.
    pub(super) fn turns(&self) -> usize {
        self.starts.len() - self.before
    }
}

/// The edge of the greatest upper bound, `Q + c(N)·P·√N / (1 + n)` in the mover's view (Silver et al. 2018, "A general reinforcement
/// learning algorithm that masters chess, shogi, and Go through self-play", its pseudocode), with the exploration factor `c(N) = exploration + ln((N + base + 1) / base)`. An unvisited edge counts as the state's own value
/// less `first_play_reduction` times the square root of the prior visited so far (as in Leela Chess Zero). Edges that are proven
/// lost for the mover are options only where no other is left: then the one that resists the longest.
///
/// With `VIRTUAL_VISITS` the visits are those in flight too. An edge that has no others leads to a leaf that is not evaluated yet. It
/// counts as if it had none, so that a simulation reaches that leaf again in place of a less likely sibling. What this simulation
/// counts on its path sends later ones elsewhere nearer to the root, where there is more to choose from.
fn select<const VIRTUAL_VISITS: bool>(
    tree: &Tree,
    id: NodeId,
    avoided: &[usize],
    options: &PuctConfig,
    root_priors: Option<&[f32]>,
) -> Option<usize> {
    let node = tree.node(id);
    let node_value = tree.node_value(id);
    let mover = node.state.side();
    let edges = tree.edges(id);
    let links = tree.links(id);
    let prior = |edge: usize| match root_priors {
        Some(priors) => priors[edge],
        None => edges[edge].prior(),
    };
    let visits = node.visits as f32;
    let base = options.exploration_base;
    let factor = (options.exploration + ((visits + base + 1.0) / base).ln()) * visits.sqrt();
    let value = win_probability(mover, node_value.value);
    let mut best = None;
    let mut best_bound = f32::NEG_INFINITY;
    let mut visited_prior = 0.0;
    let mut longest = None;
    let mut untried_links = 0;
    // The greatest last term of the bounds of edges whose leaves are not evaluated yet.
    let (mut unevaluated, mut unevaluated_term) = (None, f32::NEG_INFINITY);
    for (edge, link) in links.iter().enumerate() {
        let Some(child) = link.child() else {
            untried_links += 1;
            continue;
        };
        let child = tree.node_value(child);
        let may_be_excluded = child.proof.is_some() || !avoided.is_empty();
        if may_be_excluded && (child.loses(mover) || avoided.contains(&edge)) {
            if !avoided.contains(&edge)
                && longest.is_none_or(|(turns, _)| child.turns_from_before() > turns)
            {
                longest = Some((child.turns_from_before(), edge));
            }
            continue;
        }
        if link.visits == 0 {
            untried_links += 1;
            continue;
        }
        let prior = prior(edge);
        visited_prior += prior;
        if VIRTUAL_VISITS && !child.is_evaluated() {
            let term = factor * prior;
            if term > unevaluated_term {
                (unevaluated, unevaluated_term) = (Some(edge), term);
            }
            continue;
        }
        let bound = win_probability(mover, child.value) + factor * prior / (1 + link.visits) as f32;
        if bound > best_bound {
            best_bound = bound;
            best = Some(edge);
        }
    }
    // Of the edges without visits the likeliest is the best.
    let is_option = |edge: &usize| {
        let link = tree.link(id, *edge);
        let is_lost = link
            .child()
            .is_some_and(|child| tree.node_value(child).loses(mover));
        link.visits == 0 && !is_lost && !avoided.contains(edge)
    };
    let first = if untried_links > 0 { 0 } else { links.len() };
    let mut untried = (first..edges.len()).filter(is_option);
    let next = match root_priors {
        Some(priors) => greatest(untried, |edge| priors[edge]),
        None => untried.next(),
    };
    let first_play = value - options.first_play_reduction * visited_prior.sqrt();
    if VIRTUAL_VISITS && first_play + unevaluated_term > best_bound {
        best = unevaluated;
        best_bound = first_play + unevaluated_term;
    }
    if let Some(edge) = next
        && first_play + factor * prior(edge) > best_bound
    {
        best = Some(edge);
    }
    best.or(longest.map(|(_, edge)| edge))
}

/// Whether taking an edge of a node ends the turn.
pub(super) fn ends_turn(tree: &Tree, id: NodeId, edge: usize) -> bool {
    let node = tree.node(id);
    let state = tree.state(id);
    state.steps_left() == 1 || tree.edges(id)[edge].action(node.state.side()) == Action::End
}
