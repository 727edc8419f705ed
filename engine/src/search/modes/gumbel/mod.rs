//! Mode `gumbel`: whole turns are sampled from the policy without replacement, and compared by sequential halving.
//!
//! A beam over the step policy finds the candidates ([`beam`]); simulations by PUCT below them estimate their values; the worse
//! half of them is given up again and again; those that are lost are replaced ([`replacement`]). The policy learns the improved policy of
//! completed values ([`target`]).
//! (Kool, van Hoof and Welling 2019, "Stochastic beams and where to find them"; Danihelka, Guez, Schrittwieser and Silver 2022,
//! "Policy improvement by planning with Gumbel".)

mod beam;
mod candidate;
mod choice;
mod likelihood;
mod replacement;
mod sizes;
mod target;

#[cfg(test)]
mod tests;

use crate::search::batch::LeafBatch;
use crate::search::decision::Choice;
use crate::search::options::SearchOptions;
use crate::search::simulations::Simulations;
use crate::search::state::SearchState;
use arimaa::rules::{History, Position};
use beam::{Beam, SlotId};
use candidate::Candidate;
use rand::Rng;
use sizes::{Sizes, halvings_to_one};
use target::Improved;

/// The state of one turn's search.
#[derive(Debug, Default)]
pub(in crate::search) struct GumbelTurn {
    sizes: Sizes,
    beam: Beam,
    candidates: Vec<Candidate>,
    /// How much of the budget the sampling took, once it is done.
    sampled: Option<f64>,
    /// How often the candidates have been halved.
    halvings: u32,
    rounds: u32,
    /// With several leaves in flight: the simulations of a round that did not fit into the batch.
    left_of_round: u32,
    /// How many lost candidates have others in their place, or can't have any.
    replaced: usize,
    /// Whether, with all candidates lost, no other turn is left to look at.
    none_is_left: bool,
    /// Whether all turns that are no candidates are known to be lost.
    rest_is_lost: bool,
}

impl GumbelTurn {
    /// Bytes that the beam may hold beside the tree.
    pub(in crate::search) fn beam_bytes(&self) -> usize {
        self.sizes.beam_bytes()
    }

    /// Whether nothing has been looked at yet.
    pub(in crate::search) fn is_new(&self) -> bool {
        !self.beam.has_begun()
    }

    /// The search for the turn of a position; none where the budget is too small to compare turns.
    pub(in crate::search) fn new(position: &Position, options: &SearchOptions) -> Option<Self> {
        Some(Self {
            sizes: Sizes::new(position, options)?,
            ..Self::default()
        })
    }

    /// Searches up to the next leaves, or to the turn's end.
    pub(in crate::search) fn advance<R: Rng>(
        &mut self,
        search: &mut SearchState,
        simulations: &mut Simulations,
        batch: &mut LeafBatch,
        history: &History,
        rng: &mut R,
    ) -> Option<Choice> {
        if self.sampled.is_none() {
            while !self.beam.is_done() {
                if search.budget_used() >= 1.0 {
                    return Some(self.finish(search, history, rng));
                }
                if self.beam.ask(search, batch, history) {
                    return None;
                }
                self.beam
                    .advance(search, self.sizes.beam_width as usize, rng);
            }
            for slot in self.beam.take_best(self.sizes.candidates as usize) {
                self.add(slot, search);
            }
            self.sampled = Some(search.budget_used());
            self.rounds = halvings_to_one(self.candidates.len());
        }
        loop {
            self.finish_simulations(search, simulations);
            if self.mark_proven(search) {
                return Some(self.finish(search, history, rng));
            }
            if self.replace(search, batch, history, rng) {
                return None;
            }
            self.halve(search);
            if self.is_over(search) {
                return Some(self.finish(search, history, rng));
            }
            self.simulate(search, simulations, batch, history, rng);
            if batch.is_waiting() {
                return None;
            }
        }
    }

    fn add(&mut self, slot: SlotId, search: &mut SearchState) {
        let (end, log_prior, rank) = self.beam.ranked(slot, search);
        search.tree.check_immobilization(end);
        self.candidates.push(Candidate {
            slot: Some(slot),
            ..Candidate::new(end, log_prior, rank)
        });
    }

