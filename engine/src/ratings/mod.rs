//! The strength of players from the results of games.
//!
//! [`PairCounts`] is what a match of two players came to: its score, the Elo difference with its error, and the likelihood that
//! the one is the stronger. [`Sprt`] decides between two hypotheses about such a match while it is played. [`fit_pairs`] rates any
//! number of players by all their pairs, [`fit`](fn@fit) by games alone.
//!
//! Elo differences are the logistic ones: a player that is D stronger has 1 / (1 + 10^(-D/400)) points a game on average; a truncated
//! game is half a point for each. Games come in pairs, from one opening with colours swapped: the two games of a pair
//! are not independent, the pairs are, so everything is computed from the five results that a pair can have (the pentanomial counts
//! of engine testing).

mod dispersion;
mod fit;
mod multinomial;
mod pairs;
mod sprt;

#[cfg(test)]
mod simulation;

pub use dispersion::{Pairs, fit_pairs};
pub use fit::{Games, Rating, fit};
pub use pairs::{EloInterval, GameResult, PairCounts};
pub use sprt::{Hypothesis, Sprt, SprtError};
