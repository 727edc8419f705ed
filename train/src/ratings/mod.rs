//! How strong the players of a run are, by the results of all their matches.
//!
//! [`engine::ratings`] has the computation; [`Standings`] reads a run's results, and is written to its `ratings.json`.

mod player;
mod results;
mod standings;

pub(crate) use player::Player;
pub(crate) use results::{MatchResult, result_file};
pub(crate) use standings::{RatedPlayer, RatingMeasurements, RatingsFile, Standings};
