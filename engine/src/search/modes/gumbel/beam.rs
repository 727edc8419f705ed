//! The stochastic beam over the step policy: prefixes of turns, level by level, and whole turns.
//!
//! Each prefix has the logarithm of its probability and a perturbed one: that of the best of all turns below it, each with a Gumbel
//! variate of its own. So the best prefixes lead to the best turns, and these are a sample without replacement (Kool, van Hoof and
//! Welling 2019, "Stochastic beams and where to find them", algorithm 1). Prefixes that reach the same state are one, and so are
//! whole turns that reach the same position. Their probabilities add up, and the larger perturbed one is that of the sum, as the
//! maximum of Gumbel variates is one.

use super::likelihood::{Continuation, Likelihood, continuations};
use crate::search::batch::LeafBatch;
use crate::search::descent::ends_turn;
use crate::search::flow::Flow;
use crate::search::state::SearchState;
use crate::search::tree::{NodeId, NodeKind, Tree, greatest, win_probability};
use arimaa::rules::History;
use rand::Rng;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// A prefix's place in the beam's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SlotId(usize);

/// A prefix of a turn, or a whole turn.
#[derive(Debug, Clone, Copy)]
struct Slot {
    /// Its node, once it was in the beam.
    node: Option<NodeId>,
    likelihood: Likelihood,
    /// The mover's value of the best state before it, times the options' scale.
    value_bonus: f64,
    is_whole: bool,
    status: Status,
    /// The first of the edges that lead to it, as a place in the beam's list.
    origin: Option<usize>,
}

/// An edge that leads to a slot.
#[derive(Debug, Clone, Copy)]
struct Origin {
    from: NodeId,
    edge: usize,
    /// The next edge that leads to the same slot.
    next: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    /// In the beam.
    Kept,
    /// Outside of it.
    Pruned,
    /// Replaced by what follows it.
    Expanded,
    /// Made a candidate.
    Taken,
}

/// The beam with all that it has seen.
#[derive(Debug, Default)]
pub(super) struct Beam {
    slots: Vec<Slot>,
    origins: Vec<Origin>,
    /// The slots of states by their keys.
    by_key: FxHashMap<u64, SlotId>,
    expanded: FxHashSet<NodeId>,
    /// The prefixes in the beam, as places in its list, in order.
    frontier: Vec<usize>,
    has_begun: bool,
}

impl Beam {
    /// Whether any evaluation has been requested.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Whether everything in the beam is a whole turn.
    pub(super) fn is_done(&self) -> bool {
        self.has_begun && self.frontier.is_empty()
    }

    /// Asks for the evaluations that the next level needs, or for as many of them as may be in flight at once; says whether there
    /// are any.
    pub(super) fn ask(
        &mut self,
        search: &mut SearchState,
        batch: &mut LeafBatch,
        history: &History,
    ) -> bool {
        if !self.has_begun {
            self.has_begun = true;
            self.slots.push(Slot {
                node: Some(search.root),
                likelihood: Likelihood::CERTAIN,
                value_bonus: 0.0,
                is_whole: false,
                status: Status::Kept,
                origin: None,
            });
            self.frontier.push(0);
        }
        for &slot in &self.frontier {
            if let Some(node) = self.slots[slot].node
                && search.tree.node(node).kind == NodeKind::Unexpanded
            {
                if search.is_parallel() && batch.len() >= search.options.parallel_leaves as usize {
                    break;
                }
                search.ask(batch, node, history);
            }
        }
        batch.is_waiting()
    }

    /// Replaces the prefixes in the beam by what follows them, and prunes it to `width`; 0 keeps what is whole and prunes the rest,
    /// for a beam that is done.
    pub(super) fn advance<R: Rng>(&mut self, search: &mut SearchState, width: usize, rng: &mut R) {
        for slot in std::mem::take(&mut self.frontier) {
            self.slots[slot].status = Status::Expanded;
            let Some(node) = self.slots[slot].node else {
                continue;
            };
            if search.tree.node(node).kind == NodeKind::Expanded {
                self.expanded.insert(node);
                self.follow_all(search, slot, node, rng);
            }
        }
        if width > 0 {
            self.prune(search, width);
        }
    }

