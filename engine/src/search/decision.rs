//! What a search decides.

use super::core::Core;
use super::improved::surprise;
use super::tree::{NodeId, NodeKind, Tree};
use arimaa::rules::{Action, History, Phase, Setup, Side, Square, StepState, Steps, Turn};
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
    /// What the policy should be over all legal actions, in the order of [`arimaa::rules::ActionSet::in_index_order`]; it sums to 1.
    pub policy: Vec<f32>,
    /// How far that is from what the evaluator said, noise and temperature left aside: `KL(policy || prior) = Σ p ln(p / prior)` in
    /// nats, 0 or more. The priors are those that the tree keeps, normalised: 11 bits of each, and none below 2^-31, so that the
    /// sum is finite (below 22). 0 at states of a proven win that were never evaluated.
    pub surprise: f32,
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
    core: &Core,
    choice: &[Action],
    history: &History,
) -> Vec<StateTarget> {
    let tree = &core.tree;
    let mut state = StepState::new(&core.position);
    let mut nodes = core.nodes_along(choice).into_iter();
    let mut targets = Vec::new();
    for (step, &action) in (0..).zip(choice) {
        let legal = state.legal_actions(history);
        let side = state.side();
        // Turns that were found by the rules alone may lead through states that other orders of steps have reached.
        let node = nodes.next().or_else(|| tree.find(&state));
        let evaluated = node.filter(|&node| tree.node(node).kind == NodeKind::Open);
        targets.push(StateTarget {
            step,
            visits: core.spent.visits,
            proven: true,
            policy: legal
                .in_index_order(side)
                .map(|other| f32::from(other == action))
                .collect(),
            surprise: evaluated.map_or(0.0, |node| {
                let edges = tree.edges(node).iter();
                let chosen = edges.map(|edge| f32::from(edge.index() == action.index(side)));
                surprise(tree, node, chosen)
            }),
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

#[cfg(test)]
mod tests;
