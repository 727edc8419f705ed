//! Tests of the draw of turns from the policy.

use super::super::testing::{Hashed, few_turns, history_of, position, random_game};
use super::*;
use arimaa::rules::{Game, Side, distinct_turns};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rustc_hash::FxHashMap;

const HASHED: Hashed = Hashed { value: None };

/// Draws a turn of a position, the sampler having been made or restarted for it.
fn drawn(sampler: &mut PolicySampler, history: &History, rng: &mut ChaCha8Rng) -> SampledTurn {
    loop {
        let asked: Vec<Query> = sampler.leaves(history, rng).to_vec();
        if let Some(decision) = sampler.decision() {
            assert!(asked.is_empty());
            return decision.clone();
        }
        let [query] = &asked[..] else {
            panic!("{} states at once", asked.len());
        };
        let (value, priors) = HASHED.judge(&query.state, query.legal.count());
        let evaluation = Evaluation {
            value,
            priors: &priors,
        };
        sampler.answer(0, "hashed", evaluation).unwrap();
    }
}

/// The probability of each order of actions from a state on, explicit ends left out: the product of the tempered policies.
fn products(
    state: &StepState,
    history: &History,
    temperature: f64,
    so_far: (&[Action], f64),
    found: &mut FxHashMap<Vec<Action>, f64>,
) {
    let (actions, probability) = so_far;
    if state.is_complete() {
        *found.entry(actions.to_vec()).or_default() += probability;
        return;
    }
    let legal = state.legal_actions(history);
    let (_, priors) = HASHED.judge(state, legal.count());
    let weights = priors
        .iter()
        .map(|&prior| f64::from(prior).powf(1.0 / temperature));
    let total: f64 = weights.clone().sum();
    for (action, weight) in legal.in_index_order(state.side()).zip(weights) {
        let probability = probability * weight / total;
        if action == Action::End {
            *found.entry(actions.to_vec()).or_default() += probability;
        } else {
            let with: Vec<Action> = actions.iter().copied().chain([action]).collect();
            let next = (&with[..], probability);
            products(&state.after(action), history, temperature, next, found);
        }
    }
}

/// Pearson's statistic less its expectation, in standard deviations. Cells of which fewer than five are expected count as one.
fn deviations(
    counts: &FxHashMap<Vec<Action>, u32>,
    expected: &FxHashMap<Vec<Action>, f64>,
    draws: u32,
) -> f64 {
    let (mut sum, mut cells) = (0.0, 0.0);
    let (mut rare, mut rarely) = (0.0, 0.0);
    let mut add = |found: f64, expected: f64| {
        sum += (found - expected).powi(2) / expected;
        cells += 1.0;
    };
    for (actions, probability) in expected {
        let found = counts.get(actions).copied().unwrap_or(0).into();
        let expected = probability * f64::from(draws);
        if expected < 5.0 {
            rare += found;
            rarely += expected;
        } else {
            add(found, expected);
        }
    }
    if rarely > 0.0 {
        add(rare, rarely);
    }
    (sum - (cells - 1.0)) / (2.0_f64 * (cells - 1.0)).sqrt()
}

#[test]
fn turns_are_drawn_with_the_product_of_the_tempered_policies() {
    const DRAWS: u32 = 20_000;
    for side in Side::ALL {
        let position = position(side, "Ra2 Cb2 rh7 cg7");
        let history = history_of(&position);
        let of = |temperature| {
            let mut found = FxHashMap::default();
            let start = StepState::new(&position);
            products(&start, &history, temperature, (&[], 1.0), &mut found);
            assert!((found.values().sum::<f64>() - 1.0).abs() < 1e-6);
            found
        };
        let expected = [1.0, 0.5].map(of);
        for (place, temperature) in [1.0, 0.5].into_iter().enumerate() {
            let mut rng = ChaCha8Rng::seed_from_u64(11);
            let mut sampler = PolicySampler::new(&position, &history, temperature).unwrap();
            let mut counts: FxHashMap<Vec<Action>, u32> = FxHashMap::default();
            for _ in 0..DRAWS {
                sampler.restart(&position, &history, temperature).unwrap();
                let turn = drawn(&mut sampler, &history, &mut rng);
                *counts.entry(turn.actions.to_vec()).or_default() += 1;
            }
            assert!(
                counts
                    .keys()
                    .all(|actions| expected[place].contains_key(actions))
            );
            let (own, other) = (&expected[place], &expected[1 - place]);
            let off = deviations(&counts, own, DRAWS);
            assert!(off < 4.0, "{side:?} at {temperature}: {off}");
            let off = deviations(&counts, other, DRAWS);
            assert!(off > 20.0, "{side:?} at another temperature: {off}");
        }
    }
}

