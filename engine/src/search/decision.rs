//! What a search decides.

use super::tree::{NodeId, Tree};
use crate::rules::{Action, Phase, Setup, Side, Square, StepState, Steps, Turn};
use arrayvec::ArrayVec;

/// What the search says of one state of the decided turn.
#[derive(Debug, Clone, PartialEq)]
pub struct StateTarget {
    /// How many actions of the turn precede the state.
    pub step: u8,
    /// Simulations that went on from the state; of a proven one, all of the turn.
    pub visits: u32,
    /// Whether the target is a step of a proven win, and nothing that the search weighed.
    pub proven: bool,
    /// What the policy should be over all legal actions, in the order of [`crate::rules::ActionSet::in_index_order`]; it sums to 1.
    pub policy: Vec<f32>,
}

/// A decided turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The turn.
    pub turn: Turn,
    /// Its steps, or the placements of a setup, in the order that they were drawn in; an explicit end is not among them.
    pub actions: ArrayVec<Action, 8>,
    /// The turn's start by all simulations, or by proof: win probability of Gold.
    pub value: f32,
    /// The evaluator's own value of the turn's start, or the proven one where it was not asked: win probability of Gold.
    pub own_value: f32,
    /// Who wins from the turn's start, where that is proven.
    pub proven_winner: Option<Side>,
    /// Simulations.
    pub visits: u32,
    /// Evaluations asked for.
    pub evaluations: u32,
    /// The states of the turn, in order: its start, and the state after each action while the turn was not over, as far as the
    /// search has something to say of them.
    pub targets: Vec<StateTarget>,
}

/// The turn that a strategy has chosen, with what is to be learned from it.
#[derive(Debug, Clone, Default)]
pub(super) struct Choice {
    /// Its actions, an explicit end among them where the turn has one.
    pub(super) actions: ArrayVec<Action, 9>,
    /// The value of the turn's start, as Gold's advantage.
    pub(super) advantage: f32,
    pub(super) targets: Vec<StateTarget>,
}

/// The actions of edges that follow one another.
pub(super) fn actions_of(tree: &Tree, way: &[(NodeId, usize)]) -> ArrayVec<Action, 9> {
    way.iter()
        .map(|&(node, edge)| tree.edges(node)[edge].action(tree.side(node)))
        .collect()
}

/// Targets for a turn that wins: at each of its states, its action and nothing else.
pub(super) fn proven_targets(
    start: &StepState,
    choice: &[Action],
    visits: u32,
    history: &crate::rules::History,
) -> Vec<StateTarget> {
    let mut state = *start;
    let mut targets = Vec::new();
    for (step, &action) in (0..).zip(choice) {
        let legal = state.legal_actions(history);
        targets.push(StateTarget {
            step,
            visits,
            proven: true,
            policy: legal
                .in_index_order(state.side())
                .map(|other| f32::from(other == action))
                .collect(),
        });
        state = state.after(action);
    }
    targets
}

/// The turn that some actions of one side make; none where they make no whole setup.
pub(super) fn turn_of(actions: &[Action], phase: Phase, side: Side) -> Option<Turn> {
    Some(match phase {
        Phase::Setup => {
            let placed = actions.iter().filter_map(|action| match action {
                Action::Place(square) => Some(*square),
                _ => None,
            });
            let squares: ArrayVec<Square, 8> = placed.collect();
            Turn::Setup(Setup::from_placements(&squares.into_inner().ok()?, side).ok()?)
        }
        Phase::Play => {
            let stepped = actions.iter().filter_map(|action| match action {
                Action::Step(step) => Some(*step),
                _ => None,
            });
            Turn::Steps(stepped.collect::<Steps>())
        }
    })
}
