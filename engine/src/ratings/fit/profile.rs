//! Intervals by profile likelihood.
//!
//! An interval holds the ratings that the likelihood ratio doesn't rule out: those for which the logarithm of the likelihood, at its
//! highest over all other ratings, is less than half of the 95% quantile of chi-square below the top. It is as lopsided as the
//! results are, where the information matrix knows only how sharp the top is.
//!
//! The top would be infinitely far where everything was won. Here the draws that keep it finite are no more than the bias of the
//! estimate asks for: Firth's correction (Bias reduction of maximum likelihood estimates, Biometrika 80, 1993) adds to each match as
//! many drawn games as it has leverage, its share of what is known of the players that it is between, one for each player in all; a
//! match that decides nothing gets none, so that players far apart are not drawn together by it. As intervals by such a likelihood
//! hold the truth more often than those by the plain one (Heinze and Schemper, A solution to the problem of separation in logistic
//! regression, Statistics in Medicine 21, 2002), it is used alone here.
//!
//! With many players the profiles would take too long: ten times as long as all else with 1,000. Then the likelihood is taken for
//! one that has the profile's second and third derivative and the tails of the number of lost games: see [`Profile::near`].

use super::{ELO, Games, Problem, QUANTILE, linked, log_sigmoid};
use std::collections::BTreeMap;

/// Drawn games for each player beside the reference, shared out by leverage. Firth's correction has one; with fewer, the upper end
/// of what was always won is further away.
const DRAWS: f64 = 0.75;

/// How often the draws are shared out anew for the strengths that they led to.
const PASSES: usize = 2;

/// Up to so much skewness the likelihood's derivatives tell where an interval ends.
const LITTLE_SKEWNESS: f64 = 0.3;

/// With more players they always do: profiles of 1,000 take seconds.
const MAX_PLAYERS: usize = 100;

/// Halvings of an interval of 2^10 standard deviations that find such an end.
const HALVINGS: usize = 40;

/// Steps to an interval's end, at most: it needs five.
const MAX_STEPS: usize = 100;

/// No step is longer, in natural units.
const MAX_STEP: f64 = 2.0;

/// The last step is shorter. As the steps' lengths are squared each time, what is left is a millionth.
const TOLERANCE: f64 = 1e-3;

/// The ends of the 95% intervals of all players whose games link them with the reference, but for itself, in Elo points, for games
/// that are worth as much as independent ones; `elo` is what the players' strengths are about.
pub(in crate::ratings) fn intervals<P: Copy + Ord>(
    games: &[Games<P>],
    reference: P,
    elo: impl Fn(P) -> f64,
) -> BTreeMap<P, [f64; 2]> {
    let players = linked(games, reference);
    let mut strengths: Vec<f64> = players.iter().map(|&player| elo(player) / ELO).collect();
    let played = Problem::with_draws(games, &players, |_| 0.0);
    let mut problem = Problem::with_draws(games, &players, |_| 0.0);
    for _ in 0..PASSES {
        problem.games.clone_from(&played.games);
        let columns = Columns::new(&problem, &strengths);
        for of in &mut problem.games {
            let draws = DRAWS * columns.leverage(of, &strengths);
            of.games += draws;
            of.points += 0.5 * draws;
        }
        strengths = problem.maximize_from(strengths);
    }
    let profile = Profile::new(&problem, strengths);
    let ends = (0..players.len()).map(|place| profile.ends(place).map(|end| ELO * end));
    players.iter().copied().zip(ends).collect()
}

/// The inverse of the information matrix.
pub(super) struct Columns(Vec<Vec<f64>>);

impl Columns {
    pub(super) fn new(problem: &Problem, strengths: &[f64]) -> Self {
        let factor = problem.information(strengths).factor();
        let column = |place: usize| {
            let mut unit = vec![0.0; problem.players];
            unit[place] = 1.0;
            factor.substitute(unit)
        };
        Self((0..problem.players).map(column).collect())
    }

    /// The variance of the difference of two players.
    pub(super) fn variance(&self, a: Option<usize>, b: Option<usize>) -> f64 {
        let at = |a: Option<usize>, b: Option<usize>| match (a, b) {
            (Some(a), Some(b)) => self.0[a][b],
            _ => 0.0,
        };
        at(a, a) + at(b, b) - 2.0 * at(a, b)
    }

    /// A match's share of what is known of its players' difference, 0 to 1.
    fn leverage(&self, of: &Games<Option<usize>>, strengths: &[f64]) -> f64 {
        let difference = Problem::difference(of, strengths);
        let spread = of.games * (log_sigmoid(difference) + log_sigmoid(-difference)).exp();
        (spread * self.variance(of.a, of.b)).clamp(0.0, 1.0)
    }
}

