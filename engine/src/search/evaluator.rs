//! The one door between search and networks: step states go in by batches, values and priors come out.

use crate::rules::{ActionSet, Side, StepState};

/// A step state to evaluate, with what the rules say of it in this game.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query {
    /// The step state: not over, and not complete.
    pub state: StepState,
    /// Its legal actions; never empty.
    pub legal: ActionSet,
    /// How often the turn's start has stood in the game before: 0, 1 or 2.
    pub repetitions: u8,
}

impl Query {
    /// Whose turn it is.
    pub fn side(&self) -> Side {
        self.state.side()
    }
}

/// What an evaluator says of a batch of queries, in their order. Buffers are kept from batch to batch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evaluations {
    values: Vec<f32>,
    priors: Vec<f32>,
    ends: Vec<usize>,
}

impl Evaluations {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.values.clear();
        self.priors.clear();
        self.ends.clear();
    }

    /// Adds the next query's value (win probability of Gold, 0 to 1) and the priors of its legal actions, in the order of
    /// [`ActionSet::in_index_order`], summing to 1.
    pub fn push(&mut self, value: f32, priors: impl IntoIterator<Item = f32>) {
        self.values.push(value);
        self.priors.extend(priors);
        self.ends.push(self.priors.len());
    }

    /// How many queries have been answered.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether none has been answered.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The value (win probability of Gold) and priors of query `index`.
    pub fn get(&self, index: usize) -> Option<(f32, &[f32])> {
        let end = *self.ends.get(index)?;
        let begin = if index == 0 { 0 } else { self.ends[index - 1] };
        Some((self.values[index], &self.priors[begin..end]))
    }
}

/// Why a batch could not be evaluated.
#[derive(Debug, thiserror::Error)]
pub enum EvaluatorError {
    /// The evaluator returned a number that is no probability, or priors that don't sum to 1.
    #[error("{evaluator}: {what} in {state:?}")]
    BadOutput {
        /// The evaluator's name.
        evaluator: String,
        /// What was wrong.
        what: String,
        /// The step state at fault.
        state: Box<StepState>,
    },
    /// The device failed.
    #[error("{evaluator}: {message}")]
    Device {
        /// The evaluator's name.
        evaluator: String,
        /// The device library's message.
        message: String,
    },
}

/// Judges step states, by batches.
pub trait Evaluator: Send {
    /// What to call it in messages and records: a network's file name, `uniform`.
    fn name(&self) -> &str;

    /// Evaluates all queries; `out` is cleared first and holds one answer a query afterwards.
    fn evaluate(&mut self, queries: &[Query], out: &mut Evaluations) -> Result<(), EvaluatorError>;
}

/// Knows nothing: every legal action is as likely as any other, and both sides win as often.
#[derive(Debug, Clone, Copy, Default)]
pub struct Uniform;

impl Evaluator for Uniform {
    fn name(&self) -> &str {
        "uniform"
    }

    fn evaluate(&mut self, queries: &[Query], out: &mut Evaluations) -> Result<(), EvaluatorError> {
        out.clear();
        for query in queries {
            let count = query.legal.count();
            out.push(0.5, std::iter::repeat_n(1.0 / count as f32, count));
        }
        Ok(())
    }
}
