//! What the results of games say of the players' strength.
//!
//! [`PairCounts`] is what a match of two players came to: its score, the Elo difference with its error, and the likelihood that
//! the one is the stronger. [`Sprt`] decides between two hypotheses about such a match while it goes on. [`fit_pairs`] rates any
//! number of players by all their pairs, [`fit`](fn@fit) by games alone, and [`PairTable`] keeps the results of a round robin.
//!
//! Elo differences are the logistic ones: a player that is D stronger has 1 / (1 + 10^(-D/400)) points a game on average; a game
//! that was stopped is half a point for each. Games come in pairs, from one opening with colours swapped: the two games of a pair
//! are not independent, the pairs are, so everything is computed from the five results that a pair can have (the pentanomial counts
//! of engine testing).

mod dispersion;
mod fit;
mod multinomial;
mod pairs;
mod sprt;
mod table;

#[cfg(test)]
mod simulation;

pub use dispersion::{Pairs, fit_pairs};
pub use fit::{Games, Rating, fit};
pub use pairs::{EloInterval, GameResult, PairCounts};
pub use sprt::{Hypothesis, Sprt, SprtError};
pub use table::{MatchCounts, PairTable};

/// The mean points a game, 0 to 1, of a player that is so many Elo points stronger.
fn score_of_elo(elo: f64) -> f64 {
    1.0 / (1.0 + 10f64.powf(-elo / 400.0))
}

/// The other way round, for a score within 0 and 1.
fn elo_of_score(score: f64) -> f64 {
    // Never a negative zero.
    400.0 * (score / (1.0 - score)).log10() + 0.0
}
