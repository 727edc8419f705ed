//! Wins within one turn decide at any budget: the mover's own is taken, the enemy's is avoided wherever that is possible.

#[path = "../arimaa/tests/boards/mod.rs"]
mod boards;
mod exact;

use arimaa::perft::PositionLine;
use arimaa::rules::{
    Bitboard, History, Kind, Outcome, Position, Reason, Side, StepState, Steps, TURN_STEPS,
    TurnEnumerator, elimination_in, goal_in, immobilization_in, win_in,
};
use boards::{from_game, near_goal, near_immobilization};
use engine::config::SearchMode;
use engine::search::{Evaluations, Evaluator, Search, SearchOptions, Uniform, run_search};
use exact::{MODES, Purpose, decide_unaided, history_of, options};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rayon::prelude::*;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Whether the side to move can reach its goal in this turn.
fn has_goal(position: &Position) -> bool {
    goal_in(&StepState::new(position), TURN_STEPS).is_some()
}

/// Whether a turn of `side` that ends here wins by goal.
fn is_goal_of(side: Side, end: &Position) -> bool {
    !(end.board().pieces(side, Kind::Rabbit) & Bitboard::goal(side)).is_empty()
}

/// Whether a turn that ends here loses: at once, or by the enemy's next turn.
fn loses(end: &Position) -> bool {
    match end.outcome_on_board() {
        Some(outcome) => outcome.winner == end.side(),
        None => win_in(&StepState::new(end), TURN_STEPS).is_some(),
    }
}

/// How many of the positions have a goal, each of which is answered with one after a single visit.
fn count_answered(positions: &[Position], mode: SearchMode) -> usize {
    let answered = positions.par_iter().filter(|position| {
        if !has_goal(position) {
            return false;
        }
        let options = options(mode, Purpose::Strongest, 1);
        let (decision, end) = decide_unaided(position, &history_of(position), options);
        assert!(
            is_goal_of(position.side(), &end),
            "{mode:?}: {decision:?} in {position}"
        );
        true
    });
    answered.count()
}

#[test]
fn one_visit_finds_every_goal_of_the_oracles_positions() {
    let positions: Vec<Position> =
        include_str!("../arimaa/tests/data/oracle/positions_public.jsonl")
            .lines()
            .map(|line| serde_json::from_str::<PositionLine>(line).unwrap())
            .map(|line| line.position().unwrap())
            // Where the game is over there is nothing to decide.
            .filter(|position| position.outcome(&history_of(position)).is_none())
            .collect();
    for mode in MODES {
        assert_eq!(count_answered(&positions, mode), 66);
    }
}

#[test]
fn one_visit_finds_every_goal_of_random_positions() {
    let mut rng = ChaCha8Rng::seed_from_u64(21);
    let near: Vec<Position> = (0..2_000).map(|_| near_goal(&mut rng)).collect();
    let games: Vec<Position> = (0..1_000).map(|_| from_game(&mut rng)).collect();
    for mode in MODES {
        assert!(count_answered(&near, mode) > 1_000);
        assert!(count_answered(&games, mode) > 100);
    }
}

#[test]
fn one_visit_finds_every_immobilization() {
    let mut rng = ChaCha8Rng::seed_from_u64(23);
    let immobilizes = |position: &Position| {
        let state = StepState::new(position);
        let common = goal_in(&state, TURN_STEPS).or_else(|| elimination_in(&state, TURN_STEPS));
        common.is_none() && immobilization_in(&state, TURN_STEPS).is_some()
    };
    let near = std::iter::repeat_with(|| near_immobilization(&mut rng));
    let positions: Vec<Position> = near
        .filter(|position| position.outcome(&history_of(position)).is_none())
        .filter(immobilizes)
        .take(500)
        .collect();
    for mode in MODES {
        positions.par_iter().for_each(|position| {
            let options = options(mode, Purpose::Strongest, 1);
            let (decision, end) = decide_unaided(position, &history_of(position), options);
            let expected = Outcome {
                winner: position.side(),
                reason: Reason::Immobilization,
            };
            assert_eq!(end.outcome(&history_of(&end)), Some(expected), "{position}");
            assert_eq!(decision.evaluations, 0);
            assert_eq!(decision.proven_winner, Some(position.side()));
        });
    }
}

