//! Players of known strength, whose matches tell whether statistics are right.

use super::multinomial::VALUES;
use super::pairs::{GameResult, PairCounts, elo_of_score, score_of_elo};
use rand::RngExt;

/// Two players' pairs of games, as the one of them sees its results.
#[derive(Debug, Clone, Copy)]
pub(super) struct SimulatedMatch {
    /// The chance of each two results of a pair: those of the first game down, of the second across; lost, truncated, won.
    chances: [[f64; 3]; 3],
}

/// What a pair's games have to do with each other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Conditions {
    /// How much stronger than it is the first player plays in the first game, and weaker in the second, in Elo points: openings
    /// that favour a colour. The games of a pair are then further apart than independent ones.
    pub(super) opening: f64,
    /// The share of games between equals that are truncated, up to ½; fewer are the further apart the players are.
    pub(super) unfinished: f64,
    /// The share of pairs whose second game ends as the first did: closer together than independent ones.
    pub(super) alike: f64,
}

/// Independent games with an end.
pub(super) const PLAIN: Conditions = Conditions {
    opening: 0.0,
    unfinished: 0.0,
    alike: 0.0,
};

/// What the statistics have to stand.
pub(super) const ALL_CONDITIONS: [Conditions; 6] = [
    PLAIN,
    Conditions {
        opening: 200.0,
        ..PLAIN
    },
    Conditions {
        unfinished: 0.1,
        ..PLAIN
    },
    Conditions {
        unfinished: 0.5,
        ..PLAIN
    },
    Conditions {
        alike: 0.4,
        ..PLAIN
    },
    Conditions {
        opening: 100.0,
        unfinished: 0.3,
        alike: 0.1,
    },
];

impl SimulatedMatch {
    /// Of a player that has the points of one that is so many Elo points stronger.
    pub(super) fn new(elo: f64, conditions: Conditions) -> Self {
        let target = score_of_elo(elo);
        let (mut low, mut high) = (-4_000.0, 4_000.0);
        for _ in 0..100 {
            let middle = 0.5 * (low + high);
            if Self::of_strength(middle, conditions).score() < target {
                low = middle;
            } else {
                high = middle;
            }
        }
        Self::of_strength(low, conditions)
    }

    fn of_strength(strength: f64, conditions: Conditions) -> Self {
        let game = |elo: f64| {
            let points = score_of_elo(elo);
            let truncated = 4.0 * conditions.unfinished * points * (1.0 - points);
            let won = points - 0.5 * truncated;
            [1.0 - truncated - won, truncated, won]
        };
        let first = game(strength + conditions.opening);
        let second = game(strength - conditions.opening);
        let mut chances = [[0.0; 3]; 3];
        for (place, (row, chance)) in chances.iter_mut().zip(first).enumerate() {
            for (cell, other) in row.iter_mut().zip(second) {
                *cell = (1.0 - conditions.alike) * chance * other;
            }
            row[place] += conditions.alike * chance;
        }
        Self { chances }
    }

    /// The chance of each of the five results of a pair.
    pub(super) fn distribution(&self) -> [f64; 5] {
        let mut five = [0.0; 5];
        for (first, row) in self.chances.iter().enumerate() {
            for (second, chance) in row.iter().enumerate() {
                five[first + second] += chance;
            }
        }
        five
    }

    /// The true mean points a game.
    pub(super) fn score(&self) -> f64 {
        let five = self.distribution();
        five.iter().zip(VALUES).map(|(p, value)| p * value).sum()
    }

    /// The true difference.
    pub(super) fn elo(&self) -> f64 {
        elo_of_score(self.score())
    }

    /// Plays a pair.
    pub(super) fn pair(&self, rng: &mut impl RngExt) -> [GameResult; 2] {
        let results = [GameResult::Loss, GameResult::Unfinished, GameResult::Win];
        let mut left = rng.random::<f64>();
        for (row, first) in self.chances.iter().zip(results) {
            for (chance, second) in row.iter().zip(results) {
                left -= chance;
                if left < 0.0 {
                    return [first, second];
                }
            }
        }
        [GameResult::Win; 2]
    }

    /// Plays some pairs.
    pub(super) fn pairs(&self, pairs: usize, rng: &mut impl RngExt) -> PairCounts {
        (0..pairs).map(|_| self.pair(rng)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::ChaCha8Rng;

    #[test]
    fn simulated_players_score_as_expected() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for conditions in ALL_CONDITIONS {
            for elo in [-300.0, 0.0, 150.0] {
                let simulated = SimulatedMatch::new(elo, conditions);
                assert!((simulated.elo() - elo).abs() < 1e-6, "{simulated:?}");
                let chances = simulated.chances.iter().flatten();
                assert!(chances.clone().all(|chance| (0.0..=1.0).contains(chance)));
                assert!((chances.sum::<f64>() - 1.0).abs() < 1e-9);
                let played = simulated.pairs(20_000, &mut rng);
                assert!((played.score() - simulated.score()).abs() < 0.01);
                let counts = <[u64; 5]>::from(played);
                for (count, chance) in counts.iter().zip(simulated.distribution()) {
                    assert!((*count as f64 / 20_000.0 - chance).abs() < 0.015);
                }
            }
        }
    }
}
