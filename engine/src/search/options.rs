//! How a search is to be run.

use crate::config::{PolicyTargetKind, SearchConfig};
use rand::Rng;
use rand_distr::{Distribution, Gamma};

/// How to search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchOptions {
    /// Simulations for the turn.
    pub visits: u32,
    /// PUCT's exploration factor at few visits, for values of 0 to 1.
    pub exploration: f32,
    /// The visits at which the exploration factor has grown by ln 2.
    pub exploration_base: f32,
    /// How much lower than its state's an unvisited step's value is assumed.
    pub first_play_reduction: f32,
    /// Whole turns are drawn once complete ones hold this many visits; until then step by step.
    pub min_turn_visits: u32,
    /// The temperature of these draws; 0 takes the most visited.
    pub temperature: f32,
    /// Dirichlet noise in the priors of all states of the turn, if wanted.
    pub noise: Option<Noise>,
    /// What the decision says that the policy should have been.
    pub policy_target: PolicyTarget,
}

/// What a policy learns from a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PolicyTarget {
    /// The shares of the visits.
    Visits,
    /// The priors (without noise), each times the exponential of its action's value: the improved policy of completed values.
    Improved {
        /// What a win probability of 1 weighs in the exponent.
        value_scale: f32,
    },
}

/// Dirichlet noise in the priors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// Its share of the priors, 0 to 1.
    pub share: f32,
    /// Its concentration, spread evenly over the legal actions.
    pub concentration: f32,
}

impl SearchOptions {
    /// The strongest play: no noise, temperature 0.
    pub fn strongest(config: &SearchConfig, visits: u32) -> Self {
        Self {
            visits,
            exploration: config.exploration,
            exploration_base: config.exploration_base,
            first_play_reduction: config.first_play_reduction,
            min_turn_visits: config.min_turn_visits,
            temperature: 0.0,
            noise: None,
            policy_target: match config.policy_target {
                PolicyTargetKind::Visits => PolicyTarget::Visits,
                PolicyTargetKind::Improved => PolicyTarget::Improved {
                    value_scale: config.target_value_scale,
                },
            },
        }
    }

    /// Play that explores, to learn from: the configured visits and noise, at a temperature.
    pub fn exploring(config: &SearchConfig, temperature: f32) -> Self {
        let noise = Noise {
            share: config.noise_share,
            concentration: config.noise_concentration,
        };
        Self {
            temperature,
            noise: (noise.share > 0.0).then_some(noise),
            ..Self::strongest(config, config.visits)
        }
    }
}

impl Noise {
    /// `(1 - share) · prior + share · noise`, the noise drawn from a symmetric Dirichlet distribution: normalised gamma variates
    /// (Devroye 1986, chapter XI.4).
    pub(super) fn mix<R: Rng>(&self, priors: &[f32], rng: &mut R) -> Vec<f32> {
        let shape = f64::from(self.concentration) / priors.len().max(1) as f64;
        let Ok(gamma) = Gamma::new(shape, 1.0) else {
            return priors.to_vec();
        };
        let draws: Vec<f64> = priors.iter().map(|_| gamma.sample(rng)).collect();
        let sum: f64 = draws.iter().sum();
        if sum <= 0.0 {
            return priors.to_vec();
        }
        let mixed = priors.iter().zip(draws).map(|(prior, draw)| {
            let noise = (draw / sum) as f32;
            prior + self.share * (noise - prior)
        });
        mixed.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::ChaCha8Rng;

    #[test]
    fn mixed_priors_sum_to_one_and_keep_their_share() {
        let noise = Noise {
            share: 0.25,
            concentration: 10.0,
        };
        let mixed = noise.mix(&[0.1; 10], &mut ChaCha8Rng::seed_from_u64(5));
        assert!((mixed.iter().sum::<f32>() - 1.0).abs() < 1e-5);
        assert!(mixed.iter().all(|&prior| prior >= 0.075 - 1e-6));
        assert!(mixed.iter().any(|&prior| prior > 0.11), "{mixed:?}");
    }
}
