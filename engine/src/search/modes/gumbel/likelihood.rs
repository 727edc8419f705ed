//! How likely prefixes of turns are, and how that is divided among the steps that follow them.

use crate::search::root_priors::temper;
use crate::search::state::SearchState;
use crate::search::tree::{NodeId, state_after};
use rand::distr::Open01;
use rand::{Rng, RngExt};

/// How likely some orders of a prefix's steps are, together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Likelihood {
    /// The logarithm of their probability by the policy.
    pub(super) log_prior: f64,
    /// The same by the tempered policy, from which is sampled.
    pub(super) log_tempered: f64,
    /// The perturbed logarithm, by the tempered policy.
    pub(super) perturbed: f64,
}

impl Likelihood {
    /// That of the turn's start.
    pub(super) const CERTAIN: Self = Self {
        log_prior: 0.0,
        log_tempered: 0.0,
        perturbed: 0.0,
    };

    /// Takes up other orders of the same steps.
    pub(super) fn merge(&mut self, other: Self, is_noisy: bool) {
        self.log_prior = log_sum_exp(self.log_prior, other.log_prior);
        self.log_tempered = log_sum_exp(self.log_tempered, other.log_tempered);
        self.perturbed = if is_noisy {
            self.perturbed.max(other.perturbed)
        } else {
            self.log_prior
        };
    }
}

/// A step that follows a prefix.
#[derive(Debug, Clone, Copy)]
pub(super) struct Continuation {
    pub(super) edge: usize,
    /// The key of the state that it leads to.
    pub(super) key: u64,
    pub(super) likelihood: Likelihood,
}

/// The steps that follow a prefix, in the order of its node's edges, with what each gets of a likelihood of the prefix.
pub(super) fn continuations<R: Rng>(
    search: &SearchState,
    node: NodeId,
    of: Likelihood,
    rng: &mut R,
) -> Vec<Continuation> {
    let noise = search.options.gumbel_noise;
    let state = search.tree.state(node);
    let edges = search.tree.edges(node);
    let priors: Vec<f32> = edges.iter().map(|edge| edge.prior()).collect();
    let mut tempered = priors.clone();
    if noise > 0.0 {
        temper(&mut tempered, noise);
    }
    let log_tempered: Vec<f64> = tempered
        .iter()
        .map(|&prior| of.log_tempered + f64::from(prior.max(f32::MIN_POSITIVE)).ln())
        .collect();
    let perturbed = if noise > 0.0 {
        gumbels_below(of.perturbed, &log_tempered, rng)
    } else {
        Vec::new()
    };
    let continuation = |edge: usize| {
        let log_prior = of.log_prior + f64::from(priors[edge]).ln();
        Continuation {
            edge,
            key: state_after(&state, edges[edge].action(state.side())).key(),
            likelihood: Likelihood {
                log_prior,
                log_tempered: log_tempered[edge],
                perturbed: perturbed.get(edge).copied().unwrap_or(log_prior),
            },
        }
    };
    (0..edges.len()).map(continuation).collect()
}

/// `ln(e^a + e^b)`.
pub(super) fn log_sum_exp(a: f64, b: f64) -> f64 {
    let greater = a.max(b);
    if greater == f64::NEG_INFINITY {
        return greater;
    }
    greater + (-(a - b).abs()).exp().ln_1p()
}

/// Gumbel variates with these locations, given that the greatest of them is `greatest` (Kool, van Hoof and Welling 2019, section
/// 4.2 and appendix B.3).
pub(super) fn gumbels_below<R: Rng>(greatest: f64, locations: &[f64], rng: &mut R) -> Vec<f64> {
    let free: Vec<f64> = locations
        .iter()
        .map(|location| location - (-rng.sample::<f64, _>(Open01).ln()).ln())
        .collect();
    let free_greatest = free.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    free.into_iter()
        .map(|variate| {
            let v = greatest - variate + log_one_minus_exp(variate - free_greatest);
            greatest - v.max(0.0) - (-v.abs()).exp().ln_1p()
        })
        .collect()
}

/// `ln(1 - e^a)` for a of at most 0.
fn log_one_minus_exp(a: f64) -> f64 {
    if a > -std::f64::consts::LN_2 {
        (-a.exp_m1()).ln()
    } else {
        (-a.exp()).ln_1p()
    }
}
