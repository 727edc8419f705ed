//! Answers that are kept for when the same is asked again, by any worker.

use crate::line::{Line, slot};
use engine::search::{Evaluation, Evaluations, EvaluatorError, Query};
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};
use rustc_hash::FxBuildHasher;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Roughly what an answer takes beside its priors: the entry, its key and place in the table, and what memory is lost to its two
/// allocations.
const BYTES_AN_ENTRY: u64 = 144;

/// The priors that an answer has on average, to size the table with.
const USUAL_PRIORS: u64 = 32;

/// The newest and the most wanted answers, in bounded memory. All workers share it.
///
/// A key holds, in 64 bits, everything that an answer depends on: the query ([`Query::key`]) and who is asked. So another network
/// finds nothing of what was kept for the one before it, which is thrown out in time. Among a billion questions to a cache of a
/// million answers, two different ones of equal key are met with a chance of one in 20,000.
pub(crate) struct EvaluationCache {
    answers: Cache<u64, Arc<KeptAnswer>, ByBytes, FxBuildHasher>,
    asked: AtomicU64,
    found: AtomicU64,
}

#[derive(Debug)]
struct KeptAnswer {
    value: f32,
    turns_left: Option<f32>,
    priors: Box<[f32]>,
}

#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<u64, Arc<KeptAnswer>> for ByBytes {
    fn weight(&self, _: &u64, answer: &Arc<KeptAnswer>) -> u64 {
        BYTES_AN_ENTRY + size_of_val(&*answer.priors) as u64
    }
}

impl EvaluationCache {
    /// A cache of about so many MiB; none of 0.
    pub(crate) fn new(mib: u32) -> Option<Self> {
        let bytes = u64::from(mib) << 20;
        let entries = bytes / (BYTES_AN_ENTRY + USUAL_PRIORS * size_of::<f32>() as u64);
        let lifecycle = DefaultLifecycle::default();
        (mib > 0).then(|| Self {
            answers: Cache::with(entries as usize, bytes, ByBytes, FxBuildHasher, lifecycle),
            asked: AtomicU64::new(0),
            found: AtomicU64::new(0),
        })
    }

    /// How many answers were looked for, and how many of them were there.
    pub(crate) fn uses(&self) -> (u64, u64) {
        (self.asked.load(Relaxed), self.found.load(Relaxed))
    }
}

impl fmt::Debug for EvaluationCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EvaluationCache")
            .field("uses", &self.uses())
            .finish_non_exhaustive()
    }
}

/// A line that asks only for what the cache doesn't hold.
pub(crate) struct CachedLine {
    line: Box<dyn Line>,
    cache: Arc<EvaluationCache>,
    /// Who is asked, as part of every key.
    identity: u64,
    lanes: Vec<Lane>,
    /// The answers of one batch that were not kept.
    computed: Evaluations,
}

/// A batch on its way.
#[derive(Default)]
struct Lane {
    /// For each query what was kept for it, or its key.
    answers: Vec<Result<Arc<KeptAnswer>, u64>>,
    /// The queries without an answer.
    missing: Vec<Query>,
}

impl CachedLine {
    /// `identity` names what answers: the digest of a network's file, or an evaluator's name.
    pub(crate) fn new(line: Box<dyn Line>, cache: Arc<EvaluationCache>, identity: &str) -> Self {
        let digest = engine::shard::digest(identity.as_bytes());
        Self {
            line,
            cache,
            // 16 hexadecimal digits are 64 bits.
            identity: u64::from_str_radix(&digest[..16], 16).unwrap_or_default(),
            lanes: Vec::new(),
            computed: Evaluations::default(),
        }
    }
}

impl Line for CachedLine {
    fn name(&self) -> &str {
        self.line.name()
    }

    fn is_remote(&self) -> bool {
        self.line.is_remote()
    }

    fn submit(&mut self, lane: usize, queries: &[Query]) -> Result<(), EvaluatorError> {
        let Lane { answers, missing } = slot(&mut self.lanes, lane);
        answers.clear();
        missing.clear();
        for query in queries {
            let key = query.key() ^ self.identity;
            let kept = self.cache.answers.get(&key);
            if kept.is_none() {
                missing.push(*query);
            }
            answers.push(kept.ok_or(key));
        }
        let found = queries.len() - missing.len();
        self.cache.asked.fetch_add(queries.len() as u64, Relaxed);
        self.cache.found.fetch_add(found as u64, Relaxed);
        if missing.is_empty() {
            return Ok(());
        }
        self.line.submit(lane, missing)
    }

    fn receive(&mut self, lane: usize, out: &mut Evaluations) -> Result<(), EvaluatorError> {
        let Lane { answers, missing } = slot(&mut self.lanes, lane);
        out.clear();
        self.computed.clear();
        if !missing.is_empty() {
            self.line.receive(lane, &mut self.computed)?;
        }
        let mut computed = 0;
        for answer in answers.drain(..) {
            match answer {
                Ok(kept) => push(out, kept.evaluation()),
                Err(key) => {
                    // Too few answers are seen by whoever counts them.
                    let Some(evaluation) = self.computed.get(computed) else {
                        break;
                    };
                    computed += 1;
                    let kept = Arc::new(KeptAnswer {
                        value: evaluation.value,
                        turns_left: evaluation.turns_left,
                        priors: evaluation.priors.into(),
                    });
                    self.cache.answers.insert(key, kept);
                    push(out, evaluation);
                }
            }
        }
        missing.clear();
        Ok(())
    }