#[test]
fn without_the_solver_goals_are_found_by_searching_alone() {
    let mut rng = ChaCha8Rng::seed_from_u64(22);
    let near = std::iter::repeat_with(|| near_goal(&mut rng));
    // Few steps are tried at once where nothing else is there.
    let in_two = |position: &Position| goal_in(&StepState::new(position), 2).is_some();
    let goals: Vec<Position> = near.filter(in_two).take(40).collect();
    for mode in MODES {
        let decided = |evaluations| {
            let options = SearchOptions {
                goal_solver: false,
                ..options(mode, Purpose::Strongest, evaluations)
            };
            let found = goals.par_iter().map(|position| {
                let (decision, end) = decide_unaided(position, &history_of(position), options);
                assert!(
                    decision.evaluations > 0,
                    "{mode:?}: nothing is known of {position}"
                );
                is_goal_of(position.side(), &end)
            });
            found.filter(|found| *found).count()
        };
        let (by_chance, found) = (decided(1), decided(4_000));
        assert!(
            by_chance <= 10,
            "{mode:?}: {by_chance} goals after one evaluation"
        );
        // Mode `gumbel` compares some sixty turns that no test has chosen.
        let fewest = if mode == SearchMode::Puct { 36 } else { 25 };
        assert!(found >= fewest, "{mode:?}: {found} goals of 40");
    }
}

/// A solver of wins within a number of steps.
type Win = fn(&StepState, u8) -> Option<Steps>;

/// A position whose mover has no goal but can avoid the enemy's win, by fewer than half of its turns.
#[derive(Debug, Clone)]
struct Threat {
    position: Position,
    /// The distinct turns.
    turns: usize,
    /// Those after which the enemy doesn't win in its next turn.
    avoiding: usize,
}

impl Threat {
    /// The threat that a win of the enemy's is if its enemy has to move, where the game continues then.
    fn of(enemys: &Position, win: Win, enumerator: &mut TurnEnumerator) -> Option<Self> {
        let position = Position::in_play(*enemys.board(), enemys.side().opponent());
        let over = position.outcome(&history_of(&position)).is_some();
        if over || has_goal(&position) || win(&StepState::new(enemys), TURN_STEPS).is_none() {
            return None;
        }
        let turns = enumerator.enumerate(&position, &History::default());
        if turns.len() > 40_000 {
            return None;
        }
        let avoiding = turns.iter().filter(|(end, _)| !loses(end)).count();
        (avoiding > 0 && 2 * avoiding < turns.len()).then_some(Self {
            position,
            turns: turns.len(),
            avoiding,
        })
    }

    /// Whether the enemy's win is avoided by less than a 50th of the turns.
    fn is_narrow(&self) -> bool {
        50 * self.avoiding < self.turns
    }
}

/// How many threats are compared, and how many of them are narrow.
const THREATS: usize = 120;
const NARROW_THREATS: usize = 90;

/// Random threats: half of the positions near a goal, half from random games.
fn threats() -> Vec<Threat> {
    let mut threats: Vec<Threat> = Vec::new();
    let mut wide = 0;
    for batch in 0_u64.. {
        let seeds = batch * 64..(batch + 1) * 64;
        let found: Vec<Option<Threat>> = seeds
            .into_par_iter()
            .map_init(TurnEnumerator::new, |enumerator, seed| {
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                let enemys = match seed % 2 {
                    0 => near_goal(&mut rng),
                    _ => from_game(&mut rng),
                };
                Threat::of(&enemys, goal_in, enumerator)
            })
            .collect();
        for threat in found.into_iter().flatten() {
            if threat.is_narrow() || wide < THREATS - NARROW_THREATS {
                wide += usize::from(!threat.is_narrow());
                threats.push(threat);
            }
            if threats.len() == THREATS {
                return threats;
            }
        }
    }
    threats
}