/// The likelihood around its top.
pub(super) struct Profile<'a> {
    problem: &'a Problem,
    top: Vec<f64>,
    columns: Columns,
    /// The third derivative of each match's logarithm of the likelihood by its players' difference.
    thirds: Vec<f64>,
    /// The logarithm of the likelihood at the ends.
    target: f64,
}

impl<'a> Profile<'a> {
    pub(super) fn new(problem: &'a Problem, top: Vec<f64>) -> Self {
        let third = |of: &Games<Option<usize>>| {
            let difference = Problem::difference(of, &top);
            let (won, lost) = (log_sigmoid(difference), log_sigmoid(-difference));
            of.games * (won + lost).exp() * (won.exp() - lost.exp())
        };
        Self {
            problem,
            columns: Columns::new(problem, &top),
            thirds: problem.games.iter().map(third).collect(),
            target: problem.log_likelihood(&top) - 0.5 * QUANTILE * QUANTILE,
            top,
        }
    }

    /// The third derivative of the fall of a player's profile, by standard deviations: what the other ratings are likeliest to be
    /// changes with its own by its column of the covariance.
    fn skewness(&self, place: usize) -> f64 {
        let column = &self.columns.0[place];
        let at = |place: Option<usize>| place.map_or(0.0, |place| column[place]);
        let terms = self.problem.games.iter().zip(&self.thirds);
        let third: f64 = terms
            .map(|(of, third)| third * (at(of.a) - at(of.b)).powi(3))
            .sum();
        -third / column[place].powf(1.5)
    }

    /// Both ends of a player's interval, the lower first.
    fn ends(&self, place: usize) -> [f64; 2] {
        let near = self.near_ends(place);
        let little = self.skewness(place).abs() <= LITTLE_SKEWNESS;
        if little || self.top.len() > MAX_PLAYERS {
            return near;
        }
        let [low, high] = near;
        [(low, -1.0), (high, 1.0)].map(|(near, sign)| self.end(place, sign).unwrap_or(near))
    }

    /// The same by the derivatives at the top.
    pub(super) fn near_ends(&self, place: usize) -> [f64; 2] {
        let skewness = self.skewness(place);
        let deviation = self.columns.0[place][place].sqrt();
        [-1.0, 1.0].map(|sign| self.top[place] + deviation * Self::near(sign, skewness))
    }

    /// An end by skewness κ alone, in standard deviations from the top: where (e^(κz) - 1 - κz) / κ² is half of the quantile's square.
    /// That is how far the likelihood's logarithm falls where κ is the third derivative of the fall, and where, as with few lost
    /// games, it is that of a Poisson variable's mean by its logarithm.
    fn near(sign: f64, skewness: f64) -> f64 {
        let falls = |z: f64| {
            let x = skewness * z;
            // The difference of near numbers.
            if x.abs() < 1e-3 {
                0.5 * z * z * (1.0 + x / 3.0)
            } else {
                (x.exp_m1() - x) / (skewness * skewness)
            }
        };
        let (mut inside, mut outside) = (0.0, 1024.0);
        for _ in 0..HALVINGS {
            let between = 0.5 * (inside + outside);
            if falls(sign * between) < 0.5 * QUANTILE * QUANTILE {
                inside = between;
            } else {
                outside = between;
            }
        }
        sign * inside
    }

    /// Where the profile is as low as the target, below or above the top. Each step goes to the furthest point of the player's
    /// rating at which the second-order expansion of the likelihood is at the target (Venzon and Moolgavkar, A method for computing
    /// profile-likelihood-based confidence intervals, Applied Statistics 37, 1988).
    pub(super) fn end(&self, place: usize, sign: f64) -> Option<f64> {
        let mut strengths = self.top.clone();
        for _ in 0..MAX_STEPS {
            let factor = self.problem.information(&strengths).factor();
            let gradient = self.problem.gradient(&strengths);
            let to_top = factor.substitute(gradient.clone());
            let mut unit = vec![0.0; strengths.len()];
            unit[place] = 1.0;
            let along = factor.substitute(unit);
            let rise: f64 = gradient.iter().zip(&to_top).map(|(a, b)| a * b).sum();
            let room = self.problem.log_likelihood(&strengths) + 0.5 * rise - self.target;
            let multiplier = sign * (2.0 * room / along[place]).max(0.0).sqrt();
            let steps = to_top.iter().zip(&along);
            let step: Vec<f64> = steps.map(|(a, b)| a + multiplier * b).collect();
            let largest = step
                .iter()
                .fold(0.0, |largest: f64, x| largest.max(x.abs()));
            let scale = (MAX_STEP / largest).min(1.0);
            for (strength, step) in strengths.iter_mut().zip(&step) {
                *strength += scale * step;
            }
            if largest < TOLERANCE {
                return Some(strengths[place]);
            }
        }
        None
    }
}
