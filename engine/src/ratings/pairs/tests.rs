use super::GameResult::{Loss, Unfinished, Win};
use super::*;
use crate::ratings::simulation::{ALL_CONDITIONS, Conditions, PLAIN, SimulatedMatch};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

fn counts(counts: [u64; 5]) -> PairCounts {
    counts.into()
}

impl EloInterval {
    fn covers(&self, elo: f64) -> bool {
        (self.low..=self.high).contains(&elo)
    }
}

/// Calls with every possible result of so many pairs.
fn for_all_results(pairs: u64, mut visit: impl FnMut([u64; 5])) {
    for a in 0..=pairs {
        for b in 0..=pairs - a {
            for c in 0..=pairs - a - b {
                for d in 0..=pairs - a - b - c {
                    visit([a, b, c, d, pairs - a - b - c - d]);
                }
            }
        }
    }
}

/// The logarithms of 0! to `most`!.
fn log_factorials(most: u64) -> Vec<f64> {
    let mut sum = 0.0;
    let next = |factor: u64| {
        sum += (factor.max(1) as f64).ln();
        sum
    };
    (0..=most).map(next).collect()
}

/// The chance of a result.
fn chance(result: [u64; 5], distribution: [f64; 5], log_factorials: &[f64]) -> f64 {
    let all: u64 = result.iter().sum();
    let mut logarithm = log_factorials[all as usize];
    for (count, chance) in result.into_iter().zip(distribution) {
        if count > 0 {
            logarithm += count as f64 * chance.ln() - log_factorials[count as usize];
        }
    }
    logarithm.exp()
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
    let found: PairCounts = pairs.into_iter().collect();
    assert_eq!(<[u64; 5]>::from(found), [1, 2, 3, 1, 1]);
    assert_eq!((found.pairs(), found.games()), (8, 16));
    assert_eq!((found.points(), found.score()), (7.5, 7.5 / 16.0));
    assert_eq!(serde_json::to_string(&found).unwrap(), "[1,2,3,1,1]");
    assert_eq!(
        serde_json::to_string(&Unfinished).unwrap(),
        "\"unfinished\""
    );
}

#[test]
fn the_difference_is_that_of_the_score() {
    let even = counts([1, 0, 3, 0, 1]).elo();
    assert_eq!(even.elo, 0.0);
    assert!(even.elo.is_sign_positive() && (even.low + even.high).abs() < 1e-5);
    let three_quarters = counts([0, 0, 10, 0, 10]).elo();
    assert!((three_quarters.elo - 190.848_5).abs() < 1e-3);
    let turned = counts([10, 0, 10, 0, 0]).elo();
    assert!((turned.elo + three_quarters.elo).abs() < 1e-9);
    assert!((turned.low + three_quarters.high).abs() < 1e-5);
    // By the normal approximation, which is good for many pairs: the spread of a pair's score is 0.2 here.
    let many = counts([0, 8_000, 84_000, 8_000, 0].map(|count| count * 100)).elo();
    let error = 1.96 * 0.1 / (1e7_f64).sqrt() * 1600.0 / std::f64::consts::LN_10;
    assert!((many.high / error - 1.0).abs() < 1e-3, "{many:?} {error}");
}

#[test]
fn whatever_was_played_the_interval_is_finite_and_holds_the_difference() {
    let check = |counts: PairCounts| {
        let interval = counts.elo();
        assert!(interval.covers(interval.elo), "{counts:?} {interval:?}");
        assert!(
            interval.high - interval.low < 4_000.0,
            "{counts:?} {interval:?}"
        );
        let chance = counts.likelihood_of_superiority();
        assert!((0.0..=1.0).contains(&chance));
    };
    for pairs in 0..=6 {
        for_all_results(pairs, |result| check(counts(result)));
    }
    for many in [100, 1_000_000, 1_000_000_000] {
        for place in 0..5 {
            let mut sweep = [0; 5];
            sweep[place] = many;
            check(counts(sweep));
        }
    }
    let none = PairCounts::default();
    assert_eq!((none.score(), none.elo().elo), (0.5, 0.0));
    assert_eq!(none.likelihood_of_superiority(), 0.5);
    assert!(
        counts([0, 0, 0, 0, 1]).elo().low < 0.0,
        "one pair proves nothing"
    );
    let (few, more) = (counts([0, 0, 0, 0, 10]), counts([0, 0, 0, 0, 100]));
    assert!(few.elo().low > 150.0 && more.elo().low > few.elo().low + 200.0);
    assert!(more.elo().elo > counts([0, 0, 0, 1, 99]).elo().elo);
}

