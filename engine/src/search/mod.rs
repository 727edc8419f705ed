//! Search for whole turns, generic over the [`Evaluator`] that judges step states.
//!
//! A search decides one whole turn. Its graph's nodes are step states, its edges legal steps; what different step orders reach
//! is one node. [`Search`] never calls an evaluator: it hands out the step state that it wants to know about and takes the
//! answer, so that a caller can evaluate the leaves of many games in one batch. [`search_turn`] is the simple caller for a
//! single game.
//!
//! - **Selection** is PUCT over steps; values are recomputed from children on the way back, so that a state that several step
//!   orders reach counts once.
//! - **The budget** is spent in four parts (in a setup, eight). After each part the next step is drawn from the visits, unless
//!   complete turns hold enough of them already, and the search goes on below it with its tree: few visits would otherwise never
//!   see the end of a turn. At the end the turn is drawn from the flow of visits over distinct turns.
//! - **Goals** within the turn ([`goal_in`](crate::rules::goal_in)) are proven wins: they need no evaluation, and the turn is
//!   ended by them.
//! - **Targets** for training say at each state of the turn what the search found better than the priors did: the improved policy
//!   of completed values, or the shares of the visits; and where a win is proven, the step towards it.
//! - **Repetition** holds along each way down: a turn that would make a third occurrence is no option there.
//!
//! [`Search::report`] says at any time what a search has found so far, for people and as JSON.
//!
//! Values are win probabilities from Gold's view everywhere.

mod batch;
mod budget;
mod decision;
mod evaluator;
mod flow;
mod gumbel;
mod improved;
mod lost_turns;
mod options;
mod puct;
mod report;
mod root_priors;
mod stepwise;
mod tree;
#[cfg(test)]
mod trial;
mod turn_search;

pub use decision::{Decision, StateTarget};
pub use evaluator::{Evaluation, Evaluations, Evaluator, EvaluatorError, Material, Query, Uniform};
pub use options::{Budget, Gumbel, Mode, Noise, PolicyTarget, Puct, SearchOptions};
pub use report::{Depth, LineTurn, Proven, ReportedTurn, SearchReport};
pub use turn_search::{Search, SearchError, run_search, search_turn};
