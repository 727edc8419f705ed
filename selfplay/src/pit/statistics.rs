//! What a match says of the players' strength.

use serde::Serialize;

/// The result of a game for player a.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GameResult {
    Win,
    Loss,
    /// Stopped at the turn limit; half a point for each.
    Unfinished,
}

impl GameResult {
    fn points(self) -> f64 {
        match self {
            Self::Win => 1.0,
            Self::Loss => 0.0,
            Self::Unfinished => 0.5,
        }
    }
}

/// The score of a match and the Elo difference that it speaks for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Score {
    /// Games played: whole pairs.
    pub(super) games: u64,
    /// Games that a won.
    pub(super) wins_a: u64,
    /// Games that a lost.
    pub(super) losses_a: u64,
    /// Games stopped at the turn limit.
    pub(super) unfinished: u64,
    /// Pairs by a's points in them: 0, ½, 1, 1½ and 2.
    pub(super) pairs: [u64; 5],
    /// a's points a game, 0 to 1.
    pub(super) score: f64,
    /// How much stronger a is than b.
    pub(super) elo: f64,
    /// The lower end of the Elo difference's 95% interval.
    pub(super) elo_low: f64,
    /// Its upper end.
    pub(super) elo_high: f64,
}

/// The 97.5% quantile of the normal distribution.
const QUANTILE: f64 = 1.959_964;

impl Score {
    /// The score of pairs of games, each pair from the same setups with colours swapped.
    ///
    /// With the mean points a game `s`, the difference is `400 log10(s / (1 - s))` (Elo's logistic model). Its error comes from
    /// the spread of the pairs' scores, which are independent where the two games of a pair are not (the pentanomial variance of
    /// engine testing), carried over to Elo by the derivative `400 / (ln 10 · s · (1 - s))`. One even pair is added to those that
    /// were played, so that a clean sweep has a finite difference and error, and a single pair a wide one.
    pub(super) fn of_pairs(pairs: &[[GameResult; 2]]) -> Self {
        let count = |result| {
            pairs
                .iter()
                .flatten()
                .filter(|&&other| other == result)
                .count() as u64
        };
        let scores: Vec<f64> = pairs
            .iter()
            .map(|[first, second]| (first.points() + second.points()) / 2.0)
            .collect();
        let mut by_points = [0; 5];
        for [first, second] in pairs {
            by_points[(2.0 * (first.points() + second.points())) as usize] += 1;
        }
        let sum: f64 = scores.iter().sum();
        let n = scores.len() as f64 + 1.0;
        let mean = (sum + 0.5) / n;
        let squares: f64 = scores
            .iter()
            .chain([&0.5])
            .map(|score| (score - mean).powi(2))
            .sum();
        // Pairs that are all alike say less than their spread of zero: at least that of a single game's share in them.
        let variance = (squares / n).max(mean * (1.0 - mean) / n);
        let elo = 400.0 * (mean / (1.0 - mean)).log10();
        let error = QUANTILE * (variance / n).sqrt() * 400.0
            / (std::f64::consts::LN_10 * mean * (1.0 - mean));
        Self {
            games: 2 * pairs.len() as u64,
            wins_a: count(GameResult::Win),
            losses_a: count(GameResult::Loss),
            unfinished: count(GameResult::Unfinished),
            pairs: by_points,
            score: if scores.is_empty() {
                0.5
            } else {
                sum / scores.len() as f64
            },
            elo,
            elo_low: elo - error,
            elo_high: elo + error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::GameResult::{Loss, Unfinished, Win};
    use super::*;
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn an_even_match_is_even_and_a_sweep_is_finite() {
        let even = Score::of_pairs(&[[Win, Loss], [Loss, Win], [Unfinished, Unfinished]]);
        assert_eq!(
            (even.games, even.wins_a, even.losses_a, even.unfinished),
            (6, 2, 2, 2)
        );
        assert_eq!((even.score, even.elo), (0.5, 0.0));
        assert!(even.elo_low < 0.0 && even.elo_high > 0.0);
        let sweep = Score::of_pairs(&[[Win, Win]; 100]);
        assert!(
            sweep.elo_low > 400.0 && sweep.elo_high.is_finite(),
            "{sweep:?}"
        );
        let lost = Score::of_pairs(&[[Loss, Loss]; 100]);
        assert!((sweep.elo + lost.elo).abs() < 1e-9);
        let single = Score::of_pairs(&[[Win, Win]]);
        assert!(single.elo_low < 0.0, "one pair proves nothing: {single:?}");
    }

    #[test]
    fn pairs_are_counted_by_their_points() {
        let pairs = [
            [Loss, Loss],
            [Loss, Unfinished],
            [Unfinished, Loss],
            [Loss, Win],
            [Unfinished, Unfinished],
            [Win, Loss],
            [Unfinished, Win],
            [Win, Win],
        ];
        let score = Score::of_pairs(&pairs);
        assert_eq!(score.pairs, [1, 2, 3, 1, 1]);
        let points: f64 = (0..)
            .zip(score.pairs)
            .map(|(halves, pairs)| 0.5 * f64::from(halves) * pairs as f64)
            .sum();
        assert_eq!(points / score.games as f64, score.score);
    }

    #[test]
    fn a_score_of_three_quarters_is_191_elo() {
        let pairs: Vec<_> = (0..20_000)
            .map(|pair| {
                if pair % 2 == 0 {
                    [Win, Win]
                } else {
                    [Win, Loss]
                }
            })
            .collect();
        let score = Score::of_pairs(&pairs);
        assert!((score.elo - 190.85).abs() < 0.1, "{score:?}");
    }

    #[test]
    fn the_interval_covers_the_truth() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for truth in [0.0, 120.0, 300.0_f64] {
            let chance = 1.0 / (1.0 + 10f64.powf(-truth / 400.0));
            let matches = 1_000;
            let covered = (0..matches).filter(|_| {
                let mut game = || if rng.random_bool(chance) { Win } else { Loss };
                let pairs: Vec<_> = (0..100).map(|_| [game(), game()]).collect();
                let score = Score::of_pairs(&pairs);
                (score.elo_low..=score.elo_high).contains(&truth)
            });
            let share = covered.count() as f64 / f64::from(matches);
            assert!((0.93..=0.98).contains(&share), "{truth}: {share}");
        }
    }
}
