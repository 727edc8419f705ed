//! How many evaluations a second one thread makes, by the network, its precision and the size of the batches:
//! `cargo bench -p network`.
//!
//! For each network and precision: the times of the evaluator (encoding, network, priors) and of making an evaluator with its check. The networks are new ones: their speed
//! is that of trained ones. `cargo bench … -- 10x128` picks some.

#[path = "../../benches/positions/mod.rs"]
mod positions;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use engine::search::{Evaluations, Evaluator};
use network::{
    Architecture, Network, NetworkEvaluator, Precision, cpu_computes_bf16, set_single_threaded,
};
use std::hint::black_box;
use std::time::Duration;

fn networks(criterion: &mut Criterion) {
    set_single_threaded();
    let queries = positions::queries();
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    for (blocks, channels) in [(3, 32), (6, 64), (10, 128)] {
        let size = format!("{blocks}x{channels}");
        if wanted
            .iter()
            .any(|filter| filter.contains('x') && !filter.contains(&size))
        {
            continue;
        }
        let network = Network::new(Architecture { blocks, channels }, 1).unwrap();
        for precision in [Precision::Fp32, Precision::Bf16] {
            if precision == Precision::Bf16 && !cpu_computes_bf16() {
                continue;
            }
            let what = format!("{size} {precision}");
            let mut group = criterion.benchmark_group(&what);
            group
                .sample_size(10)
                .measurement_time(Duration::from_secs(2));
            group.bench_function("load and check", |bencher| {
                bencher.iter(|| NetworkEvaluator::new(&network, precision, "bench"));
            });
            let mut evaluator = NetworkEvaluator::new(&network, precision, "bench").unwrap();
            let mut answers = Evaluations::default();
            for batch in [1, 4, 8, 16, 32, 64, 256] {
                let queries = &queries[..batch];
                group.throughput(Throughput::Elements(batch as u64));
                group.bench_with_input(
                    BenchmarkId::new("evaluate", batch),
                    queries,
                    |bencher, queries| {
                        bencher.iter(|| {
                            evaluator
                                .evaluate(black_box(queries), &mut answers)
                                .unwrap();
                            assert_eq!(answers.len(), queries.len());
                        });
                    },
                );
            }
            group.finish();
        }
    }
}

criterion_group!(benches, networks);
criterion_main!(benches);
