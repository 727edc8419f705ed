//! Alternative turn in place of one that lets the enemy win.
//!
//! The search sees few of a position's turns. Where all that it saw are lost, it tries all others with the solvers of goals,
//! eliminations and immobilizations before it accepts a lost one. Where the search has to end, it tries no more than [`LAST_LOOK`].

use super::decision::{TurnActions, actions_of};
use super::flow::{Arrival, Flow};
use super::state::SearchState;
use super::tree::greatest;
use arimaa::rules::{
    Action, History, Position, Side, Step, StepState, TURN_STEPS, Turn, TurnEnumerator,
};
use arrayvec::ArrayVec;
use rand::Rng;

/// How many other turns are still tried when the search has been stopped or its time is up: all that there are in nearly every
/// position (17,000 on average), in some 20 milliseconds.
const LAST_LOOK: usize = 30_000;

/// Behind how many of these immobilizations are still looked for then: some 20 milliseconds more by the solver's mean speed
/// (`cargo bench -p arimaa --bench rules -- immobilization`).
const LAST_CHECKS: usize = 2_000;

/// What the look at all other turns has found.
#[derive(Debug, Clone)]
pub(super) enum Alternative {
    /// A turn that is not known to be lost.
    Found(TurnActions),
    /// Every legal turn is lost.
    AllLost,
    /// No such turn, within the turns that were to be tried.
    NotFound,
}

/// A turn that is not known to be lost.
#[derive(Debug, Clone)]
pub(super) struct OtherTurn {
    pub(super) actions: TurnActions,
    pub(super) end: StepState,
    /// The logarithm of its prior along these actions, as far as the tree knows; see [`UNKNOWN_STEP`].
    pub(super) log_prior: f64,
}

/// What a step counts whose prior is not known: about 1 in 25, the usual number of legal steps.
const UNKNOWN_STEP: f64 = -3.2;

/// The likeliest turn that is not known to be lost.
pub(super) fn find_alternative(search: &mut SearchState, history: &History) -> Alternative {
    let (turns, rest_is_lost) = other_turns(search, history, 1);
    match turns.into_iter().next() {
        Some(turn) => Alternative::Found(turn.actions),
        None if rest_is_lost => {
            search.tree.prove_lost(search.root);
            Alternative::AllLost
        }
        None => Alternative::NotFound,
    }
}

/// The likeliest turns that are not lost within the enemy's next turn, `most` of them; and whether all others are lost.
pub(super) fn other_turns(
    search: &SearchState,
    history: &History,
    most: usize,
) -> (Vec<OtherTurn>, bool) {
    let (turns, tried_all) = other_turns_within(search, history, LAST_LOOK);
    let (holding, checked_all) = holding_turns(search, turns, most, LAST_CHECKS);
    (holding, tried_all && checked_all)
}

/// The first of these turns behind which the enemy can't immobilize, `most` of them; and whether all were looked at. Once the search
/// has to end, no more than `last_checks` are.
fn holding_turns(
    search: &SearchState,
    turns: Vec<OtherTurn>,
    most: usize,
    last_checks: usize,
) -> (Vec<OtherTurn>, bool) {
    let mut holding = Vec::new();
    for (tried, turn) in turns.into_iter().enumerate() {
        if tried >= last_checks && search.has_to_end() {
            return (holding, false);
        }
        if search.tree.allows_immobilization(&turn.end) {
            continue;
        }
        if holding.len() == most {
            return (holding, false);
        }
        holding.push(turn);
    }
    (holding, true)
}

/// All turns that are not known to be lost, the likeliest first, within the number that is to be tried; and whether that was all of
/// them. Once the search has to end, `last_look` turns are tried at most. Whether a turn allows an immobilization is not looked at.
fn other_turns_within(
    search: &SearchState,
    history: &History,
    last_look: usize,
) -> (Vec<OtherTurn>, bool) {
    let most = search
        .options
        .loss_proof_limit
        .map_or(usize::MAX, |most| most as usize);
    let mut found = Vec::new();
    // A setup has no lost turns.
    if most == 0
        || !search.options.goal_solver
        || search.position.phase() == arimaa::rules::Phase::Setup
    {
        return (found, false);
    }
    let side = search.side();
    let enemy = side.opponent();
    let mut enumerator = TurnEnumerator::new();
    // As the mover sees the board: with the colours exchanged the turns come in the same order.
    let seen = |position: &Position| match side {
        Side::Gold => *position,
        Side::Silver => position.swap_colours(),
    };
    let is_enough = |turns: usize| turns >= last_look && search.has_to_end();
    let (turns, are_all) =
        enumerator.enumerate_while(&seen(&search.position), &History::default(), |turns| {
            !is_enough(turns)
        });
    let mut tried_all = are_all && turns.len() <= most;
    for (tried, (position, turn)) in turns.iter().take(most).enumerate() {
        if is_enough(tried) {
            tried_all = false;
            break;
        }
        let position = seen(&position);
        if history.forbids(&position) {
            continue;
        }
        let end = StepState::new(&position);
        let known = search
            .tree
            .find(&end)
            .and_then(|node| search.tree.node_value(node).proof);
        let winner = known.or_else(|| search.tree.decided(&end).map(|(winner, _)| winner));
        if winner == Some(enemy) {
            continue;
        }
        let mut actions = steps_of(&turn, side);
        if actions.len() < usize::from(TURN_STEPS) {
            actions.push(Action::End);
        }
        found.push(OtherTurn {
            log_prior: log_prior(search, &actions),
            actions,
            end,
        });
    }
    found.sort_by(|one, other| other.log_prior.total_cmp(&one.log_prior));
    (found, tried_all)
}

/// The steps of a turn that is given as its mover sees it.
fn steps_of(turn: &Turn, side: Side) -> TurnActions {
    let as_it_is = |&step: &Step| match side {
        Side::Gold => Action::Step(step),
        Side::Silver => Action::Step(Step::new(step.from.flip(), step.direction.flip())),
    };
    match turn {
        Turn::Steps(steps) => steps.iter().map(as_it_is).collect(),
        Turn::Setup(_) => ArrayVec::new(),
    }
}

fn log_prior(search: &SearchState, actions: &[Action]) -> f64 {
    let known = search.nodes_along(actions);
    let of_step = |(place, action): (usize, &Action)| {
        let index = action.index(search.side());
        let edges = known.get(place).map(|&node| search.tree.edges(node));
        let edge = edges.and_then(|edges| edges.iter().find(|edge| edge.index() == index));
        edge.map_or(UNKNOWN_STEP, |edge| f64::from(edge.prior().max(1e-9)).ln())
    };
    actions.iter().enumerate().map(of_step).sum()
}

/// Of the turns that the tree holds, all of them lost, the one after which the game lasts the longest.
pub(super) fn longest_resistance<R: Rng>(search: &SearchState, rng: &mut R) -> Option<TurnActions> {
    let flow = Flow::of_priors(&search.tree, search.root);
    let complete = flow.arrivals().iter().filter(|arrival| arrival.complete);
    let resistance = |arrival: &Arrival| {
        let turns = search.tree.node_value(arrival.node).turns_to_end;
        (turns, arrival.mass)
    };
    let end = greatest(complete, resistance)?;
    let path = flow.path_to(end.node, rng);
    (!path.is_empty()).then(|| actions_of(&search.tree, &path))
}

#[cfg(test)]
mod tests;
