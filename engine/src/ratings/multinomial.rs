//! The likelihood of the pairs' mean score, whatever the chances of the single results are.

/// The points a game of the five results that a pair can have.
pub(super) const VALUES: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

/// Steps to the multiplier, at most: it needs ten.
const MAX_STEPS: usize = 200;

/// No step changes it by a larger share once it is found.
const TOLERANCE: f64 = 1e-14;

/// How often each of the five results was seen: fractions are fine, but none may be zero.
#[derive(Debug, Clone, Copy)]
pub(super) struct Multinomial {
    counts: [f64; 5],
}

impl Multinomial {
    /// Of counts that are all above zero.
    pub(super) fn new(counts: [f64; 5]) -> Self {
        debug_assert!(counts.iter().all(|&count| count > 0.0), "{counts:?}");
        Self { counts }
    }

    /// How many pairs there are.
    pub(super) fn total(&self) -> f64 {
        self.counts.iter().sum()
    }

    /// The mean points a game, 0 to 1.
    pub(super) fn mean(&self) -> f64 {
        self.products(|value| value) / self.total()
    }

    /// By how much the logarithm of the likelihood is lower at its highest under the condition that the mean is `mean` (within 0
    /// and 1) than at its highest without a condition: 0 at the counts' own mean.
    ///
    /// Of all distributions with that mean the likeliest has the chances p_i = n_i / (N (1 + θ (a_i - mean))), where a_i are the
    /// values and θ, Lagrange's multiplier, solves Σ n_i (a_i - mean) / (1 + θ (a_i - mean)) = 0 (Owen, Empirical likelihood ratio
    /// confidence intervals for a single functional, Biometrika 75, 1988, section 2; Van den Bergh, A practical introduction to the
    /// GSPRT, for pairs of games).
    pub(super) fn deficit(&self, mean: f64) -> f64 {
        let multiplier = self.multiplier(mean);
        self.products(|value| (multiplier * (value - mean)).ln_1p())
    }

    /// The sum falls from infinity to minus infinity between the two ends, where a chance would be infinite. Newton's steps, but for
    /// those that leave what is known to hold the zero: these go to its middle.
    fn multiplier(&self, mean: f64) -> f64 {
        let (mut low, mut high) = (-1.0 / (1.0 - mean), 1.0 / mean);
        let mut multiplier = 0.0;
        for _ in 0..MAX_STEPS {
            let share = |value: f64| (value - mean) / (1.0 + multiplier * (value - mean));
            let sum = self.products(share);
            if sum > 0.0 {
                low = multiplier;
            } else {
                high = multiplier;
            }
            let slope = -self.products(|value| share(value).powi(2));
            let next = multiplier - sum / slope;
            let next = if next > low && next < high {
                next
            } else {
                0.5 * (low + high)
            };
            if (next - multiplier).abs() <= TOLERANCE * multiplier.abs() {
                return next;
            }
            multiplier = next;
        }
        multiplier
    }

    fn products(&self, of: impl Fn(f64) -> f64) -> f64 {
        let terms = VALUES.iter().zip(&self.counts);
        terms.map(|(&value, count)| count * of(value)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_results_have_the_binomial_likelihood() {
        // What is not seen counts as next to nothing.
        let rest = 1e-12;
        let counts = Multinomial::new([3.0, rest, rest, rest, 9.0]);
        assert!((counts.mean() - 0.75).abs() < 1e-9);
        assert!(counts.deficit(0.75).abs() < 1e-9);
        let of = |mean: f64| 9.0 * (0.75 / mean).ln() + 3.0 * (0.25 / (1.0 - mean)).ln();
        for mean in [0.01, 0.5, 0.7, 0.8, 0.999] {
            assert!((counts.deficit(mean) - of(mean)).abs() < 1e-6, "{mean}");
        }
    }

    #[test]
    fn the_likeliest_distribution_has_the_mean_and_no_other_is_likelier() {
        let counts = [13.0, 37.0, 50.0, 25.0, 3.0];
        let all = Multinomial::new(counts);
        let log_likelihood = |chances: [f64; 5]| -> f64 {
            let terms = counts.iter().zip(chances);
            terms.map(|(count, chance)| count * chance.ln()).sum()
        };
        let highest = log_likelihood(counts.map(|count| count / 128.0));
        for mean in [0.2, 0.5, 0.9] {
            let multiplier = all.multiplier(mean);
            let mut chances = [0.0; 5];
            for (chance, (count, value)) in chances.iter_mut().zip(counts.iter().zip(VALUES)) {
                *chance = count / (128.0 * (1.0 + multiplier * (value - mean)));
            }
            assert!((chances.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            let has: f64 = chances.iter().zip(VALUES).map(|(p, a)| p * a).sum();
            assert!((has - mean).abs() < 1e-9, "{has} {mean}");
            let found = log_likelihood(chances);
            assert!((highest - found - all.deficit(mean)).abs() < 1e-9);
            // Steps that change neither the sum nor the mean.
            for step in [[1.0, -2.0, 1.0, 0.0, 0.0], [0.0, 1.0, -1.0, -1.0, 1.0]] {
                for size in [-1e-3, 1e-3] {
                    let mut other = chances;
                    for (chance, step) in other.iter_mut().zip(step) {
                        *chance += size * step;
                    }
                    assert!(other.iter().any(|&it| it <= 0.0) || log_likelihood(other) < found);
                }
            }
        }
    }
}