    fn without_cache(&mut self) -> &mut dyn Line {
        self.line.without_cache()
    }
}

impl KeptAnswer {
    fn evaluation(&self) -> Evaluation<'_> {
        Evaluation {
            value: self.value,
            turns_left: self.turns_left,
            priors: &self.priors,
        }
    }
}

fn push(out: &mut Evaluations, evaluation: Evaluation<'_>) {
    let priors = evaluation.priors.iter().copied();
    out.push_with_turns_left(evaluation.value, evaluation.turns_left, priors);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::LocalLine;
    use arimaa::rules::{Action, Game, History, StepState};
    use engine::search::{Evaluator, Null};
    use std::sync::atomic::AtomicUsize;

    /// Counts what it is asked.
    struct Counting(Arc<AtomicUsize>);

    impl Evaluator for Counting {
        fn name(&self) -> &str {
            "counting"
        }

        fn evaluate(
            &mut self,
            queries: &[Query],
            out: &mut Evaluations,
        ) -> Result<(), EvaluatorError> {
            self.0.fetch_add(queries.len(), Relaxed);
            Null::default().evaluate(queries, out)
        }
    }

    /// The states after each first placement.
    fn queries() -> Vec<Query> {
        let start = StepState::new(Game::new().position());
        let legal = start.legal_actions(&History::default());
        let after = legal.in_index_order(start.side()).map(|action| {
            let state = start.after(action);
            Query {
                state,
                legal: state.legal_actions(&History::default()),
                repetitions: 0,
            }
        });
        after.collect()
    }

    struct Fixture {
        cache: Arc<EvaluationCache>,
        computed: Arc<AtomicUsize>,
    }

    impl Fixture {
        fn new(mib: u32) -> Self {
            Self {
                cache: Arc::new(EvaluationCache::new(mib).unwrap()),
                computed: Arc::default(),
            }
        }

        fn ask(&self, identity: &str, queries: &[Query]) -> Evaluations {
            let evaluator = Counting(Arc::clone(&self.computed));
            let line = Box::new(LocalLine::new(Box::new(evaluator)));
            let mut line = CachedLine::new(line, Arc::clone(&self.cache), identity);
            let mut out = Evaluations::default();
            line.submit(3, queries).unwrap();
            line.receive(3, &mut out).unwrap();
            out
        }

        fn computed(&self) -> usize {
            self.computed.load(Relaxed)
        }
    }

    #[test]
    fn what_is_asked_again_is_not_computed_again() {
        let fixture = Fixture::new(1);
        let queries = queries();
        let mut expected = Evaluations::default();
        Null::default().evaluate(&queries, &mut expected).unwrap();
        fixture.ask("a", &queries[3..9]);
        assert_eq!(fixture.computed(), 6);
        for _ in 0..2 {
            assert_eq!(
                fixture.ask("a", &queries),
                expected,
                "in the queries' order"
            );
            assert_eq!(fixture.computed(), queries.len());
        }
        assert_eq!(fixture.cache.uses(), (6 + 2 * 16, 6 + 16));
    }

    #[test]
    fn another_network_finds_nothing() {
        let fixture = Fixture::new(1);
        let queries = queries();
        fixture.ask("a", &queries);
        fixture.ask("b", &queries);
        assert_eq!(fixture.computed(), 2 * queries.len());
        fixture.ask("a", &queries);
        assert_eq!(fixture.computed(), 2 * queries.len());
    }

    #[test]
    fn keys_hold_all_that_an_answer_depends_on() {
        let query = queries()[0];
        let mut fewer = query;
        let first = query.legal.placements.into_iter().next().unwrap();
        fewer.legal.placements = query.legal.placements & !arimaa::rules::Bitboard::of(first);
        let mut ends = query;
        ends.legal.end = true;
        let mut step = query;
        step.legal.steps[1] = query.legal.placements;
        let repeated = |repetitions| Query {
            repetitions,
            ..query
        };
        let other = Query {
            state: query.state.after(Action::Place(first)),
            ..query
        };
        let mut keys = [query, fewer, ends, step, repeated(1), repeated(2), other]
            .map(|query| query.key())
            .to_vec();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 7);
    }

    #[test]
    fn its_memory_is_bounded() {
        let fixture = Fixture::new(1);
        let queries = queries();
        for identity in 0..2_000 {
            fixture.ask(&identity.to_string(), &queries);
        }
        assert!(fixture.cache.answers.weight() <= 1 << 20);
        assert!(fixture.cache.answers.len() > 1_000);
        assert!(EvaluationCache::new(0).is_none());
    }
}
