//! How turns are found: a file for each mode.

pub(super) mod gumbel;
pub(super) mod puct;

use super::batch::LeafBatch;
use super::decision::Choice;
use super::simulations::Simulations;
use super::state::SearchState;
use crate::config::SearchMode;
use arimaa::rules::{History, Position};
use gumbel::GumbelTurn;
use puct::PuctTurn;
use rand::Rng;

/// The state of one turn's search, by its mode.
#[derive(Debug)]
pub(super) enum Strategy {
    Puct(Box<PuctTurn>),
    Gumbel(Box<GumbelTurn>),
}

impl Default for Strategy {
    fn default() -> Self {
        Self::Puct(Box::default())
    }
}

impl Strategy {
    /// Begins the search for the turn of a position. Where the budget is too small for `gumbel` to compare turns, or there is one
    /// turn alone, mode `puct` finds it.
    pub(super) fn begin(search: &mut SearchState, position: &Position) -> Self {
        let options = search.options;
        if options.mode == SearchMode::Gumbel
            && !search.spent.is_stopped
            && let Some(turn) = GumbelTurn::new(position, &options)
        {
            let bytes = options.budget.memory_bytes() - turn.beam_bytes();
            search.tree.set_bound(bytes);
            return Self::Gumbel(Box::new(turn));
        }
        Self::Puct(Box::new(PuctTurn::new(search.root)))
    }

    /// Searches up to the next leaves, or to the turn's end.
    pub(super) fn advance<R: Rng>(
        &mut self,
        search: &mut SearchState,
        simulations: &mut Simulations,
        batch: &mut LeafBatch,
        history: &History,
        rng: &mut R,
    ) -> Option<Choice> {
        if let Self::Gumbel(turn) = self
            && turn.is_new()
            && search.is_proven()
        {
            // The search for the turn before has proven it: the tree holds the turns that do it.
            *self = Self::Puct(Box::new(PuctTurn::new(search.root)));
        }
        match self {
            Self::Puct(turn) => turn.advance(search, simulations, batch, history, rng),
            Self::Gumbel(turn) => turn.advance(search, simulations, batch, history, rng),
        }
    }

    /// The mode that finds the turn.
    pub(super) fn mode(&self) -> SearchMode {
        match self {
            Self::Puct(_) => SearchMode::Puct,
            Self::Gumbel(_) => SearchMode::Gumbel,
        }
    }

    /// The mover's win probability at the turn's start, where the mode has another one than the tree's.
    pub(super) fn value(&self, search: &SearchState) -> Option<f32> {
        match self {
            Self::Puct(_) => None,
            Self::Gumbel(turn) => turn.expected_value(search),
        }
    }

    /// How many turns lie before the states from which simulations start.
    pub(super) fn turns_before(&self) -> u32 {
        match self {
            Self::Puct(_) => 0,
            Self::Gumbel(_) => 1,
        }
    }
}
