//! What decides on a game's turns: a search, or the policy alone.

use anyhow::Result;
use arimaa::rules::Game;
use engine::search::{
    Decision, Evaluation, PolicySampler, Query, SampledTurn, Search, SearchOptions,
};
use rand::Rng;

/// A game's search and sampler. Both are made when they are first needed, and keep their memory.
#[derive(Debug, Default)]
pub(super) struct TurnDecider {
    search: Option<Search>,
    sampler: Option<PolicySampler>,
    at_work: Running,
}

/// Which of them decides.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
enum Running {
    #[default]
    None,
    Search,
    Sampler,
}

/// What was decided.
#[derive(Debug)]
pub(super) enum Decided<'a> {
    /// By a search.
    Searched(&'a Decision),
    /// By the policy alone.
    Sampled(&'a SampledTurn),
}

impl TurnDecider {
    /// Starts on the next turn by a search: on what it has found before, or anew.
    pub(super) fn search(&mut self, game: &Game, options: SearchOptions, anew: bool) -> Result<()> {
        let (position, history) = (game.position(), game.history());
        match &mut self.search {
            Some(search) if anew => search.restart(position, history, options)?,
            Some(search) => search.reuse_tree(position, history, options)?,
            None => self.search = Some(Search::new(position, history, options)?),
        }
        self.at_work = Running::Search;
        Ok(())
    }

    /// Starts on the next turn by the policy alone.
    pub(super) fn sample(&mut self, game: &Game, temperature: f32) -> Result<()> {
        let (position, history) = (game.position(), game.history());
        match &mut self.sampler {
            Some(sampler) => sampler.restart(position, history, temperature)?,
            None => self.sampler = Some(PolicySampler::new(position, history, temperature)?),
        }
        self.at_work = Running::Sampler;
        Ok(())
    }

    /// Whether a turn has been started on, and not been taken.
    pub(super) fn is_at_work(&self) -> bool {
        self.at_work != Running::None
    }

    /// Thinks on until evaluations are needed, and says of what; nothing once the turn is decided.
    pub(super) fn leaves(&mut self, game: &Game, rng: &mut impl Rng) -> &[Query] {
        match (self.at_work, &mut self.search, &mut self.sampler) {
            (Running::Search, Some(search), _) => search.leaves(game.history(), rng),
            (Running::Sampler, _, Some(sampler)) => sampler.leaves(game.history(), rng),
            _ => &[],
        }
    }

    /// Takes the evaluation of query `index` of those that were requested.
    pub(super) fn answer(
        &mut self,
        index: usize,
        evaluator: &str,
        evaluation: Evaluation<'_>,
    ) -> Result<()> {
        match (self.at_work, &mut self.search, &mut self.sampler) {
            (Running::Search, Some(search), _) => search.answer(index, evaluator, evaluation)?,
            (Running::Sampler, _, Some(sampler)) => sampler.answer(index, evaluator, evaluation)?,
            _ => {}
        }
        Ok(())
    }

    /// The turn, once it is decided.
    pub(super) fn decided(&self) -> Option<Decided<'_>> {
        match self.at_work {
            Running::None => None,
            Running::Search => self.search.as_ref()?.decision().map(Decided::Searched),
            Running::Sampler => self.sampler.as_ref()?.decision().map(Decided::Sampled),
        }
    }

    /// The turn has been played.
    pub(super) fn rest(&mut self) {
        self.at_work = Running::None;
    }
}
