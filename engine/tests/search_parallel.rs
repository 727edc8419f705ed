//! Searches with several leaves of one tree in flight: the budgets, the proofs and the rules hold as with one, and what is decided
//! depends on nothing but the seed.

#[path = "../arimaa/tests/boards/mod.rs"]
mod boards;
mod exact;

use arimaa::rules::{Game, History, Position, StepState, TURN_STEPS, TurnEnumerator, win_in};
use boards::{from_game, near_goal, random_game};
use engine::config::SearchMode;
use engine::search::{
    Budget, Decision, Evaluations, Evaluator, Material, Search, SearchOptions, Uniform, run_search,
};
use exact::{MODES, Purpose, history_of, options};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rayon::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const LEAVES: [u32; 5] = [2, 3, 8, 32, 200];

fn many(
    mode: SearchMode,
    purpose: Purpose,
    evaluations: u32,
    parallel_leaves: u32,
) -> SearchOptions {
    SearchOptions {
        parallel_leaves,
        ..options(mode, purpose, evaluations)
    }
}

/// Both setups, positions of games, and some with a goal in sight.
fn positions() -> Vec<Position> {
    let mut rng = ChaCha8Rng::seed_from_u64(81);
    let mut positions = vec![Position::INITIAL, *random_game(1, &mut rng).position()];
    positions.extend((0..6).map(|_| from_game(&mut rng)));
    positions.extend((0..6).map(|_| near_goal(&mut rng)));
    positions.retain(|position| position.outcome(&history_of(position)).is_none());
    positions
}

/// Runs a search to its end; `look` sees every batch before it is answered, in an order that `arrange` makes.
fn run(
    search: &mut Search,
    evaluator: &mut dyn Evaluator,
    history: &History,
    mut look: impl FnMut(usize),
    mut arrange: impl FnMut(&mut Vec<usize>),
) -> Decision {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut answers = Evaluations::default();
    loop {
        let queries = search.leaves(history, &mut rng);
        evaluator.evaluate(queries, &mut answers).unwrap();
        look(answers.len());
        let mut places: Vec<usize> = (0..answers.len()).collect();
        arrange(&mut places);
        for place in places {
            let answer = answers.get(place).unwrap();
            search.answer(place, "test", answer).unwrap();
        }
        if let Some(decision) = search.decision() {
            return decision.clone();
        }
    }
}

fn check_is_legal(position: &Position, decision: &Decision) {
    let end = position.after_turn(&decision.turn, &history_of(position));
    assert!(end.is_ok(), "{} in {position}", decision.turn);
}

#[test]
fn budgets_hold_and_every_evaluation_counts() {
    for mode in MODES {
        for purpose in [Purpose::Strongest, Purpose::Learning] {
            positions().par_iter().for_each(|position| {
                let history = history_of(position);
                for leaves in LEAVES {
                    for budget in (1..=40).chain([64, 127, 128, 129, 400]) {
                        let by_evaluations = many(mode, purpose, budget, leaves);
                        let by_visits = SearchOptions {
                            budget: Budget::visits(budget),
                            ..by_evaluations
                        };
                        for options in [by_evaluations, by_visits] {
                            let mut search = Search::new(position, &history, options).unwrap();
                            let (mut asked, mut largest) = (0, 0);
                            let look = |count: usize| {
                                asked += count as u32;
                                largest = largest.max(count as u32);
                            };
                            let decision = run(&mut search, &mut Uniform, &history, look, |_| {});
                            let what = format!("{mode:?}, {leaves}, {budget}: {decision:?}");
                            assert!(largest <= leaves, "{what}");
                            assert_eq!(decision.evaluations, asked, "{what}");
                            assert!(decision.visits <= budget, "{what}");
                            let is_limited = options.budget.evaluations.is_some();
                            assert!(!is_limited || decision.evaluations <= budget, "{what}");
                            check_is_legal(position, &decision);
                        }
                    }
                }
            });
        }
    }
}

