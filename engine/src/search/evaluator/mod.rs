//! The interface between search and networks: step states go in by batches, values and priors come out.

mod baseline;
mod material;

pub use baseline::{Null, Uniform};
pub use material::Material;

use arimaa::notation::format_board;
use arimaa::rules::{ActionSet, Side, StepState};

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

/// What an evaluator says of one query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation<'a> {
    /// The win probability of Gold, 0 to 1.
    pub value: f32,
    /// The probabilities of the legal actions, in the order of [`ActionSet::in_index_order`]; they sum to 1.
    pub priors: &'a [f32],
}

/// How far the sum of the priors may be off 1: what networks in 16-bit types need.
const PRIOR_SUM_TOLERANCE: f32 = 0.02;

impl Evaluation<'_> {
    /// What stands for an answer that did not come: no check lets it pass.
    pub(super) const NONE: Self = Self {
        value: f32::NAN,
        priors: &[],
    };

    /// Checks that the value is in 0..=1, and that there is a probability for each legal action, with a sum of 1 ± 0.02.
    ///
    /// # Errors
    /// Any other evaluation; the error names the evaluator and the step state.
    pub fn check(&self, evaluator: &str, query: &Query) -> Result<(), EvaluatorError> {
        let count = query.legal.count();
        let sum: f32 = self.priors.iter().sum();
        let is_probability = |prior: &f32| (0.0..=1.0 + PRIOR_SUM_TOLERANCE).contains(prior);
        let what = if !(0.0..=1.0).contains(&self.value) {
            format!("the value {} is not a probability", self.value)
        } else if self.priors.len() != count {
            format!(
                "{} priors came for {count} legal actions",
                self.priors.len()
            )
        } else if let Some(prior) = self.priors.iter().find(|prior| !is_probability(prior)) {
            format!("the prior {prior} is not a probability")
        } else if (sum - 1.0).abs() > PRIOR_SUM_TOLERANCE {
            format!("the priors sum to {sum}, not 1")
        } else {
            return Ok(());
        };
        Err(EvaluatorError::BadOutput {
            evaluator: evaluator.to_owned(),
            what,
            state: Box::new(query.state),
        })
    }
}

/// What an evaluator says of a batch of queries, in their order. Buffers are kept from batch to batch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evaluations {
    answers: Vec<Answer>,
    priors: Vec<f32>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Answer {
    value: f32,
    /// Where its priors end; they begin where those before it end.
    priors_end: usize,
}

impl Evaluations {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.answers.clear();
        self.priors.clear();
    }

    /// Adds the next query's value (win probability of Gold, 0 to 1) and the priors of its legal actions, in the order of
    /// [`ActionSet::in_index_order`], summing to 1.
    pub fn push(&mut self, value: f32, priors: impl IntoIterator<Item = f32>) {
        self.priors.extend(priors);
        self.answers.push(Answer {
            value,
            priors_end: self.priors.len(),
        });
    }

    /// How many queries have been answered.
    pub fn len(&self) -> usize {
        self.answers.len()
    }

    /// Whether none has been answered.
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// What was said of query `index`.
    pub fn get(&self, index: usize) -> Option<Evaluation<'_>> {
        let answer = self.answers.get(index)?;
        let begin = index
            .checked_sub(1)
            .map_or(0, |before| self.answers[before].priors_end);
        Some(Evaluation {
            value: answer.value,
            priors: &self.priors[begin..answer.priors_end],
        })
    }
}

/// Why a batch could not be evaluated.
#[derive(Debug, thiserror::Error)]
pub enum EvaluatorError {
    /// The evaluator returned a number that is no probability, or priors that don't sum to 1.
    #[error("{evaluator}: {what} in {}", place(state))]
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

/// A step state in notation: the turn's start, and inside a turn the board as it stands.
fn place(state: &StepState) -> String {
    let start = state.start_position();
    match state.steps_used() {
        0 => start.to_string(),
        used => format!(
            "{start} after {used} steps: {}",
            format_board(state.board())
        ),
    }
}

/// Evaluates step states, by batches.
pub trait Evaluator: Send {
    /// What to call it in messages and records: a network's file name, `material`, `uniform`.
    fn name(&self) -> &str;

    /// How many leaves of a single search are best evaluated together: what [`SearchOptions::parallel_leaves`](super::SearchOptions::parallel_leaves)
    /// is to be for it. 1 where one after the other is as fast; a batch of so many takes no more than some 20 ms.
    fn leaves_at_once(&self) -> u32 {
        1
    }

    /// Evaluates all queries; `out` is cleared first and holds one answer a query afterwards.
    fn evaluate(&mut self, queries: &[Query], out: &mut Evaluations) -> Result<(), EvaluatorError>;
}
