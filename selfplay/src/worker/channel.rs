//! A worker's channels to evaluators: its own, or the evaluation service.
//!
//! ```text
//! slot 0:  submit ── evaluated ── receive   search           submit ── …
//! slot 1:  search          submit ── evaluated ── receive    search …
//! ```

use engine::search::{Evaluations, Evaluator, EvaluatorError, Query};
use network::EvaluationClient;

/// A worker's channel to an evaluator. Each slot has at most one batch in flight: while one slot's batch is evaluated, the worker
/// prepares the next slot's. Answers depend on the queries alone, not on slots or other workers; on a GPU but for their last digits. A stopped
/// worker drops its channel with batches in flight.
pub(crate) trait EvaluationChannel: Send {
    /// The evaluator's name in messages and records.
    fn name(&self) -> &str;

    /// Whether batches are evaluated outside the worker, so that several in flight are faster than one. If not, `submit` evaluates.
    fn is_remote(&self) -> bool;

    /// Submits a batch in a slot that has none in flight. Without queries no answer is needed.
    fn submit(&mut self, slot: usize, queries: &[Query]) -> Result<(), EvaluatorError>;

    /// Waits for the answers to a slot's batch. `answers` is cleared first and then holds one for each query; none if no batch was
    /// submitted.
    fn receive(&mut self, slot: usize, answers: &mut Evaluations) -> Result<(), EvaluatorError>;
}

/// The default number of groups of a worker's games.
pub(crate) fn default_groups(channels: &[Option<Box<dyn EvaluationChannel>>]) -> usize {
    let mut open = channels.iter().flatten();
    if open.any(|channel| channel.is_remote()) {
        2
    } else {
        1
    }
}

/// An evaluator in the worker's own thread.
pub(crate) struct LocalChannel {
    evaluator: Box<dyn Evaluator>,
    /// By slot: the answers that have not been received.
    answers: Vec<Evaluations>,
}

impl LocalChannel {
    pub(crate) fn new(evaluator: Box<dyn Evaluator>) -> Self {
        Self {
            evaluator,
            answers: Vec::new(),
        }
    }
}

impl EvaluationChannel for LocalChannel {
    fn name(&self) -> &str {
        self.evaluator.name()
    }

    fn is_remote(&self) -> bool {
        false
    }

    fn submit(&mut self, slot: usize, queries: &[Query]) -> Result<(), EvaluatorError> {
        let answers = at(&mut self.answers, slot);
        self.evaluator.evaluate(queries, answers)
    }

    fn receive(&mut self, slot: usize, answers: &mut Evaluations) -> Result<(), EvaluatorError> {
        let waiting = at(&mut self.answers, slot);
        answers.clear();
        std::mem::swap(answers, waiting);
        Ok(())
    }
}

/// A channel to the service that evaluates for all workers.
impl EvaluationChannel for EvaluationClient {
    fn name(&self) -> &str {
        Evaluator::name(self)
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn submit(&mut self, slot: usize, queries: &[Query]) -> Result<(), EvaluatorError> {
        EvaluationClient::submit(self, slot, queries)
    }

    fn receive(&mut self, slot: usize, answers: &mut Evaluations) -> Result<(), EvaluatorError> {
        EvaluationClient::receive(self, slot, answers)
    }
}

/// The item of a slot, which is made at first use.
pub(crate) fn at<T: Default>(slots: &mut Vec<T>, slot: usize) -> &mut T {
    if slots.len() <= slot {
        slots.resize_with(slot + 1, T::default);
    }
    &mut slots[slot]
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    type Batch = (usize, Vec<Query>);

    /// A channel to a slow evaluator in another thread. It answers the newest of several waiting batches first.
    pub(crate) struct SlowChannel {
        name: String,
        batches: Sender<Batch>,
        answers: Receiver<(usize, Result<Evaluations, EvaluatorError>)>,
        arrived: Vec<Option<Evaluations>>,
        in_flight: Vec<bool>,
    }

    impl SlowChannel {
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
                    while let Some((slot, queries)) = waiting.pop() {
                        let mut out = Evaluations::default();
                        let result = evaluator.evaluate(&queries, &mut out).map(|()| out);
                        if outbox.send((slot, result)).is_err() {
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
                in_flight: Vec::new(),
            }
        }
    }

    impl EvaluationChannel for SlowChannel {
        fn name(&self) -> &str {
            &self.name
        }

        fn is_remote(&self) -> bool {
            true
        }

        fn submit(&mut self, slot: usize, queries: &[Query]) -> Result<(), EvaluatorError> {
            let busy = at(&mut self.in_flight, slot);
            assert!(!*busy, "slot {slot} has a batch in flight");
            if !queries.is_empty() {
                *busy = true;
                self.batches.send((slot, queries.to_vec())).unwrap();
            }
            Ok(())
        }

        fn receive(
            &mut self,
            slot: usize,
            answers: &mut Evaluations,
        ) -> Result<(), EvaluatorError> {
            answers.clear();
            while *at(&mut self.in_flight, slot) {
                if let Some(arrived) = at(&mut self.arrived, slot).take() {
                    *answers = arrived;
                    self.in_flight[slot] = false;
                } else {
                    let (of, result) = self.answers.recv().unwrap();
                    *at(&mut self.arrived, of) = Some(result?);
                }
            }
            Ok(())
        }
    }
}
