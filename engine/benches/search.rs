//! How fast the search is, on one core: `cargo bench -p engine --no-default-features --bench search`.
//!
//! Each bench asserts what it counts.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use engine::config::SearchConfig;
use engine::perft::PositionLine;
use engine::rules::{History, Position};
use engine::search::{SearchOptions, Uniform, search_turn};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

const POSITIONS: &str = include_str!("../tests/data/oracle/positions_public.jsonl");

/// How many of the oracle's positions are used.
const COUNT: usize = 20;

/// The first positions of the oracle that have a turn.
fn positions() -> Vec<Position> {
    let lines = POSITIONS.lines().map(|line| {
        let line: PositionLine = serde_json::from_str(line).unwrap();
        line.position().unwrap()
    });
    lines
        .filter(|position| position.outcome(&History::default()).is_none())
        .take(COUNT)
        .collect()
}

fn visits(criterion: &mut Criterion) {
    let positions = positions();
    let mut group = criterion.benchmark_group("search");
    for visits in [32, 400, 10_000, 100_000] {
        let options = SearchOptions::strongest(&SearchConfig::default(), visits);
        let all = || {
            positions
                .iter()
                .map(|position| search(position, options))
                .sum::<u64>()
        };
        // A goal in sight or an early end saves visits: what is counted is what was done.
        let total = all();
        group
            .throughput(Throughput::Elements(total))
            .sample_size(10);
        group.bench_function(format!("uniform, {visits} visits a turn"), |bencher| {
            bencher.iter(|| assert_eq!(all(), total));
        });
    }
    group.finish();
}

/// One turn with an evaluator that knows nothing; returns the visits that it took.
fn search(position: &Position, options: SearchOptions) -> u64 {
    let mut history = History::default();
    history.push(position);
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let decision = search_turn(&mut Uniform, position, &history, options, &mut random);
    decision.unwrap().visits.into()
}

criterion_group!(benches, visits);
criterion_main!(benches);