/// A large enough tree fills its batches.
#[test]
fn batches_are_full() {
    let mut rng = ChaCha8Rng::seed_from_u64(82);
    for mode in MODES {
        for leaves in [8, 32] {
            let (mut batches, mut evaluations) = (0, 0);
            for _ in 0..6 {
                let position = *random_game(12, &mut rng).position();
                let history = history_of(&position);
                let options = many(mode, Purpose::Strongest, 20_000, leaves);
                let mut search = Search::new(&position, &history, options).unwrap();
                let decision = run(
                    &mut search,
                    &mut Material::default(),
                    &history,
                    |_| batches += 1,
                    |_| {},
                );
                evaluations += decision.evaluations;
            }
            let mean = f64::from(evaluations) / f64::from(batches);
            println!("{mode:?}: {mean:.1} of {leaves}");
            // Mode `gumbel` sends whole rounds.
            let least = match mode {
                SearchMode::Puct => 0.8,
                SearchMode::Gumbel => 0.7,
            };
            assert!(
                mean > least * f64::from(leaves),
                "{mode:?}: {mean} of {leaves}"
            );
        }
    }
}

#[test]
fn the_order_of_the_answers_decides_nothing() {
    let mut shuffles = ChaCha8Rng::seed_from_u64(83);
    for mode in MODES {
        for position in positions() {
            let history = history_of(&position);
            for leaves in [3, 16] {
                let mut in_order = |order: u32| {
                    let options = many(mode, Purpose::Learning, 200, leaves);
                    let mut search = Search::new(&position, &history, options).unwrap();
                    run(
                        &mut search,
                        &mut Material::default(),
                        &history,
                        |_| {},
                        |places| match order {
                            0 => {}
                            1 => places.reverse(),
                            _ => places.shuffle(&mut shuffles),
                        },
                    )
                };
                let first = in_order(0);
                assert_eq!(first, in_order(1), "{mode:?}, {leaves}");
                assert_eq!(first, in_order(2), "{mode:?}, {leaves}");
            }
        }
    }
}

/// Whether a turn that ends here loses: at once, or by the enemy's next turn.
fn loses(end: &Position) -> bool {
    match end.outcome_on_board() {
        Some(outcome) => outcome.winner == end.side(),
        None => win_in(&StepState::new(end), TURN_STEPS).is_some(),
    }
}

/// Wins are taken, and those of the enemy prevented where that can be done.
#[test]
fn wins_are_found_and_prevented() {
    let mut rng = ChaCha8Rng::seed_from_u64(84);
    let near: Vec<Position> = (0..300).map(|_| near_goal(&mut rng)).collect();
    for mode in MODES {
        let counted: Vec<[usize; 2]> = near
            .par_iter()
            .filter(|position| position.outcome(&history_of(position)).is_none())
            .map(|position| {
                let history = history_of(position);
                let state = StepState::new(position);
                let has_win = win_in(&state, TURN_STEPS).is_some();
                let mut avoided = 0;
                for leaves in [5, 64] {
                    let options = many(mode, Purpose::Strongest, 64, leaves);
                    let mut search = Search::new(position, &history, options).unwrap();
                    let decision = run(&mut search, &mut Uniform, &history, |_| {}, |_| {});
                    let end = position.after_turn(&decision.turn, &history).unwrap();
                    if has_win {
                        assert_eq!(decision.proven_winner, Some(position.side()));
                        assert_eq!(decision.evaluations, 0);
                    } else if loses(&end) {
                        let mut enumerator = TurnEnumerator::new();
                        let mut turns = enumerator.enumerate(position, &history).iter();
                        assert!(
                            turns.all(|(end, _)| loses(&end)),
                            "{mode:?}, {leaves}: {} in {position}",
                            decision.turn
                        );
                        let winner = Some(position.side().opponent());
                        assert_eq!(decision.proven_winner, winner, "{mode:?}, {leaves}");
                    } else {
                        avoided += 1;
                    }
                }
                [usize::from(has_win), avoided]
            })
            .collect();
        let wins: usize = counted.iter().map(|one| one[0]).sum();
        let avoided: usize = counted.iter().map(|one| one[1]).sum();
        assert!(wins > 50 && avoided > 20, "{mode:?}: {wins}, {avoided}");
    }
}

