//! Several evaluators as one: each batch is divided among them, so that a single search uses several cores.
//!
//! ```text
//! calling thread:  part 0 ───────── its answers, then those of part 1, part 2, …
//! thread 1:        part 1 ────────┘
//! thread 2:        part 2 ───────┘
//! ```
//!
//! Which evaluator gets which queries depends on their number alone, and answers are joined in the order of the queries.

use anyhow::{Context, Result, ensure};
use engine::search::{Evaluations, Evaluator, EvaluatorError, Query};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvError, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Evaluates each batch with several evaluators at once: one in the calling thread, every other in a thread of its own, which ends
/// when this is dropped. An evaluator that fails or panics is an error that names it; one that has panicked is not used again.
pub(crate) struct ParallelEvaluator {
    name: String,
    /// The calling thread's own.
    first: Box<dyn Evaluator>,
    has_panicked: bool,
    workers: Vec<Worker>,
    /// No part of a batch is smaller, unless the batch is.
    least_part: usize,
    /// The answers of the calling thread's part.
    answers: Evaluations,
}

/// A thread with an evaluator.
struct Worker {
    /// None once it is to end.
    jobs: Option<Sender<BatchPart>>,
    done: Receiver<(BatchPart, Result<(), EvaluatorError>)>,
    thread: Option<JoinHandle<()>>,
    /// Not in use while the thread has it.
    job: BatchPart,
}

/// A part of a batch, with its answers once it is done.
#[derive(Default)]
struct BatchPart {
    queries: Vec<Query>,
    answers: Evaluations,
}

impl ParallelEvaluator {
    /// One evaluator of several equal ones, at least one. Batches of less than twice `least_part` queries are not divided. Fails if a
    /// thread can't be started.
    pub(crate) fn new(evaluators: Vec<Box<dyn Evaluator>>, least_part: usize) -> Result<Self> {
        let mut evaluators = evaluators.into_iter();
        let first = evaluators
            .next()
            .context("there is no evaluator for the batches")?;
        let name = first.name().to_owned();
        let mut workers = Vec::new();
        for (evaluator, number) in evaluators.zip(1..) {
            ensure!(
                evaluator.name() == name,
                "{} and {name} are two evaluators: one batch can't go to both",
                evaluator.name()
            );
            workers.push(Worker::start(evaluator, number)?);
        }
        Ok(Self {
            name,
            first,
            has_panicked: false,
            workers,
            least_part: least_part.max(1),
            answers: Evaluations::default(),
        })
    }

    /// The number of parts of a batch.
    fn parts(&self, queries: usize) -> usize {
        (queries / self.least_part).clamp(1, self.workers.len() + 1)
    }

    /// The calling thread's part.
    fn evaluate_first(&mut self, queries: &[Query]) -> Result<(), EvaluatorError> {
        if self.has_panicked {
            return Err(fault(&self.name, 0, "has panicked before"));
        }
        let Self { first, answers, .. } = self;
        let result = guarded(first.as_mut(), 0, queries, answers);
        self.has_panicked = result.is_err();
        result.unwrap_or_else(Err)
    }
}

impl Evaluator for ParallelEvaluator {
    fn name(&self) -> &str {
        &self.name
    }

    /// The sum over its evaluators.
    fn leaves_at_once(&self) -> u32 {
        let evaluators = self.workers.len() as u32 + 1;
        self.first.leaves_at_once().saturating_mul(evaluators)
    }

    fn evaluate(&mut self, queries: &[Query], out: &mut Evaluations) -> Result<(), EvaluatorError> {
        out.clear();
        let count = self.parts(queries.len());
        let end = |part: usize| queries.len() * part / count;
        for (worker, part) in self.workers.iter_mut().zip(1..count) {
            worker.submit(&queries[end(part)..end(part + 1)]);
        }
        let mut result = self.evaluate_first(&queries[..end(1)]);
        if result.is_ok() {
            append(&self.answers, out);
        }
        // All parts are received, even after an error: no answer may be left for the next batch.
        for (worker, part) in self.workers.iter_mut().zip(1..count) {
            let received = worker.receive(&self.name, part);
            result = result.and(received);
            if result.is_ok() {
                append(&worker.job.answers, out);
            }
        }
        result
    }
}

