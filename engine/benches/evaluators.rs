//! How fast the evaluators without a network are, and the encoding for one, on one core: `cargo bench -p engine --bench evaluators`.
//!
//! The queries are the turn starts of the oracle's positions; each bench asserts that all are answered or encoded.

mod positions;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use engine::encoding::{encode, plane};
use engine::search::{Evaluations, Evaluator, Material, Uniform};
use std::hint::black_box;

fn evaluators(criterion: &mut Criterion) {
    let queries = positions::queries();
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
    group.bench_function("encode", |bencher| {
        bencher.iter(|| {
            let rows = black_box(&queries).iter();
            let rows = rows.map(|query| encode(&query.state, query.repetitions));
            let captures = rows.filter(|row| row.planes[plane::CAPTURES + 2] != 0);
            assert!((1..queries.len()).contains(&captures.count()));
        });
    });
    group.finish();
}

criterion_group!(benches, evaluators);
criterion_main!(benches);
