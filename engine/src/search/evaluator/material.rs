//! An evaluator by hand: it counts what a player counts first, and looks one step ahead.
//!
//! It is no strong player, but a real one: search tests and matches between search methods need an evaluator that knows which
//! turns are better and runs without a network. All scores are whole numbers, so that its two symmetries are exact to the last
//! bit: colours exchanged (the value becomes 1 minus itself, the priors stay) and east and west exchanged (the value stays, the
//! priors go with their actions).

mod score;

use super::{Evaluations, Evaluator, EvaluatorError, Query};
use arimaa::rules::{Action, Kind, Phase, Side, Square, StepState};
use score::score;

/// What a score counts in: so many to one logit.
const LOGIT: f32 = 1000.0;

/// A value stays within the logistic of ±12 logits: probabilities of 0 and 1 are for what is proven.
const VALUE_LIMIT: i32 = 12_000;

/// How many logits of a prior one logit of the score is worth. In matches at 64 visits 1 to 4 play equally well, and 8 worse.
const SHARPNESS: f32 = 3.0;

/// How many logits of a prior one square between a piece and its usual place in a setup costs.
const SETUP_SHARPNESS: f32 = 0.5;

/// No action's logit is further below the best one's: every prior is above 0.
const PRIOR_RANGE: f32 = 12.0;

/// Counts pieces, rabbits on their way, traps held, pieces frozen and pieces about to be lost.
///
/// - **Value**: the logistic of the score of the board as it stands, for either side to move; 0.5 in a setup, where nothing is lost yet.
/// - **Priors**: a softmax of the scores that the board has after each action, in the mover's view. In a setup they prefer squares
///   near the usual places: elephant and camel in front in the middle, horses in front on b and g, cats behind the traps, dogs
///   behind the elephant, rabbits in what is left.
#[derive(Debug, Clone, Default)]
pub struct Material {
    /// The logit, in scores, of each action of a query.
    scores: Vec<i32>,
    /// The actions' weights in the softmax.
    weights: Vec<u64>,
}

impl Evaluator for Material {
    fn name(&self) -> &str {
        "material"
    }

    fn evaluate(&mut self, queries: &[Query], out: &mut Evaluations) -> Result<(), EvaluatorError> {
        out.clear();
        for query in queries {
            self.weigh_actions(query);
            let sum: u64 = self.weights.iter().sum();
            let priors = self
                .weights
                .iter()
                .map(|&weight| (weight as f64 / sum as f64) as f32);
            out.push(value(&query.state), priors);
        }
        Ok(())
    }
}

impl Material {
    /// Fills `weights`: the legal actions' softmax before it is divided by its sum. The weights are whole numbers, so that their
    /// sum doesn't depend on their order, which the mirror changes.
    fn weigh_actions(&mut self, query: &Query) {
        let state = &query.state;
        let side = state.side();
        let actions = query.legal.in_index_order(side);
        self.scores.clear();
        self.scores
            .extend(actions.map(|action| score_after(state, action)));
        let best = self.scores.iter().copied().max().unwrap_or(0);
        let scale = match state.phase() {
            Phase::Setup => SETUP_SHARPNESS / LOGIT,
            Phase::Play => SHARPNESS / LOGIT,
        };
        let weight = |&score: &i32| {
            let logit = (score - best) as f32 * scale;
            (logit.max(-PRIOR_RANGE).exp() * (1_u64 << 40) as f32) as u64
        };
        self.weights.clear();
        self.weights.extend(self.scores.iter().map(weight));
    }
}

/// The score of the mover once an action has been taken.
fn score_after(state: &StepState, action: Action) -> i32 {
    let side = state.side();
    let mut board = *state.board();
    match action {
        Action::Step(step) => {
            if let Some(to) = step.to() {
                board.step(step.from, to);
            }
        }
        Action::Place(square) => {
            let kind = state.next_placement().unwrap_or(Kind::Rabbit);
            return -(LOGIT as i32) * from_usual_place(kind, square.seen_by(side));
        }
        Action::End => {}
    }
    score(&board, side)
}

/// How many squares a piece is away from the nearest of its usual places in a setup, the side's own ranks being 1 and 2.
fn from_usual_place(kind: Kind, square: Square) -> i32 {
    // A file and its mirror image are equally good: 0 for a and h, 3 for d and e. Ranks are counted from 0.
    let (file, rank) = match kind {
        Kind::Elephant | Kind::Camel => (3, 1),
        Kind::Horse => (1, 1),
        Kind::Dog => (3, 0),
        Kind::Cat => (2, 1),
        Kind::Rabbit => return 0,
    };
    let files = square.file().min(square.mirror().file());
    i32::from(files.abs_diff(file)) + i32::from(square.rank().abs_diff(rank))
}

/// The win probability of Gold.
fn value(state: &StepState) -> f32 {
    match state.phase() {
        Phase::Setup => 0.5,
        Phase::Play => logistic(score(state.board(), Side::Gold)),
    }
}

/// The logistic of a score. That of its negative is exactly 1 minus it: the greater of the two is computed, and a number
/// from 0.5 to 1 is taken from 1 without rounding.
fn logistic(score: i32) -> f32 {
    let logit = score.abs().min(VALUE_LIMIT) as f32 / LOGIT;
    let of_leader = 1.0 / (1.0 + (-logit).exp());
    if score >= 0 {
        of_leader
    } else {
        1.0 - of_leader
    }
}

#[cfg(test)]
mod tests;
