//! A step state with what the search knows of it.

use super::edge::NodeId;
use super::links::Block;
use arimaa::rules::{Side, StateInTurn};

/// What is known of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::search) enum NodeKind {
    /// Without evaluation and edges so far.
    Unexpanded,
    /// Evaluated, with an edge for each legal action.
    Expanded,
    /// The game is over here, or won within this turn: neither evaluation nor edges.
    Terminal,
}

/// A node's edges in the tree's array.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EdgeRange {
    pub(super) first: u32,
    pub(super) count: u16,
}

/// A step state with what the search knows of it.
#[derive(Debug, Clone)]
pub(in crate::search) struct Node {
    pub(in crate::search) state: StateInTurn,
    /// The node of the turn's start.
    pub(in crate::search) start: NodeId,
    /// The evaluator's value, or the result of a game that is over: Gold's advantage, -1 to 1.
    pub(in crate::search) own_value: f32,
    /// Simulations that stopped here or went through one of its edges.
    pub(in crate::search) visits: u32,
    pub(super) edges: EdgeRange,
    pub(super) links: Block,
    pub(in crate::search) kind: NodeKind,
    /// How often the turn's start had stood in the game when the node was evaluated.
    pub(super) repetitions: u8,
}

// Beside it a node has its value in 12 bytes, 4 bytes an edge, 8 bytes a link, and 5 to 10 bytes in the table.
const _: () = assert!(size_of::<Node>() == 96);

impl Node {
    pub(super) fn unexpanded(state: StateInTurn, start: NodeId) -> Self {
        Self {
            state,
            start,
            own_value: 0.0,
            visits: 0,
            edges: EdgeRange::default(),
            links: Block::default(),
            kind: NodeKind::Unexpanded,
            repetitions: 0,
        }
    }
}

/// What the nodes before a node read of it. These lie in an array of their own: at every state of its path a simulation reads those
/// of all children.
#[derive(Debug, Clone, Copy)]
pub(in crate::search) struct NodeValue {
    /// The value by all simulations so far: Gold's advantage, -1 to 1.
    pub(in crate::search) value: f32,
    /// The mean square of the evaluations that make up the value.
    pub(in crate::search) square: f32,
    /// Of a proven node: the turns that are still played, the present one counted, if the winner hurries and the loser does not.
    pub(in crate::search) turns_to_end: u16,
    /// The winner, whatever the other side does; none where that is not proven.
    pub(in crate::search) proof: Option<Side>,
    /// [`STARTS_TURN`] and [`IS_EVALUATED`], or neither.
    flags: u8,
}

/// A turn starts here.
const STARTS_TURN: u8 = 1;

/// The value comes from an evaluator or a proof.
const IS_EVALUATED: u8 = 2;

const _: () = assert!(size_of::<NodeValue>() == 12);

impl NodeValue {
    pub(super) fn unknown(starts_turn: bool) -> Self {
        Self {
            value: 0.0,
            square: 0.0,
            turns_to_end: 0,
            proof: None,
            flags: if starts_turn { STARTS_TURN } else { 0 },
        }
    }

    /// The value of a node that has to be evaluated again; until then it is what the simulations so far made of it. A proof is dropped.
    pub(super) fn unevaluated(self) -> Self {
        if self.proof.is_some() {
            return Self::unknown(self.flags & STARTS_TURN != 0);
        }
        Self {
            flags: self.flags & STARTS_TURN,
            ..self
        }
    }

    /// Takes over an evaluation.
    pub(super) fn evaluated(&mut self, value: f32) {
        self.value = value;
        self.square = value * value;
        self.flags |= IS_EVALUATED;
    }

    /// Whether the value is an evaluator's or a proof's, and none that stands for both.
    #[inline]
    pub(in crate::search) fn is_evaluated(&self) -> bool {
        self.flags & IS_EVALUATED != 0
    }

    pub(in crate::search) fn prove(&mut self, winner: Side, turns: u16) {
        self.proof = Some(winner);
        self.value = advantage_of(winner);
        self.square = 1.0;
        self.turns_to_end = turns;
        self.flags |= IS_EVALUATED;
    }

    /// Whether it is proven lost for a side.
    #[inline]
    pub(in crate::search) fn loses(&self, side: Side) -> bool {
        self.proof == Some(side.opponent())
    }

    /// Whether it is proven won for a side.
    #[inline]
    pub(in crate::search) fn wins(&self, side: Side) -> bool {
        self.proof == Some(side)
    }

    /// Of a proven node: the turns that are still played, counted from the state before it.
    #[inline]
    pub(in crate::search) fn turns_from_before(&self) -> u16 {
        self.turns_to_end + u16::from(self.flags & STARTS_TURN)
    }

    /// The variance of the evaluations that make up the value, as win probabilities.
    pub(in crate::search) fn variance(&self) -> f32 {
        (self.square - self.value * self.value).max(0.0) / 4.0
    }
}

/// A win of Gold's as an advantage: 1; a win of Silver's: -1.
#[inline]
pub(in crate::search) fn advantage_of(winner: Side) -> f32 {
    match winner {
        Side::Gold => 1.0,
        Side::Silver => -1.0,
    }
}

/// An advantage of Gold's as the win probability of `side`.
#[inline]
pub(in crate::search) fn win_probability(side: Side, advantage: f32) -> f32 {
    0.5 + 0.5 * advantage_of(side) * advantage
}
