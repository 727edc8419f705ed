//! The leaves of one search that are being evaluated.

use super::evaluator::{Evaluation, EvaluatorError, Query};
use super::tree::NodeId;
use std::ops::Range;

/// Leaves in the order in which they are handed out, with the answers that have come.
#[derive(Debug, Default)]
pub(super) struct LeafBatch {
    queries: Vec<Query>,
    nodes: Vec<NodeId>,
    answers: Vec<Option<Answer>>,
    priors: Vec<f32>,
    awaited: usize,
}

#[derive(Debug, Clone)]
struct Answer {
    value: f32,
    priors: Range<usize>,
}

impl LeafBatch {
    pub(super) fn clear(&mut self) {
        self.queries.clear();
        self.nodes.clear();
        self.answers.clear();
        self.priors.clear();
        self.awaited = 0;
    }

    /// Whether a node is among the leaves.
    pub(super) fn holds(&self, node: NodeId) -> bool {
        self.nodes.contains(&node)
    }

    pub(super) fn push(&mut self, node: NodeId, query: Query) {
        self.queries.push(query);
        self.nodes.push(node);
        self.answers.push(None);
        self.awaited += 1;
    }

    /// How many leaves there are.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether an answer is awaited.
    pub(super) fn is_waiting(&self) -> bool {
        self.awaited > 0
    }

    /// All leaves, while an answer is awaited.
    pub(super) fn waiting(&self) -> &[Query] {
        if self.is_waiting() {
            &self.queries
        } else {
            &[]
        }
    }

    pub(super) fn answer(
        &mut self,
        index: usize,
        evaluator: &str,
        evaluation: Evaluation<'_>,
    ) -> Result<(), EvaluatorError> {
        let (Some(query), Some(slot)) = (self.queries.get(index), self.answers.get_mut(index))
        else {
            return Ok(());
        };
        if slot.is_some() {
            return Ok(());
        }
        evaluation.check(evaluator, query)?;
        let first = self.priors.len();
        self.priors.extend(evaluation.priors);
        *slot = Some(Answer {
            value: evaluation.value,
            priors: first..self.priors.len(),
        });
        self.awaited -= 1;
        Ok(())
    }

    /// The leaves with their answers, in the order in which they were handed out.
    pub(super) fn answered(&self) -> impl Iterator<Item = (NodeId, &Query, Evaluation<'_>)> {
        let leaves = self.nodes.iter().zip(&self.queries).zip(&self.answers);
        leaves.filter_map(|((&node, query), answer)| {
            let answer = answer.as_ref()?;
            let evaluation = Evaluation {
                value: answer.value,
                priors: &self.priors[answer.priors.clone()],
            };
            Some((node, query, evaluation))
        })
    }
}
