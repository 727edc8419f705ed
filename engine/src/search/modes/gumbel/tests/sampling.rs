//! The beam is a sample without replacement from the policy's distribution over distinct turns.

use super::super::likelihood::gumbels_below;
use super::{each_order, of, options};
use crate::search::testing::{Hashed, answer, history_of, position};
use crate::search::{Budget, Search};
use arimaa::rules::{Position, Side, StepState};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rustc_hash::FxHashMap;

/// The probability of every distinct turn, all orders of its steps together: by the rules, the evaluator and nothing else. The
/// priors are raised to 1 over `temperature` at each step.
fn distribution(start: &Position, temperature: f64) -> FxHashMap<Position, f64> {
    let history = history_of(start);
    let state = StepState::new(start);
    let mut orders = Vec::new();
    each_order(&state, &history, &mut orders, &mut Vec::new(), &|_| true);
    let mut turns = FxHashMap::default();
    for (actions, end) in orders {
        let mut state = state;
        let mut probability = 1.0;
        for action in actions {
            let legal = state.legal_actions(&history);
            let place = legal
                .in_index_order(state.side())
                .position(|other| other == action)
                .unwrap();
            let (_, priors) = Hashed::default().judge(&state, legal.count());
            let weights = priors
                .iter()
                .map(|&prior| f64::from(prior).powf(1.0 / temperature));
            let weights: Vec<f64> = weights.collect();
            probability *= weights[place] / weights.iter().sum::<f64>();
            state = crate::search::tree::state_after(&state, action);
        }
        *turns.entry(end.start_position()).or_insert(0.0) += probability;
    }
    turns
}

/// How likely each of these is among the first three of a draw without replacement.
fn among_first_three(shares: &[f64]) -> Vec<f64> {
    let mut likely = vec![0.0; shares.len()];
    let all = 0..shares.len();
    for one in all.clone() {
        for two in all.clone().filter(|&two| two != one) {
            for three in all.clone().filter(|&three| three != one && three != two) {
                let left = 1.0 - shares[one];
                let probability = shares[one] * shares[two] / left * shares[three]
                    / (left - shares[two]).max(1e-300);
                for place in [one, two, three] {
                    likely[place] += probability;
                }
            }
        }
    }
    likely
}

/// The ends of the candidates that one beam finds, the best first.
fn sample(
    search: &mut Search,
    start: &Position,
    noise: f32,
    rng: &mut ChaCha8Rng,
) -> Vec<Position> {
    let history = history_of(start);
    let mut options = options(Budget::unlimited(), 3, 1_000);
    options.gumbel_noise = noise;
    // Values would draw the beam away from the policy.
    options.gumbel.beam_value_scale = 0.0;
    search.restart(start, &history, options).unwrap();
    while of(search).1.sampled.is_none() {
        assert!(answer(search, Hashed::default(), &history, rng));
    }
    let (state, turn) = of(search);
    let sampled = turn.candidates.iter().take(3);
    sampled
        .map(|candidate| state.tree.state(candidate.end).start_position())
        .collect()
}

const SAMPLES: u32 = 6_000;

/// A frequency is within five standard deviations of its expectation, and what priors of 16 bits are off.
#[track_caller]
fn close_to(frequency: f64, expected: f64, what: &str) {
    let deviation = (expected * (1.0 - expected) / f64::from(SAMPLES)).sqrt();
    assert!(
        (frequency - expected).abs() < 5.0 * deviation + 5e-4,
        "{what}: {frequency} for {expected}"
    );
}

