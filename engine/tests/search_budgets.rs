//! What a search may use up, and what it does where there is little of it or little to decide.

#[path = "../arimaa/tests/boards/mod.rs"]
mod boards;
mod exact;

use arimaa::rules::{History, Position, Reason, Side, TurnEnumerator};
use boards::{from_game, near_goal, position, random_game, random_position};
use engine::config::{AutoOr, SearchMode};
use engine::search::{
    Budget, Decision, Evaluation, Evaluations, Evaluator, EvaluatorError, Material, Query, Search,
    SearchError, SearchOptions, Uniform,
};
use exact::{Judge, Judged, MODES, Purpose, Worth, decide, history_of, options};
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;
use std::time::{Duration, Instant};

/// Both setups, positions of games, some of them with a goal in sight, and positions with hardly a turn.
fn positions() -> Vec<Position> {
    let mut rng = ChaCha8Rng::seed_from_u64(91);
    let mut positions = vec![Position::INITIAL, *random_game(1, &mut rng).position()];
    positions.extend((0..6).map(|_| from_game(&mut rng)));
    positions.extend((0..4).map(|_| close_to_goal(&mut rng)));
    positions.push(one_turn());
    positions.push(position(Side::Gold, "Ra1 rh8"));
    positions
}

/// A position with a single legal turn.
fn one_turn() -> Position {
    let mut rng = ChaCha8Rng::seed_from_u64(98);
    let mut enumerator = TurnEnumerator::new();
    loop {
        let position = random_position(&mut rng);
        let history = history_of(&position);
        let is_over = position.outcome(&history).is_some();
        if !is_over && enumerator.enumerate(&position, &history).len() == 1 {
            return position;
        }
    }
}

/// The beginning of a game.
fn quiet() -> Position {
    *random_game(8, &mut ChaCha8Rng::seed_from_u64(90)).position()
}

/// Positions in which every turn loses to a goal or an elimination.
fn lost(count: usize) -> Vec<Position> {
    let mut rng = ChaCha8Rng::seed_from_u64(99);
    let mut judge = Judge::default();
    let mut found = Vec::new();
    while found.len() < count {
        let winning = near_goal(&mut rng);
        let position = Position::in_play(*winning.board(), winning.side().opponent());
        let history = history_of(&position);
        if position.outcome(&history).is_some() {
            continue;
        }
        let (turns, replies) = judge.count_turns(&position);
        let is_small = turns * replies < 100_000;
        let is_lost = |one: &Judged| {
            let by = [Some(Reason::Goal), Some(Reason::Elimination)];
            one.worth == Worth::Loss && by.contains(&one.by)
        };
        if is_small && judge.judge(&position, &history).iter().all(is_lost) {
            found.push(position);
        }
    }
    found
}

/// A position with a goal in sight that is not over.
fn close_to_goal(rng: &mut ChaCha8Rng) -> Position {
    let position = near_goal(rng);
    match position.outcome(&history_of(&position)) {
        None => position,
        Some(_) => close_to_goal(rng),
    }
}

/// A random position with few turns that is not over.
fn with_few_turns(rng: &mut ChaCha8Rng) -> Position {
    let position = random_position(rng);
    let history = history_of(&position);
    let count = TurnEnumerator::new().enumerate(&position, &history).len();
    match position.outcome(&history) {
        None if (2..16).contains(&count) => position,
        _ => with_few_turns(rng),
    }
}

fn check_is_legal(position: &Position, decision: &Decision) {
    let end = position.after_turn(&decision.turn, &history_of(position));
    assert!(end.is_ok(), "{} in {position}", decision.turn);
}

