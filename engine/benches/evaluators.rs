//! How fast the evaluators without a network are, on one core: `cargo bench -p engine --no-default-features --bench evaluators`.
//!
//! The queries are the turn starts of the oracle's positions; each bench asserts that all are answered.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use engine::perft::PositionLine;
use engine::rules::{History, StepState};
use engine::search::{Evaluations, Evaluator, Material, Query, Uniform};
use std::hint::black_box;

const POSITIONS: &str = include_str!("../tests/data/oracle/positions_public.jsonl");

/// The turn starts of all positions in which a turn is left.
fn queries() -> Vec<Query> {
    let history = History::default();
    let lines = POSITIONS.lines().map(|line| {
        let line: PositionLine = serde_json::from_str(line).unwrap();
        line.position().unwrap()
    });
    lines
        .filter(|position| position.outcome(&history).is_none())
        .map(|position| {
            let state = StepState::new(&position);
            Query {
                state,
                legal: state.legal_actions(&history),
                repetitions: 0,
            }
        })
        .collect()
}

fn evaluators(criterion: &mut Criterion) {
    let queries = queries();
    let mut group = criterion.benchmark_group("evaluators");
    group
        .throughput(Throughput::Elements(queries.len() as u64))
        .sample_size(20);
    let mut answers = Evaluations::default();
    let evaluators: [Box<dyn Evaluator>; 2] = [Box::new(Uniform), Box::new(Material::default())];
    for mut evaluator in evaluators {
        let name = evaluator.name().to_owned();
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                evaluator
                    .evaluate(black_box(&queries), &mut answers)
                    .unwrap();
                assert_eq!(answers.len(), queries.len());
            });
        });
    }
    group.finish();
}

criterion_group!(benches, evaluators);
criterion_main!(benches);