#[test]
fn distinct_turns_are_drawn_without_replacement_by_their_merged_priors() {
    let mut rng = ChaCha8Rng::seed_from_u64(71);
    // A rabbit alone, with orders that merge; and pieces that push and pull, with turns of several lengths to the same end.
    let rabbit = position(Side::Gold, "Rb1 rh8");
    let fenced = position(Side::Silver, "ra8 ca7 Db6 Rh1");
    for (start, noise) in [(rabbit, 1.0), (rabbit, 2.0), (fenced, 1.0)] {
        let turns = distribution(&start, noise);
        let total: f64 = turns.values().sum();
        assert!((total - 1.0).abs() < 1e-4 && turns.len() >= 10, "{total}");
        let ends: Vec<Position> = turns.keys().copied().collect();
        let shares: Vec<f64> = ends.iter().map(|end| turns[end]).collect();
        let likely = among_first_three(&shares);
        let mut first = FxHashMap::default();
        let mut included = FxHashMap::default();
        let mut search = Search::new(
            &start,
            &history_of(&start),
            options(Budget::unlimited(), 3, 1),
        )
        .unwrap();
        for _ in 0..SAMPLES {
            let found = sample(&mut search, &start, noise as f32, &mut rng);
            assert_eq!(found.len(), 3);
            assert!(found[0] != found[1] && found[1] != found[2] && found[0] != found[2]);
            *first.entry(found[0]).or_insert(0) += 1;
            for end in found {
                assert!(turns.contains_key(&end), "{end}");
                *included.entry(end).or_insert(0) += 1;
            }
        }
        for ((end, share), likely) in ends.iter().zip(shares).zip(likely) {
            let frequency = |counts: &FxHashMap<Position, i32>| {
                f64::from(counts.get(end).copied().unwrap_or(0)) / f64::from(SAMPLES)
            };
            close_to(frequency(&first), share, "first");
            close_to(frequency(&included), likely, "among three");
        }
    }
}

#[test]
fn without_noise_the_likeliest_turns_are_taken() {
    let mut rng = ChaCha8Rng::seed_from_u64(72);
    for start in [
        position(Side::Gold, "Rb1 rh8"),
        position(Side::Gold, "Rb1 Cg2 rh8"),
        position(Side::Silver, "ra8 ca7 Db6 Rh1"),
    ] {
        let turns = distribution(&start, 1.0);
        let mut best: Vec<f64> = turns.values().copied().collect();
        best.sort_by(|one, other| other.total_cmp(one));
        let options = options(Budget::unlimited(), 3, 1);
        let mut search = Search::new(&start, &history_of(&start), options).unwrap();
        let found = sample(&mut search, &start, 0.0, &mut rng);
        for (end, expected) in found.iter().zip(best) {
            assert!((turns[end] / expected - 1.0).abs() < 2e-3, "{end}");
        }
    }
}

/// How far the distribution of some numbers is from that of a Gumbel variate: the statistic of Kolmogorov and Smirnov.
fn distance_from_gumbel(location: f64, mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let count = numbers.len() as f64;
    let distances = numbers.iter().zip(0..).map(|(number, place)| {
        let expected = (-(location - number).exp()).exp();
        let (below, above) = (f64::from(place) / count, f64::from(place + 1) / count);
        (expected - below).abs().max((above - expected).abs())
    });
    distances.fold(0.0, f64::max)
}

/// Where the greatest is drawn as the maximum of Gumbel variates is, the variates below it are Gumbel variates again, each with its
/// location and independent of the others.
#[test]
fn gumbels_below_a_maximum_are_gumbels_again() {
    let locations = [0.5_f64, -1.0, -1.2, -4.0];
    let location: f64 = locations.iter().map(|one| one.exp()).sum::<f64>().ln();
    let mut rng = ChaCha8Rng::seed_from_u64(73);
    let mut columns = vec![Vec::new(); locations.len()];
    let count = 20_000;
    for _ in 0..count {
        let greatest = location - (-(1.0 - rng.random::<f64>()).ln()).ln();
        let variates = gumbels_below(greatest, &locations, &mut rng);
        let found = variates.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        assert!((found - greatest).abs() < 1e-9, "{found} for {greatest}");
        for (column, variate) in columns.iter_mut().zip(variates) {
            column.push(variate);
        }
    }
    // Beyond 1.95 over the root of the count lies one sample in a thousand.
    for (column, location) in columns.iter().zip(locations) {
        let distance = distance_from_gumbel(location, column.clone());
        assert!(distance < 1.95 / f64::from(count).sqrt(), "{distance}");
    }
    for (one, other) in [(0, 1), (0, 3), (1, 2), (2, 3)] {
        let pairs = columns[one].iter().zip(&columns[other]);
        // Euler's constant is the mean of a Gumbel variate.
        let mean = |place: usize| locations[place] + 0.577_215_7;
        let covariance: f64 = pairs
            .map(|(a, b)| (a - mean(one)) * (b - mean(other)))
            .sum::<f64>()
            / f64::from(count);
        assert!(covariance.abs() < 0.06, "{one}, {other}: {covariance}");
    }
}
