//! How strong the players of a run are, by the results of all their matches.
//!
//! [`engine::ratings`] has the computation; [`RatingTable`] reads a run's results, and is written to its `ratings.json`.

pub(crate) mod clock;
mod counting;
mod file;
mod json;
mod player;
mod results;
mod table;

pub(crate) use file::{RatedPlayer, RatingMark, RatingsFile};
pub(crate) use player::Player;
pub(crate) use results::{MatchResult, result_file, result_files};
pub(crate) use table::{RatingMeasurements, RatingTable};

/// Elo points with their sign, in whole ones: never a negative zero.
pub(crate) fn signed(elo: f64) -> String {
    match format!("{elo:+.0}").as_str() {
        "-0" | "+0" => "0".to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_has_no_sign() {
        let texts = [-0.0, 0.0, 0.4, -0.4, 0.6, -12.3].map(signed);
        assert_eq!(texts, ["0", "0", "0", "0", "+1", "-12"]);
    }
}
