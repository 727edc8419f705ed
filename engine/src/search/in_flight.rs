//! The simulations of one search that wait for the evaluations of their leaves.
//!
//! Where several leaves of one tree are in flight at once, each simulation is counted on the edges of its way as soon as it has gone
//! down, so that those that follow see it and go elsewhere; values stay what they are (Liu, Chen, Wang, Xiao and Liu 2020, "Watch the
//! Unobserved: A Simple Approach to Parallelizing Monte Carlo Tree Search", equation 4: the visits `N` of the selection formula are
//! `N + O`, `O` those in flight). These counts are taken back when the answers are there, and each simulation is backed up in the
//! order in which they went down, as if it had been alone.

use super::batch::Batch;
use super::core::Core;
use super::puct::{Arrived, Descent, Guide};
use super::tree::NodeId;
use arimaa::rules::History;
use rand::Rng;

/// A simulation on its way.
#[derive(Debug, Default)]
struct Simulation {
    descent: Descent,
    /// What it was made for, in the strategy's own count.
    purpose: usize,
    reached: Reached,
}

/// What a simulation came upon.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Reached {
    /// A leaf that is to be evaluated.
    Leaf,
    /// A leaf that is in flight already.
    Joined,
    /// Something that needs no evaluation.
    #[default]
    Known,
    /// A step that the tree has no room for.
    NoRoom,
}

/// The simulations in the order in which they went down. Their memory is kept from batch to batch.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    simulations: Vec<Simulation>,
    /// How many of them are in use.
    count: usize,
    /// Whether these are counted on their edges.
    are_watched: bool,
}

impl InFlight {
    pub(super) fn clear(&mut self) {
        self.count = 0;
        self.are_watched = false;
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn in_use(&self) -> &[Simulation] {
        &self.simulations[..self.count]
    }
}

impl Core {
    /// Whether more than one leaf may be in flight wherever one is.
    pub(super) fn is_parallel(&self) -> bool {
        self.options.parallel_leaves > 1
    }

    /// One simulation down from a node of the root's turn or below it. Its leaf is asked for where it needs an evaluation and is not
    /// in the batch yet.
    pub(super) fn simulate<R: Rng>(
        &mut self,
        batch: &mut Batch,
        purpose: usize,
        from: NodeId,
        history: &History,
        rng: &mut R,
    ) {
        let place = self.in_flight.count;
        if place == self.in_flight.simulations.len() {
            self.in_flight.simulations.push(Simulation::default());
        }
        self.in_flight.count += 1;
        let descent = &mut self.in_flight.simulations[place].descent;
        let mut guide = Guide {
            history,
            options: &self.options,
            root_priors: &mut self.root_priors,
            rng,
        };
        let arrived = descent.go(&mut self.tree, from, &self.position, &mut guide);
        if self.options.parallel_leaves > 1 {
            descent.watch(&mut self.tree);
            self.in_flight.are_watched = true;
        }
        let turns = descent.turns() as u32;
        self.turns_deep += u64::from(turns);
        self.deepest = self.deepest.max(turns);
        let reached = match arrived {
            Arrived::Known => Reached::Known,
            Arrived::NoRoom => Reached::NoRoom,
            Arrived::Fresh(leaf) if batch.holds(leaf) => Reached::Joined,
            Arrived::Fresh(leaf) => {
                self.ask(batch, leaf, history);
                if batch.holds(leaf) {
                    Reached::Leaf
                } else {
                    Reached::Known
                }
            }
        };
        let simulation = &mut self.in_flight.simulations[place];
        (simulation.purpose, simulation.reached) = (purpose, reached);
    }

    /// Takes back what the simulations in flight count on their edges while they are in flight.
    pub(super) fn take_back_watched(&mut self) {
        if std::mem::take(&mut self.in_flight.are_watched) {
            for simulation in self.in_flight.in_use() {
                simulation.descent.unwatch(&mut self.tree);
            }
        }
    }

    /// Ends the simulations in flight: each is counted and backed up, and `each` is called with what it was made for. One that came
    /// upon a leaf which was in flight already, behind others of the same tree, has found nothing: it counts no visit. Where only
    /// branches meet that mode `gumbel` sends one simulation each into, each counts.
    ///
    /// With `counts_no_room` one that ended where the tree has no room is counted like any other. Without, it has found nothing either:
    /// any number of such visits could pile up behind one and the same evaluation. It makes the values on its way those of now, and
    /// uses up the budget.
    pub(super) fn finish_simulations(
        &mut self,
        counts_no_room: bool,
        mut each: impl FnMut(&mut Self, usize),
    ) {
        self.take_back_watched();
        let counts_joined = !self.is_parallel();
        let mut in_flight = std::mem::take(&mut self.in_flight);
        for simulation in in_flight.in_use() {
            if simulation.reached == Reached::Joined && !counts_joined {
                self.turns_deep -= simulation.descent.turns() as u64;
                continue;
            }
            if simulation.reached == Reached::NoRoom && !counts_no_room {
                self.turns_deep -= simulation.descent.turns() as u64;
                simulation.descent.update(&mut self.tree);
                self.spent.idle = self.spent.idle.saturating_add(1);
                continue;
            }
            simulation.descent.back_up(&mut self.tree);
            each(self, simulation.purpose);
            self.spent.visits = self.spent.visits.saturating_add(1);
        }
        in_flight.clear();
        self.in_flight = in_flight;
    }

    /// Gives up the simulations whose leaves have not been handed out yet, as if they had never gone down: the search has to end.
    pub(super) fn give_up_leaves(&mut self, batch: &mut Batch) {
        self.take_back_watched();
        batch.clear();
        let Self {
            in_flight,
            turns_deep,
            ..
        } = self;
        let mut kept = 0;
        for place in 0..in_flight.count {
            let reached = in_flight.simulations[place].reached;
            if matches!(reached, Reached::Known | Reached::NoRoom) {
                in_flight.simulations.swap(kept, place);
                kept += 1;
            } else {
                *turns_deep -= in_flight.simulations[place].descent.turns() as u64;
            }
        }
        in_flight.count = kept;
    }
}

#[cfg(test)]
mod tests;
