//! Search for whole turns, generic over the [`Evaluator`] of step states.
//!
//! A search decides one whole turn. Its graph's nodes are step states, its edges legal steps; what different step orders reach
//! is one node. [`Search`] never calls an evaluator: it hands out step states and takes their evaluations
//! in any order, so that a caller can evaluate the leaves of many games in one batch. [`search_turn`] is the simple
//! caller for a single game.
//!
//! - **Mode `puct`** goes down step by step. The budget is spent in four parts (in a setup, eight). After each part the next step
//!   is drawn from the visits, unless complete turns hold enough of them already, and the search continues below it with its tree.
//!   Few visits would otherwise never see the end of a turn. At the end the turn is drawn from the flow of visits over distinct
//!   turns; where nothing is left to chance it is the one of the best lower confidence bound.
//! - **Mode `gumbel`** samples whole turns from the policy with a stochastic beam and compares them by sequential halving, with PUCT
//!   below them.
//! - **Values** are recomputed from children in the backup, so that a state that several step orders reach counts once.
//! - **Proofs.** At the start of every turn goals and eliminations within it are looked for
//!   ([`goal_in`](arimaa::rules::goal_in), [`elimination_in`](arimaa::rules::elimination_in)); they need no evaluation, and wins and
//!   losses travel up. Immobilizations ([`immobilization_in`](arimaa::rules::immobilization_in)) are looked for at the root, and
//!   behind the turns that the choice is among: their solver takes longer, and they are rare. A position that is won or lost for
//!   certain is decided at once. A turn that lets the enemy win at once is chosen only if every legal turn does: before it is, the
//!   others are enumerated.
//! - **Targets** for training hold, at each state of the turn, what the search found better than the priors: the improved policy of
//!   completed values, or the shares of the visits. Where a win is proven, they are the steps to it.
//! - **Repetition** holds along each path: a turn that would make a third occurrence is no option there.
//! - **Leaves in flight** ([`SearchOptions::parallel_leaves`]): with more than one, simulations go down while others wait for their
//!   leaves, which go out in batches: so one tree uses several cores, or a GPU. Those in flight count as visits on their path, but for the
//!   leaf itself, and touch no value; answers are applied in the order in which the leaves were handed out.
//! - **Its end**: a flag and the clock are looked at before every simulation. A search that has to end while leaves are out decides
//!   right after their answers.
//! - **From turn to turn** the tree below the turn that was played is kept ([`Search::reuse_tree`]).
//! - **Without a search** [`PolicySampler`] draws a whole turn from the policy, with the same questions and answers.
//!
//! Values that go in and out are win probabilities from Gold's view. Which mode plays better at which budget, and what else was
//! measured, stands in `README.md` beside this file.

mod batch;
mod budget;
mod decision;
mod descent;
mod evaluator;
mod flow;
mod lost_turns;
mod modes;
mod options;
mod policy_sampler;
mod report;
mod root_priors;
mod simulations;
mod state;
mod targets;
#[cfg(test)]
mod testing;
mod tree;
mod turn_search;

pub use decision::{Decision, TurnActions};
pub use evaluator::{
    Evaluation, Evaluations, Evaluator, EvaluatorError, Material, Null, Query, Uniform,
};
pub use options::{Budget, Noise, SearchOptions};
pub use policy_sampler::{PolicySampler, SampledTurn};
pub use report::{Depth, FirstAction, LineTurn, Proven, ReportedTurn, SearchReport};
pub use targets::StateTarget;
pub use turn_search::{Search, SearchError, run_search, search_turn};
