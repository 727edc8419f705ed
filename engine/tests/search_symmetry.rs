//! The search decides the same with the colours exchanged, and in the mirror where its evaluator knows no ties.

#[path = "../arimaa/tests/boards/mod.rs"]
mod boards;
mod exact;

use arimaa::rules::{Action, History, Phase, Position, Side, Step, StepState};
use boards::{from_game, near_goal, random_game};
use engine::config::SearchMode;
use engine::search::{
    Decision, Evaluations, Evaluator, EvaluatorError, Query, StateTarget, Uniform,
};
use exact::{MODES, Purpose, decide, history_of, options};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rayon::prelude::*;

/// Draws values and the order of the priors from a hash of the state as its mover sees it, the same for a state and its mirror.
/// Unless a state is its own mirror, no two of its actions tie, not even in the 12 bits that a tree keeps of a prior.
#[derive(Debug, Clone, Copy)]
struct Hashed;

impl Evaluator for Hashed {
    fn name(&self) -> &str {
        "hashed"
    }

    fn evaluate(&mut self, queries: &[Query], out: &mut Evaluations) -> Result<(), EvaluatorError> {
        out.clear();
        for query in queries {
            let side = query.side();
            let seen = match side {
                Side::Gold => query.state,
                Side::Silver => query.state.swap_colours(),
            };
            let (key, mirrored) = (seen.key(), seen.mirror().key());
            let place = |action: Action| {
                if key <= mirrored {
                    action.index(side) as u64
                } else {
                    action.mirror().index(side) as u64
                }
            };
            let key = key.min(mirrored);
            let draws: Vec<f64> = query
                .legal
                .in_index_order(side)
                .map(|action| unit(key ^ (place(action) + 1) << 48))
                .collect();
            let rank = |draw: &f64| draws.iter().filter(|&other| other < draw).count();
            let weights: Vec<f64> = draws
                .iter()
                .map(|draw| 1.05_f64.powi(rank(draw) as i32))
                .collect();
            let sum: f64 = weights.iter().sum();
            // A multiple of 2^-23, of which nothing is lost in the other side's view.
            let value = ((0.25 + 0.5 * unit(key)) * 8_388_608.0).round() as f32 / 8_388_608.0;
            let of_gold = match side {
                Side::Gold => value,
                Side::Silver => 1.0 - value,
            };
            out.push(of_gold, weights.iter().map(|weight| (weight / sum) as f32));
        }
        Ok(())
    }
}

/// A number from 0 to 1 for a key: the finaliser of SplitMix64 (Steele, Lea and Flood 2014).
fn unit(key: u64) -> f64 {
    let mut bits = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits ^ bits >> 31) as f64 / u64::MAX as f64
}

/// A probability and its complement differ by roundings.
#[track_caller]
fn assert_close(one: f32, other: f32) {
    assert!((one - other).abs() < 1e-5, "{one} is not {other}");
}

fn with_colours_exchanged(action: Action) -> Action {
    match action {
        Action::Step(step) => Action::Step(Step::new(step.from.flip(), step.direction.flip())),
        Action::Place(square) => Action::Place(square.flip()),
        Action::End => Action::End,
    }
}

/// Compares the decision with the one for the colours exchanged: all of it, for both see the same board as their mover does.
fn compare_colours(one: &Decision, other: &Decision) {
    let exchanged: Vec<Action> = one
        .actions
        .iter()
        .copied()
        .map(with_colours_exchanged)
        .collect();
    assert_eq!(exchanged, other.actions.to_vec());
    assert_eq!(
        (one.visits, one.evaluations),
        (other.visits, other.evaluations)
    );
    assert_close(one.value, 1.0 - other.value);
    assert_close(one.own_value, 1.0 - other.own_value);
    assert_eq!(one.targets.len(), other.targets.len());
    for (one, other) in one.targets.iter().zip(&other.targets) {
        let facts = |target: &StateTarget| (target.step, target.visits, target.proven);
        assert_eq!(facts(one), facts(other));
        assert_eq!(one.policy.len(), other.policy.len());
        assert_eq!(one.policy, other.policy);
        assert_close(one.surprise, other.surprise);
    }
}

