//! Many games at once on one thread: the leaves of all their searches are evaluated in common batches.

use anyhow::Result;
use engine::search::{Evaluation, Evaluations, Evaluator, Query};
use std::time::{Duration, Instant};

/// A game with the search for its present turn.
pub(crate) trait InPlay {
    /// Plays on until evaluations are needed, and says by which evaluator and of what. None once the game is over. While some are
    /// awaited, all are asked for again.
    fn next_queries(&mut self) -> Result<Option<(usize, &[Query])>>;

    /// Takes the evaluation of query `index` of those that were asked for.
    fn answer(&mut self, index: usize, evaluator: &str, evaluation: Evaluation<'_>) -> Result<()>;
}

/// Who asked for an evaluation.
#[derive(Debug, Clone, Copy)]
struct Asker {
    game: usize,
    /// Which of the game's queries it is.
    index: usize,
}

/// The buffers of one thread's batches.
#[derive(Debug, Default)]
pub(crate) struct Batcher {
    /// By evaluator: what it is asked, and by whom.
    queries: Vec<Vec<Query>>,
    askers: Vec<Vec<Asker>>,
    /// By evaluator: the time that its batches have taken.
    times: Vec<Duration>,
    answers: Evaluations,
}

impl Batcher {
    /// Plays every game on to its next evaluations, then makes them all, one batch an evaluator. Returns how many evaluations that
    /// made: 0 once every game is over.
    pub(crate) fn round<G: InPlay>(
        &mut self,
        games: &mut [G],
        evaluators: &mut [Box<dyn Evaluator>],
    ) -> Result<usize> {
        self.collect(games, evaluators.len())?;
        let mut count = 0;
        for (place, evaluator) in evaluators.iter_mut().enumerate() {
            if self.queries[place].is_empty() {
                continue;
            }
            let begun = Instant::now();
            evaluator.evaluate(&self.queries[place], &mut self.answers)?;
            anyhow::ensure!(
                self.answers.len() == self.queries[place].len(),
                "{}: {} answers came for {} step states",
                evaluator.name(),
                self.answers.len(),
                self.queries[place].len()
            );
            count += self.answers.len();
            for (answer, asker) in self.askers[place].iter().enumerate() {
                if let Some(evaluation) = self.answers.get(answer) {
                    games[asker.game].answer(asker.index, evaluator.name(), evaluation)?;
                }
            }
            self.times[place] += begun.elapsed();
        }
        Ok(count)
    }

    /// The time that an evaluator's batches have taken so far.
    pub(crate) fn time_of(&self, evaluator: usize) -> Duration {
        self.times.get(evaluator).copied().unwrap_or_default()
    }

    fn collect<G: InPlay>(&mut self, games: &mut [G], evaluators: usize) -> Result<()> {
        self.queries.resize_with(evaluators, Vec::new);
        self.askers.resize_with(evaluators, Vec::new);
        self.times.resize_with(evaluators, Duration::default);
        self.queries.iter_mut().for_each(Vec::clear);
        self.askers.iter_mut().for_each(Vec::clear);
        for (game, in_play) in games.iter_mut().enumerate() {
            if let Some((evaluator, queries)) = in_play.next_queries()? {
                self.queries[evaluator].extend_from_slice(queries);
                let askers = (0..queries.len()).map(|index| Asker { game, index });
                self.askers[evaluator].extend(askers);
            }
        }
        Ok(())
    }
}
