//! What a search takes from the memory: nothing a visit once it has what it needs, and few bytes for what it keeps.

use arimaa::perft::PositionLine;
use arimaa::rules::{Game, History, Position};
use engine::config::{AutoOr, Config, SearchMode};
use engine::search::{Budget, Evaluation, Evaluations, Evaluator, Search, SearchOptions, Uniform};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts what each thread asks for.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that ends may allocate when its count is gone.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: everything is the system's allocator's, whose promises hold.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}

/// The oracle's positions in which there is something to decide.
fn oracle() -> Vec<Position> {
    let lines = include_str!("../arimaa/tests/data/oracle/positions_public.jsonl").lines();
    let positions = lines.map(|line| {
        let line: PositionLine = serde_json::from_str(line).unwrap();
        line.position().unwrap()
    });
    positions
        .filter(|position| position.outcome(&History::default()).is_none())
        .collect()
}

/// Searches a turn to its end and answers as [`Uniform`] does; returns the visits, or the evaluations where these were more.
fn decide(
    search: &mut Search,
    history: &History,
    answers: &mut Evaluations,
    rng: &mut ChaCha8Rng,
) -> u32 {
    loop {
        let queries = search.leaves(history, rng);
        Uniform.evaluate(queries, answers).unwrap();
        for index in 0..answers.len() {
            let evaluation: Evaluation<'_> = answers.get(index).unwrap();
            search.answer(index, "uniform", evaluation).unwrap();
        }
        if let Some(decision) = search.decision() {
            return decision.visits.max(decision.evaluations);
        }
    }
}

/// The allocations and the visits of the second of two searches of a position with one and the same memory.
fn second_search(position: &Position, options: SearchOptions) -> (u64, u32) {
    let history = Game::from_position(*position).history().clone();
    let mut search = Search::new(position, &history, options).unwrap();
    let mut answers = Evaluations::default();
    decide(
        &mut search,
        &history,
        &mut answers,
        &mut ChaCha8Rng::seed_from_u64(1),
    );
    search.restart(position, &history, options).unwrap();
    let before = allocations();
    let visits = decide(
        &mut search,
        &history,
        &mut answers,
        &mut ChaCha8Rng::seed_from_u64(1),
    );
    (allocations() - before, visits)
}

/// What is allocated goes with the turn that is decided, and not with the visits: ten times as many take hardly more.
#[test]
fn a_visit_allocates_nothing() {
    let config = Config::default();
    for position in oracle().iter().step_by(60) {
        for mode in [SearchMode::Puct, SearchMode::Gumbel] {
            for (strongest, leaves) in [(true, 1), (false, 1), (true, 16), (false, 16)] {
                let of = |visits| {
                    let mut options = if strongest {
                        SearchOptions::strongest(&config.matches.search, visits)
                    } else {
                        SearchOptions::exploring(&config.selfplay, visits, 1.0)
                    };
                    options.mode = mode;
                    options.parallel_leaves = leaves;
                    options.budget = Budget::evaluations(visits);
                    // The sampling's allocations go with the beam.
                    options.gumbel.candidates = AutoOr::Fixed(8);
                    options.gumbel.beam_width = AutoOr::Fixed(8);
                    second_search(position, options)
                };
                let ((few, _), (many, visits)) = (of(1_000), of(11_000));
                if visits < 1_000 {
                    continue;
                }
                println!(
                    "{mode:?} {strongest} {leaves}: {few} and {many} allocations, {visits} visits"
                );
                assert!(many < few + 300, "{mode:?}: {few} and {many} in {position}");
            }
        }
    }
}

#[test]
fn a_visit_takes_few_bytes() {
    let mut most = 0.0_f64;
    for mode in [SearchMode::Puct, SearchMode::Gumbel] {
        let (mut bytes, mut visits) = (0, 0);
        for position in oracle() {
            let history = Game::from_position(position).history().clone();
            let mut options = SearchOptions::strongest(&Config::default().matches.search, 400);
            options.mode = mode;
            let mut search = Search::new(&position, &history, options).unwrap();
            let mut answers = Evaluations::default();
            let used = decide(
                &mut search,
                &history,
                &mut answers,
                &mut ChaCha8Rng::seed_from_u64(1),
            );
            // What the beam looks at are no visits.
            let used = match mode {
                SearchMode::Puct => used,
                SearchMode::Gumbel => search.decision().unwrap().evaluations,
            };
            // A turn that is decided sooner says nothing of the usual one.
            if used >= 200 {
                bytes += search.bytes();
                visits += used as usize;
                most = most.max(search.bytes() as f64 / f64::from(used));
            }
        }
        // A wide beam holds many states that are never evaluated.
        let bound = match mode {
            SearchMode::Puct => 300.0,
            SearchMode::Gumbel => 400.0,
        };
        let mean = bytes as f64 / visits as f64;
        println!("{mode:?}: {mean:.0} bytes a visit (gumbel: an evaluation), at most {most:.0}");
        assert!(mean <= bound, "{mode:?}: {mean}");
    }
}
