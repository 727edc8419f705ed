//! The improved policy of whole turns, and what it means for each step of them.

use super::beam::Beam;
use super::candidate::Candidate;
use super::likelihood::log_sum_exp;
use crate::search::state::SearchState;
use crate::search::targets::{StateTarget, in_index_order, surprise};
use crate::search::tree::{NodeId, win_probability};
use rustc_hash::{FxHashMap, FxHashSet};

/// The values of candidates, and the value that stands for everything else.
#[derive(Debug, Clone, Copy)]
pub(super) struct Improved {
    /// The factor of σ in the choice of a turn: `value_scale · (visit_constant + the most visits)` (Danihelka et al. 2022, equation 8).
    scale: f64,
    /// The factor of σ in the policy targets.
    target_scale: f64,
    /// The value of what was not looked at, for the mover: the root's own, mixed with the candidates' by their priors (Danihelka,
    /// Guez, Schrittwieser and Silver 2022, equation 33).
    mixed_value: f64,
}

impl Improved {
    pub(super) fn new(search: &SearchState, candidates: &[Candidate]) -> Self {
        let options = &search.options.gumbel;
        let most = candidates.iter().map(|one| one.visits).max().unwrap_or(0);
        let own = win_probability(search.side(), search.tree.node(search.root).own_value);
        let greatest = candidates
            .iter()
            .map(|one| one.log_prior)
            .fold(f64::NEG_INFINITY, f64::max);
        let (mut mass, mut sum, mut visits) = (0.0, 0.0, 0);
        for candidate in candidates.iter().filter(|one| one.visits > 0) {
            let prior = (candidate.log_prior - greatest).exp();
            mass += prior;
            sum += prior * f64::from(search.value_for_mover(candidate.end));
            visits += candidate.visits;
        }
        let mean = if mass > 0.0 { sum / mass } else { 0.0 };
        let visits = f64::from(visits);
        Self {
            scale: f64::from(options.value_scale)
                * (f64::from(options.visit_constant) + f64::from(most)),
            target_scale: search.options.target_value_scale.into(),
            mixed_value: (f64::from(own) + visits * mean) / (1.0 + visits),
        }
    }

    /// `σ(q)`: what a value weighs in the exponent.
    pub(super) fn sigma(&self, value: f64) -> f64 {
        self.scale * value
    }

    /// What a value weighs in the exponent of a policy target.
    fn target_sigma(&self, value: f64) -> f64 {
        self.target_scale * value
    }

    /// A candidate's value for the mover.
    pub(super) fn value_of(&self, search: &SearchState, candidate: &Candidate) -> f64 {
        if candidate.visits > 0 || search.tree.node_value(candidate.end).proof.is_some() {
            f64::from(search.value_for_mover(candidate.end))
        } else {
            self.mixed_value
        }
    }

    /// The mover's value of the turn's start under the improved policy; 0 where all turns are lost.
    ///
    /// Turns that are no candidates count with the mixed value, those as well that would turn out to be lost: only candidates are
    /// looked at. With `rest_is_lost` all of them are known to be lost, and count no more.
    pub(super) fn expected_value(
        &self,
        search: &SearchState,
        candidates: &[Candidate],
        rest_is_lost: bool,
    ) -> f32 {
        let living = candidates.iter().filter(|one| !one.is_lost);
        let terms: Vec<(f64, f64)> = living
            .map(|one| {
                let value = self.value_of(search, one);
                (one.log_prior + self.sigma(value), value)
            })
            .collect();
        let known: f64 = candidates.iter().map(|one| one.log_prior.exp()).sum();
        let rest = if rest_is_lost {
            f64::NEG_INFINITY
        } else {
            (1.0 - known).max(0.0).ln() + self.sigma(self.mixed_value)
        };
        let greatest = terms.iter().map(|term| term.0).fold(rest, f64::max);
        if greatest == f64::NEG_INFINITY {
            return 0.0;
        }
        let (mut weight, mut sum) = ((rest - greatest).exp(), 0.0);
        sum += weight * self.mixed_value;
        for (exponent, value) in terms {
            let share = (exponent - greatest).exp();
            weight += share;
            sum += share * value;
        }
        (sum / weight.max(f64::MIN_POSITIVE)) as f32
    }

    /// The recursion for the step targets.
    pub(super) fn recursion<'a>(
        &'a self,
        search: &'a SearchState,
        candidates: &'a [Candidate],
        beam: &'a Beam,
    ) -> Recursion<'a> {
        let side = search.side();
        let ends = candidates
            .iter()
            .enumerate()
            .map(|(place, one)| (one.end, place));
        let is_won = candidates
            .iter()
            .any(|one| search.tree.node_value(one.end).wins(side));
        Recursion {
            improved: self,
            search,
            candidates,
            beam,
            ends: ends.collect(),
            known: FxHashMap::default(),
            is_won,
        }
    }
}

