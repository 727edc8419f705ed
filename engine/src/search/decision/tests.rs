//! Tests of what a decision says of the search behind it: what its targets have to teach.

use super::super::testing::{
    Hashed, answer, few_turns, history_of, learning as options, position, random_game,
};
use super::super::{Noise, Search, SearchOptions, Uniform, run_search};
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
fn equal_values_cause_no_surprise() {
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
            let tree = &search.state().tree;
            each_target(search.decision().unwrap(), &position, |target, state| {
                if !target.proven {
                    return;
                }
                let node = tree.find(state);
                if node.is_some_and(|node| tree.node(node).kind == NodeKind::Expanded) {
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

/// The steps of each state's policy target, with their shares.
fn taught(position: &Position, mode: SearchMode) -> Vec<Vec<(String, f32)>> {
    let history = history_of(position);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let search = searched(position, &history, options(mode, 60), &mut rng);
    let mut taught = Vec::new();
    each_target(search.decision().unwrap(), position, |target, state| {
        assert!(target.proven);
        let legal = state.legal_actions(&history).in_index_order(state.side());
        let shares = legal.zip(target.policy.iter().copied());
        let shares = shares.filter(|&(_, share)| share > 0.0);
        let named = shares.map(|(action, share)| match action {
            Action::Step(step) => (format!("{step:?}"), share),
            _ => (format!("{action:?}"), share),
        });
        taught.push(named.collect());
    });
    taught
}

#[test]
fn all_shortest_wins_within_the_turn_are_taught_alike() {
    let one = |step: &str| vec![(step.to_owned(), 1.0)];
    for mode in MODES {
        // Two rabbits are two steps from the goal. A third is three steps from it.
        let states = taught(&position(Side::Gold, "Rb6 Rg6 Re5 rh2 ca4"), mode);
        assert_eq!(states[0].len(), 2, "{states:?}");
        for step in ["b6n", "g6n"] {
            assert!(states[0].contains(&(step.to_owned(), 0.5)), "{states:?}");
        }
        assert!(["b7n", "g7n"].map(one).contains(&states[1]), "{states:?}");
        assert_eq!(states[2..], [one("End")]);
        // The last rabbit can be pushed into the trap by one piece alone.
        let states = taught(&position(Side::Silver, "Rc4 hb4 re7"), mode);
        assert_eq!(states, [one("c4s"), one("b4e"), one("End")]);
    }
}
