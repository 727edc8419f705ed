//! Where a worker's queries go and its answers come from: an evaluator of its own, or one that works elsewhere.
//!
//! ```text
//! lane 0:  submit ── evaluated ── receive   search           submit ── …
//! lane 1:  search          submit ── evaluated ── receive    search …
//! ```

use engine::search::{Evaluations, Evaluator, EvaluatorError, Query};
use network::EvaluationClient;

/// A worker's line to an evaluator. It has lanes, each with at most one batch on its way: while one lane's batch is evaluated, the
/// worker can make the next one's. What is answered depends on the queries alone, not on lanes or on who else asks. A worker that has to
/// stop drops its line with batches on their way.
pub(crate) trait Line: Send {
    /// What to call the evaluator in messages and records.
    fn name(&self) -> &str;

    /// Whether batches are evaluated elsewhere, so that several on their way are better than one. If not, they are evaluated while
    /// they are submitted.
    fn is_remote(&self) -> bool;

    /// Sends a batch off on a lane that has none on its way. No queries need no answer.
    fn submit(&mut self, lane: usize, queries: &[Query]) -> Result<(), EvaluatorError>;

    /// Waits for the answers to the batch on a lane; `answers` is cleared first and holds one a query afterwards. None where nothing
    /// was submitted.
    fn receive(&mut self, lane: usize, answers: &mut Evaluations) -> Result<(), EvaluatorError>;
}

/// How many groups a worker's games are best played in, where nobody has said.
pub(crate) fn default_groups(lines: &[Box<dyn Line>]) -> usize {
    if lines.iter().any(|line| line.is_remote()) {
        2
    } else {
        1
    }
}

/// An evaluator in the worker's own thread.
pub(crate) struct LocalLine {
    evaluator: Box<dyn Evaluator>,
    /// By lane: the answers that have not been received.
    answers: Vec<Evaluations>,
}

impl LocalLine {
    pub(crate) fn new(evaluator: Box<dyn Evaluator>) -> Self {
        Self {
            evaluator,
            answers: Vec::new(),
        }
    }
}

impl Line for LocalLine {
    fn name(&self) -> &str {
        self.evaluator.name()
    }

    fn is_remote(&self) -> bool {
        false
    }

    fn submit(&mut self, lane: usize, queries: &[Query]) -> Result<(), EvaluatorError> {
        let answers = slot(&mut self.answers, lane);
        self.evaluator.evaluate(queries, answers)
    }

    fn receive(&mut self, lane: usize, answers: &mut Evaluations) -> Result<(), EvaluatorError> {
        let waiting = slot(&mut self.answers, lane);
        answers.clear();
        std::mem::swap(answers, waiting);
        Ok(())
    }
}

/// A line to the service that evaluates for all workers.
pub(crate) struct ServiceLine {
    client: EvaluationClient,
}

impl ServiceLine {
    pub(crate) fn new(client: EvaluationClient) -> Self {
        Self { client }
    }
}

impl Line for ServiceLine {
    fn name(&self) -> &str {
        self.client.name()
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn submit(&mut self, lane: usize, queries: &[Query]) -> Result<(), EvaluatorError> {
        self.client.submit(lane, queries)
    }

    fn receive(&mut self, lane: usize, answers: &mut Evaluations) -> Result<(), EvaluatorError> {
        self.client.receive(lane, answers)
    }
}

/// Where a line has been given up: nobody is there to ask.
pub(crate) struct NoLine;

impl Line for NoLine {
    fn name(&self) -> &str {
        "nobody"
    }

    fn is_remote(&self) -> bool {
        false
    }

    fn submit(&mut self, _: usize, queries: &[Query]) -> Result<(), EvaluatorError> {
        match queries.is_empty() {
            true => Ok(()),
            false => Err(EvaluatorError::Device {
                evaluator: self.name().to_owned(),
                message: "the network has been given up".into(),
            }),
        }
    }

    fn receive(&mut self, _: usize, answers: &mut Evaluations) -> Result<(), EvaluatorError> {
        answers.clear();
        Ok(())
    }
}

/// What is kept for a lane; lanes are made when they are first used.
pub(crate) fn slot<T: Default>(lanes: &mut Vec<T>, lane: usize) -> &mut T {
    if lanes.len() <= lane {
        lanes.resize_with(lane + 1, T::default);
    }
    &mut lanes[lane]
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    type Batch = (usize, Vec<Query>);

    /// A line to an evaluator in another thread, which takes its time and answers the newest batch first where several wait.
    pub(crate) struct SlowLine {
        name: String,
        batches: Sender<Batch>,
        answers: Receiver<(usize, Result<Evaluations, EvaluatorError>)>,
        arrived: Vec<Option<Evaluations>>,
        on_the_way: Vec<bool>,
    }

    impl SlowLine {
        pub(crate) fn new(mut evaluator: impl Evaluator + 'static) -> Self {
            let (batches, inbox) = channel::<Batch>();
            let (outbox, answers) = channel();
            let name = evaluator.name().to_owned();
            std::thread::spawn(move || {
                let mut waiting: Vec<Batch> = Vec::new();
                while let Ok(batch) = inbox.recv() {
                    waiting.push(batch);
                    std::thread::sleep(Duration::from_micros(50 * (waiting[0].1.len() as u64 % 4)));
                    waiting.extend(inbox.try_iter());
                    while let Some((lane, queries)) = waiting.pop() {
                        let mut out = Evaluations::default();
                        let result = evaluator.evaluate(&queries, &mut out).map(|()| out);
                        if outbox.send((lane, result)).is_err() {
                            return;
                        }
                    }
                }
            });
            Self {
                name,
                batches,
                answers,
                arrived: Vec::new(),
                on_the_way: Vec::new(),
            }
        }
    }

    impl Line for SlowLine {
        fn name(&self) -> &str {
            &self.name
        }

        fn is_remote(&self) -> bool {
            true
        }

        fn submit(&mut self, lane: usize, queries: &[Query]) -> Result<(), EvaluatorError> {
            let busy = slot(&mut self.on_the_way, lane);
            assert!(!*busy, "lane {lane} has a batch on its way");
            if !queries.is_empty() {
                *busy = true;
                self.batches.send((lane, queries.to_vec())).unwrap();
            }
            Ok(())
        }

        fn receive(
            &mut self,
            lane: usize,
            answers: &mut Evaluations,
        ) -> Result<(), EvaluatorError> {
            answers.clear();
            while *slot(&mut self.on_the_way, lane) {
                if let Some(arrived) = slot(&mut self.arrived, lane).take() {
                    *answers = arrived;
                    self.on_the_way[lane] = false;
                } else {
                    let (of, result) = self.answers.recv().unwrap();
                    *slot(&mut self.arrived, of) = Some(result?);
                }
            }
            Ok(())
        }
    }
}
