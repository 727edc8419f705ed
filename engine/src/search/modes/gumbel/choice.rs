//! The choice among the candidates, once the budget is spent or the turn is proven.

use super::GumbelTurn;
use super::target::Improved;
use crate::search::decision::{
    Choice, TurnActions, actions_of, finish_by_the_rules, proven_targets,
};
use crate::search::lost_turns::{Alternative, find_alternative};
use crate::search::state::SearchState;
use crate::search::tree::{NodeKind, advantage_of, greatest};
use arimaa::rules::History;
use rand::Rng;

impl GumbelTurn {
    /// The mover's win probability at the turn's start under the improved policy; none before there are candidates, and where all
    /// that is known is lost.
    pub(in crate::search) fn expected_value(&self, search: &SearchState) -> Option<f32> {
        let is_known = self.candidates.iter().any(|candidate| !candidate.is_lost);
        let improved = Improved::new(search, &self.candidates);
        is_known.then(|| improved.expected_value(search, &self.candidates, self.rest_is_lost))
    }

    /// Chooses among the candidates that are left.
    pub(in crate::search) fn finish<R: Rng>(
        &mut self,
        search: &mut SearchState,
        history: &History,
        rng: &mut R,
    ) -> Choice {
        let side = search.side();
        let value = |place: &usize| search.tree.node_value(self.candidates[*place].end);
        let turns = |place: &usize| value(place).turns_to_end;
        let is_won = |place: &usize| value(place).wins(side);
        let all = 0..self.candidates.len();
        let won = all.clone().filter(is_won).min_by_key(turns);
        if let Some(place) = won {
            let turns = turns(&place);
            let root = search.tree.node_value_mut(search.root);
            root.prove(side, turns + 1);
            let actions = self.actions(place, search, rng);
            return Choice {
                targets: proven_targets(search, &actions, history),
                actions,
                advantage: advantage_of(side),
            };
        }
        let scores = self.scores(search);
        let best = greatest(self.alive(), |place| scores[place]);
        // With nothing left alive every candidate is lost: the longest resistance, and of equal ones what took the longest to see.
        let resistance = |place: &usize| (turns(place), self.candidates[*place].visits);
        let resisting = || {
            all.filter(|&place| self.candidates[place].is_lost)
                .max_by_key(resistance)
        };
        match best.or_else(resisting) {
            Some(place) => {
                let actions = self.actions(place, search, rng);
                self.choice(search, actions, place)
            }
            None => self.unsampled(search, history, rng),
        }
    }

    fn choice(&self, search: &SearchState, actions: TurnActions, chosen: usize) -> Choice {
        let improved = Improved::new(search, &self.candidates);
        let mut recursion = improved.recursion(search, &self.candidates, &self.beam);
        let is_lost = self.candidates[chosen].is_lost && search.is_proven();
        let advantage = if is_lost {
            advantage_of(search.side().opponent())
        } else {
            advantage_of(search.side())
                * (2.0 * improved.expected_value(search, &self.candidates, self.rest_is_lost) - 1.0)
        };
        Choice {
            targets: recursion.targets(&search.nodes_along(&actions)),
            actions,
            advantage,
        }
    }

    /// The actions of a candidate: of the orders that the beam has seen, one drawn in proportion to their probability.
    fn actions<R: Rng>(&self, place: usize, search: &SearchState, rng: &mut R) -> TurnActions {
        let candidate = &self.candidates[place];
        match &candidate.actions {
            Some(actions) => actions.clone(),
            None => actions_of(&search.tree, &self.beam.path_to(search, candidate.end, rng)),
        }
    }

    /// The turn where the budget ended before there was a candidate: the likeliest prefix, and its end by the rules alone.
    /// If that lets the enemy win, another turn that doesn't.
    fn unsampled<R: Rng>(
        &self,
        search: &mut SearchState,
        history: &History,
        rng: &mut R,
    ) -> Choice {
        let prefix = self.beam.best_prefix(search);
        let path = self.beam.path_to(search, prefix, rng);
        let mut actions = actions_of(&search.tree, &path);
        let state = search.tree.state(prefix);
        let is_whole = state.steps_used() == 0 && prefix != search.root;
        if !is_whole {
            finish_by_the_rules(&state, history, &mut actions, rng);
        }
        if search.turn_is_lost(&actions)
            && let Alternative::Found(other) = find_alternative(search, history)
        {
            actions = other;
        }
        let root = search.tree.node(search.root);
        Choice {
            actions,
            advantage: if root.kind == NodeKind::Expanded {
                root.own_value
            } else {
                0.0
            },
            targets: Vec::new(),
        }
    }
}
