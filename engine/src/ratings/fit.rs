//! Ratings by maximum likelihood.
//!
//! The model is Bradley and Terry's (1952), in Elo's words: a player that is D stronger has 1 / (1 + 10^(-D/400)) points a game
//! on average; a truncated game is half a win and half a loss. The ratings under which the results are likeliest are unique
//! up to a constant where every player has both won and lost against the others, directly or by way of third ones (Hunter, MM
//! algorithms for generalized Bradley-Terry models, Annals of Statistics 32, 2004, section 2). For the others there is a weak
//! prior, as in Coulom's program Bayesian Elo: each player brings one drawn game more than were played, shared out among its
//! opponents as its games are.
//!
//! The likelihood is concave, and found by Newton's method: unlike Hunter's it takes ten steps instead of thousands where players
//! are compared with their neighbours alone, and its matrix, the observed information, gives the errors: inverted, it is the
//! ratings' covariance, so long as there are many games.

pub(super) mod profile;

use super::pairs::EloInterval;
use profile::Columns;
use std::collections::BTreeMap;

/// Elo points in a unit of the natural logarithm of the odds.
const ELO: f64 = 400.0 / std::f64::consts::LN_10;

/// The 97.5% quantile of the normal distribution.
const QUANTILE: f64 = 1.959_964;

/// The drawn games that each player has beside those that it played.
const VIRTUAL_DRAWS: f64 = 1.0;

/// The steps of Newton's method, at most. It needs ten.
const MAX_STEPS: usize = 200;

/// How often a step is halved, at most, until the likelihood rises.
const MAX_HALVINGS: i32 = 40;

/// No step changes a rating by more once they are found, in natural units.
const TOLERANCE: f64 = 1e-9;

/// What two players' games came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Games<P> {
    /// The one player.
    pub a: P,
    /// The other.
    pub b: P,
    /// How many there were.
    pub games: f64,
    /// a's points in them; b has the rest.
    pub points: f64,
}

/// A player's rating: its Elo difference to the reference.
pub type Rating = EloInterval;

/// The ratings of all players whose games link them with the reference, which has 0. The work grows with how far apart, in the
/// players' order, opponents are; the lowest players may play all others.
pub fn fit<P: Copy + Ord>(games: &[Games<P>], reference: P) -> BTreeMap<P, Rating> {
    let players = linked(games, reference);
    let zero = Rating {
        elo: 0.0,
        low: 0.0,
        high: 0.0,
    };
    let mut ratings = BTreeMap::from([(reference, zero)]);
    let problem = Problem::new(games, &players);
    let strengths = problem.maximize();
    let columns = Columns::new(&problem, &strengths);
    for (place, (&player, &strength)) in players.iter().zip(&strengths).enumerate() {
        let variance = columns.variance(Some(place), None);
        let (elo, error) = (ELO * strength, ELO * QUANTILE * variance.sqrt());
        let (low, high) = (elo - error, elo + error);
        ratings.insert(player, Rating { elo, low, high });
    }
    ratings
}

/// The players that games link with the reference, but for itself: the highest first.
fn linked<P: Copy + Ord>(games: &[Games<P>], reference: P) -> Vec<P> {
    let mut opponents: BTreeMap<P, Vec<P>> = BTreeMap::new();
    for of in games.iter().filter(|of| of.games > 0.0) {
        opponents.entry(of.a).or_default().push(of.b);
        opponents.entry(of.b).or_default().push(of.a);
    }
    let mut linked = Vec::new();
    let mut reached = vec![reference];
    while let Some(player) = reached.pop() {
        // A player that is taken out has been reached before.
        if let Some(opponents) = opponents.remove(&player) {
            linked.push(player);
            reached.extend(opponents);
        }
    }
    linked.retain(|&player| player != reference);
    linked.sort_unstable_by(|a, b| b.cmp(a));
    linked
}

/// The games by the players' places. The reference has none: its strength is 0.
struct Problem {
    players: usize,
    games: Vec<Games<Option<usize>>>,
}

