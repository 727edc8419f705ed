//! How fast the search is, on one core: `cargo bench -p engine --no-default-features --bench search`.
//!
//! Each bench asserts what it counts. One search object serves all positions, as it does in a game. Before the benches stand the
//! bytes that a tree takes a visit, the share of visits that needed no evaluation, and the time to keep a tree for the next turn.

use arimaa::perft::PositionLine;
use arimaa::rules::{History, Position};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use engine::config::{SearchConfig, SearchMode};
use engine::search::{Decision, Evaluator};
use engine::search::{Material, Search, SearchOptions, Uniform, run_search};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use std::time::{Duration, Instant};

const POSITIONS: &str = include_str!("../arimaa/tests/data/oracle/positions_public.jsonl");

/// The first positions of the oracle that have a turn.
fn positions(count: usize) -> Vec<Position> {
    let lines = POSITIONS.lines().map(|line| {
        let line: PositionLine = serde_json::from_str(line).unwrap();
        line.position().unwrap()
    });
    lines
        .filter(|position| position.outcome(&History::default()).is_none())
        .take(count)
        .collect()
}

fn options(mode: SearchMode, visits: u32) -> SearchOptions {
    SearchOptions {
        mode,
        ..SearchOptions::strongest(&SearchConfig::default(), visits)
    }
}

/// One turn by a search that keeps its memory.
fn decide(
    search: &mut Option<Search>,
    evaluator: &mut dyn Evaluator,
    position: &Position,
    options: SearchOptions,
) -> Decision {
    let mut history = History::default();
    history.push(position);
    let search = match search {
        Some(search) => {
            search.restart(position, &history, options).unwrap();
            search
        }
        None => search.insert(Search::new(position, &history, options).unwrap()),
    };
    let mut random = ChaCha8Rng::seed_from_u64(1);
    run_search(search, evaluator, &history, &mut random).unwrap()
}

fn visits(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("search");
    group.sample_size(10);
    // The same positions throughout, so that the costs of a visit compare.
    let positions = positions(10);
    for visits in [32, 400, 10_000, 100_000] {
        let mut search = None;
        let mut all = || -> u64 {
            positions
                .iter()
                .map(|position| {
                    let options = options(SearchMode::Puct, visits);
                    let decision = decide(&mut search, &mut Uniform, position, options);
                    u64::from(decision.visits)
                })
                .sum()
        };
        // A goal in sight saves visits: what is counted is what was done.
        let total = all();
        group.throughput(Throughput::Elements(total));
        group.bench_function(format!("puct, uniform, {visits} visits"), |bencher| {
            bencher.iter(|| assert_eq!(all(), total));
        });
    }
    group.finish();
}

fn evaluations(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("search by evaluations");
    group.sample_size(10);
    let positions = positions(10);
    let mut evaluator = Material::default();
    for (name, mode) in [("puct", SearchMode::Puct), ("gumbel", SearchMode::Gumbel)] {
        for evaluations in [64, 1_024] {
            let mut search = None;
            let mut all = || -> u64 {
                positions
                    .iter()
                    .map(|position| {
                        let options = options(mode, evaluations);
                        let decision = decide(&mut search, &mut evaluator, position, options);
                        u64::from(decision.evaluations)
                    })
                    .sum()
            };
            let total = all();
            group.throughput(Throughput::Elements(total));
            group.bench_function(
                format!("{name}, material, {evaluations} evaluations"),
                |bencher| {
                    bencher.iter(|| assert_eq!(all(), total));
                },
            );
        }
    }
    group.finish();
}

/// Prints what trees take.
fn bytes(_: &mut Criterion) {
    for visits in [400, 10_000, 100_000] {
        let (mut bytes, mut total, mut evaluations) = (0, 0, 0);
        for position in positions(10) {
            let mut search = None;
            let options = options(SearchMode::Puct, visits);
            let decision = decide(&mut search, &mut Uniform, &position, options);
            bytes += search.map_or(0, |search| search.bytes());
            total += decision.visits as usize;
            evaluations += decision.evaluations as usize;
        }
        println!(
            "{visits} visits: {} bytes a visit, {:.1}% of visits without an evaluation",
            bytes / total,
            100.0 - 100.0 * evaluations as f64 / total as f64
        );
    }
}

/// Prints the time to keep what a tree holds below the turn that was found.
fn keeping(_: &mut Criterion) {
    for visits in [10_000, 100_000, 1_000_000] {
        let (mut nodes, mut kept, mut time) = (0, 0, Duration::ZERO);
        for position in positions(5) {
            let mut search = None;
            let options = options(SearchMode::Puct, visits);
            let decision = decide(&mut search, &mut Material::default(), &position, options);
            let mut history = History::default();
            history.push(&position);
            let after = position.after_turn_unchecked(&decision.turn);
            history.push(&after);
            let Some(mut search) = search.filter(|_| after.outcome(&history).is_none()) else {
                continue;
            };
            nodes += search.nodes();
            let begun = Instant::now();
            search.reuse_tree(&after, &history, options).unwrap();
            time += begun.elapsed();
            kept += search.nodes();
        }
        println!(
            "{visits} visits: {:.0}% of the nodes are kept, {:.0} ns for each kept one",
            100.0 * kept as f64 / nodes as f64,
            1e9 * time.as_secs_f64() / kept as f64
        );
    }
}

criterion_group!(benches, bytes, keeping, visits, evaluations);
criterion_main!(benches);