    /// Adds what follows a prefix, merged with what is there.
    fn follow_all<R: Rng>(
        &mut self,
        search: &mut SearchState,
        prefix: usize,
        node: NodeId,
        rng: &mut R,
    ) {
        let is_noisy = search.options.gumbel_noise > 0.0;
        let value_bonus = value_bonus_of(search, node);
        // What other orders add to prefixes that were followed before.
        let mut late = BTreeMap::new();
        for continuation in continuations(search, node, self.slots[prefix].likelihood, rng) {
            let Continuation {
                edge,
                key,
                likelihood,
            } = continuation;
            let origin = self.origins.len();
            let known = self.by_key.get(&key).copied();
            self.origins.push(Origin {
                from: node,
                edge,
                next: known.and_then(|known| self.slots[known.0].origin),
            });
            let Some(known) = known else {
                self.by_key.insert(key, SlotId(self.slots.len()));
                self.slots.push(Slot {
                    node: None,
                    likelihood,
                    value_bonus,
                    is_whole: ends_turn(&search.tree, node, edge),
                    status: Status::Pruned,
                    origin: Some(origin),
                });
                continue;
            };
            let slot = &mut self.slots[known.0];
            slot.likelihood.merge(likelihood, is_noisy);
            slot.value_bonus = slot.value_bonus.max(value_bonus);
            slot.origin = Some(origin);
            if matches!(slot.status, Status::Taken | Status::Expanded) {
                search.tree.follow(node, edge);
            }
            self.add_late(search, known, likelihood, &mut late);
        }
        self.pass_on(search, late, rng);
    }

    /// Passes on what other orders add to prefixes whose own steps were followed before, to all that follows them. A shorter prefix
    /// comes first: what it adds to a longer one is passed on together with what else is added to that.
    fn pass_on<R: Rng>(
        &mut self,
        search: &SearchState,
        mut late: BTreeMap<(u8, SlotId), Likelihood>,
        rng: &mut R,
    ) {
        let is_noisy = search.options.gumbel_noise > 0.0;
        while let Some(((_, slot), added)) = late.pop_first() {
            let Some(node) = self.slots[slot.0].node else {
                continue;
            };
            for Continuation {
                key, likelihood, ..
            } in continuations(search, node, added, rng)
            {
                if let Some(&next) = self.by_key.get(&key) {
                    self.slots[next.0].likelihood.merge(likelihood, is_noisy);
                    self.add_late(search, next, likelihood, &mut late);
                }
            }
        }
    }

    /// Notes what was added to a prefix, if its steps were followed before.
    fn add_late(
        &self,
        search: &SearchState,
        slot: SlotId,
        added: Likelihood,
        late: &mut BTreeMap<(u8, SlotId), Likelihood>,
    ) {
        let prefix = &self.slots[slot.0];
        if prefix.node.is_none_or(|node| !self.has_expanded(node)) {
            return;
        }
        let is_noisy = search.options.gumbel_noise > 0.0;
        late.entry((prefix.depth(&search.tree, &self.origins), slot))
            .and_modify(|likelihood| likelihood.merge(added, is_noisy))
            .or_insert(added);
    }

    /// Keeps the best of all that is not replaced: `width` prefixes and whole turns.
    fn prune(&mut self, search: &mut SearchState, width: usize) {
        let level = self
            .slots
            .iter()
            .filter(|slot| slot.status != Status::Expanded);
        let deepest = level
            .clone()
            .map(|slot| slot.depth(&search.tree, &self.origins))
            .max();
        let mut contenders: Vec<usize> = (0..self.slots.len())
            .filter(|&place| {
                let slot = &self.slots[place];
                slot.status != Status::Expanded
                    && (slot.is_whole || Some(slot.depth(&search.tree, &self.origins)) == deepest)
            })
            .collect();
        contenders
            .sort_by(|&one, &other| self.slots[other].rank().total_cmp(&self.slots[one].rank()));
        for (rank, &place) in contenders.iter().enumerate() {
            if rank < width {
                self.keep(search, place, Status::Kept);
            } else {
                self.slots[place].status = Status::Pruned;
            }
        }
        contenders.retain(|&place| self.slots[place].is_expandable());
        contenders.sort_unstable();
        self.frontier = contenders;
    }

    /// Gives a slot its node and the tree all edges that lead there.
    fn keep(&mut self, search: &mut SearchState, place: usize, status: Status) {
        let slot = &mut self.slots[place];
        slot.status = status;
        let mut next = slot.origin;
        while let Some(origin) = next {
            let origin = self.origins[origin];
            slot.node = search.tree.follow(origin.from, origin.edge).or(slot.node);
            next = origin.next;
        }
        if slot.node.is_none() {
            // No memory is left for it.
            slot.status = Status::Expanded;
        }
    }

