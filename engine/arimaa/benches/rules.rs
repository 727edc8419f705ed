//! How fast the rules are, on one core, beside other engines: `cargo bench -p arimaa --features cli --bench rules`.
//!
//! Each bench asserts what it counts. Time is the CPU time of the one thread that works: what else the machine does meanwhile
//! is no part of it. The last lines are a table of the rates and what they are to ours.

mod goals;
mod peers;

use arimaa::perft::{Count, FoundLine, PositionLine};
use arimaa::rules::{History, Position, StepState, TurnEnumerator};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, SamplingMode, Throughput};
use rustc_hash::FxHashSet;
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::time::Duration;

const POSITIONS: &str = include_str!("../tests/data/oracle/positions_public.jsonl");

/// The steps are made in one of so many positions.
const STEPS_EVERY: usize = 10;

/// How many steps can be made in them, order by order, as independent of the rules' shortcuts as a number can be.
const STEPS: u64 = 6_478_631;

/// A row of the table at the end: ours first, then the peers that count the same.
struct Row {
    name: &'static str,
    /// What is counted.
    unit: &'static str,
    /// How many a second; the median of the samples.
    rate: f64,
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let positions: Vec<(Position, u64)> = POSITIONS
        .lines()
        .map(|line| {
            let position: PositionLine = serde_json::from_str(line).unwrap();
            let counted: FoundLine<Count> = serde_json::from_str(line).unwrap();
            let turns = counted.found.turns.distinct_turns;
            (position.position().unwrap(), turns)
        })
        .collect();
    let mut table = distinct_turns(&mut criterion, &positions);
    table.extend(steps(&mut criterion, &positions));
    let positions: Vec<Position> = positions.iter().map(|&(position, _)| position).collect();
    table.extend(goals::goals(&mut criterion, &positions));
    criterion.final_summary();
    print(&table);
}

/// All distinct turns of all positions.
fn distinct_turns(criterion: &mut Criterion, positions: &[(Position, u64)]) -> Vec<Row> {
    let total = positions.iter().map(|(_, turns)| turns).sum();
    let mut group = criterion.benchmark_group("distinct turns");
    group
        .throughput(Throughput::Elements(total))
        .warm_up_time(Duration::from_secs(1))
        .sampling_mode(SamplingMode::Flat)
        .sample_size(10);
    let mut enumerator = TurnEnumerator::new();
    let history = History::default();
    let ours = |(position, turns): &(Position, u64)| {
        let found = enumerator.enumerate(black_box(position), &history).len();
        assert_eq!(found as u64, *turns, "{position}");
    };
    let mut rows = Vec::new();
    rows.extend(rate(
        &mut group,
        "distinct turns",
        "turns",
        total,
        positions,
        ours,
    ));

    let mut met = FxHashSet::default();
    let read: Vec<(arimaa_engine_step::GameState, u64)> = read_all(positions);
    rows.extend(rate(
        &mut group,
        "arimaa_engine_step 1.0.1",
        "turns",
        total,
        &read,
        |(state, turns)| {
            assert_eq!(
                peers::arimaa_engine_step::count(black_box(state), &mut met),
                *turns
            );
        },
    ));

    let read: Vec<(arimaa_engine::GameState, u64)> = read_all(positions);
    rows.extend(rate(
        &mut group,
        "arimaa-engine 0.1.0",
        "turns",
        total,
        &read,
        |(state, turns)| {
            assert_eq!(
                peers::arimaa_engine::count(black_box(state), &mut met),
                *turns
            );
        },
    ));
    group.finish();
    rows
}

fn read_all<T: std::str::FromStr>(positions: &[(Position, u64)]) -> Vec<(T, u64)> {
    positions
        .iter()
        .map(|(position, turns)| (peers::read(position), *turns))
        .collect()
}

/// Steps generated and made: every sequence of legal steps of a turn, nothing remembered.
fn steps(criterion: &mut Criterion, positions: &[(Position, u64)]) -> Option<Row> {
    let mut group = criterion.benchmark_group("steps made");
    group
        .throughput(Throughput::Elements(STEPS))
        .sample_size(10);
    let states: Vec<StepState> = positions
        .iter()
        .step_by(STEPS_EVERY)
        .map(|(position, _)| StepState::new(position))
        .collect();
    let all = |states: &Vec<StepState>| {
        let steps = states.iter().map(|state| make_steps(black_box(state)));
        assert_eq!(steps.sum::<u64>(), STEPS);
    };
    let row = rate(&mut group, "steps made", "steps", STEPS, &[states], all);
    group.finish();
    row
}

fn make_steps(state: &StepState) -> u64 {
    let mut made = 0;
    for step in state.legal_actions(&History::default()).steps() {
        let next = black_box(state.after_step(step));
        made += 1;
        if !next.is_complete() {
            made += make_steps(&next);
        }
    }
    made
}

/// Measures work on all items; none where the command line leaves this bench out.
fn rate<T>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &'static str,
    unit: &'static str,
    total: u64,
    items: &[T],
    mut work: impl FnMut(&T),
) -> Option<Row> {
    let mut samples = Vec::new();
    group.bench_function(name, |bencher| {
        bencher.iter_custom(|iterations| {
            let start = processor_time();
            for _ in 0..iterations {
                items.iter().for_each(&mut work);
            }
            let elapsed = processor_time() - start;
            samples.push(elapsed.as_secs_f64() / iterations as f64);
            elapsed
        });
    });
    samples.sort_unstable_by(f64::total_cmp);
    let median = samples.get(samples.len() / 2)?;
    Some(Row {
        name,
        unit,
        rate: total as f64 / median,
    })
}

/// The CPU time that this thread has used so far.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn print(table: &[Row]) {
    println!("{:<26} {:>10}", "", "million/s");
    for row in table {
        let ours = table.iter().find(|ours| ours.unit == "turns");
        let ratio = match ours.filter(|ours| row.unit == ours.unit && row.name != ours.name) {
            Some(ours) => format!("ours is {:.1} times that", ours.rate / row.rate),
            None => String::new(),
        };
        let line = format!(
            "{:<26} {:>10.2} {:<10} {ratio}",
            row.name,
            row.rate / 1e6,
            row.unit
        );
        println!("{}", line.trim_end());
    }
}