#[test]
fn no_search_uses_more_than_it_may() {
    for mode in MODES {
        for purpose in [Purpose::Strongest, Purpose::Learning] {
            positions().par_iter().for_each(|position| {
                for budget in (1..=80).chain([127, 128, 129, 400]) {
                    let decision = decide(
                        &mut Uniform,
                        position,
                        options(mode, purpose, budget),
                        u64::from(budget),
                    );
                    let used = (decision.evaluations, decision.visits);
                    assert!(used.0 <= budget && used.1 <= budget, "{used:?} of {budget}");
                    check_is_legal(position, &decision);
                    for target in &decision.targets {
                        assert!(
                            target.visits <= decision.visits,
                            "{mode:?} {target:?} of {decision:?}"
                        );
                        assert!((target.policy.iter().sum::<f32>() - 1.0).abs() < 1e-4);
                    }
                }
            });
        }
    }
}

#[test]
fn visits_alone_may_be_limited() {
    for mode in MODES {
        for position in positions() {
            for visits in [1, 2, 7, 33, 80] {
                let options = SearchOptions {
                    budget: Budget::visits(visits),
                    ..options(mode, Purpose::Strongest, 1)
                };
                let decision = decide(&mut Material::default(), &position, options, 1);
                assert!(decision.visits <= visits, "{decision:?}");
                check_is_legal(&position, &decision);
            }
        }
    }
}

#[test]
fn any_number_of_candidates_will_do() {
    for position in positions() {
        for candidates in [1, 2, 3, 5, 6, 7, 11, 13, 100, 10_000] {
            for beam_width in [1, 5, 200, 10_000] {
                let mut options = options(SearchMode::Gumbel, Purpose::Learning, 96);
                options.gumbel.candidates = AutoOr::Fixed(candidates);
                options.gumbel.beam_width = AutoOr::Fixed(beam_width);
                let decision = decide(&mut Uniform, &position, options, 1);
                assert!(decision.evaluations <= 96, "{decision:?}");
                check_is_legal(&position, &decision);
            }
        }
    }
}

#[test]
fn a_turn_without_an_alternative_is_found() {
    let position = one_turn();
    let history = history_of(&position);
    let mut enumerator = TurnEnumerator::new();
    assert_eq!(enumerator.enumerate(&position, &history).len(), 1);
    for mode in MODES {
        for budget in [1, 2, 8, 9, 100] {
            let options = options(mode, Purpose::Strongest, budget);
            let decision = decide(&mut Material::default(), &position, options, 1);
            check_is_legal(&position, &decision);
        }
        let mut early = options(mode, Purpose::Strongest, 100);
        early.budget.stops_when_decided = true;
        let decision = decide(&mut Material::default(), &position, early, 1);
        check_is_legal(&position, &decision);
        assert_eq!(decision.evaluations, 1);
    }
}

/// Turns that turn out to be lost one after the other are replaced by what is left, until nothing is.
#[test]
fn values_stay_probabilities_where_few_turns_are_left() {
    let mut rng = ChaCha8Rng::seed_from_u64(100);
    let mut positions: Vec<Position> = (0..200).map(|_| with_few_turns(&mut rng)).collect();
    positions.push(position(Side::Gold, "Rd6 Rf5 He8 rd8 rg8 ce6 dg6 mf8"));
    for mode in MODES {
        positions.par_iter().for_each(|position| {
            for budget in [16, 64] {
                let options = options(mode, Purpose::Learning, budget);
                let decision = decide(&mut Uniform, position, options, 1);
                check_is_legal(position, &decision);
                let values = [decision.value, decision.own_value];
                let are_probabilities = values.iter().all(|value| (0.0..=1.0).contains(value));
                assert!(are_probabilities, "{mode:?}: {decision:?} in {position}");
            }
        });
    }
}

#[test]
fn an_empty_budget_is_an_error() {
    let history = history_of(&Position::INITIAL);
    let error = |options| Search::new(&Position::INITIAL, &history, options).unwrap_err();
    for mode in MODES {
        let base = options(mode, Purpose::Strongest, 100);
        let nothings = [
            Budget::evaluations(0),
            Budget::visits(0),
            Budget {
                time: Some(Duration::ZERO),
                ..Budget::unlimited()
            },
            Budget {
                memory_mib: 0,
                ..base.budget
            },
        ];
        for budget in nothings {
            let error = error(SearchOptions { budget, ..base });
            assert!(matches!(error, SearchError::NoBudget), "{error}");
        }
    }
    let mut none = options(SearchMode::Gumbel, Purpose::Strongest, 100);
    none.gumbel.candidates = AutoOr::Fixed(0);
    assert!(matches!(error(none), SearchError::NoCandidates));
}

