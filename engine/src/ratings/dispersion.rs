//! Ratings whose errors know of the pairs that the games came in.

use super::multinomial::VALUES;
use super::{Games, PairCounts, Rating, fit, score_of_elo};
use std::collections::BTreeMap;

/// With fewer pairs beyond those that the ratings take, their spread says nothing.
const LEAST_PAIRS: f64 = 20.0;

/// The spread is not believed to be further from that of independent games than so many times.
const MOST: f64 = 4.0;

/// What two players' pairs of games came to, as a sees them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pairs<P> {
    /// The one player.
    pub a: P,
    /// The other.
    pub b: P,
    /// By a's points.
    pub counts: PairCounts,
}

/// The ratings of all players whose games link them with the reference, as [`fit`](fn@fit) has them, with errors that follow the
/// spread of the pairs' results.
///
/// [`fit`](fn@fit) takes games for independent ones with a winner. The two games of a pair are not, and a game that was stopped
/// spreads less: all errors are multiplied by √φ, where φ is how much wider the pairs' points are spread around what the ratings
/// expect of them than those of two such games (the dispersion of quasi-likelihood: McCullagh and Nelder, Generalized Linear Models,
/// section 4.5). It is one number for all matches: Σ (x - 2p)² / Σ 2p(1 - p) · n / (n - k), over n pairs with the points x and the
/// expected points a game p, for k players beside the reference.
pub fn fit_pairs<P: Copy + Ord>(matches: &[Pairs<P>], reference: P) -> BTreeMap<P, Rating> {
    let games = |of: &Pairs<P>| Games {
        a: of.a,
        b: of.b,
        games: of.counts.games() as f64,
        points: of.counts.points(),
    };
    let games: Vec<Games<P>> = matches.iter().map(games).collect();
    let mut ratings = fit(&games, reference);
    let factor = dispersion(matches, &ratings).sqrt();
    for rating in ratings.values_mut() {
        rating.low = rating.elo - factor * (rating.elo - rating.low);
        rating.high = rating.elo + factor * (rating.high - rating.elo);
    }
    ratings
}

fn dispersion<P: Copy + Ord>(matches: &[Pairs<P>], ratings: &BTreeMap<P, Rating>) -> f64 {
    let (mut found, mut expected, mut all) = (0.0, 0.0, 0.0);
    for of in matches {
        let (Some(a), Some(b)) = (ratings.get(&of.a), ratings.get(&of.b)) else {
            continue;
        };
        let score = score_of_elo(a.elo - b.elo);
        for (pairs, value) in <[u64; 5]>::from(of.counts).into_iter().zip(VALUES) {
            found += pairs as f64 * (2.0 * (value - score)).powi(2);
        }
        let pairs = of.counts.pairs() as f64;
        expected += pairs * 2.0 * score * (1.0 - score);
        all += pairs;
    }
    let free = all - (ratings.len() as f64 - 1.0);
    if free < LEAST_PAIRS || expected <= 0.0 {
        return 1.0;
    }
    (found / expected * all / free).clamp(1.0 / MOST, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn half_width(counts: [u64; 5]) -> f64 {
        let matches = [Pairs {
            a: 1,
            b: 0,
            counts: counts.into(),
        }];
        let rating = fit_pairs(&matches, 0)[&1];
        assert!(((rating.high + rating.low) / 2.0 - rating.elo).abs() < 1e-9);
        (rating.high - rating.low) / 2.0
    }

    #[test]
    fn errors_follow_the_spread_of_the_pairs() {
        let independent = half_width([100, 0, 200, 0, 100]);
        let plain = fit(
            &[Games {
                a: 1,
                b: 0,
                games: 800.0,
                points: 400.0,
            }],
            0,
        )[&1];
        assert!((independent / plain.high - 1.0).abs() < 0.01);
        // Pairs of equal games are worth half as many.
        let alike = half_width([200, 0, 0, 0, 200]);
        assert!((alike / independent - 2f64.sqrt()).abs() < 0.01);
        let apart = half_width([0, 50, 300, 50, 0]);
        assert!(apart < 0.6 * independent && apart > 0.0);
        // Nothing is concluded from pairs that are all split, or from a few.
        assert!(half_width([0, 0, 400, 0, 0]) > 0.4 * independent);
        assert!(half_width([0, 0, 10, 0, 0]) > 100.0);
        let none: [Pairs<u32>; 0] = [];
        assert_eq!(fit_pairs(&none, 7).len(), 1);
    }
}
