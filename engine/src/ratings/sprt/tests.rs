use super::*;
use crate::ratings::simulation::{ALL_CONDITIONS, Conditions, PLAIN, SimulatedMatch};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

fn test(elo0: f64, elo1: f64) -> Sprt {
    Sprt::new(elo0, elo1, 0.05, 0.05).unwrap()
}

#[test]
fn the_ratio_is_that_of_engine_testing() {
    let pairs = PairCounts::from([13, 37, 50, 25, 3]);
    let ratio = test(0.0, 2.716).log_likelihood_ratio(&pairs);
    assert!((ratio + 0.537_72).abs() < 1e-4, "{ratio}");
    // That difference is rounded: it stands for 4 points of normalised Elo, which counts in standard deviations of a pair's score.
    let deviation = (7.375_f64 / 128.0).sqrt();
    let score = 0.5 + 4.0 * std::f64::consts::LN_10 / 800.0 * 2f64.sqrt() * deviation;
    let exact = 400.0 * (score / (1.0 - score)).log10();
    assert!((exact - 2.716).abs() < 5e-4, "{exact}");
    let ratio = test(0.0, exact).log_likelihood_ratio(&pairs);
    assert!((ratio + 0.537_72).abs() < 1e-5, "{ratio}");
}

#[test]
fn without_truncated_games_and_splits_the_ratio_is_binomial() {
    let pairs = PairCounts::from([30, 0, 0, 0, 50]);
    let (zero, one): (f64, f64) = (0.5, 1.0 / (1.0 + 10f64.powf(-0.25)));
    let coins = 50.0 * (one / zero).ln() + 30.0 * ((1.0 - one) / (1.0 - zero)).ln();
    let ratio = test(0.0, 100.0).log_likelihood_ratio(&pairs);
    assert!((ratio - coins).abs() < 0.01, "{ratio} {coins}");
    let opponents = PairCounts::from([50, 0, 0, 0, 30]);
    let turned = test(-100.0, 0.0).log_likelihood_ratio(&opponents);
    assert!((ratio + turned).abs() < 1e-9);
    assert_eq!(
        test(0.0, 10.0).log_likelihood_ratio(&PairCounts::default()),
        0.0
    );
}

#[test]
fn the_bounds_are_beyond_walds_and_end_the_test() {
    let sprt = Sprt::new(0.0, 50.0, 0.05, 0.1).unwrap();
    let [lower, upper] = sprt.bounds();
    assert!((lower + WIDENING - (0.1_f64 / 0.95).ln()).abs() < 1e-12);
    assert!((upper - WIDENING - (0.9_f64 / 0.05).ln()).abs() < 1e-12);
    let mut seen = [None, None];
    for won in 0..100 {
        let pairs = PairCounts::from([0, 0, 20, 0, won]);
        let ratio = sprt.log_likelihood_ratio(&pairs);
        let expected = if ratio >= upper {
            Some(Hypothesis::One)
        } else if ratio <= lower {
            Some(Hypothesis::Zero)
        } else {
            None
        };
        assert_eq!(sprt.verdict(&pairs), expected);
        seen[usize::from(expected.is_some())] = expected;
    }
    assert_eq!(seen, [None, Some(Hypothesis::One)]);
    let lost = PairCounts::from([9, 4, 10, 0, 0]);
    assert_eq!(sprt.verdict(&lost), Some(Hypothesis::Zero));
}

#[test]
fn a_few_pairs_that_are_all_alike_decide_nothing() {
    for (elo1, pairs) in [(100.0, 8), (10.0, 100)] {
        for place in 0..5 {
            let mut counts = [0; 5];
            counts[place] = pairs;
            assert_eq!(test(0.0, elo1).verdict(&counts.into()), None, "{counts:?}");
        }
    }
    assert_eq!(
        test(0.0, 100.0).verdict(&PairCounts::from([10, 0, 0, 0, 0])),
        Some(Hypothesis::Zero)
    );
}