#[test]
fn time_ends_a_search() {
    for mode in MODES {
        for position in [Position::INITIAL, quiet()] {
            let time = Duration::from_millis(40);
            let budget = Budget {
                time: Some(time),
                ..Budget::unlimited()
            };
            let options = SearchOptions {
                budget,
                ..options(mode, Purpose::Strongest, 1)
            };
            let begun = Instant::now();
            let decision = decide(&mut Uniform, &position, options, 1);
            let taken = begun.elapsed();
            assert!(taken >= time && taken < 500 * time, "{mode:?}: {taken:?}");
            check_is_legal(&position, &decision);
        }
    }
}

/// Answers what a search asks for now as an evaluator says; says whether it asked.
fn answer(
    search: &mut Search,
    evaluator: &mut dyn Evaluator,
    history: &History,
    rng: &mut ChaCha8Rng,
) -> bool {
    let mut answers = Evaluations::default();
    let queries = search.leaves(history, rng);
    evaluator.evaluate(queries, &mut answers).unwrap();
    for index in 0..answers.len() {
        search
            .answer(index, "test", answers.get(index).unwrap())
            .unwrap();
    }
    !answers.is_empty()
}

#[test]
fn without_limits_a_search_runs_until_it_is_stopped() {
    let mut rng = ChaCha8Rng::seed_from_u64(92);
    for mode in MODES {
        for position in positions() {
            let history = history_of(&position);
            let options = SearchOptions {
                budget: Budget::unlimited(),
                ..options(mode, Purpose::Strongest, 1)
            };
            for calls in [0, 1, 2, 3, 10, 300] {
                let mut search = Search::new(&position, &history, options).unwrap();
                for _ in 0..calls {
                    answer(&mut search, &mut Uniform, &history, &mut rng);
                }
                search.stop();
                let mut more = 0;
                while answer(&mut search, &mut Uniform, &history, &mut rng) {
                    more += 1;
                }
                assert!(more <= 8, "{mode:?}: {more} batches after {calls}");
                check_is_legal(&position, search.decision().unwrap());
            }
        }
    }
}

/// A search without limits comes back even where nothing is left to evaluate, be it that the memory is full or that the few states
/// there are have all been seen.
#[test]
fn without_limits_a_search_that_has_seen_all_ends() {
    let mut rng = ChaCha8Rng::seed_from_u64(93);
    let closed = one_turn();
    for mode in MODES {
        for (position, memory_mib) in [(closed, 1), (quiet(), 1)] {
            let history = history_of(&position);
            let budget = Budget {
                memory_mib,
                ..Budget::unlimited()
            };
            let options = SearchOptions {
                budget,
                ..options(mode, Purpose::Strongest, 1)
            };
            let mut search = Search::new(&position, &history, options).unwrap();
            while answer(&mut search, &mut Uniform, &history, &mut rng) {}
            check_is_legal(&position, search.decision().unwrap());
        }
    }
}

/// Gives one action in every state this much more than the others, and has its own opinion of every state.
#[derive(Debug, Clone, Copy)]
struct Leaning(f32);

/// Is sure of one action.
const SURE: Leaning = Leaning(0.9);

impl Evaluator for Leaning {
    fn name(&self) -> &str {
        "leaning"
    }

    fn evaluate(&mut self, queries: &[Query], out: &mut Evaluations) -> Result<(), EvaluatorError> {
        out.clear();
        for query in queries {
            let (key, count) = (query.state.key(), query.legal.count());
            let favourite = (key >> 20) as usize % count;
            let value = 0.4 + 0.2 * (key >> 40) as f32 / (1 << 24) as f32;
            let Self(more) = *self;
            let other = (1.0 - more) / count as f32;
            let priors =
                (0..count).map(|place| other + if place == favourite { more } else { 0.0 });
            out.push(value, priors);
        }
        Ok(())
    }
}