#[test]
fn without_chance_the_likeliest_action_is_taken_each_time() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for turns in [0, 1, 2, 8, 20] {
        let game = random_game(turns, &mut rng);
        let (position, history) = (game.position(), game.history());
        let mut state = StepState::new(position);
        let (value, _) = HASHED.judge(&state, state.legal_actions(history).count());
        let mut expected = Vec::new();
        let mut asked = 0;
        while !state.is_complete() {
            let legal = state.legal_actions(history);
            let (_, priors) = HASHED.judge(&state, legal.count());
            let actions = legal.in_index_order(state.side()).zip(priors);
            let (action, _) = actions
                .max_by(|one, other| one.1.total_cmp(&other.1))
                .unwrap();
            asked += 1;
            if action == Action::End {
                break;
            }
            expected.push(action);
            state = state.after(action);
        }
        for seed in 0..3 {
            let mut sampler = PolicySampler::new(position, history, 0.0).unwrap();
            let turn = drawn(&mut sampler, history, &mut ChaCha8Rng::seed_from_u64(seed));
            assert_eq!(turn.actions.to_vec(), expected);
            assert_eq!((turn.value, turn.evaluations), (value, asked));
        }
    }
}

#[test]
fn setups_are_drawn_placement_by_placement() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut game = Game::new();
    let mut sampler = PolicySampler::new(game.position(), game.history(), 1.0).unwrap();
    for _ in Side::ALL {
        sampler
            .restart(game.position(), game.history(), 1.0)
            .unwrap();
        let turn = drawn(&mut sampler, game.history(), &mut rng);
        assert!(matches!(turn.turn, Turn::Setup(_)));
        assert_eq!((turn.actions.len(), turn.evaluations), (8, 8));
        game.play(&turn.turn).unwrap();
    }
}

#[test]
fn whole_games_of_drawn_turns_are_legal() {
    for seed in 0..20 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut game = Game::new();
        let mut sampler = PolicySampler::new(game.position(), game.history(), 1.0).unwrap();
        while game.outcome().is_none() && game.turns().len() < 80 {
            let (position, history) = (*game.position(), game.history().clone());
            sampler.restart(&position, &history, 1.0).unwrap();
            let turn = drawn(&mut sampler, &history, &mut rng);
            let start = StepState::new(&position);
            let (value, _) = HASHED.judge(&start, start.legal_actions(&history).count());
            assert_eq!(turn.value, value);
            game.play(&turn.turn).unwrap();
        }
    }
}

/// All positions but one that a turn can lead to have stood twice: whatever is drawn leads there, and the draw gets stuck nowhere.
#[test]
fn the_only_way_out_of_repetition_is_found() {
    let mut rng = ChaCha8Rng::seed_from_u64(20);
    for _ in 0..200 {
        let position = few_turns(200, &mut rng);
        let mut history = history_of(&position);
        let mut ends = distinct_turns(&position, &history);
        let (left, _) = ends.swap_remove(rng.random_range(0..ends.len()));
        for (end, _) in &ends {
            history.push(end);
            history.push(end);
        }
        let mut sampler = PolicySampler::new(&position, &history, 1.0).unwrap();
        let turn = drawn(&mut sampler, &history, &mut rng);
        assert_eq!(position.after_turn(&turn.turn, &history).unwrap(), left);
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let over = position(Side::Silver, "Rd8 rh7");
    let error = PolicySampler::new(&over, &history_of(&over), 1.0).unwrap_err();
    assert!(matches!(error, SearchError::GameOver { .. }), "{error}");
    let game = Game::new();
    let (position, history) = (game.position(), game.history());
    for temperature in [-0.5, f32::NAN, f32::INFINITY] {
        let error = PolicySampler::new(position, history, temperature).unwrap_err();
        assert!(
            error.to_string().contains(&temperature.to_string()),
            "{error}"
        );
    }
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut sampler = PolicySampler::new(position, history, 1.0).unwrap();
    let count = sampler.leaves(history, &mut rng)[0].legal.count();
    for (value, prior) in [(f32::NAN, 1.0 / count as f32), (0.5, f32::NAN), (0.5, 0.0)] {
        let evaluation = Evaluation {
            value,
            priors: &vec![prior; count],
        };
        let error = sampler.answer(0, "bad", evaluation).unwrap_err();
        assert!(error.to_string().starts_with("bad: "), "{error}");
    }
    assert_eq!(
        sampler.leaves(history, &mut rng).len(),
        1,
        "the first is still awaited"
    );
    assert_eq!(drawn(&mut sampler, history, &mut rng).evaluations, 8);
}

/// A rabbit before its goal, and a dog that may push the last rabbit into a trap.
#[test]
fn a_turn_that_has_won_is_over() {
    for pieces in ["Ra7 Cb2 rh6 cg7", "Rh2 Cb2 Df4 rf5 cb7"] {
        let position = position(Side::Gold, pieces);
        let history = history_of(&position);
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut sampler = PolicySampler::new(&position, &history, 1.0).unwrap();
        let mut won = 0;
        for _ in 0..4000 {
            sampler.restart(&position, &history, 1.0).unwrap();
            let turn = drawn(&mut sampler, &history, &mut rng);
            let mut state = StepState::new(&position);
            for (place, &action) in turn.actions.iter().enumerate() {
                state = state.after(action);
                if has_won(&state) {
                    assert_eq!(place + 1, turn.actions.len(), "{:?}", turn.actions);
                    won += 1;
                }
            }
        }
        assert!(won > 20, "{pieces}: {won}");
    }
}
