//! The ratings of a run, with the results that they come from.

use super::Player;
use super::results::{self, MatchResult};
use crate::error::TrainError;
use engine::ratings::{Games, Rating, fit};
use engine::run::{RunDirectory, write_file};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All results of a run, and what they say.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Standings {
    /// By network and opponent.
    results: BTreeMap<(u32, Player), MatchResult>,
    /// Who has 0: `random` where it has played, else the first network that has. None where nobody has.
    reference: Option<Player>,
    ratings: BTreeMap<Player, Rating>,
}

/// A network's rating in the log, `kind` being `rating`: Elo points above the reference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct RatingMeasurements {
    /// The likeliest.
    pub(crate) rating: f64,
    /// The lower end of the 95% interval.
    pub(crate) rating_low: f64,
    /// Its upper end.
    pub(crate) rating_high: f64,
}

/// `ratings.json`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RatingsFile {
    /// Who has 0.
    reference: String,
    /// The players whose games link them with the reference: `random`, `material`, `uniform`, networks by generation.
    pub(crate) ratings: Vec<RatedPlayer>,
    results: Vec<WrittenResult>,
}

/// A player's rating in `ratings.json`, in Elo points above the reference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RatedPlayer {
    /// Its name.
    pub(crate) player: String,
    /// Its generation, if it is a network of the run.
    pub(crate) generation: Option<u32>,
    /// The likeliest rating.
    pub(crate) rating: f64,
    /// The lower end of the 95% interval.
    pub(crate) low: f64,
    /// Its upper end.
    pub(crate) high: f64,
    /// The games that it has played in all matches.
    pub(crate) games: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct WrittenResult {
    a: String,
    b: String,
    games: u64,
    /// Games that were stopped, half a point each.
    unfinished: u64,
    /// a's points a game.
    score: f64,
}

impl Standings {
    /// Reads the results of a run's matches and rates the players.
    pub(crate) fn of_run(run: &RunDirectory) -> Result<Self, TrainError> {
        let results = results::read_all(run)?;
        let keyed = |(generation, opponent, result)| ((generation, opponent), result);
        Ok(Self::of_results(results.into_iter().map(keyed).collect()))
    }

    fn of_results(results: BTreeMap<(u32, Player), MatchResult>) -> Self {
        let games: Vec<Games<Player>> = results
            .iter()
            .map(|(&(generation, opponent), result)| Games {
                a: Player::Network(generation),
                b: opponent,
                games: result.games as f64,
                points: result.games as f64 * result.score,
            })
            .collect();
        let players = || games.iter().flat_map(|of| [of.a, of.b]);
        let network = players().filter(|player| matches!(player, Player::Network(_)));
        let reference = players()
            .find(|&player| player == Player::Random)
            .or(network.min());
        Self {
            ratings: reference.map_or_else(BTreeMap::new, |reference| fit(&games, reference)),
            reference,
            results,
        }
    }

    /// The result of a network's match.
    pub(crate) fn result(&self, generation: u32, opponent: Player) -> Option<&MatchResult> {
        self.results.get(&(generation, opponent))
    }

    /// The results of a network's own matches, by opponent.
    pub(crate) fn results_of(
        &self,
        generation: u32,
    ) -> impl Iterator<Item = (Player, &MatchResult)> {
        let of = (generation, Player::Random)..=(generation, Player::Network(u32::MAX));
        let results = self.results.range(of);
        results.map(|(&(_, opponent), result)| (opponent, result))
    }

    /// A player's rating, if its games link it with the reference.
    pub(crate) fn rating(&self, player: Player) -> Option<Rating> {
        self.ratings.get(&player).copied()
    }

    /// Who has 0.
    pub(crate) fn reference(&self) -> Option<Player> {
        self.reference
    }