impl Problem {
    /// With the virtual draws of [`fit`].
    fn new<P: Copy + Ord>(games: &[Games<P>], players: &[P]) -> Self {
        let mut totals: BTreeMap<P, f64> = BTreeMap::new();
        for of in games {
            *totals.entry(of.a).or_default() += of.games;
            *totals.entry(of.b).or_default() += of.games;
        }
        Self::with_draws(games, players, |of| {
            let share = |player| of.games / totals.get(player).copied().unwrap_or(of.games);
            VIRTUAL_DRAWS * (share(&of.a) + share(&of.b))
        })
    }

    /// With so many drawn games for each match beside those that were played.
    fn with_draws<P: Copy + Ord>(
        games: &[Games<P>],
        players: &[P],
        draws: impl Fn(&Games<P>) -> f64,
    ) -> Self {
        let places: BTreeMap<P, usize> = players.iter().copied().zip(0..).collect();
        let placed = |of: &Games<P>| {
            let (a, b) = (places.get(&of.a).copied(), places.get(&of.b).copied());
            if of.games <= 0.0 || (a.is_none() && b.is_none()) {
                return None;
            }
            let draws = draws(of);
            Some(Games {
                a,
                b,
                games: of.games + draws,
                points: of.points + 0.5 * draws,
            })
        };
        Self {
            players: players.len(),
            games: games.iter().filter_map(placed).collect(),
        }
    }

    /// The likeliest strengths.
    fn maximize(&self) -> Vec<f64> {
        self.maximize_from(vec![0.0; self.players])
    }

    /// The same, from strengths that are not far from them.
    fn maximize_from(&self, mut strengths: Vec<f64>) -> Vec<f64> {
        let mut likelihood = self.log_likelihood(&strengths);
        for _ in 0..MAX_STEPS {
            let step = self
                .information(&strengths)
                .solve(self.gradient(&strengths));
            let largest = step
                .iter()
                .fold(0.0, |largest: f64, x| largest.max(x.abs()));
            let moved = |scale: f64| -> Vec<f64> {
                let moved = |(strength, step): (&f64, &f64)| strength + scale * step;
                strengths.iter().zip(&step).map(moved).collect()
            };
            // A concave function rises along its Newton step, if that is short enough.
            let scales = (0..MAX_HALVINGS).map(|halvings| 0.5_f64.powi(halvings));
            let mut candidates = scales.map(|scale| {
                let next = moved(scale);
                let found = self.log_likelihood(&next);
                (next, found)
            });
            let risen = candidates.find(|(_, found)| *found >= likelihood);
            // Where none rises the top is reached, as far as numbers tell.
            let Some((next, found)) = risen else {
                break;
            };
            (strengths, likelihood) = (next, found);
            if largest < TOLERANCE {
                break;
            }
        }
        strengths
    }

    /// How much stronger a is than b.
    fn difference(of: &Games<Option<usize>>, strengths: &[f64]) -> f64 {
        let strength = |place: Option<usize>| place.map_or(0.0, |place| strengths[place]);
        strength(of.a) - strength(of.b)
    }

    fn log_likelihood(&self, strengths: &[f64]) -> f64 {
        let of_games = |of: &Games<Option<usize>>| {
            let difference = Self::difference(of, strengths);
            of.points * log_sigmoid(difference) + (of.games - of.points) * log_sigmoid(-difference)
        };
        self.games.iter().map(of_games).sum()
    }

    fn gradient(&self, strengths: &[f64]) -> Vec<f64> {
        let mut gradient = vec![0.0; self.players];
        for of in &self.games {
            let expected = of.games * log_sigmoid(Self::difference(of, strengths)).exp();
            let surplus = of.points - expected;
            for (place, surplus) in [(of.a, surplus), (of.b, -surplus)] {
                if let Some(place) = place {
                    gradient[place] += surplus;
                }
            }
        }
        gradient
    }