/// The turn that the whole budget would have been spent for, as long as nothing is proven by the rest.
#[test]
fn stopping_early_changes_no_turn() {
    let mut rng = ChaCha8Rng::seed_from_u64(94);
    let mut positions: Vec<Position> = (0..60).map(|_| from_game(&mut rng)).collect();
    positions.extend((0..60).map(|_| close_to_goal(&mut rng)));
    positions.extend((0..280).map(|_| with_few_turns(&mut rng)));
    let compared: Vec<(u32, Option<String>)> = positions
        .par_iter()
        .map(|position| {
            let whole = options(SearchMode::Puct, Purpose::Strongest, 800);
            let mut early = whole;
            early.budget.stops_when_decided = true;
            let decided = |options| decide(&mut { SURE }, position, options, 1);
            let (whole, early) = (decided(whole), decided(early));
            let history = history_of(position);
            let end = |decision: &Decision| position.after_turn(&decision.turn, &history).unwrap();
            let what = format!(
                "{} after {} visits, {} after {}, won by {:?}, in {position}",
                early.turn, early.visits, whole.turn, whole.visits, whole.proven_winner
            );
            let saved = whole.visits.saturating_sub(early.visits);
            (saved, (end(&whole) != end(&early)).then_some(what))
        })
        .collect();
    let early = compared.iter().filter(|one| one.0 > 0).count();
    let saved: u32 = compared.iter().map(|one| one.0).sum();
    println!(
        "{early} of {} stopped early; {saved} visits fewer",
        compared.len()
    );
    let differing: Vec<&String> = compared.iter().filter_map(|one| one.1.as_ref()).collect();
    assert!(differing.is_empty(), "{differing:#?}");
    assert!(early > 20, "{early}");
}

#[test]
fn the_memory_is_bounded_and_the_search_decides_all_the_same() {
    let mut rng = ChaCha8Rng::seed_from_u64(95);
    for mode in MODES {
        for position in [Position::INITIAL, quiet()] {
            let history = history_of(&position);
            for candidates in [None, Some(400)] {
                let mut options = options(mode, Purpose::Strongest, 20_000);
                options.budget.memory_mib = 1;
                options.gumbel.candidates = candidates.map_or(AutoOr::Auto, AutoOr::Fixed);
                let mut search = Search::new(&position, &history, options).unwrap();
                let mut most = 0;
                while answer(&mut search, &mut Material::default(), &history, &mut rng) {
                    most = most.max(search.bytes());
                }
                assert!(most.max(search.bytes()) <= 1 << 20, "{mode:?}: {most}");
                // A beam may hold half of the memory beside the tree.
                let least = match mode {
                    SearchMode::Puct => 1 << 19,
                    SearchMode::Gumbel => 1 << 18,
                };
                assert!(most > least, "{mode:?}: {most} is far from the bound");
                check_is_legal(&position, search.decision().unwrap());
            }
        }
    }
}

/// With the memory used up, simulations that end where the tree has no room count nowhere, however many there are, and the turn that
/// is chosen was judged.
#[test]
fn with_the_memory_used_up_a_judged_turn_is_chosen() {
    let budgets = [
        Budget::unlimited(),
        Budget::visits(7_000),
        Budget::visits(60_000),
    ];
    for position in [Position::INITIAL, quiet()] {
        for budget in budgets {
            for leaning in [0.3, 0.6].map(Leaning) {
                for leaves in [1, 12] {
                    for temperature in [0.0, 1.0] {
                        let options = SearchOptions {
                            budget: Budget {
                                memory_mib: 1,
                                ..budget
                            },
                            parallel_leaves: leaves,
                            temperature,
                            ..options(SearchMode::Puct, Purpose::Strongest, 1)
                        };
                        check_memory_used_up(&position, leaning, options);
                    }
                }
            }
        }
    }
}