impl Worker {
    fn start(mut evaluator: Box<dyn Evaluator>, number: usize) -> Result<Self> {
        let (jobs, to_do) = channel::<BatchPart>();
        let (finished, done) = channel();
        let work = move || {
            while let Ok(mut job) = await_soon(&to_do) {
                let result = guarded(evaluator.as_mut(), number, &job.queries, &mut job.answers);
                let has_panicked = result.is_err();
                // The receiver is dropped when the search is abandoned.
                let is_received = finished.send((job, result.unwrap_or_else(Err))).is_ok();
                if has_panicked || !is_received {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name(format!("evaluator {number}"))
            .spawn(work)
            .with_context(|| format!("can't start the thread of evaluator {number}"))?;
        Ok(Self {
            jobs: Some(jobs),
            done,
            thread: Some(thread),
            job: BatchPart::default(),
        })
    }

    fn submit(&mut self, queries: &[Query]) {
        let mut job = std::mem::take(&mut self.job);
        job.queries.clear();
        job.queries.extend_from_slice(queries);
        if let Some(jobs) = &self.jobs {
            // A thread that has ended gives no answers: `receive` reports it.
            let _ = jobs.send(job);
        }
    }

    fn receive(&mut self, name: &str, number: usize) -> Result<(), EvaluatorError> {
        match await_soon(&self.done) {
            Ok((job, result)) => {
                self.job = job;
                result
            }
            Err(_) => Err(fault(name, number, "has panicked before")),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // The thread catches panics itself.
            let _ = thread.join();
        }
    }
}

/// The time that a thread polls before it sleeps: waking it may take as long as evaluating a row or two, and the time between two
/// batches of a search is shorter. With 0.3 ms two threads did 1.52 (`puct`) and 1.58 (`gumbel`) times the evaluations of one; with
/// 1.5 ms and a yielded core 1.93 and 1.85 (6 blocks of 64 channels, medians of 7 alternating rounds).
const POLL_TIME: Duration = Duration::from_micros(1500);

/// Waits for a message that is expected soon.
fn await_soon<T>(receiver: &Receiver<T>) -> Result<T, RecvError> {
    let begun = Instant::now();
    loop {
        match receiver.try_recv() {
            Ok(message) => return Ok(message),
            Err(TryRecvError::Disconnected) => return Err(RecvError),
            Err(TryRecvError::Empty) if begun.elapsed() >= POLL_TIME => return receiver.recv(),
            // Other threads may use the core.
            Err(TryRecvError::Empty) => std::thread::yield_now(),
        }
    }
}

/// The result of an evaluator; the outer error is a panic.
fn guarded(
    evaluator: &mut dyn Evaluator,
    number: usize,
    queries: &[Query],
    answers: &mut Evaluations,
) -> Result<Result<(), EvaluatorError>, EvaluatorError> {
    let name = evaluator.name().to_owned();
    let evaluated = catch_unwind(AssertUnwindSafe(|| evaluator.evaluate(queries, answers)));
    let result = evaluated.map_err(|panic| {
        fault(
            &name,
            number,
            &format!("panicked: {}", said_by(panic.as_ref())),
        )
    })?;
    Ok(result.and_then(|()| {
        if answers.len() == queries.len() {
            return Ok(());
        }
        let (came, asked) = (answers.len(), queries.len());
        Err(fault(
            &name,
            number,
            &format!("gave {came} answers for {asked} step states"),
        ))
    }))
}

fn fault(name: &str, number: usize, what: &str) -> EvaluatorError {
    EvaluatorError::Device {
        evaluator: name.to_owned(),
        message: format!("its evaluator {number} {what}"),
    }
}

/// The message of a panic.
pub(crate) fn said_by(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

fn append(answers: &Evaluations, out: &mut Evaluations) {
    for answer in (0..answers.len()).filter_map(|index| answers.get(index)) {
        out.push(answer.value, answer.priors.iter().copied());
    }
}

#[cfg(test)]
mod tests;