#[test]
fn superiority_and_the_interval_agree() {
    let mut proven = 0;
    for_all_results(9, |result| {
        let [a, b, c, d, e] = result;
        let opponents = counts([e, d, c, b, a]).likelihood_of_superiority();
        let counts = counts(result);
        let chance = counts.likelihood_of_superiority();
        assert!((chance + opponents - 1.0).abs() < 1e-9);
        assert_eq!(chance > 0.975, counts.elo().low > 1e-6, "{counts:?}");
        proven += u32::from(chance > 0.975);
    });
    assert!(proven > 50);
    // With many pairs, Φ of the surplus in standard deviations.
    let two = counts([2_400, 0, 5_058, 0, 2_542]).likelihood_of_superiority();
    let deviations = 142.0 * 0.5 / (10_000.0_f64 * 0.25 * 0.494_2).sqrt();
    let expected = 0.5 * libm::erfc(-deviations / std::f64::consts::SQRT_2);
    assert!((two - expected).abs() < 2e-3, "{two} {expected}");
}

/// Coverage is computed, not simulated: over all results of 20 pairs.
#[test]
fn at_20_pairs_the_interval_covers_the_truth() {
    let mut intervals = Vec::new();
    for_all_results(20, |result| intervals.push((result, counts(result).elo())));
    let log_factorials = log_factorials(20);
    for conditions in ALL_CONDITIONS {
        for elo in [0.0, 100.0, -200.0, 300.0] {
            let simulated = SimulatedMatch::new(elo, conditions);
            let distribution = simulated.distribution();
            let covering = intervals.iter().filter(|(_, found)| found.covers(elo));
            let coverage: f64 = covering
                .map(|&(result, _)| chance(result, distribution, &log_factorials))
                .sum();
            assert!(
                (0.94..=0.97).contains(&coverage),
                "{elo} {conditions:?}: {coverage}"
            );
        }
    }
}

/// Without stopped games there are three results of a pair, and so few of a match that 100 pairs can be computed, too.
#[test]
fn at_100_pairs_the_interval_covers_the_truth() {
    let log_factorials = log_factorials(100);
    let mut intervals = Vec::new();
    for lost in 0..=100 {
        for won in 0..=100 - lost {
            let result = [lost, 0, 100 - lost - won, 0, won];
            intervals.push((result, counts(result).elo()));
        }
    }
    for opening in [0.0, 200.0] {
        for elo in [0.0, -100.0, 200.0] {
            let conditions = Conditions { opening, ..PLAIN };
            let distribution = SimulatedMatch::new(elo, conditions).distribution();
            let covering = intervals.iter().filter(|(_, found)| found.covers(elo));
            let coverage: f64 = covering
                .map(|&(result, _)| chance(result, distribution, &log_factorials))
                .sum();
            assert!(
                (0.94..=0.96).contains(&coverage),
                "{elo} {conditions:?}: {coverage}"
            );
        }
    }
}

#[test]
#[ignore = "minutes: 432,000 matches"]
fn intervals_cover_simulated_matches() {
    let matches = 3_000;
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for pairs in [20, 50, 100, 400] {
        for conditions in ALL_CONDITIONS {
            for elo in [0.0, 100.0, -100.0, 200.0, -200.0, 300.0] {
                let simulated = SimulatedMatch::new(elo, conditions);
                let played = (0..matches).map(|_| simulated.pairs(pairs, &mut rng).elo());
                let covered = played.filter(|interval| interval.covers(elo)).count();
                let coverage = covered as f64 / f64::from(matches);
                println!(
                    "{pairs} pairs, {elo} Elo, {conditions:?}: {:.1}%",
                    100.0 * coverage
                );
                // Chance alone makes half a percent.
                assert!(
                    (0.925..=0.975).contains(&coverage),
                    "{pairs} {elo} {conditions:?}"
                );
            }
        }
    }
}
