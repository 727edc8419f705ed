//! Tests of what a decision says of the search behind it: the spread of values.

use super::super::trial::{Hashed, answer, few_turns, history_of, random_game};
use super::super::turn_search::Core;
use super::super::turn_search::Strategy;
use super::super::{Mode, Search, SearchOptions, Uniform, search_turn};
use super::*;
use crate::config::SearchConfig;
use crate::rules::{History, Position};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

const MODES: [Mode; 2] = [Mode::Puct, Mode::Gumbel];

fn options(mode: Mode, evaluations: u32) -> SearchOptions {
    let exploring = SearchOptions::exploring_with(&SearchConfig::default(), evaluations, 1.0);
    SearchOptions { mode, ..exploring }
}

/// The search of a position with values and priors by hash, run to its end.
fn searched(
    position: &Position,
    history: &History,
    options: SearchOptions,
    rng: &mut ChaCha8Rng,
) -> Search {
    let mut search = Search::new(position, history, options).unwrap();
    while answer(&mut search, Hashed::default(), history, rng) {}
    search
}

/// The win probabilities of Gold behind the turn's start, each as often as it was visited.
fn visited_values(search: &Search) -> Vec<f64> {
    let Core { tree, root, .. } = search.core();
    let of = |node: NodeId| 0.5 + 0.5 * f64::from(tree.worth(node).value);
    let repeated = |(node, visits): (NodeId, u32)| vec![of(node); visits as usize];
    match search.strategy() {
        Strategy::Gumbel(turn) => turn
            .compared()
            .flat_map(|one| repeated((one.end(), one.visits())))
            .collect(),
        Strategy::Stepwise(_) => (0..tree.edges(*root).len())
            .filter_map(|edge| Some((tree.child(*root, edge)?, tree.link(*root, edge).visits)))
            .flat_map(repeated)
            .collect(),
    }
}

#[test]
fn the_spread_is_the_standard_deviation_of_the_visited_values() {
    for mode in MODES {
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        let (mut proven, mut open) = (0, 0);
        for _ in 0..60 {
            let position = few_turns(60, &mut rng);
            let history = history_of(&position);
            let search = searched(&position, &history, options(mode, 200), &mut rng);
            let decision = search.decision().unwrap();
            let values = visited_values(&search);
            let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            let expected = (squares / values.len().max(1) as f64).sqrt();
            if decision.proven_winner.is_some() {
                assert_eq!(decision.value_spread, 0.0);
                proven += u32::from(expected > 0.01);
            } else {
                let off = f64::from(decision.value_spread) - expected;
                assert!(off.abs() < 1e-5, "{mode:?}: {off} off {expected}");
                assert!((0.0..=0.5).contains(&decision.value_spread));
                open += u32::from(expected > 0.01);
            }
        }
        assert!(proven > 0 && open > 0, "{mode:?}: {proven} and {open}");
    }
}

#[test]
fn equal_values_are_not_spread() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    for mode in MODES {
        for turns in [0, 1, 2] {
            let game = random_game(turns, &mut rng);
            let (position, history) = (game.position(), game.history());
            let decision = search_turn(
                &mut Uniform,
                position,
                history,
                options(mode, 100),
                &mut rng,
            )
            .unwrap();
            assert!(decision.visits > 10);
            assert_eq!(decision.value_spread, 0.0, "{mode:?} after {turns} turns");
        }
    }
}

#[test]
fn the_spread_weighs_by_visits_and_ends_at_a_half() {
    let of = |values: &[(f32, u32)]| spread_of(values.iter().copied());
    assert_eq!(of(&[]), 0.0);
    assert_eq!(of(&[(0.25, 7)]), 0.0);
    assert_eq!(of(&[(1.0, 0), (-0.5, 3)]), 0.0);
    assert_eq!(of(&[(1.0, 4), (-1.0, 4)]), 0.5);
    // Win probabilities of 1 and, three times, 1/2: the mean is 5/8, the variance (9 + 3) / 256.
    assert!((of(&[(1.0, 1), (0.0, 3)]) - (12.0_f32 / 256.0).sqrt()).abs() < 1e-6);
    let most = of(&[(1.0, 12_345_677), (-1.0, 12_345_678)]);
    assert!((0.499..=0.5).contains(&most));
}
