//! The results of all players against each other.

use super::dispersion::{Pairs, fit_pairs};
use super::fit::Rating;
use super::pairs::{GameResult, PairCounts};
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// What the games of two players came to, as the first of them sees it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MatchCounts {
    /// Pairs by the player's points in them.
    pub pairs: PairCounts,
    /// Games that it won.
    pub wins: u64,
    /// Games that it lost.
    pub losses: u64,
    /// Truncated games.
    pub unfinished: u64,
}

impl MatchCounts {
    /// Counts a pair of games.
    pub fn add(&mut self, pair: [GameResult; 2]) {
        self.pairs.add(pair);
        for result in pair {
            match result {
                GameResult::Win => self.wins += 1,
                GameResult::Loss => self.losses += 1,
                GameResult::Unfinished => self.unfinished += 1,
            }
        }
    }

    /// As the opponent sees them.
    #[must_use]
    pub fn mirrored(&self) -> Self {
        Self {
            pairs: self.pairs.mirrored(),
            wins: self.losses,
            losses: self.wins,
            unfinished: self.unfinished,
        }
    }
}

impl AddAssign for MatchCounts {
    fn add_assign(&mut self, other: Self) {
        self.pairs += other.pairs;
        self.wins += other.wins;
        self.losses += other.losses;
        self.unfinished += other.unfinished;
    }
}

/// What any number of players came to against each other. A player's games against itself are not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairTable<P> {
    /// By both players, the lower first, as that one sees them.
    matches: BTreeMap<(P, P), MatchCounts>,
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
        let mut counts = MatchCounts::default();
        counts.add(pair);
        self.add_match(a, b, counts);
    }

    /// Counts a match of a and b, with the counts as a sees them.
    pub fn add_match(&mut self, a: P, b: P, counts: MatchCounts) {
        if a < b {
            *self.matches.entry((a, b)).or_default() += counts;
        } else if b < a {
            *self.matches.entry((b, a)).or_default() += counts.mirrored();
        }
    }

    /// What a's games against b came to, as a sees them: zeros if there were none.
    pub fn between(&self, a: P, b: P) -> MatchCounts {
        if a <= b {
            self.matches.get(&(a, b)).copied().unwrap_or_default()
        } else {
            self.between(b, a).mirrored()
        }
    }

    /// What a player's games against all others came to, as it sees them.
    pub fn against_all(&self, player: P) -> MatchCounts {
        let mut sum = MatchCounts::default();
        for (&(a, b), counts) in &self.matches {
            if a == player {
                sum += *counts;
            } else if b == player {
                sum += counts.mirrored();
            }
        }
        sum
    }

    /// The ratings of all players whose games link them with the reference, as [`fit_pairs`] has them.
    pub fn ratings(&self, reference: P) -> BTreeMap<P, Rating> {
        let pairs = |(&(a, b), of): (&(P, P), &MatchCounts)| Pairs {
            a,
            b,
            counts: of.pairs,
        };
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
    fn each_side_of_the_table_mirrors_the_other() {
        let mut table = PairTable::default();
        table.add("x", "y", [Win, Win]);
        table.add("y", "x", [Win, Unfinished]);
        table.add("z", "x", [Loss, Unfinished]);
        table.add("x", "x", [Win, Win]);
        let x = table.between("x", "y");
        assert_eq!(<[u64; 5]>::from(x.pairs), [0, 1, 0, 0, 1]);
        assert_eq!((x.wins, x.losses, x.unfinished), (2, 1, 1));
        let y = table.between("y", "x");
        assert_eq!(<[u64; 5]>::from(y.pairs), [1, 0, 0, 1, 0]);
        assert_eq!((y.wins, y.losses, y.unfinished), (1, 2, 1));
        assert_eq!(table.between("y", "z"), MatchCounts::default());
        assert_eq!(table.between("x", "x"), MatchCounts::default());
        let all = table.against_all("x");
        assert_eq!((all.wins, all.losses, all.unfinished), (3, 1, 2));
        assert_eq!(all.pairs.score(), 4.0 / 6.0);
    }

    #[test]
    fn the_ratings_are_those_of_all_games() {
        let mut table = PairTable::default();
        for pair in [[Win, Win], [Win, Loss]] {
            table.add(2, 1, pair);
        }
        table.add(3, 2, [Unfinished, Win]);
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