    /// The turns that are compared, those given up among them.
    pub(in crate::search) fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    fn alive(&self) -> impl Iterator<Item = usize> + Clone + '_ {
        (0..self.candidates.len()).filter(|&place| self.candidates[place].is_alive)
    }

    /// Marks the candidates that are proven lost; says whether one is proven won.
    fn mark_proven(&mut self, search: &mut SearchState) -> bool {
        let side = search.side();
        let mut is_won = false;
        for candidate in &mut self.candidates {
            search.tree.check_goal(candidate.end);
            let value = search.tree.node_value(candidate.end);
            is_won |= value.wins(side);
            if value.loses(side) {
                candidate.is_lost = true;
                candidate.is_alive = false;
            }
        }
        is_won
    }

    /// Gives up the worse half as often as the budget used says: after each of as many equal parts of it as there are halvings.
    fn halve(&mut self, search: &mut SearchState) {
        let sampled = self.sampled.unwrap_or(0.0);
        let share = search.budget_used();
        if search.is_parallel() && share < 1.0 && self.left_of_round > 0 {
            return;
        }
        let used = (share - sampled) / (1.0 - sampled).max(1e-9);
        // The last halving is the choice itself.
        while self.halvings + 1 < self.rounds
            && used * f64::from(self.rounds) >= f64::from(self.halvings + 1)
        {
            self.halvings += 1;
            let mut alive: Vec<usize> = self.alive().collect();
            let scores = self.scores(search);
            alive.sort_by(|&one, &other| scores[other].total_cmp(&scores[one]));
            for &place in alive.iter().skip(alive.len().div_ceil(2)) {
                self.candidates[place].is_alive = false;
            }
        }
    }

    fn is_over(&self, search: &mut SearchState) -> bool {
        let budget = search.options.budget;
        let alive = self.alive().count();
        alive == 0
            || alive == 1 && budget.stops_when_decided
            || search.budget_used() >= 1.0
            || search.spent.evaluations_left(&budget) == Some(0)
    }

    /// `G + σ(q)` of every candidate: what halvings and the choice go by.
    fn scores(&self, search: &SearchState) -> Vec<f64> {
        let improved = Improved::new(search, &self.candidates);
        let scores = self.candidates.iter();
        scores
            .map(|candidate| candidate.rank + improved.sigma(improved.value_of(search, candidate)))
            .collect()
    }

    /// How many simulations those candidates are behind that have had fewer than others.
    fn missing_in_round(&self) -> u32 {
        let visits = self.alive().map(|place| self.candidates[place].visits);
        let most = visits.clone().max().unwrap_or(0);
        visits.map(|visits| most - visits).sum()
    }

    /// How many simulations go down together: one below each of those candidates that have had the fewest. Where several leaves may
    /// be in flight, so many that candidates have equally many again, after one batch or after several of about the same size.
    fn batch_size(&mut self, search: &SearchState) -> u32 {
        if !search.is_parallel() {
            let visits = self.alive().map(|place| self.candidates[place].visits);
            let fewest = visits.clone().min();
            return visits.filter(|&visits| Some(visits) == fewest).count() as u32;
        }
        let count = self.alive().count().max(1) as u32;
        let most = search.options.parallel_leaves;
        let missing = self.missing_in_round();
        let round = if missing == 0 { count } else { missing };
        if round > most {
            let size = round.div_ceil(round.div_ceil(most));
            self.left_of_round = round - size;
            return size;
        }
        self.left_of_round = 0;
        // Further whole rounds, up to the next halving.
        let sampled = self.sampled.unwrap_or(0.0);
        let next = if self.halvings + 1 < self.rounds {
            f64::from(self.halvings + 1) / f64::from(self.rounds)
        } else {
            1.0
        };
        let until = search
            .spent
            .visits_until(&search.options.budget, sampled + (1.0 - sampled) * next);
        let rounds = (until.saturating_sub(round)).div_ceil(count);
        round + rounds.min((most - round) / count) * count
    }

    /// The next candidate to simulate below: of those that have had the fewest simulations, in flight or not, the first.
    fn next_candidate(&self) -> Option<usize> {
        let visits = |place: &usize| {
            let candidate = &self.candidates[*place];
            candidate.visits + candidate.in_flight
        };
        self.alive().min_by_key(visits)
    }

    /// Simulations below the candidates, each below one of those that have had the fewest.
    fn simulate<R: Rng>(
        &mut self,
        search: &mut SearchState,
        simulations: &mut Simulations,
        batch: &mut LeafBatch,
        history: &History,
        rng: &mut R,
    ) {
        let budget = search.options.budget;
        let visits_left = search.spent.visits_left(&budget).unwrap_or(u32::MAX);
        let evaluations_left = search.spent.evaluations_left(&budget);
        for _ in 0..self.batch_size(search).min(visits_left) {
            if evaluations_left.is_some_and(|left| batch.len() as u32 >= left) {
                break;
            }
            let Some(candidate) = self.next_candidate() else {
                break;
            };
            let one = &mut self.candidates[candidate];
            one.in_flight += 1;
            simulations.simulate(search, batch, candidate, one.end, history, rng);
            if search.is_parallel() && batch.is_waiting() && search.budget_used() >= 1.0 {
                simulations.give_up_leaves(search, batch);
                break;
            }
        }
    }

    fn finish_simulations(&mut self, search: &mut SearchState, simulations: &mut Simulations) {
        // Rounds advance by the visits, whatever they reach.
        simulations.finish_simulations(search, true, |_, candidate| {
            self.candidates[candidate].visits += 1;
        });
        for candidate in &mut self.candidates {
            candidate.in_flight = 0;
        }
    }
}