    /// The negative second derivative of the logarithm of the likelihood.
    fn information(&self, strengths: &[f64]) -> Symmetric {
        let mut matrix = Symmetric::new(self.players, self.games.iter().map(|of| (of.a, of.b)));
        for of in &self.games {
            let difference = Self::difference(of, strengths);
            let spread = of.games * (log_sigmoid(difference) + log_sigmoid(-difference)).exp();
            for place in [of.a, of.b].into_iter().flatten() {
                matrix.add(place, place, spread);
            }
            if let (Some(a), Some(b)) = (of.a, of.b) {
                matrix.add(a.max(b), a.min(b), -spread);
            }
        }
        matrix
    }
}

/// The logarithm of 1 / (1 + e^-x).
fn log_sigmoid(x: f64) -> f64 {
    // Neither form may take the exponential of a large number.
    if x >= 0.0 {
        -(-x).exp().ln_1p()
    } else {
        x - x.exp().ln_1p()
    }
}

/// A symmetric positive definite matrix: of each row what lies from its first entry to the diagonal. Cholesky's factor has its
/// entries within the same bounds.
struct Symmetric {
    rows: Vec<Row>,
}

struct Row {
    /// The column of the first value.
    first: usize,
    values: Vec<f64>,
}

impl Symmetric {
    /// Zeros, with room for entries at these places.
    fn new(size: usize, places: impl Iterator<Item = (Option<usize>, Option<usize>)>) -> Self {
        let mut first: Vec<usize> = (0..size).collect();
        for (a, b) in places {
            if let (Some(a), Some(b)) = (a, b) {
                let row = a.max(b);
                first[row] = first[row].min(a.min(b));
            }
        }
        let row = |(row, first): (usize, usize)| Row {
            first,
            values: vec![0.0; row - first + 1],
        };
        Self {
            rows: first.into_iter().enumerate().map(row).collect(),
        }
    }

    fn add(&mut self, row: usize, column: usize, value: f64) {
        let row = &mut self.rows[row];
        row.values[column - row.first] += value;
    }

    /// Cholesky's lower factor.
    fn factor(mut self) -> Self {
        for i in 0..self.rows.len() {
            let (above, rest) = self.rows.split_at_mut(i);
            let row = &mut rest[0];
            for (column, other) in above.iter().enumerate().skip(row.first) {
                let (known, rest) = row.values.split_at_mut(column - row.first);
                let from = row.first.max(other.first);
                let own = &known[from - row.first..];
                let others = &other.values[from - other.first..];
                let products: f64 = own.iter().zip(others).map(|(a, b)| a * b).sum();
                rest[0] = (rest[0] - products) / other.values[column - other.first];
            }
            if let Some((diagonal, known)) = row.values.split_last_mut() {
                let squares: f64 = known.iter().map(|value| value * value).sum();
                *diagonal = (*diagonal - squares).max(f64::MIN_POSITIVE).sqrt();
            }
        }
        self
    }

    /// Solves a system of equations.
    fn solve(self, right: Vec<f64>) -> Vec<f64> {
        self.factor().substitute(right)
    }

    /// Solves L Lᵀ x = right for a factor L.
    fn substitute(&self, right: Vec<f64>) -> Vec<f64> {
        let mut solution = right;
        for (i, row) in self.rows.iter().enumerate() {
            let Some((diagonal, values)) = row.values.split_last() else {
                continue;
            };
            let known = solution[row.first..i].iter().zip(values);
            let products: f64 = known.map(|(a, b)| a * b).sum();
            solution[i] = (solution[i] - products) / diagonal;
        }
        for (i, row) in self.rows.iter().enumerate().rev() {
            let Some((diagonal, values)) = row.values.split_last() else {
                continue;
            };
            solution[i] /= diagonal;
            let solved = solution[i];
            for (below, value) in solution[row.first..i].iter_mut().zip(values) {
                *below -= solved * value;
            }
        }
        solution
    }
}

#[cfg(test)]
mod tests;