fn check_memory_used_up(position: &Position, mut leaning: Leaning, options: SearchOptions) {
    let history = history_of(position);
    let mut rng = ChaCha8Rng::seed_from_u64(100);
    let mut search = Search::new(position, &history, options).unwrap();
    while answer(&mut search, &mut leaning, &history, &mut rng) {}
    let report = search.report(3);
    let what = format!("{leaning:?}, {options:?}: {report}");
    assert!(report.evaluations < 6_000, "the memory is not full: {what}");
    let chosen = report.turns.iter().find(|turn| turn.is_chosen).unwrap();
    assert!(chosen.visits > 0.0 && chosen.value.is_some(), "{what}");
    // Few come upon what is proven.
    let known = report.visits - report.evaluations;
    assert!(known < 300, "{what}");
}

#[test]
fn the_order_of_the_answers_decides_nothing() {
    let mut shuffles = ChaCha8Rng::seed_from_u64(96);
    for mode in MODES {
        for position in positions() {
            let history = history_of(&position);
            let options = options(mode, Purpose::Learning, 150);
            let mut in_order = |order: u32| {
                let mut rng = ChaCha8Rng::seed_from_u64(5);
                let mut search = Search::new(&position, &history, options).unwrap();
                let mut answers = Evaluations::default();
                loop {
                    let queries = search.leaves(&history, &mut rng);
                    Material::default().evaluate(queries, &mut answers).unwrap();
                    let mut places: Vec<usize> = (0..answers.len()).collect();
                    match order {
                        0 => {}
                        1 => places.reverse(),
                        _ => places.shuffle(&mut shuffles),
                    }
                    for place in places {
                        search
                            .answer(place, "test", answers.get(place).unwrap())
                            .unwrap();
                    }
                    if let Some(decision) = search.decision() {
                        return decision.clone();
                    }
                }
            };
            let first = in_order(0);
            assert_eq!(first, in_order(1), "{mode:?}");
            assert_eq!(first, in_order(2), "{mode:?}");
        }
    }
}

/// A wrong answer is refused, names the evaluator and the position, and changes nothing.
#[test]
fn a_wrong_answer_leaves_no_trace() {
    let position = quiet();
    let history = history_of(&position);
    for mode in MODES {
        let options = options(mode, Purpose::Learning, 100);
        let expected = decide(&mut Material::default(), &position, options, 1);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut search = Search::new(&position, &history, options).unwrap();
        let mut answers = Evaluations::default();
        let mut wrongs = ChaCha8Rng::seed_from_u64(97);
        let decision = loop {
            let queries = search.leaves(&history, &mut rng).to_vec();
            Material::default()
                .evaluate(&queries, &mut answers)
                .unwrap();
            for (index, query) in queries.iter().enumerate() {
                let right = answers.get(index).unwrap();
                let wrong = match wrongs.random_range(0..2) {
                    0 => Evaluation {
                        value: f32::INFINITY,
                        ..right
                    },
                    _ => Evaluation {
                        priors: &right.priors[1..],
                        ..right
                    },
                };
                let message = search
                    .answer(index, "broken", wrong)
                    .unwrap_err()
                    .to_string();
                let start = query.state.start_position().to_string();
                assert!(
                    message.starts_with("broken: ") && message.contains(&start),
                    "{message}"
                );
                search.answer(index, "material", right).unwrap();
            }
            if let Some(decision) = search.decision() {
                break decision.clone();
            }
        };
        assert_eq!(decision, expected, "{mode:?}");
    }
}

/// Where every turn loses the search says so and takes one of them, whatever it may use up.
#[test]
fn where_all_turns_lose_one_is_taken() {
    for position in lost(12) {
        let winner = position.side().opponent();
        for mode in MODES {
            for budget in [1, 5, 8, 9, 30, 200] {
                let options = options(mode, Purpose::Strongest, budget);
                let decision = decide(&mut Uniform, &position, options, 1);
                check_is_legal(&position, &decision);
                let expected = if winner == Side::Gold { 1.0 } else { 0.0 };
                assert_eq!(decision.value, expected, "{mode:?}, {budget} in {position}");
                assert_eq!(decision.proven_winner, Some(winner), "{mode:?}, {budget}");
            }
        }
    }
}
