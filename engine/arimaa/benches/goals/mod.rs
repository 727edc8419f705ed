//! The solvers of goals, immobilizations and captures.

#[path = "../../tests/boards/mod.rs"]
mod boards;

use crate::{Row, rate};
use arimaa::rules::{
    Bitboard, Kind, Position, StepState, TURN_STEPS, capture_threats, captures, goal_in,
    goal_threat, immobilization_in,
};
use boards::{near_immobilization, random_position};
use criterion::{Criterion, Throughput};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use std::hint::black_box;

/// In how many of the oracle's positions the side not to move would have a goal.
const THREATS: usize = 96;

/// The pieces of both sides that the other one could capture in the oracle's positions.
const CAPTURES: usize = 567;

/// Whether the side to move has a rabbit no more than two ranks before its goal.
fn has_near_rabbit(position: &Position) -> bool {
    let near = Bitboard(0xffff << 40).seen_by(position.side());
    !(position.board().pieces(position.side(), Kind::Rabbit) & near).is_empty()
}

/// Random positions of all densities in which everything has to be looked at.
fn near_without_goal() -> Vec<Position> {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    std::iter::repeat_with(|| random_position(&mut random))
        .filter(|position| {
            has_near_rabbit(position)
                && position.outcome_on_board().is_none()
                && goal_in(&StepState::new(position), TURN_STEPS).is_none()
        })
        .take(1_000)
        .collect()
}

/// Goals of the side to move in the oracle's positions and in harder ones, then those of the other side.
pub(super) fn goals(criterion: &mut Criterion, positions: &[Position]) -> Vec<Row> {
    let near: Vec<Position> = positions
        .iter()
        .filter(|position| has_near_rabbit(position))
        .copied()
        .collect();
    let hard = near_without_goal();
    let mut group = criterion.benchmark_group("goals");
    let mut rows = Vec::new();
    for (name, positions, expected) in [
        ("goal in the turn", positions, 66),
        ("… a rabbit near", &near, 47),
        ("… near and no goal", &hard, 0),
    ] {
        let states: Vec<StepState> = positions.iter().map(StepState::new).collect();
        let total = states.len() as u64;
        let all = |states: &Vec<StepState>| {
            let found = |state: &&StepState| goal_in(black_box(state), TURN_STEPS).is_some();
            assert_eq!(states.iter().filter(found).count(), expected);
        };
        group.throughput(Throughput::Elements(total));
        rows.extend(rate(&mut group, name, "positions", total, &[states], all));
    }
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let crowded: Vec<Position> = std::iter::repeat_with(|| near_immobilization(&mut random))
        .take(1_000)
        .collect();
    for (name, positions, expected) in [
        ("immobilization in the turn", positions, 9),
        ("… crowded, with few pieces", &crowded, 531),
    ] {
        let states: Vec<StepState> = positions.iter().map(StepState::new).collect();
        let total = states.len() as u64;
        let all = |states: &Vec<StepState>| {
            let found =
                |state: &&StepState| immobilization_in(black_box(state), TURN_STEPS).is_some();
            assert_eq!(states.iter().filter(found).count(), expected);
        };
        group.throughput(Throughput::Elements(total));
        rows.extend(rate(&mut group, name, "positions", total, &[states], all));
    }
    let total = positions.len() as u64;
    let all = |positions: &&[Position]| {
        let found = |position: &&Position| goal_threat(black_box(position)).is_some();
        assert_eq!(positions.iter().filter(found).count(), THREATS);
    };
    group.throughput(Throughput::Elements(total));
    rows.extend(rate(
        &mut group,
        "goal threat",
        "positions",
        total,
        &[positions],
        all,
    ));
    let all = |positions: &&[Position]| {
        let count = |position: &Position| {
            let own = capture_threats(black_box(position))[4];
            let enemy = captures(&StepState::new(black_box(position)))[4];
            (own.count() + enemy.count()) as usize
        };
        assert_eq!(positions.iter().map(count).sum::<usize>(), CAPTURES);
    };
    rows.extend(rate(
        &mut group,
        "captures, both sides",
        "positions",
        total,
        &[positions],
        all,
    ));
    group.finish();
    rows
}
