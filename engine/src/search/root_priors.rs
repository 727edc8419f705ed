//! The priors at the states of the root's turn, where they are to differ from the evaluator's: tempered, and mixed with noise.
//!
//! The tree itself holds what the evaluator said, so that it can be kept for the next turn, and targets don't learn the noise.

use super::options::{Noise, SearchOptions};
use super::tree::{NodeId, Tree};
use rand::Rng;
use rand_distr::{Distribution, Gamma};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The priors of the states of the root's turn that simulations have reached, in the order of their edges.
#[derive(Debug, Default)]
pub(super) struct RootPriors {
    root: NodeId,
    priors: Vec<f32>,
    places: FxHashMap<NodeId, Range<usize>>,
    /// Draws of one node.
    draws: Vec<f64>,
}

impl RootPriors {
    /// Forgets everything; `root` is the start of the turn from now on.
    pub(super) fn clear(&mut self, root: NodeId) {
        self.root = root;
        self.priors.clear();
        self.places.clear();
    }

    /// The priors of a node, if it belongs to the root's turn and they differ from its edges'. They are drawn once.
    pub(super) fn of<R: Rng>(
        &mut self,
        tree: &Tree,
        id: NodeId,
        options: &SearchOptions,
        rng: &mut R,
    ) -> Option<&[f32]> {
        let as_evaluated = options.noise.is_none() && options.prior_temperature == 1.0;
        if as_evaluated || tree.node(id).start != self.root {
            return None;
        }
        let Self {
            priors,
            places,
            draws,
            ..
        } = self;
        let place = places.entry(id).or_insert_with(|| {
            let first = priors.len();
            priors.extend(tree.edges(id).iter().map(|edge| edge.prior()));
            let added = &mut priors[first..];
            temper(added, options.prior_temperature);
            if let Some(noise) = options.noise {
                noise.mix(added, draws, rng);
            }
            first..priors.len()
        });
        Some(&priors[place.clone()])
    }
}

/// `p^(1/temperature)`, normalised.
pub(super) fn temper(priors: &mut [f32], temperature: f32) {
    if temperature == 1.0 {
        return;
    }
    let greatest = priors.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
    for prior in priors.iter_mut() {
        *prior = (*prior / greatest).powf(1.0 / temperature);
    }
    let sum: f32 = priors.iter().sum();
    priors.iter_mut().for_each(|prior| *prior /= sum);
}

impl Noise {
    /// `(1 - share) · prior + share · noise`, the noise drawn from a symmetric Dirichlet distribution: normalised gamma variates
    /// (Devroye 1986, chapter XI.4).
    /// `draws` is where they are held meanwhile.
    fn mix<R: Rng>(&self, priors: &mut [f32], draws: &mut Vec<f64>, rng: &mut R) {
        let shape = f64::from(self.concentration) / priors.len().max(1) as f64;
        let Ok(gamma) = Gamma::new(shape, 1.0) else {
            return;
        };
        draws.clear();
        draws.extend(priors.iter().map(|_| gamma.sample(rng)));
        let sum: f64 = draws.iter().sum();
        if sum <= 0.0 {
            return;
        }
        for (prior, draw) in priors.iter_mut().zip(draws.iter()) {
            let noise = (draw / sum) as f32;
            *prior += self.share * (noise - *prior);
        }
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
        let mut mixed = [0.1; 10];
        noise.mix(
            &mut mixed,
            &mut Vec::new(),
            &mut ChaCha8Rng::seed_from_u64(5),
        );
        assert!((mixed.iter().sum::<f32>() - 1.0).abs() < 1e-5);
        assert!(mixed.iter().all(|&prior| prior >= 0.075 - 1e-6));
        assert!(mixed.iter().any(|&prior| prior > 0.11), "{mixed:?}");
    }

    #[test]
    fn temperature_flattens_and_sharpens() {
        for (temperature, expected) in [(1.0, [0.8, 0.2]), (2.0, [2.0 / 3.0, 1.0 / 3.0])] {
            let mut priors = [0.8, 0.2];
            temper(&mut priors, temperature);
            let near = |(one, other): (f32, f32)| (one - other).abs() < 1e-6;
            assert!(priors.into_iter().zip(expected).all(near), "{priors:?}");
        }
        let mut priors = [0.8, 0.2, 0.0];
        temper(&mut priors, 0.5);
        assert!((priors[0] - 16.0 / 17.0).abs() < 1e-6 && priors[2] == 0.0);
    }
}
