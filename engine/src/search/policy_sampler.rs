//! Whole turns drawn from the evaluator's policy alone, without a search: for varied openings, and to play what a policy knows by
//! itself.

use super::batch::LeafBatch;
use super::decision::TurnActions;
use super::evaluator::{Evaluation, EvaluatorError, Query};
use super::flow::draw;
use super::tree::{NodeId, repetitions};
use super::turn_search::SearchError;
use super::turn_search::check_not_over;
use arimaa::rules::{Action, History, Position, StepState, Turn, elimination_in, goal_in};
use arrayvec::ArrayVec;
use rand::Rng;

/// A turn that was drawn from the policy.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledTurn {
    /// The turn.
    pub turn: Turn,
    /// Its steps, or the placements of a setup, in the order that they were drawn in; an explicit end is not among them.
    pub actions: TurnActions,
    /// The evaluator's value of the turn's start: win probability of Gold.
    pub value: f32,
    /// Evaluations requested.
    pub evaluations: u32,
}

/// Draws one whole turn action by action from the evaluator's policy `p`, each action in proportion to `p^(1/temperature)`. It is
/// used as a [`Search`](super::Search) is: [`leaves`](Self::leaves) hands out one step state at a time, the turn's start and those
/// behind each action, [`answer`](Self::answer) takes what the evaluator says of it, and [`decision`](Self::decision) has the turn.
/// Make one a game and [`restart`](Self::restart) it turn after turn: it keeps its memory.
///
/// The policy alone decides: wins within the turn are not looked for. Where its steps have won, by a goal or an elimination, the
/// turn is over: no search looks behind them, so no policy knows what to do there. The turn is legal all the same.
/// [`legal_actions`](StepState::legal_actions) are exactly those that begin at least one legal turn, so that a turn that has begun
/// can always be finished. A position without any legal action is refused at the start, as the game is over.
///
/// ```
/// use arimaa::rules::Game;
/// use engine::search::{Evaluations, Evaluator, PolicySampler, Uniform};
/// use rand::SeedableRng;
/// let mut game = Game::new();
/// let mut rng = rand::rngs::ChaCha8Rng::seed_from_u64(1);
/// let mut sampler = PolicySampler::new(game.position(), game.history(), 1.0)?;
/// let mut answers = Evaluations::default();
/// let drawn = loop {
///     let leaves = sampler.leaves(game.history(), &mut rng);
///     Uniform.evaluate(leaves, &mut answers)?;
///     for (index, answer) in (0..leaves.len()).filter_map(|index| Some((index, answers.get(index)?))) {
///         sampler.answer(index, "uniform", answer)?;
///     }
///     if let Some(drawn) = sampler.decision() {
///         break drawn;
///     }
/// };
/// assert_eq!(drawn.actions.len(), 8, "a setup");
/// game.play(&drawn.turn)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PolicySampler {
    /// Where the next action is drawn.
    state: StepState,
    temperature: f32,
    /// That state, while its evaluation is awaited or has come.
    batch: LeafBatch,
    actions: TurnActions,
    value: f32,
    evaluations: u32,
    /// The weights of one draw.
    weights: Vec<f64>,
    decision: Option<SampledTurn>,
}

impl PolicySampler {
    /// A sampler for the turn of a position. `history` is the game's, the position itself counted in it. At temperature 1 turns are
    /// drawn from the policy as it is, at 0 the likeliest action is taken each time, of equal ones the first in the order of
    /// [`in_index_order`](arimaa::rules::ActionSet::in_index_order).
    ///
    /// # Errors
    /// Where the game is over, and where the temperature is negative or no finite number.
    pub fn new(
        position: &Position,
        history: &History,
        temperature: f32,
    ) -> Result<Self, SearchError> {
        let mut sampler = Self {
            state: StepState::new(position),
            temperature,
            batch: LeafBatch::default(),
            actions: ArrayVec::new(),
            value: 0.5,
            evaluations: 0,
            weights: Vec::new(),
            decision: None,
        };
        sampler.restart(position, history, temperature)?;
        Ok(sampler)
    }

