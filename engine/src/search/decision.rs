//! What a search decides.

use super::state::SearchState;
use super::targets::{StateTarget, surprise};
use super::tree::{NodeId, NodeKind, Tree, advantage_of, win_probability};
use arimaa::rules::{
    Action, History, Phase, SETUP_ORDER, Side, StepState, TURN_STEPS, Turn, elimination_in,
    goal_in, immobilization_in, win_in,
};
use arrayvec::ArrayVec;
use rand::Rng;
use rand::seq::IteratorRandom;

/// The actions of a turn, an explicit end included: the placements of a setup, or up to four steps.
pub type TurnActions = ArrayVec<Action, 8>;

/// A decided turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The turn.
    pub turn: Turn,
    /// Its steps, or the placements of a setup, in the order that they were drawn in; an explicit end is not among them.
    pub actions: TurnActions,
    /// The turn's start by all simulations, or by proof: win probability of Gold.
    pub value: f32,
    /// The evaluator's own value of the turn's start, or the proven one without an evaluation: win probability of Gold.
    pub own_value: f32,
    /// The winner from the turn's start, where that is proven.
    pub proven_winner: Option<Side>,
    /// Simulations.
    pub visits: u32,
    /// Evaluations requested.
    pub evaluations: u32,
    /// The states of the turn, in order: its start, and the state after each action while the turn was not over, as far as the
    /// search has something to say of them.
    pub targets: Vec<StateTarget>,
}

/// How many steps, or placements, a turn has at most.
pub(super) fn longest_turn(phase: Phase) -> u32 {
    match phase {
        Phase::Setup => SETUP_ORDER.len() as u32,
        Phase::Play => u32::from(TURN_STEPS),
    }
}

/// The turn that a strategy has chosen, with what is to be learned from it.
#[derive(Debug, Clone, Default)]
pub(super) struct Choice {
    /// Its actions, an explicit end among them where the turn has one.
    pub(super) actions: TurnActions,
    /// The value of the turn's start, as Gold's advantage.
    pub(super) advantage: f32,
    pub(super) targets: Vec<StateTarget>,
}

/// The turn that wins at once, if there is one.
pub(super) fn winning_choice(state: &SearchState, history: &History) -> Option<Choice> {
    let value = state.tree.node_value(state.root);
    let wins_at_once = value.wins(state.side()) && value.turns_to_end == 1;
    if !(state.options.goal_solver && wins_at_once) {
        return None;
    }
    let steps = win_in(&StepState::new(&state.position), TURN_STEPS)?;
    let mut actions: TurnActions = steps.iter().map(|&step| Action::Step(step)).collect();
    if steps.len() < usize::from(TURN_STEPS) {
        actions.push(Action::End);
    }
    Some(Choice {
        targets: proven_targets(state, &actions, history),
        actions,
        advantage: advantage_of(state.side()),
    })
}

/// The decision that a choice makes.
pub(super) fn decide(state: &SearchState, choice: Choice) -> Decision {
    let root = state.tree.node(state.root);
    let mut actions = choice.actions;
    actions.retain(|action| *action != Action::End);
    let turn = Turn::from_actions(&actions, &state.position);
    Decision {
        // Strategies choose whole turns: a setup is complete.
        turn: turn.unwrap_or_else(|| unreachable!("a setup of {} pieces", actions.len())),
        actions,
        value: win_probability(Side::Gold, choice.advantage),
        own_value: win_probability(Side::Gold, root.own_value),
        proven_winner: state.tree.node_value(state.root).proof,
        visits: state.spent.visits,
        evaluations: state.spent.evaluations,
        targets: choice.targets,
    }
}

/// The actions of edges that follow one another.
pub(super) fn actions_of(tree: &Tree, path: &[(NodeId, usize)]) -> TurnActions {
    path.iter()
        .map(|&(node, edge)| tree.edges(node)[edge].action(tree.side(node)))
        .collect()
}

/// Ends a turn that the search has not gone beyond: at once if that is legal, else by any legal steps.
pub(super) fn finish_by_the_rules<R: Rng>(
    state: &StepState,
    history: &History,
    actions: &mut TurnActions,
    rng: &mut R,
) {
    let mut state = *state;
    while !state.is_complete() {
        let legal = state.legal_actions(history);
        let action = if legal.end {
            Some(Action::End)
        } else {
            legal.in_index_order(state.side()).choose(rng)
        };
        let Some(action) = action else { return };
        actions.push(action);
        if action == Action::End {
            return;
        }
        state = state.after(action);
    }
}

/// Targets for a turn that wins. Where it wins at once, all [`winning_actions`] have equal shares, since the solver's
/// choice among them is arbitrary. At the states of other proven turns the turn's action has everything.
pub(super) fn proven_targets(
    search: &SearchState,
    choice: &[Action],
    history: &History,
) -> Vec<StateTarget> {
    let tree = &search.tree;
    let mut state = StepState::new(&search.position);
    let mut nodes = search.nodes_along(choice).into_iter();
    let mut targets = Vec::new();
    for (step, &action) in (0..).zip(choice) {
        let legal = state.legal_actions(history);
        let side = state.side();
        let won: Vec<Action> = winning_actions(&state, history);
        let taught = if won.is_empty() { &[action] } else { &won[..] };
        let share = 1.0 / taught.len() as f32;
        let share_of = |other| if taught.contains(&other) { share } else { 0.0 };
        // Turns that were found by the rules alone may lead through states that other orders of steps have reached.
        let node = nodes.next().or_else(|| tree.find(&state));
        let evaluated = node.filter(|&node| tree.node(node).kind == NodeKind::Expanded);
        targets.push(StateTarget {
            step,
            visits: search.spent.visits,
            proven: true,
            policy: legal.in_index_order(side).map(share_of).collect(),
            surprise: evaluated.map_or(0.0, |node| {
                let edges = tree.edges(node).iter();
                surprise(tree, node, edges.map(|edge| share_of(edge.action(side))))
            }),
        });
        state = state.after(action);
    }
    targets
}

/// The actions that begin a shortest goal within the turn, else a shortest elimination, else a shortest immobilization. None where
/// there is none, or where the turn may end with it.
fn winning_actions(state: &StepState, history: &History) -> Vec<Action> {
    let wins = [goal_in, elimination_in, immobilization_in];
    let found = wins
        .into_iter()
        .find_map(|win| Some((win, win(state, TURN_STEPS)?.len())));
    let Some((win, steps @ 1..)) = found else {
        return Vec::new();
    };
    let steps_to_win = |state: &StepState| win(state, TURN_STEPS).map(|steps| steps.len());
    let legal = state.legal_actions(history).in_index_order(state.side());
    let moves = legal.filter(|action| *action != Action::End);
    moves
        .filter(|&action| steps_to_win(&state.after(action)) == Some(steps - 1))
        .collect()
}

#[cfg(test)]
mod tests;
