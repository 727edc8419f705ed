//! Tests of what a decision says of the search behind it: the spread of values, and what its targets have to teach.

use super::super::trial::{
    Hashed, answer, few_turns, history_of, learning as options, position, random_game,
};
use super::super::turn_search::Strategy;
use super::super::{Noise, Search, SearchOptions, Uniform, run_search, search_turn};
use super::*;
use crate::config::{PolicyTargetKind, SearchMode};
use arimaa::rules::Position;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

const MODES: [SearchMode; 2] = [SearchMode::Puct, SearchMode::Gumbel];

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

/// `KL(target || priors)` by the evaluator's own priors of a state.
fn divergence(target: &StateTarget, state: &StepState) -> f64 {
    let (_, priors) = Hashed::default().judge(state, target.policy.len());
    let terms = target.policy.iter().zip(priors);
    let terms = terms.filter(|(share, _)| **share > 0.0);
    terms
        .map(|(&share, prior)| f64::from(share) * (f64::from(share) / f64::from(prior)).ln())
        .sum()
}

/// Calls `check` with each target of a decision and its state.
fn each_target(
    decision: &Decision,
    position: &Position,
    mut check: impl FnMut(&StateTarget, &StepState),
) {
    let mut states = vec![StepState::new(position)];
    for &action in &decision.actions {
        states.push(states[states.len() - 1].after(action));
    }
    for target in &decision.targets {
        check(target, &states[usize::from(target.step)]);
    }
}

#[test]
fn the_surprise_is_measured_from_the_priors_without_noise_and_temperature() {
    let noise = Noise {
        share: 0.75,
        concentration: 2.0,
    };
    for mode in MODES {
        for policy_target in [PolicyTargetKind::Visits, PolicyTargetKind::Improved] {
            let mut rng = ChaCha8Rng::seed_from_u64(4);
            let (mut targets, mut surprising) = (0, 0);
            for turns in [0, 1, 2, 3, 10, 20, 30] {
                let game = random_game(turns, &mut rng);
                let options = SearchOptions {
                    noise: Some(noise),
                    prior_temperature: 1.5,
                    policy_target,
                    target_value_scale: 8.0,
                    ..options(mode, 100)
                };
                let search = searched(game.position(), game.history(), options, &mut rng);
                each_target(
                    search.decision().unwrap(),
                    game.position(),
                    |target, state| {
                        if target.proven {
                            return;
                        }
                        let expected = divergence(target, state);
                        // Of a prior 11 bits are kept.
                        let off = (f64::from(target.surprise) - expected).abs();
                        assert!(off < 1e-3, "{mode:?}: {} or {expected}", target.surprise);
                        targets += 1;
                        surprising += u32::from(expected > 0.02);
                    },
                );
            }
            assert!(targets > 10 && surprising > 5, "{targets}, {surprising}");
        }
    }
}

/// The improved policy of equal values is the prior.
#[test]
fn equal_values_surprise_nobody() {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    for mode in MODES {
        let game = random_game(2, &mut rng);
        let mut search = Search::new(game.position(), game.history(), options(mode, 100)).unwrap();
        let decision = run_search(&mut search, &mut Uniform, game.history(), &mut rng).unwrap();
        assert!(!decision.targets.is_empty());
        let surprises = decision.targets.iter().map(|target| target.surprise);
        assert!(
            surprises
                .into_iter()
                .all(|surprise| (0.0..1e-5).contains(&surprise))
        );
    }
}

/// Steps of a win that took a search surprise by what the priors said of them.
#[test]
fn proven_targets_surprise_where_priors_are_known() {
    for mode in MODES {
        let mut rng = ChaCha8Rng::seed_from_u64(6);
        let mut known = 0;
        for _ in 0..100 {
            let position = few_turns(60, &mut rng);
            let history = history_of(&position);
            let search = searched(&position, &history, options(mode, 400), &mut rng);
            let tree = &search.core().tree;
            each_target(search.decision().unwrap(), &position, |target, state| {
                if !target.proven {
                    return;
                }
                let node = tree.find(state);
                if node.is_some_and(|node| tree.node(node).kind == NodeKind::Open) {
                    let off = f64::from(target.surprise) - divergence(target, state);
                    assert!(off.abs() < 1e-3, "{off}");
                    known += u32::from(target.surprise > 0.1);
                } else {
                    assert_eq!(target.surprise, 0.0);
                }
            });
        }
        assert!(known > 3, "{mode:?}: {known}");
    }
    // A goal within the turn is seen without any evaluation.
    let position = position(Side::Gold, "Rd6 Ra1 rh2 ce5");
    let history = history_of(&position);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let search = searched(&position, &history, options(SearchMode::Puct, 60), &mut rng);
    let targets = &search.decision().unwrap().targets;
    assert!(targets.len() == 3 && targets.iter().all(|target| target.proven));
    assert!(targets.iter().all(|target| target.surprise == 0.0));
}
