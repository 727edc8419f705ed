//! `ratings.json`: the ratings of a run's players, and the results that they come from.

use super::json;
use super::results::MatchResult;
use crate::error::TrainError;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// `ratings.json`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct RatingsFile {
    /// The player with rating 0.
    pub(crate) reference: String,
    /// The players whose games link them with the reference: `random`, `material` and `uniform` (with their evaluations a turn, where
    /// these are their own), networks by generation.
    pub(crate) ratings: Vec<RatedPlayer>,
    pub(crate) results: Vec<WrittenResult>,
}

/// A player's rating in `ratings.json`, in Elo points above the reference.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RatedPlayer {
    /// Its name.
    pub(crate) player: String,
    /// Its generation, if it is a network of the run.
    pub(crate) generation: Option<u32>,
    /// The most likely rating.
    pub(crate) rating: f64,
    /// The lower end of the 95% interval.
    pub(crate) low: f64,
    /// Its upper end.
    pub(crate) high: f64,
    /// The 95% interval of its distance to the newest network, in Elo points. Files of older versions lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) behind_newest: Option<[f64; 2]>,
    /// The games that it has played in all matches.
    pub(crate) games: u64,
    /// Of a network: the games generated for it and for earlier ones, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) generated_games: Option<u64>,
    /// Of a network: the evaluations by networks in these games, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) generated_evaluations: Option<u64>,
    /// Of a network: the hours of generating these and of training, if measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hours: Option<f64>,
}

/// A match's result in `ratings.json`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WrittenResult {
    /// The network whose match it is.
    pub(super) a: String,
    pub(super) b: String,
    #[serde(flatten)]
    pub(super) result: MatchResult,
    /// Whether ratings come from it. Files of older versions lack it.
    #[serde(default)]
    pub(super) counted: bool,
}

/// A network on a plot: its position, its rating, and both ends of its bar if it has one.
pub(crate) type RatingMark = (f64, f64, Option<(f64, f64)>);

impl RatingsFile {
    /// Reads the file; none if there is none.
    ///
    /// # Errors
    ///
    /// The file can't be read, or holds something else.
    pub(crate) fn load(path: &Path) -> Result<Option<Self>, TrainError> {
        json::read(path, "ratings")
    }

    pub(super) fn to_json(&self) -> Result<String, TrainError> {
        json::text(self)
    }

    /// The networks by their `position` on a plot, if that is known. A bar is the 95% interval of the distance to the newest network,
    /// subtracted from the newest one's rating. The distance to the first network, which loses every game against later ones, is
    /// uncertain by hundreds of points and doesn't show recent progress.
    pub(crate) fn marks(&self, position: impl Fn(&RatedPlayer) -> Option<f64>) -> Vec<RatingMark> {
        let networks = self.ratings.iter().filter(|it| it.generation.is_some());
        let newest = networks.clone().max_by_key(|it| it.generation);
        let bar = |[low, high]: [f64; 2]| {
            let newest = newest?.rating;
            Some((newest - high, newest - low))
        };
        let mark = |it: &RatedPlayer| {
            let bar = it.behind_newest.and_then(bar);
            Some((position(it)?, it.rating, bar))
        };
        networks.filter_map(mark).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_none_and_a_broken_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ratings.json");
        assert!(RatingsFile::load(&path).unwrap().is_none());
        std::fs::write(&path, "{}").unwrap();
        let error = RatingsFile::load(&path).unwrap_err().to_string();
        assert!(error.contains("ratings.json"), "{error}");
        assert!(error.contains("missing field"), "{error}");
    }

    #[test]
    fn files_of_older_versions_are_read() {
        let text = r#"{"reference": "00000",
            "ratings": [{"player": "00001", "generation": 1, "rating": 5.0, "low": 2.0, "high": 9.0, "games": 20}],
            "results": [{"a": "00001", "b": "00000", "games": 20, "unfinished": 0, "score": 0.6}]}"#;
        let file: RatingsFile = serde_json::from_str(text).unwrap();
        let marks = file.marks(|it| it.generation.map(f64::from));
        assert_eq!(marks, [(1.0, 5.0, None)]);
    }
}