/// `ln B` of the states of a turn. At a candidate's end `B = exp σ(q)`. Where nothing was looked at it is `exp σ(v)`, with the
/// mixed value. At a state whose steps were followed it is the mean of what follows, by the priors. σ is flatter here than where
/// turns are chosen: a policy that learns from every position should not learn the noise of a few visits. The step target is then
/// `p(a|s) · B(s·a) / B(s)`. It sums to 1 at every prefix, is the prior where all values are equal, and divides a merged turn's
/// weight among its orders by their priors. A proven loss weighs nothing; where all is lost the priors stay. Beside a proven win
/// nothing else weighs anything.
#[derive(Debug)]
pub(super) struct Recursion<'a> {
    improved: &'a Improved,
    search: &'a SearchState,
    candidates: &'a [Candidate],
    beam: &'a Beam,
    ends: FxHashMap<NodeId, usize>,
    /// `ln B` of the states that it is known of.
    known: FxHashMap<NodeId, f64>,
    is_won: bool,
}

impl Recursion<'_> {
    /// The targets of states that follow one another, as far as their steps were followed.
    pub(super) fn targets(&mut self, nodes: &[NodeId]) -> Vec<StateTarget> {
        let expanded = |(_, node): &(usize, &NodeId)| self.beam.has_expanded(**node);
        let nodes: Vec<(usize, NodeId)> = nodes
            .iter()
            .enumerate()
            .take_while(expanded)
            .map(|(step, &node)| (step, node))
            .collect();
        nodes
            .into_iter()
            .map(|(step, node)| {
                let policy = self.policy(node);
                StateTarget {
                    step: step as u8,
                    visits: self.visits_below(node),
                    proven: false,
                    policy: in_index_order(&self.search.tree, node, &policy),
                    surprise: surprise(&self.search.tree, node, policy.into_iter()),
                }
            })
            .collect()
    }

    /// The step target at a state, in the order of its edges.
    pub(super) fn policy(&mut self, node: NodeId) -> Vec<f32> {
        let exponents = self.exponents(node);
        let greatest = exponents.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let priors = self
            .search
            .tree
            .edges(node)
            .iter()
            .map(|edge| f64::from(edge.prior()));
        let root = self.search.tree.node_value(self.search.root);
        let is_lost = root.loses(self.search.side());
        let weights: Vec<f64> = if is_lost || greatest == f64::NEG_INFINITY {
            priors.collect()
        } else {
            exponents.iter().map(|one| (one - greatest).exp()).collect()
        };
        let total: f64 = weights.iter().sum();
        weights
            .iter()
            .map(|weight| (weight / total) as f32)
            .collect()
    }

    /// `ln(p(a|s) · B(s·a))` of each edge.
    fn exponents(&mut self, node: NodeId) -> Vec<f64> {
        let search = self.search;
        (0..search.tree.edges(node).len())
            .map(|edge| {
                let prior = search.tree.edges(node)[edge].prior();
                let below = match search.tree.child(node, edge) {
                    Some(child) => self.log_weight(child),
                    None => self.elsewhere(),
                };
                f64::from(prior).ln() + below
            })
            .collect()
    }

    /// `ln B` where nothing was looked at.
    fn elsewhere(&self) -> f64 {
        if self.is_won {
            f64::NEG_INFINITY
        } else {
            self.improved.target_sigma(self.improved.mixed_value)
        }
    }

    /// `ln B` of a state.
    fn log_weight(&mut self, node: NodeId) -> f64 {
        if let Some(&known) = self.known.get(&node) {
            return known;
        }
        let search = self.search;
        let side = search.side();
        let value = search.tree.node_value(node);
        let weight = if value.loses(side) {
            f64::NEG_INFINITY
        } else if let Some(&place) = self.ends.get(&node) {
            let lost_beside_a_win = self.is_won && !value.wins(side);
            if lost_beside_a_win {
                f64::NEG_INFINITY
            } else {
                let value = self.improved.value_of(search, &self.candidates[place]);
                self.improved.target_sigma(value)
            }
        } else if self.beam.has_expanded(node) {
            self.exponents(node)
                .into_iter()
                .fold(f64::NEG_INFINITY, log_sum_exp)
        } else {
            self.elsewhere()
        };
        self.known.insert(node, weight);
        weight
    }

    /// The visits of the candidates below a state, each counted once however many orders of steps lead to it.
    fn visits_below(&self, node: NodeId) -> u32 {
        let mut visits = 0;
        let mut met = FxHashSet::default();
        let mut waiting = vec![node];
        while let Some(node) = waiting.pop() {
            if let Some(&place) = self.ends.get(&node) {
                visits += self.candidates[place].visits;
            } else if self.beam.has_expanded(node) {
                let links = self.search.tree.links(node).iter();
                let children = links.filter_map(|link| link.child());
                waiting.extend(children.filter(|&child| met.insert(child)));
            }
        }
        visits
    }
}
