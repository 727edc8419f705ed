//! The principal variation.

use super::super::decision::actions_of;
use super::super::flow::Flow;
use super::super::state::SearchState;
use super::super::tree::{NodeId, NodeKind, greatest};
use super::turns::{KnownTurn, KnownTurns};
use arimaa::notation::format_turn;
use arimaa::rules::{Position, Side, StepState, TURN_STEPS, Turn, win_in};
use serde::Serialize;

/// A turn of the principal variation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LineTurn {
    /// The side that plays it.
    pub side: Side,
    /// The turn in standard notation, captures included.
    pub turn: String,
}

/// The most turns of a line.
const MAX_TURNS: usize = 20;

/// A turn and where it leads.
#[derive(Debug)]
struct Onward {
    text: String,
    end: Position,
    /// The node of its end, if it has one.
    node: Option<NodeId>,
}

/// The line that begins with a turn of the position that is searched.
pub(super) fn principal_variation(
    search: &SearchState,
    turns: &KnownTurns,
    first: &KnownTurn,
) -> Vec<LineTurn> {
    let mut next = Some(Onward {
        text: turns.text(first),
        end: first.end,
        node: first.node,
    });
    let mut passed = vec![search.position];
    let mut line = Vec::new();
    while let Some(Onward { text, end, node }) = next
        && line.len() < MAX_TURNS
        && !passed.contains(&end)
    {
        line.push(LineTurn {
            side: end.side().opponent(),
            turn: text,
        });
        passed.push(end);
        next = onward(search, &end, node);
    }
    line
}

/// The turn that is expected in a position behind the first turn.
fn onward(search: &SearchState, position: &Position, node: Option<NodeId>) -> Option<Onward> {
    if position.outcome_on_board().is_some() {
        return None;
    }
    match node.filter(|&node| search.tree.node(node).kind == NodeKind::Expanded) {
        Some(node) => most_visited(search, position, node).or_else(|| winning(position)),
        None => winning(position),
    }
}

/// The most visited turn from a node that starts one; of a proven node, of those that win the soonest or resist the longest.
fn most_visited(search: &SearchState, position: &Position, node: NodeId) -> Option<Onward> {
    let flow = Flow::of_visits(&search.tree, node);
    let complete = flow.arrivals().iter().filter(|arrival| arrival.complete);
    let heaviest = greatest(complete, |arrival| arrival.mass)?;
    let actions = actions_of(&search.tree, &flow.shortest_path_to(heaviest.node));
    let turn = Turn::from_actions(&actions, position)?;
    Some(Onward {
        text: format_turn(&turn, position),
        end: search.tree.state(heaviest.node).start_position(),
        node: Some(heaviest.node),
    })
}

/// The turn that wins at once, if there is one: nothing had to be searched for it.
fn winning(position: &Position) -> Option<Onward> {
    let start = StepState::new(position);
    let steps = win_in(&start, TURN_STEPS)?;
    let after = steps
        .iter()
        .fold(start, |state, &step| state.after_step(step));
    Some(Onward {
        text: format_turn(&Turn::Steps(steps), position),
        end: after.end(),
        node: None,
    })
}
