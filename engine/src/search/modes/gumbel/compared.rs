//! What the comparison of turns tells a report.

use super::target::Improved;
use super::{Candidate, GumbelTurn};
use crate::search::state::SearchState;
use crate::search::tree::NodeId;
use arimaa::rules::Action;

/// A candidate as a report sees it.
#[derive(Debug, Clone, Copy)]
pub(in crate::search) struct CandidateValues<'a> {
    candidate: &'a Candidate,
}

impl<'a> CandidateValues<'a> {
    /// The start of the enemy's turn behind it.
    pub(in crate::search) fn end(self) -> NodeId {
        self.candidate.end
    }

    /// Simulations below it.
    pub(in crate::search) fn visits(self) -> u32 {
        self.candidate.visits
    }

    /// Its probability by the policy, all known orders together.
    pub(in crate::search) fn prior(self) -> f64 {
        self.candidate.log_prior.exp()
    }

    /// What it is ranked by beside its value.
    pub(in crate::search) fn rank(self) -> f64 {
        self.candidate.rank
    }

    /// Its actions, where it was not sampled: the tree may hold no way to it.
    pub(in crate::search) fn actions(self) -> Option<&'a [Action]> {
        self.candidate.actions.as_deref()
    }
}

impl GumbelTurn {
    /// The turns that are compared, those given up among them.
    pub(in crate::search) fn compared(&self) -> impl Iterator<Item = CandidateValues<'_>> {
        self.candidates
            .iter()
            .map(|candidate| CandidateValues { candidate })
    }

    /// The mover's win probability at the turn's start under the improved policy; none before there are candidates, and where all
    /// that is known is lost.
    pub(in crate::search) fn expected_value(&self, state: &SearchState) -> Option<f32> {
        let is_known = self.candidates.iter().any(|candidate| !candidate.is_lost);
        let improved = Improved::new(state, &self.candidates);
        is_known.then(|| improved.expected_value(state, &self.candidates, self.rest_is_lost))
    }
}
