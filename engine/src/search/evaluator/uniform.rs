//! The evaluator that knows nothing.

use super::{Evaluations, Evaluator, EvaluatorError, Query};

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