/// Whole games with a tree that is kept from turn to turn.
#[test]
fn whole_games_are_legal() {
    for mode in MODES {
        (0..16_u64).into_par_iter().for_each(|seed| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let options = many(
                mode,
                Purpose::Learning,
                48,
                [2, 7, 16, 48][seed as usize % 4],
            );
            let mut game = Game::new();
            let mut search = Search::new(game.position(), game.history(), options).unwrap();
            while game.outcome().is_none() && game.turns().len() < 400 {
                let history = game.history().clone();
                search
                    .reuse_tree(game.position(), &history, options)
                    .unwrap();
                let decision =
                    run_search(&mut search, &mut Material::default(), &history, &mut rng).unwrap();
                assert!((0.0..=1.0).contains(&decision.value), "{decision:?}");
                if let Err(error) = game.play(&decision.turn) {
                    panic!("{mode:?}, game {seed}: {error} in\n{game}");
                }
            }
            assert!(game.turns().len() > 4);
        });
    }
}

/// Told to stop while leaves are out it decides right after their answers; told so while none are, at once or after one batch.
#[test]
fn a_search_that_is_stopped_asks_for_no_more() {
    for mode in MODES {
        for position in positions() {
            let history = history_of(&position);
            for batches in [0, 1, 2, 3, 5, 20] {
                for budget in [Budget::unlimited(), Budget::evaluations(4_000)] {
                    let mut rng = ChaCha8Rng::seed_from_u64(6);
                    let options = SearchOptions {
                        budget,
                        ..many(mode, Purpose::Strongest, 1, 16)
                    };
                    let mut search = Search::new(&position, &history, options).unwrap();
                    let flag = Arc::new(AtomicBool::new(false));
                    search.stop_with(Arc::clone(&flag));
                    let mut answers = Evaluations::default();
                    let (mut done, mut after) = (0, 0);
                    while search.decision().is_none() {
                        let queries = search.leaves(&history, &mut rng);
                        if !queries.is_empty() && flag.load(Ordering::Relaxed) {
                            after += 1;
                        }
                        // From now on it has to end.
                        flag.store(done >= batches, Ordering::Relaxed);
                        Uniform.evaluate(queries, &mut answers).unwrap();
                        for index in 0..answers.len() {
                            let answer = answers.get(index).unwrap();
                            search.answer(index, "test", answer).unwrap();
                        }
                        done += 1;
                    }
                    assert_eq!(after, 0, "{mode:?}, {batches} batches in {position}");
                    check_is_legal(&position, search.decision().unwrap());
                }
            }
        }
    }
}

#[test]
fn time_and_memory_end_a_search() {
    let position = *random_game(8, &mut ChaCha8Rng::seed_from_u64(85)).position();
    let history = history_of(&position);
    for mode in MODES {
        let timed = Budget {
            time: Some(Duration::from_millis(20)),
            ..Budget::unlimited()
        };
        let full = Budget {
            memory_mib: 1,
            ..Budget::unlimited()
        };
        for budget in [timed, full] {
            let options = SearchOptions {
                budget,
                ..many(mode, Purpose::Strongest, 1, 32)
            };
            let mut search = Search::new(&position, &history, options).unwrap();
            let decision = run(&mut search, &mut Uniform, &history, |_| {}, |_| {});
            assert!(search.bytes() <= (budget.memory_mib as usize) << 20);
            assert!(decision.evaluations > 100);
            check_is_legal(&position, &decision);
        }
    }
}