#[test]
fn bad_parameters_are_named() {
    let fault =
        |elo0, elo1, alpha, beta| Sprt::new(elo0, elo1, alpha, beta).unwrap_err().to_string();
    assert_eq!(
        fault(5.0, 5.0, 0.05, 0.05),
        "elo1 = 5 must be above elo0 = 5"
    );
    assert_eq!(
        fault(5.0, -5.0, 0.05, 0.05),
        "elo1 = -5 must be above elo0 = 5"
    );
    assert!(fault(f64::NAN, 5.0, 0.05, 0.05).starts_with("elo0 = NaN is out of its range"));
    assert!(fault(0.0, 5e3, 0.05, 0.05).starts_with("elo1 = 5000 is out of its range"));
    assert!(fault(0.0, 5.0, 0.0, 0.05).starts_with("alpha = 0 is out of its range"));
    assert!(fault(0.0, 5.0, 0.05, 0.5).starts_with("beta = 0.5 is out of its range"));
    assert!(fault(0.0, 5.0, 0.05, f64::NAN).starts_with("beta = NaN is out of its range"));
}

/// Plays until the test ends, and tells what it decided for and after how many pairs.
fn run(sprt: &Sprt, players: &SimulatedMatch, rng: &mut ChaCha8Rng) -> (Hypothesis, u64) {
    let mut pairs = PairCounts::default();
    loop {
        pairs.add(players.pair(rng));
        if let Some(decided) = sprt.verdict(&pairs) {
            return (decided, pairs.pairs());
        }
        assert!(pairs.pairs() < 100_000, "the test doesn't end");
    }
}

/// The share of so many tests that decide for the hypothesis that is false, and how many pairs they take on average.
fn errors(
    sprt: &Sprt,
    truth: (f64, Hypothesis),
    conditions: Conditions,
    runs: u32,
    rng: &mut ChaCha8Rng,
) -> (f64, u64) {
    let players = SimulatedMatch::new(truth.0, conditions);
    let (mut errors, mut pairs) = (0, 0);
    for _ in 0..runs {
        let (decided, after) = run(sprt, &players, rng);
        errors += u32::from(decided != truth.1);
        pairs += after;
    }
    (f64::from(errors) / f64::from(runs), pairs / u64::from(runs))
}

/// Plays tests of both hypotheses with the same chance of either error: none is more frequent than that, but for chance.
fn check_errors(elo: [f64; 2], error: f64, conditions: Conditions, runs: u32, seed: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let sprt = Sprt::new(elo[0], elo[1], error, error).unwrap();
    for truth in [(elo[0], Hypothesis::Zero), (elo[1], Hypothesis::One)] {
        let (share, pairs) = errors(&sprt, truth, conditions, runs, &mut rng);
        println!(
            "{elo:?} {error} {truth:?} {conditions:?}: {:.1}% after {pairs} pairs",
            100.0 * share
        );
        let chance = 3.0 * (error * (1.0 - error) / f64::from(runs)).sqrt();
        assert!(share > 0.0 && share <= error + chance, "{share}");
    }
}

/// Pairs whose games are equal in half of all cases.
const HALF_ALIKE: Conditions = Conditions {
    alike: 0.5,
    ..PLAIN
};

#[test]
fn simulated_tests_seldom_err() {
    check_errors([0.0, 60.0], 0.05, PLAIN, 2_000, 2);
    check_errors([300.0, 400.0], 0.05, HALF_ALIKE, 1_000, 3);
    for conditions in [PLAIN, HALF_ALIKE] {
        check_errors([0.0, 200.0], 0.2, conditions, 8_000, 4);
    }
}

#[test]
#[ignore = "minutes: 1,000,000 tests"]
fn simulated_tests_err_no_more_often_than_stated() {
    let differences = [
        ([0.0, 30.0], 2_000),
        ([-20.0, 20.0], 2_000),
        ([0.0, 100.0], 5_000),
        ([100.0, 200.0], 5_000),
        ([300.0, 400.0], 5_000),
        ([0.0, 200.0], 20_000),
    ];
    for (elo, runs) in differences {
        for conditions in ALL_CONDITIONS.into_iter().chain([HALF_ALIKE]) {
            for error in [0.05, 0.2] {
                check_errors(elo, error, conditions, runs, 7);
            }
        }
    }
}
