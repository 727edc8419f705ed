//! Decides the turns of a game: by a search, or by the policy alone.

use anyhow::Result;
use arimaa::rules::{Game, Turn};
use engine::search::{
    Decision, Evaluation, PolicySampler, Query, SampledTurn, Search, SearchOptions,
};
use rand::Rng;

/// A game's search and sampler. Both are made when first needed, and keep their memory.
#[derive(Debug, Default)]
pub(crate) struct TurnDecider {
    search: Option<Search>,
    sampler: Option<PolicySampler>,
    running: Running,
}

/// Which of them decides.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
enum Running {
    #[default]
    None,
    Search,
    Sampler,
}

/// The decision.
#[derive(Debug)]
pub(crate) enum Decided<'a> {
    /// By a search.
    Searched(&'a Decision),
    /// By the policy alone.
    Sampled(&'a SampledTurn),
}

impl Decided<'_> {
    /// The turn, Gold's win probability at its start, and the evaluations for it.
    pub(crate) fn parts(&self) -> (&Turn, f32, u32) {
        match self {
            Self::Searched(found) => (&found.turn, found.value, found.evaluations),
            Self::Sampled(drawn) => (&drawn.turn, drawn.value, drawn.evaluations),
        }
    }
}

impl TurnDecider {
    /// Begins to search for the next turn: in the tree of earlier turns, or anew.
    pub(crate) fn search(&mut self, game: &Game, options: SearchOptions, anew: bool) -> Result<()> {
        let (position, history) = (game.position(), game.history());
        match &mut self.search {
            Some(search) if anew => search.restart(position, history, options)?,
            Some(search) => search.reuse_tree(position, history, options)?,
            None => self.search = Some(Search::new(position, history, options)?),
        }
        self.running = Running::Search;
        Ok(())
    }

    /// Begins to sample the next turn from the policy.
    pub(crate) fn sample(&mut self, game: &Game, temperature: f32) -> Result<()> {
        let (position, history) = (game.position(), game.history());
        match &mut self.sampler {
            Some(sampler) => sampler.restart(position, history, temperature)?,
            None => self.sampler = Some(PolicySampler::new(position, history, temperature)?),
        }
        self.running = Running::Sampler;
        Ok(())
    }

    /// Whether a turn has been begun, and not been finished.
    pub(crate) fn is_running(&self) -> bool {
        self.running != Running::None
    }

    /// Continues until evaluations are needed: their queries; none once the turn is decided.
    pub(crate) fn leaves(&mut self, game: &Game, rng: &mut impl Rng) -> &[Query] {
        match (self.running, &mut self.search, &mut self.sampler) {
            (Running::Search, Some(search), _) => search.leaves(game.history(), rng),
            (Running::Sampler, _, Some(sampler)) => sampler.leaves(game.history(), rng),
            _ => &[],
        }
    }

    /// Takes the evaluation of query `index` of those that were requested.
    pub(crate) fn answer(
        &mut self,
        index: usize,
        evaluator: &str,
        evaluation: Evaluation<'_>,
    ) -> Result<()> {
        match (self.running, &mut self.search, &mut self.sampler) {
            (Running::Search, Some(search), _) => search.answer(index, evaluator, evaluation)?,
            (Running::Sampler, _, Some(sampler)) => sampler.answer(index, evaluator, evaluation)?,
            _ => {}
        }
        Ok(())
    }

    /// The turn, once it is decided.
    pub(crate) fn decided(&self) -> Option<Decided<'_>> {
        match self.running {
            Running::None => None,
            Running::Search => self.search.as_ref()?.decision().map(Decided::Searched),
            Running::Sampler => self.sampler.as_ref()?.decision().map(Decided::Sampled),
        }
    }

    /// The turn has been played: nothing is decided now.
    pub(crate) fn finish(&mut self) {
        self.running = Running::None;
    }
}