    /// Whether `ratings.json` says the same.
    pub(crate) fn is_written(&self, run: &RunDirectory) -> Result<bool, TrainError> {
        match std::fs::read(run.ratings()) {
            Ok(bytes) => Ok(bytes == self.to_json()?.as_bytes()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(TrainError::Io {
                what: "read",
                path: run.ratings(),
                error,
            }),
        }
    }

    /// Writes `ratings.json`.
    pub(crate) fn write(&self, run: &RunDirectory) -> Result<(), TrainError> {
        Ok(write_file(&run.ratings(), self.to_json()?.as_bytes())?)
    }

    /// The games that a player has played in all matches.
    fn games_of(&self, player: Player) -> u64 {
        let results = self.results.iter();
        let own = results.filter(|((generation, opponent), _)| {
            *opponent == player || Player::Network(*generation) == player
        });
        own.map(|(_, result)| result.games).sum()
    }

    fn to_json(&self) -> Result<String, TrainError> {
        let rating = |(&player, &rating): (&Player, &Rating)| {
            let rating = RatingMeasurements::from(rating);
            RatedPlayer {
                player: player.to_string(),
                generation: player.generation(),
                rating: rating.rating,
                low: rating.rating_low,
                high: rating.rating_high,
                games: self.games_of(player),
            }
        };
        let result =
            |(&(generation, opponent), result): (&(u32, Player), &MatchResult)| WrittenResult {
                a: Player::Network(generation).to_string(),
                b: opponent.to_string(),
                games: result.games,
                unfinished: result.unfinished,
                score: result.score,
            };
        let written = RatingsFile {
            reference: self.reference.map_or_else(String::new, |it| it.to_string()),
            ratings: self.ratings.iter().map(rating).collect(),
            results: self.results.iter().map(result).collect(),
        };
        let text = serde_json::to_string_pretty(&written).map_err(|error| TrainError::Answer {
            what: "the ratings".into(),
            reason: error.to_string(),
        })?;
        Ok(text + "\n")
    }
}

impl From<Rating> for RatingMeasurements {
    fn from(rating: Rating) -> Self {
        // A tenth of a point is less than any error.
        let rounded = |elo: f64| (10.0 * elo).round() / 10.0;
        Self {
            rating: rounded(rating.elo),
            rating_low: rounded(rating.low),
            rating_high: rounded(rating.high),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(all: &[(u32, Player, f64)]) -> Standings {
        let keyed = |&(generation, opponent, score): &(u32, Player, f64)| {
            let result = MatchResult {
                games: 20,
                unfinished: 2,
                score,
            };
            ((generation, opponent), result)
        };
        Standings::of_results(all.iter().map(keyed).collect())
    }

    #[test]
    fn random_has_zero_where_it_plays_and_else_the_first_network() {
        let with = results(&[
            (1, Player::FIRST, 0.75),
            (1, Player::Random, 0.95),
            (0, Player::Random, 0.9),
        ]);
        assert_eq!(with.reference(), Some(Player::Random));
        assert_eq!(with.rating(Player::Random).map(|it| it.elo), Some(0.0));
        assert!(with.rating(Player::Network(1)).unwrap().elo > 300.0);
        assert_eq!(with.results_of(1).count(), 2);
        let without = results(&[(1, Player::FIRST, 0.75), (1, Player::Material, 0.5)]);
        assert_eq!(without.reference(), Some(Player::FIRST));
        assert!(without.rating(Player::Material).unwrap().elo > 100.0);
        assert_eq!(results(&[]).reference(), None);
    }

    #[test]
    fn the_file_holds_every_result_and_every_rating() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path());
        let standings = results(&[(0, Player::Random, 0.5), (3, Player::Network(1), 0.75)]);
        assert!(!standings.is_written(&run).unwrap());
        standings.write(&run).unwrap();
        assert!(standings.is_written(&run).unwrap());
        let text = std::fs::read(run.ratings()).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(json["reference"], "random");
        assert_eq!(json["ratings"][1]["player"], "00000");
        assert_eq!(json["ratings"][1]["rating"], 0.0);
        assert_eq!(json["ratings"][1]["generation"], 0);
        assert_eq!(json["ratings"][0]["generation"], serde_json::Value::Null);
        assert_eq!(json["ratings"][0]["games"], 20);
        assert_eq!(json["ratings"].as_array().unwrap().len(), 2);
        assert_eq!(json["results"][1]["a"], "00003");
        assert_eq!(json["results"][1]["b"], "00001");
        assert_eq!(json["results"][1]["score"], 0.75);
        let more = results(&[(0, Player::Random, 0.5)]);
        assert!(!more.is_written(&run).unwrap());
    }
}
