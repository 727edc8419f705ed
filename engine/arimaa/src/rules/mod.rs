//! The rules of Arimaa, whole and exact: squares and pieces, positions, steps, turns and games.
//!
//! This module knows nothing of text, networks or search. Everything is seen from the board: Gold plays north, Silver south.
//! [`Action::index`] and the `seen_by` methods turn things to the side to move for a network's input.
//!
//! ```
//! use arimaa::notation::parse_turn;
//! use arimaa::rules::{Game, History, StepState, TurnError, distinct_turns};
//!
//! // Gold's elephant on d4 holds Silver's rabbit on e4.
//! let position = "g [r                                  Er                          R]".parse()?;
//! let mut game = Game::from_position(position);
//! assert_eq!(StepState::new(&position).legal_actions(game.history()).steps().count(), 8);
//! assert_eq!(distinct_turns(&position, game.history()).len(), 261);
//!
//! // A turn that changes nothing is refused, and the game stays as it was.
//! let idle = parse_turn("Ed4n Ed5s", &position)?;
//! assert_eq!(game.play(&idle), Err(TurnError::NoChange));
//! game.play(&parse_turn("re4n Ed4e", &position)?)?;
//! assert_eq!(game.to_string().lines().last(), Some("2g re4n Ed4e"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A turn is played step by step. [`StepState`] is a position inside a turn; [`StepState::legal_actions`] holds exactly the
//! steps that begin at least one legal turn, and [`History`] the positions that repetition forbids.
//!
//! What is refused says why and leaves everything as it was: methods that take a value hand it back in a [`PlayError`].
//! Boards and setups that are impossible name all their [`Faults`] at once.
//!
//! Every type here can be serialised, errors and sets too (not iterators, enumerators and [`StateInTurn`]): as its text in formats for
//! people, as numbers in others. What is read back is checked. The forms are described in
//! [`notation`](crate::notation#serialised-forms).

mod action;
mod bitboard;
mod board;
mod faults;
mod game;
mod goal;
mod history;
mod key_set;
mod legal;
mod piece;
mod play;
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
pub use faults::{Faults, NoFault};
pub use game::{Game, TurnError};
pub use goal::{
    capture_threats, captures, elimination_in, goal_in, goal_threat, immobilization_in, win_in,
};
pub use history::{EmptyCount, History};
pub use legal::StepError;
pub use piece::{Kind, Piece, Side};
pub use play::PlayError;
pub use position::{Outcome, Phase, Position, PositionError, PositionFault, Reason};
pub use square::{Direction, Square, SquareError};
pub use state::{Pending, SETUP_ORDER, StateInTurn, StepState, TURN_STEPS};
pub use turn::{Setup, SetupError, SetupFault, Steps, Turn};
pub use turns::{
    DistinctTurns, DistinctTurnsIter, TurnEnumerator, count_distinct_turns, distinct_turns,
};
pub use zobrist::mix as mix_key;
