//! The rules of Arimaa, whole and exact: squares and pieces, positions, steps, turns and games.
//!
//! This module knows nothing of text, networks or search. Everything is seen from the board: Gold plays north, Silver south.
//! [`Action::index`] and the `seen_by` methods turn things to the side to move where a network's input asks for it.
//!
//! A turn is played step by step. [`StepState`] is a position inside a turn; [`StepState::legal_actions`] holds exactly the
//! steps with which at least one legal turn goes on, and [`History`] the positions that repetition forbids.

mod action;
mod bitboard;
mod board;
mod commuting;
mod game;
mod goal;
mod history;
mod key_set;
mod legal;
mod outcome;
mod piece;
mod position;
mod square;
mod state;
mod turn;
mod turn_graph;
mod turns;
mod zobrist;

pub use action::{Action, ActionSet, Step};
pub use bitboard::{Bitboard, Squares};
pub use board::Board;
pub use game::{Game, StepError, TurnError};
pub use goal::{elimination_in, goal_in, goal_threat};
pub use history::History;
pub use outcome::{Outcome, Reason};
pub use piece::{Kind, Piece, Side};
pub use position::{Phase, Position, PositionError};
pub use square::{Direction, Square, SquareError};
pub use state::{Pending, SETUP_ORDER, StepState, TURN_STEPS};
pub use turn::{Setup, SetupError, Steps, Turn};
pub use turns::{
    DistinctTurns, DistinctTurnsIter, TurnEnumerator, count_distinct_turns, distinct_turns,
};