    /// Forgets the turn before and starts on another, of any game, with any evaluator.
    ///
    /// # Errors
    /// Those of [`new`](Self::new); the sampler stays as it was.
    pub fn restart(
        &mut self,
        position: &Position,
        history: &History,
        temperature: f32,
    ) -> Result<(), SearchError> {
        check_not_over(position, history)?;
        if !(0.0..=f32::MAX).contains(&temperature) {
            return Err(SearchError::BadTemperature { temperature });
        }
        self.state = StepState::new(position);
        self.temperature = temperature;
        self.batch.clear();
        self.actions.clear();
        self.value = 0.5;
        self.evaluations = 0;
        self.decision = None;
        Ok(())
    }

    /// The step state whose policy is needed next: [`answer`](Self::answer) it. None once the turn is complete: take the
    /// [`decision`](Self::decision). While its evaluation is awaited, it is handed out again.
    pub fn leaves<R: Rng>(&mut self, history: &History, rng: &mut R) -> &[Query] {
        while self.decision.is_none() && !self.batch.is_waiting() {
            let is_ended = self.take_action(rng);
            if is_ended || self.state.is_complete() || has_won(&self.state) {
                self.decision = Some(self.whole_turn());
            } else {
                self.ask(history);
            }
        }
        self.batch.waiting()
    }

    /// Takes the evaluation of leaf `index` of those that [`leaves`](Self::leaves) handed out: there is one, 0. A leaf that is
    /// answered twice keeps its first answer, and there is none where nothing is awaited.
    ///
    /// # Errors
    /// An evaluation that fails [`Evaluation::check`]; the leaf stays unanswered.
    pub fn answer(
        &mut self,
        index: usize,
        evaluator: &str,
        evaluation: Evaluation<'_>,
    ) -> Result<(), EvaluatorError> {
        self.batch.answer(index, evaluator, evaluation)
    }

    /// The drawn turn, once [`leaves`](Self::leaves) has said so.
    pub fn decision(&self) -> Option<&SampledTurn> {
        self.decision.as_ref()
    }

    fn ask(&mut self, history: &History) {
        let query = Query {
            state: self.state,
            legal: self.state.legal_actions(history),
            repetitions: repetitions(&self.state.start_position(), history, true),
        };
        // There is no tree that the state could be a node of.
        self.batch.push(NodeId::default(), query);
    }

    /// Draws the next action, if the policy is there; says whether it is the turn's end.
    fn take_action<R: Rng>(&mut self, rng: &mut R) -> bool {
        let Some((_, query, evaluation)) = self.batch.answered().next() else {
            return false;
        };
        if self.evaluations == 0 {
            self.value = evaluation.value;
        }
        self.evaluations += 1;
        self.weights.clear();
        let priors = evaluation.priors.iter().copied();
        self.weights.extend(priors.map(f64::from));
        let place = draw(&self.weights, self.temperature, rng).unwrap_or(0);
        let action = query.legal.in_index_order(query.side()).nth(place);
        self.batch.clear();
        match action {
            None | Some(Action::End) => true,
            Some(action) => {
                self.actions.push(action);
                self.state = self.state.after(action);
                false
            }
        }
    }

    fn whole_turn(&self) -> SampledTurn {
        let start = self.state.start_position();
        let turn = Turn::from_actions(&self.actions, &start);
        SampledTurn {
            // A setup ends with its last placement alone.
            turn: turn.unwrap_or_else(|| unreachable!("a setup of {} pieces", self.actions.len())),
            actions: self.actions.clone(),
            value: self.value,
            evaluations: self.evaluations,
        }
    }
}

/// Whether the turn, ended here, wins.
fn has_won(state: &StepState) -> bool {
    goal_in(state, 0).is_some() || elimination_in(state, 0).is_some()
}

#[cfg(test)]
mod tests;
