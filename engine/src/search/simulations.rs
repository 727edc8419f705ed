//! The simulations of one search that wait for the evaluations of their leaves.
//!
//! Several leaves of one tree may be in flight at once. Then each simulation is counted on the edges of its path as soon as it has
//! descended, so that the next ones see it and go elsewhere. Values stay as they are (Liu, Chen, Wang, Xiao and Liu 2020, "Watch
//! the Unobserved: A Simple Approach to Parallelizing Monte Carlo Tree Search", equation 4: the visits `N` of the selection formula
//! are `N + O`, `O` those in flight; but a leaf that is in flight counts as unvisited). These counts are taken back when the answers are
//! there. Each simulation is then backed up in the order of their descents, as if it had been alone.

use super::batch::LeafBatch;
use super::descent::{Descent, LeafKind, Selection};
use super::state::SearchState;
use super::tree::NodeId;
use arimaa::rules::History;
use rand::Rng;

/// A simulation in flight.
#[derive(Debug, Default)]
struct Simulation {
    descent: Descent,
    /// What it was made for, in the strategy's own count.
    purpose: usize,
    reached: Reached,
}

/// Where a simulation ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Reached {
    /// A leaf that is to be evaluated.
    Leaf,
    /// A leaf that is in flight already.
    Duplicate,
    /// Something that needs no evaluation.
    #[default]
    Known,
    /// A step that the tree has no room for.
    NoRoom,
}

/// The simulations in the order of their descents. Their memory is kept from batch to batch.
#[derive(Debug, Default)]
pub(super) struct Simulations {
    simulations: Vec<Simulation>,
    /// How many of them are in use.
    count: usize,
    /// Whether these are counted on their edges.
    have_virtual_visits: bool,
}

impl Simulations {
    pub(super) fn clear(&mut self) {
        self.count = 0;
        self.have_virtual_visits = false;
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn in_flight(&self) -> &[Simulation] {
        &self.simulations[..self.count]
    }

    /// One simulation from a node of the root's turn or below it. Its leaf joins the batch where it needs an evaluation and is
    /// not in the batch yet.
    pub(super) fn simulate<R: Rng>(
        &mut self,
        state: &mut SearchState,
        batch: &mut LeafBatch,
        purpose: usize,
        from: NodeId,
        history: &History,
        rng: &mut R,
    ) {
        let place = self.count;
        if place == self.simulations.len() {
            self.simulations.push(Simulation::default());
        }
        self.count += 1;
        let descent = &mut self.simulations[place].descent;
        let mut selection = Selection {
            history,
            options: &state.options,
            root_priors: &mut state.root_priors,
            rng,
        };
        let leaf = descent.descend(&mut state.tree, from, &state.position, &mut selection);
        if state.options.parallel_leaves > 1 {
            descent.add_virtual_visit(&mut state.tree);
            self.have_virtual_visits = true;
        }
        let turns = descent.turns() as u32;
        state.turns_deep += u64::from(turns);
        state.deepest = state.deepest.max(turns);
        let reached = match leaf {
            LeafKind::Known => Reached::Known,
            LeafKind::NoRoom => Reached::NoRoom,
            LeafKind::Unexpanded(leaf) if batch.holds(leaf) => Reached::Duplicate,
            LeafKind::Unexpanded(leaf) => {
                state.ask(batch, leaf, history);
                if batch.holds(leaf) {
                    Reached::Leaf
                } else {
                    Reached::Known
                }
            }
        };
        let simulation = &mut self.simulations[place];
        (simulation.purpose, simulation.reached) = (purpose, reached);
    }

    /// Takes back what the simulations in flight count on their edges while they are in flight.
    pub(super) fn remove_virtual_visits(&mut self, state: &mut SearchState) {
        if std::mem::take(&mut self.have_virtual_visits) {
            for simulation in self.in_flight() {
                simulation.descent.remove_virtual_visit(&mut state.tree);
            }
        }
    }

    /// Ends the simulations in flight: each is counted and backed up, and `each` is called with what it was made for. One that came
    /// upon a leaf which was in flight already, behind others of the same tree, has found nothing: it counts no visit. Where only
    /// branches meet that mode `gumbel` sends one simulation each into, each counts.
    ///
    /// With `counts_no_room` one that ended where the tree has no room is counted like any other. Without, it has found nothing either:
    /// any number of such visits could pile up behind one and the same evaluation. It updates the values on its path, and
    /// uses up the budget.
    pub(super) fn finish_simulations(
        &mut self,
        state: &mut SearchState,
        counts_no_room: bool,
        mut each: impl FnMut(&mut SearchState, usize),
    ) {
        self.remove_virtual_visits(state);
        let counts_joined = !state.is_parallel();
        for simulation in self.in_flight() {
            if simulation.reached == Reached::Duplicate && !counts_joined {
                state.turns_deep -= simulation.descent.turns() as u64;
                continue;
            }
            if simulation.reached == Reached::NoRoom && !counts_no_room {
                state.turns_deep -= simulation.descent.turns() as u64;
                simulation.descent.update(&mut state.tree);
                state.spent.idle = state.spent.idle.saturating_add(1);
                continue;
            }
            simulation.descent.back_up(&mut state.tree);
            each(state, simulation.purpose);
            state.spent.visits = state.spent.visits.saturating_add(1);
        }
        self.clear();
    }

    /// Gives up the simulations whose leaves have not been handed out yet, as if they had never descended: the search has to end.
    pub(super) fn give_up_leaves(&mut self, state: &mut SearchState, batch: &mut LeafBatch) {
        self.remove_virtual_visits(state);
        batch.clear();
        let mut kept = 0;
        for place in 0..self.count {
            let reached = self.simulations[place].reached;
            if matches!(reached, Reached::Known | Reached::NoRoom) {
                self.simulations.swap(kept, place);
                kept += 1;
            } else {
                state.turns_deep -= self.simulations[place].descent.turns() as u64;
            }
        }
        self.count = kept;
    }
}

#[cfg(test)]
mod tests;
