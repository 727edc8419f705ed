//! Many games at once on one thread: the leaves of all their searches are evaluated in common batches.

use anyhow::Result;
use engine::search::{Evaluation, Evaluations, Evaluator, Query};

/// A game with the search for its present turn.
pub(crate) trait InPlay {
    /// Plays on until an evaluation is needed, and says by which evaluator and of what. None once the game is over. While an
    /// evaluation is awaited, it is asked for again.
    fn next_query(&mut self) -> Result<Option<(usize, Query)>>;

    /// Takes the evaluation that was asked for.
    fn answer(&mut self, evaluator: &str, evaluation: Evaluation<'_>) -> Result<()>;
}

/// The buffers of one thread's batches.
#[derive(Debug, Default)]
pub(crate) struct Batcher {
    /// By evaluator: what it is asked, and by which game.
    queries: Vec<Vec<Query>>,
    askers: Vec<Vec<usize>>,
    answers: Evaluations,
}

impl Batcher {
    /// Plays every game on to its next evaluation, then evaluates them all, one batch an evaluator. Returns how many
    /// evaluations that made: 0 once every game is over.
    pub(crate) fn round<G: InPlay>(
        &mut self,
        games: &mut [G],
        evaluators: &mut [Box<dyn Evaluator>],
    ) -> Result<usize> {
        self.queries.resize_with(evaluators.len(), Vec::new);
        self.askers.resize_with(evaluators.len(), Vec::new);
        self.queries.iter_mut().for_each(Vec::clear);
        self.askers.iter_mut().for_each(Vec::clear);
        for (index, game) in games.iter_mut().enumerate() {
            if let Some((evaluator, query)) = game.next_query()? {
                self.queries[evaluator].push(query);
                self.askers[evaluator].push(index);
            }
        }
        let mut count = 0;
        for (place, evaluator) in evaluators.iter_mut().enumerate() {
            if self.queries[place].is_empty() {
                continue;
            }
            evaluator.evaluate(&self.queries[place], &mut self.answers)?;
            anyhow::ensure!(
                self.answers.len() == self.queries[place].len(),
                "{}: {} answers came for {} step states",
                evaluator.name(),
                self.answers.len(),
                self.queries[place].len()
            );
            count += self.answers.len();
            for (answer, &asker) in self.askers[place].iter().enumerate() {
                if let Some(evaluation) = self.answers.get(answer) {
                    games[asker].answer(evaluator.name(), evaluation)?;
                }
            }
        }
        Ok(count)
    }
}
