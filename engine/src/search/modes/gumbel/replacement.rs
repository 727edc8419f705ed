//! Other turns in the place of candidates that turned out to be lost: from what the beam has pruned, and at last from all legal ones.

use super::GumbelTurn;
use super::beam::SlotId;
use super::candidate::Candidate;
use super::sizes::halvings_to_one;
use crate::search::batch::LeafBatch;
use crate::search::lost_turns::{OtherTurn, other_turns};
use crate::search::state::SearchState;
use arimaa::rules::History;
use rand::Rng;

impl GumbelTurn {
    /// Ranks a candidate that was found among all turns by the beam, which now brings it; says whether there is such a candidate.
    fn update_ranking(&mut self, slot: SlotId, search: &SearchState) -> bool {
        let (end, log_prior, rank) = self.beam.ranked(slot, search);
        let known = self.candidates.iter_mut().find(|one| one.end == end);
        if let Some(candidate) = known {
            candidate.slot = Some(slot);
            (candidate.log_prior, candidate.rank) = (log_prior, rank);
            return true;
        }
        false
    }

    /// Takes over what the beam has learnt of the candidates since.
    fn rank_again(&mut self, search: &SearchState) {
        for candidate in &mut self.candidates {
            if let Some(slot) = candidate.slot {
                let (_, log_prior, rank) = self.beam.ranked(slot, search);
                (candidate.log_prior, candidate.rank) = (log_prior, rank);
            }
        }
    }

    /// Puts other turns in the place of lost ones: the best of those that the beam has pruned, as long as the budget lasts. Where
    /// all were lost, it takes legal turns that are not. Says whether evaluations are awaited for it.
    pub(super) fn replace<R: Rng>(
        &mut self,
        search: &mut SearchState,
        batch: &mut LeafBatch,
        history: &History,
        rng: &mut R,
    ) -> bool {
        loop {
            if !self.beam.is_done() {
                // What follows the prefix that was brought back: its evaluation is there.
                self.beam.advance(search, 0, rng);
                self.rank_again(search);
            }
            let lost = self.candidates.iter().filter(|one| one.is_lost).count();
            let wanted = lost.saturating_sub(self.replaced);
            if wanted == 0 {
                return false;
            }
            if self.alive().next().is_none() && self.bring_back_given_up() {
                self.replaced = lost;
                continue;
            }
            if self.alive().next().is_none() && !self.none_is_left {
                self.replaced = lost;
                self.add_others(search, history);
                self.none_is_left = !self.candidates.iter().any(|one| one.is_alive);
                continue;
            }
            let left = search.spent.evaluations_left(&search.options.budget);
            let reserved = self.alive().count() as u32;
            let affordable = left.is_none_or(|left| left > reserved);
            if !affordable || search.budget_used() >= 1.0 {
                return false;
            }
            match self.beam.best_pruned(search) {
                None => self.replaced = lost,
                Some(slot) if self.beam.is_whole(slot) => {
                    self.beam.take(slot, search);
                    if self.update_ranking(slot, search) {
                        continue;
                    }
                    self.add(slot, search);
                    self.replaced += 1;
                    self.mark_proven(search);
                }
                Some(slot) => {
                    self.beam.bring_back(slot, search);
                    if self.beam.ask(search, batch, history) {
                        return true;
                    }
                }
            }
        }
    }

    /// Compares those again that were given up for others which have turned out to be lost; says whether there are any.
    fn bring_back_given_up(&mut self) -> bool {
        for candidate in &mut self.candidates {
            candidate.is_alive = !candidate.is_lost;
        }
        let count = self.alive().count();
        self.compare_again();
        count > 0
    }

    /// Halvings begin anew with those that are alive now.
    fn compare_again(&mut self) {
        self.rounds = self.halvings + halvings_to_one(self.alive().count());
    }

    /// Makes candidates of the likeliest turns that are not known to be lost.
    fn add_others(&mut self, search: &mut SearchState, history: &History) {
        let (others, mut rest_is_lost) =
            other_turns(search, history, self.sizes.candidates as usize);
        if others.is_empty() && rest_is_lost {
            search.tree.prove_lost(search.root);
        }
        for OtherTurn {
            actions,
            end,
            log_prior,
        } in others
        {
            // The first is a way out, whatever the memory.
            let room = search.tree.intern_if_room(&end);
            let Some(end) = room.or_else(|| {
                self.alive()
                    .next()
                    .is_none()
                    .then(|| search.tree.intern(&end))
            }) else {
                rest_is_lost = false;
                break;
            };
            self.candidates.push(Candidate {
                actions: Some(actions),
                ..Candidate::new(end, log_prior, log_prior)
            });
        }
        self.rest_is_lost = rest_is_lost;
        self.compare_again();
    }
}