/// Where the search, in either colour, lets the enemy win in its next turn.
fn faults(threats: &[Threat], mode: SearchMode, visits: u32, checks: Option<u32>) -> Vec<String> {
    let of_threat = |threat: &Threat| {
        let colours = [threat.position, threat.position.swap_colours()];
        let fault = |position: Position| {
            let options = SearchOptions {
                loss_proof_limit: checks,
                ..options(mode, Purpose::Strongest, visits)
            };
            let (decision, end) = decide_unaided(&position, &history_of(&position), options);
            loses(&end).then(|| {
                let Threat {
                    turns, avoiding, ..
                } = threat;
                format!(
                    "{:?}, one of {avoiding} in {turns}: {} in {position}",
                    mode, decision.turn
                )
            })
        };
        colours.into_iter().filter_map(fault).collect::<Vec<_>>()
    };
    threats.par_iter().flat_map(of_threat).collect()
}

#[test]
fn avoidable_goals_are_avoided() {
    let threats = threats();
    let of_games = |threat: &&Threat| threat.position.board().occupied().count() > 16;
    assert!(threats.iter().filter(of_games).count() > 20);
    for mode in MODES {
        for visits in [64, 1_000] {
            let faults = faults(&threats, mode, visits, None);
            assert!(
                faults.is_empty(),
                "{} of {} at {visits} visits:\n{}",
                faults.len(),
                2 * THREATS,
                faults.join("\n")
            );
        }
    }
}

#[test]
fn avoidable_immobilizations_are_avoided() {
    let mut rng = ChaCha8Rng::seed_from_u64(24);
    let mut enumerator = TurnEnumerator::new();
    let threats: Vec<Threat> = std::iter::repeat_with(|| near_immobilization(&mut rng))
        .filter_map(|enemys| Threat::of(&enemys, immobilization_in, &mut enumerator))
        .take(THREATS)
        .collect();
    for mode in MODES {
        for visits in [1, 64] {
            let faults = faults(&threats, mode, visits, None);
            assert!(faults.is_empty(), "{visits} visits:\n{}", faults.join("\n"));
        }
        let faults = faults(&threats, mode, 1, Some(0));
        assert!(!faults.is_empty(), "{mode:?}: no alternative is tried");
    }
}

/// What self-play's bound on the turns that are tried lets through: fewer where more are tried.
#[test]
fn a_bounded_check_lets_some_goals_through() {
    let threats = threats();
    for mode in MODES {
        let share = |checks| {
            let count = faults(&threats, mode, 64, Some(checks)).len();
            println!(
                "{mode:?}, 64 visits, at most {checks} turns tried: {count} of {} lost",
                2 * THREATS
            );
            count
        };
        let shares = [0, 300, 3_000, 20_000].map(share);
        assert!(shares.is_sorted_by(|less, more| less >= more), "{shares:?}");
        assert!(shares[0] > 0, "{shares:?}");
    }
}

/// However early a search is stopped, in the middle of its sampling too.
#[test]
fn avoidable_goals_are_avoided_by_a_search_that_is_stopped() {
    let threats = threats();
    for mode in MODES {
        threats.par_iter().enumerate().for_each(|(index, threat)| {
            let position = threat.position;
            let history = history_of(&position);
            let options = options(mode, Purpose::Strongest, 100_000);
            let mut search = Search::new(&position, &history, options).unwrap();
            let mut rng = ChaCha8Rng::seed_from_u64(index as u64);
            let mut answers = Evaluations::default();
            for _ in 0..1 + index % 4 {
                let queries = search.leaves(&history, &mut rng);
                Uniform.evaluate(queries, &mut answers).unwrap();
                for leaf in 0..queries.len() {
                    let answer = answers.get(leaf).unwrap();
                    search.answer(leaf, "uniform", answer).unwrap();
                }
            }
            let flag = Arc::new(AtomicBool::new(true));
            search.stop_with(flag);
            let decision = run_search(&mut search, &mut Uniform, &history, &mut rng).unwrap();
            let end = position.after_turn(&decision.turn, &history).unwrap();
            assert!(!loses(&end), "{mode:?}: {} in {position}", decision.turn);
        });
    }
}
