//! `ratings.json`: the ratings of a run's players, and the results that they come from.

use super::json;
use super::player::Player;
use crate::error::TrainError;
use crate::plots::ratings::{RatedNetwork, RatingPlot};
use engine::ratings::PairCounts;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// `ratings.json`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RatingsFile {
    /// The player with rating 0.
    pub(super) reference: String,
    /// The players whose games link them with the reference: `random`, `material` and `uniform` (with their evaluations a turn, where
    /// these are their own), networks by generation.
    pub(crate) ratings: Vec<RatedPlayer>,
    pub(super) results: Vec<WrittenResult>,
}

/// A player's rating in `ratings.json`, in Elo points above the reference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// Of a network: the hours of generating these and of training, if measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hours: Option<f64>,
}

/// A match's result in `ratings.json`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WrittenResult {
    pub(super) a: String,
    pub(super) b: String,
    pub(super) games: u64,
    /// Truncated games, half a point each.
    pub(super) unfinished: u64,
    /// a's points a game.
    pub(super) score: f64,
    /// How many pairs of games gave a 0, ½, 1, 1½ and 2 points, if recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pairs: Option<PairCounts>,
    /// Whether ratings come from it. Files of older versions lack it.
    #[serde(default)]
    pub(super) counted: bool,
}

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

    /// The plot of it.
    pub(crate) fn plot(&self) -> RatingPlot {
        let networks = self
            .ratings
            .iter()
            .filter_map(|it| Some((it.generation?, it)));
        let newest = networks.clone().max_by_key(|(generation, _)| *generation);
        let bar = |[low, high]: [f64; 2]| {
            let (_, newest) = newest?;
            Some((newest.rating - high, newest.rating - low))
        };
        let network = |(generation, it): (u32, &RatedPlayer)| RatedNetwork {
            generation,
            games: it.generated_games,
            hours: it.hours,
            rating: it.rating,
            bar: it.behind_newest.and_then(bar),
        };
        let anchors = self.ratings.iter().filter(|it| it.generation.is_none());
        RatingPlot {
            reference: match self.reference.parse() {
                Ok(player) => Player::in_words(player),
                Err(_) => self.reference.clone(),
            },
            networks: networks.map(network).collect(),
            anchors: anchors.map(|it| (it.player.clone(), it.rating)).collect(),
        }
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
        let shown = file.plot();
        assert_eq!(shown.reference, "the first network");
        assert_eq!(shown.networks[0].rating, 5.0);
        assert_eq!(shown.networks[0].bar, None);
    }
}