/// Positions of random games, and some with goals about.
fn positions(seed: u64) -> Vec<Position> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let goes_on = |position: &Position| position.outcome(&history_of(position)).is_none();
    let games = std::iter::repeat_with(|| from_game(&mut rng)).filter(goes_on);
    let mut positions: Vec<Position> = games
        .filter(|position| position.phase() == Phase::Play)
        .take(40)
        .collect();
    let goals = std::iter::repeat_with(|| near_goal(&mut rng)).filter(goes_on);
    positions.extend(goals.take(20));
    positions
}

fn colours_are_alike<E: Evaluator + Copy + Sync>(evaluator: E) {
    for mode in MODES {
        for purpose in [Purpose::Strongest, Purpose::Learning] {
            positions(51)
                .par_iter()
                .enumerate()
                .for_each(|(index, position)| {
                    let of = |position: &Position| {
                        let options = options(mode, purpose, [1, 16, 300][index % 3]);
                        decide(&mut evaluator.clone(), position, options, index as u64)
                    };
                    compare_colours(&of(position), &of(&position.swap_colours()));
                });
        }
    }
}

#[test]
fn exchanged_colours_exchange_the_decision() {
    colours_are_alike(Uniform);
}

#[test]
fn exchanged_colours_exchange_the_decision_without_ties() {
    colours_are_alike(Hashed);
}

/// Silver's setup and the beginnings of random games, in which nothing that the search sees is
/// decided: all proven losses tie, and so do all goals. None is its own mirror, for each side has
/// one elephant.
fn quiet_positions() -> Vec<Position> {
    let mut rng = ChaCha8Rng::seed_from_u64(52);
    let beginnings = (0..44).map(|index| *random_game(1 + index / 4, &mut rng).position());
    beginnings.collect()
}

/// Compares the decision with the one in the mirror. A turn is what it ends in: among orders of its steps, chance decides.
fn compare_mirrored(position: &Position, one: &Decision, other: &Decision) {
    let history = History::default();
    let end = position.after_turn(&one.turn, &history).unwrap();
    let mirrored_end = position.mirror().after_turn(&other.turn, &history).unwrap();
    assert_eq!(
        end.mirror(),
        mirrored_end,
        "{} and {}",
        one.turn,
        other.turn
    );
    assert_eq!(
        (one.visits, one.evaluations),
        (other.visits, other.evaluations)
    );
    assert_close(one.value, other.value);
    assert_close(one.own_value, other.own_value);
    let (Some(target), Some(mirrored)) = (one.targets.first(), other.targets.first()) else {
        panic!("no target: {one:?} {other:?}");
    };
    let side = position.side();
    let legal = StepState::new(position).legal_actions(&history);
    let mirrored_legal: Vec<Action> = legal.mirror().in_index_order(side).collect();
    for (action, &share) in legal.in_index_order(side).zip(&target.policy) {
        let is_image = |&other: &Action| other == action.mirror();
        let image = mirrored_legal.iter().position(is_image).unwrap();
        assert_close(share, mirrored.policy[image]);
    }
}

#[test]
fn the_mirror_mirrors_the_decision() {
    let positions = quiet_positions();
    for mode in MODES {
        // Noise is drawn for the likeliest step first: it is mirrored too.
        for purpose in [Purpose::Strongest, Purpose::Learning] {
            for visits in [16, 64, 400] {
                positions.par_iter().for_each(|position| {
                    // Drawn step by step at a temperature, a setup may leave what was evaluated:
                    // the rest of it is placed at random, square by square from the a-file on,
                    // which no mirror keeps.
                    let may_leave = mode == SearchMode::Puct && purpose == Purpose::Learning;
                    if may_leave && position.phase() == Phase::Setup {
                        return;
                    }
                    let options = options(mode, purpose, visits);
                    let of = |position: &Position| decide(&mut Hashed, position, options, 1);
                    compare_mirrored(position, &of(position), &of(&position.mirror()));
                });
            }
        }
    }
}
