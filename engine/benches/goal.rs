//! How fast the goal solver is, on one core: `cargo bench -p engine --no-default-features --bench goal`.
//!
//! Each bench asserts what it counts.

#[path = "../tests/boards/mod.rs"]
mod boards;

use boards::random_position;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use engine::perft::PositionLine;
use engine::rules::{Bitboard, Kind, Position, StepState, TURN_STEPS, goal_in, goal_threat};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use std::hint::black_box;

const POSITIONS: &str = include_str!("../tests/data/oracle/positions_public.jsonl");

/// In how many of the oracle's positions the side not to move would have a goal.
const THREATS: usize = 96;

/// The oracle's positions.
fn positions() -> Vec<Position> {
    let lines = POSITIONS.lines().map(|line| {
        let line: PositionLine = serde_json::from_str(line).unwrap();
        line.position().unwrap()
    });
    lines.collect()
}

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

fn goals(criterion: &mut Criterion) {
    let all = positions();
    let near: Vec<Position> = all.iter().filter(|p| has_near_rabbit(p)).copied().collect();
    let hard = near_without_goal();
    let mut group = criterion.benchmark_group("goal");
    for (name, positions, found) in [
        ("all positions", &all, 66),
        ("a rabbit within two ranks", &near, 47),
        ("a rabbit within two ranks and no goal", &hard, 0),
    ] {
        let states: Vec<StepState> = positions.iter().map(StepState::new).collect();
        let count = || {
            states
                .iter()
                .filter(|state| goal_in(black_box(state), TURN_STEPS).is_some())
                .count()
        };
        group.throughput(Throughput::Elements(states.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| assert_eq!(count(), found));
        });
    }
    group.finish();
}

fn threats(criterion: &mut Criterion) {
    let positions = positions();
    let count = || {
        positions
            .iter()
            .filter(|position| goal_threat(black_box(position)).is_some())
            .count()
    };
    let mut group = criterion.benchmark_group("goal threat");
    group.throughput(Throughput::Elements(positions.len() as u64));
    group.bench_function("all positions", |bencher| {
        bencher.iter(|| assert_eq!(count(), THREATS));
    });
    group.finish();
}

criterion_group!(benches, goals, threats);
criterion_main!(benches);