    /// Makes candidates of the best whole turns in the beam; the others are pruned.
    pub(super) fn take_best(&mut self, count: usize) -> Vec<SlotId> {
        let mut whole: Vec<usize> = (0..self.slots.len())
            .filter(|&place| self.slots[place].status == Status::Kept)
            .collect();
        whole.sort_by(|&one, &other| self.slots[other].rank().total_cmp(&self.slots[one].rank()));
        for (rank, &place) in whole.iter().enumerate() {
            self.slots[place].status = if rank < count {
                Status::Taken
            } else {
                Status::Pruned
            };
        }
        whole.truncate(count);
        whole.into_iter().map(SlotId).collect()
    }

    /// The best of what is pruned.
    pub(super) fn best_pruned(&self, search: &SearchState) -> Option<SlotId> {
        if !search.tree.has_room() {
            return None;
        }
        let pruned =
            (0..self.slots.len()).filter(|&slot| self.slots[slot].status == Status::Pruned);
        greatest(pruned, |slot| self.slots[slot].rank()).map(SlotId)
    }

    pub(super) fn is_whole(&self, slot: SlotId) -> bool {
        self.slots[slot.0].is_whole
    }

    /// Makes a pruned turn a candidate.
    pub(super) fn take(&mut self, slot: SlotId, search: &mut SearchState) {
        self.keep(search, slot.0, Status::Taken);
    }

    /// Puts a pruned prefix back into the beam.
    pub(super) fn bring_back(&mut self, slot: SlotId, search: &mut SearchState) {
        self.keep(search, slot.0, Status::Kept);
        if self.slots[slot.0].is_expandable() {
            self.frontier.push(slot.0);
        }
    }

    /// A candidate's node, the logarithm of its probability, and what it is ranked by beside its value.
    pub(super) fn ranked(&self, slot: SlotId, search: &SearchState) -> (NodeId, f64, f64) {
        let slot = &self.slots[slot.0];
        let rank = match search.options.gumbel_noise {
            noise if noise > 0.0 => slot.likelihood.perturbed * f64::from(noise),
            _ => slot.likelihood.log_prior,
        };
        (
            slot.node.unwrap_or_default(),
            slot.likelihood.log_prior,
            rank,
        )
    }

    /// Whether a node's edges were followed by the beam.
    pub(super) fn has_expanded(&self, node: NodeId) -> bool {
        self.expanded.contains(&node)
    }

    /// The node of the likeliest prefix that has one; the root where there is none.
    pub(super) fn best_prefix(&self, search: &SearchState) -> NodeId {
        let known = self.slots.iter().filter(|slot| slot.node.is_some());
        let unfinished = known.filter(|slot| slot.status != Status::Expanded);
        greatest(unfinished, Slot::rank)
            .and_then(|slot| slot.node)
            .unwrap_or(search.root)
    }

    /// The edges from the root to a state that the beam reached, drawn in proportion to the priors where several orders lead
    /// there.
    pub(super) fn path_to<R: Rng>(
        &self,
        search: &SearchState,
        to: NodeId,
        rng: &mut R,
    ) -> Vec<(NodeId, usize)> {
        let weight = |tree: &Tree, id: NodeId, edge: usize| {
            let child = tree.child(id, edge);
            let leads = child.is_some_and(|child| child == to || self.has_expanded(child));
            if leads && self.has_expanded(id) && id != to {
                f64::from(tree.edges(id)[edge].prior())
            } else {
                0.0
            }
        };
        Flow::of_weights(&search.tree, search.root, weight).path_to(to, rng)
    }
}

impl Slot {
    /// What the beam keeps the best of.
    fn rank(&self) -> f64 {
        self.likelihood.perturbed + self.value_bonus
    }

    /// Whether it is to be replaced by what follows it.
    fn is_expandable(&self) -> bool {
        self.status == Status::Kept && !self.is_whole
    }

    /// The steps before it.
    fn depth(&self, tree: &Tree, origins: &[Origin]) -> u8 {
        self.origin.map_or(0, |origin| {
            tree.node(origins[origin].from).state.steps_used() + 1
        })
    }
}

/// What a state's value promises for what follows it, in units of the noise, as the perturbed logarithm is.
fn value_bonus_of(search: &SearchState, node: NodeId) -> f64 {
    let noise = search.options.gumbel_noise;
    let beam_value_scale = search.options.gumbel.beam_value_scale;
    let own_value = win_probability(search.side(), search.tree.node(node).own_value);
    let unit = if noise > 0.0 { noise } else { 1.0 };
    f64::from(beam_value_scale * own_value / unit)
}
