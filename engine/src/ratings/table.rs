//! The results of all players against each other.

use super::dispersion::{Pairs, fit_pairs};
use super::fit::Rating;
use super::pairs::{GameResult, PairCounts};
use std::collections::BTreeMap;

/// What any number of players came to against each other. A player's games against itself are not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairTable<P> {
    /// By both players, the lower first, as that one sees them.
    matches: BTreeMap<(P, P), PairCounts>,
}

impl<P> Default for PairTable<P> {
    fn default() -> Self {
        Self {
            matches: BTreeMap::new(),
        }
    }
}

impl<P: Copy + Ord> PairTable<P> {
    /// Counts a pair of games of a and b, with the results for a.
    pub fn add(&mut self, a: P, b: P, pair: [GameResult; 2]) {
        let mut counts = PairCounts::default();
        counts.add(pair);
        if a < b {
            *self.matches.entry((a, b)).or_default() += counts;
        } else if b < a {
            *self.matches.entry((b, a)).or_default() += counts.mirrored();
        }
    }

    /// The ratings of all players whose games link them with the reference, as [`fit_pairs`] has them.
    pub fn ratings(&self, reference: P) -> BTreeMap<P, Rating> {
        let pairs = |(&(a, b), &counts): (&(P, P), &PairCounts)| Pairs { a, b, counts };
        let matches: Vec<Pairs<P>> = self.matches.iter().map(pairs).collect();
        fit_pairs(&matches, reference)
    }
}

#[cfg(test)]
mod tests {
    use super::GameResult::{Loss, Unfinished, Win};
    use super::*;
    use crate::ratings::{Games, fit};

    #[test]
    fn the_ratings_are_those_of_all_games() {
        let mut table = PairTable::default();
        table.add(2, 1, [Win, Win]);
        table.add(1, 2, [Loss, Win]);
        table.add(3, 2, [Unfinished, Win]);
        table.add(2, 2, [Win, Win]);
        let of = |a, b, games, points| Games {
            a,
            b,
            games,
            points,
        };
        let expected = fit(&[of(2, 1, 4.0, 3.0), of(3, 2, 2.0, 1.5)], 1);
        let found = table.ratings(1);
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [1, 2, 3]);
        for (player, rating) in found {
            assert!((rating.elo - expected[&player].elo).abs() < 1e-9);
        }
    }
}
