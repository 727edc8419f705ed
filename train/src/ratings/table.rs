//! The ratings of a run, with the results that they come from.

use super::clock::efforts;
use super::counting::{counted, of_network};
use super::file::{RatedPlayer, RatingsFile, WrittenResult};
use super::player::Player;
use super::results::{self, MatchResult};
use crate::error::TrainError;
use engine::ratings::{Games, Pairs, Rating, fit, fit_pairs};
use engine::run::{Effort, RunDirectory, write_file};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// All results of a run, and the ratings by them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RatingTable {
    /// By network and opponent.
    results: BTreeMap<(u32, Player), MatchResult>,
    /// The results that the ratings come from.
    counted: BTreeSet<(u32, Player)>,
    rated: Rated,
    /// The games and time behind each network.
    efforts: BTreeMap<u32, Effort>,
}

/// A network's rating in the log, `kind` being `rating`: Elo points above the reference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct RatingMeasurements {
    /// The most likely rating.
    pub(crate) rating: f64,
    /// The lower end of the 95% interval.
    pub(crate) rating_low: f64,
    /// Its upper end.
    pub(crate) rating_high: f64,
}

impl RatingTable {
    /// Reads the results of a run's matches and rates the players.
    pub(crate) fn of_run(run: &RunDirectory) -> Result<Self, TrainError> {
        Ok(Self::of_results(results::read_all(run)?, efforts(run)?))
    }

    fn of_results(
        results: BTreeMap<(u32, Player), MatchResult>,
        efforts: BTreeMap<u32, Effort>,
    ) -> Self {
        let counted = counted(&results);
        Self {
            rated: rated(&results, &counted),
            counted,
            results,
            efforts,
        }
    }

    /// The players of matches that are no networks.
    pub(crate) fn anchors(&self) -> Vec<Player> {
        let opponents = self.results.keys().map(|&(_, opponent)| opponent);
        let anchors: BTreeSet<Player> = opponents
            .filter(|player| player.generation().is_none())
            .collect();
        anchors.into_iter().collect()
    }

    /// The games and time behind a network; none of another player.
    fn effort(&self, player: Player) -> Option<Effort> {
        let generation = player.generation()?;
        Some(self.efforts.get(&generation).copied().unwrap_or_default())
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
        let results = of_network(&self.results, generation);
        results.map(|(&(_, opponent), result)| (opponent, result))
    }

    /// A player's rating, if its games link it with the reference.
    pub(crate) fn rating(&self, player: Player) -> Option<Rating> {
        self.rated.ratings.get(&player).copied()
    }

    /// The player with rating 0.
    pub(crate) fn reference(&self) -> Option<Player> {
        self.rated.reference
    }

    /// Whether `ratings.json` holds the same.
    pub(crate) fn is_written(&self, run: &RunDirectory) -> Result<bool, TrainError> {
        match std::fs::read(run.ratings()) {
            Ok(bytes) => Ok(bytes == self.file().to_json()?.as_bytes()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(TrainError::io("read", &run.ratings())(error)),
        }
    }

    /// Writes `ratings.json`.
    pub(crate) fn write(&self, run: &RunDirectory) -> Result<(), TrainError> {
        Ok(write_file(
            &run.ratings(),
            self.file().to_json()?.as_bytes(),
        )?)
    }

    /// The games that a player has played in all matches.
    fn games_of(&self, player: Player) -> u64 {
        let results = self.results.iter();
        let own = results.filter(|((generation, opponent), _)| {
            *opponent == player || Player::Network(*generation) == player
        });
        own.map(|(_, result)| result.games).sum()
    }

    /// The contents of the file.
    pub(crate) fn file(&self) -> RatingsFile {
        let rating = |(&player, &rating): (&Player, &Rating)| {
            let rating = RatingMeasurements::from(rating);
            let effort = self.effort(player).unwrap_or_default();
            let behind = self.rated.behind.get(&player).copied();
            RatedPlayer {
                player: player.to_string(),
                generation: player.generation(),
                rating: rating.rating,
                low: rating.rating_low,
                high: rating.rating_high,
                behind_newest: behind.map(|it| [-it.high, -it.low].map(rounded)),
                games: self.games_of(player),
                generated_games: effort.games,
                generated_evaluations: effort.evaluations,
                // In steps of four seconds.
                hours: effort
                    .hours()
                    .map(|hours| (1_000.0 * hours).round() / 1_000.0),
            }
        };
        let result =
            |(&(generation, opponent), &result): (&(u32, Player), &MatchResult)| WrittenResult {
                a: Player::Network(generation).to_string(),
                b: opponent.to_string(),
                result,
                counted: self.counted.contains(&(generation, opponent)),
            };
        RatingsFile {
            reference: self
                .rated
                .reference
                .map_or_else(String::new, |it| it.to_string()),
            ratings: self.rated.ratings.iter().map(rating).collect(),
            results: self.results.iter().map(result).collect(),
        }
    }
}

/// The computed ratings.
#[derive(Debug, Clone, Default, PartialEq)]
struct Rated {
    /// The player with rating 0: the first of `material` (without evaluations of its own, else with the fewest), the first network,
    /// `uniform`, `random` and the earliest network that has played and whose games link it with the newest network. What is measured
    /// from a player that loses nearly every game, as the first network does, has an error of hundreds of points. None without games.
    reference: Option<Player>,
    ratings: BTreeMap<Player, Rating>,
    /// The same measured from the newest network, with the intervals of the distance to it.
    behind: BTreeMap<Player, Rating>,
}

/// The ratings of all players that are linked with the newest network.
fn rated(
    results: &BTreeMap<(u32, Player), MatchResult>,
    counted: &BTreeSet<(u32, Player)>,
) -> Rated {
    let results = || {
        results
            .iter()
            .filter(|(players, _)| counted.contains(players))
    };
    let both = |&(generation, opponent): &(u32, Player)| [Player::Network(generation), opponent];
    let mut players: Vec<Player> = counted.iter().flat_map(both).collect();
    let Some(newest) = players.iter().copied().max() else {
        return Rated::default();
    };
    players.sort_by_key(|&player| {
        let rank = match player {
            Player::Material(_) => 0,
            Player::FIRST => 1,
            Player::Uniform(_) => 2,
            Player::Random => 3,
            Player::Network(_) => 4,
        };
        (rank, player)
    });
    players.dedup();
    let pairs = results().map(|(players, result)| {
        let ([a, b], counts) = (both(players), result.pairs?);
        Some(Pairs { a, b, counts })
    });
    let pairs: Option<Vec<Pairs<Player>>> = pairs.collect();
    let games = results().map(|(players, result)| {
        let ([a, b], games) = (both(players), result.games as f64);
        let points = games * result.score;
        Games {
            a,
            b,
            games,
            points,
        }
    });
    let games: Vec<Games<Player>> = games.collect();
    // Where a result has no pairs, games count as independent ones.
    let from = |reference: Player| match &pairs {
        Some(pairs) => fit_pairs(pairs, reference),
        None => fit(&games, reference),
    };
    let behind = from(newest);
    // The newest is linked with itself.
    let reference = players.into_iter().find(|it| behind.contains_key(it));
    Rated {
        reference,
        ratings: reference.map_or_else(BTreeMap::new, from),
        behind,
    }
}

/// A tenth of a point is less than any error; and no zero is negative.
fn rounded(elo: f64) -> f64 {
    (10.0 * elo).round() / 10.0 + 0.0
}

impl From<Rating> for RatingMeasurements {
    fn from(rating: Rating) -> Self {
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
    use crate::ratings::RatingMark;
    use engine::ratings::PairCounts;

    fn results(all: &[(u32, Player, f64)]) -> RatingTable {
        let keyed = |&(generation, opponent, score): &(u32, Player, f64)| {
            let result = MatchResult {
                games: 20,
                unfinished: 2,
                score,
                pairs: (score == 0.75).then(|| [0, 1, 2, 3, 4].into()),
            };
            ((generation, opponent), result)
        };
        let effort = |generation: u32| {
            let effort = Effort {
                games: Some(100 * u64::from(generation)),
                evaluations: Some(9_000 * u64::from(generation)),
                seconds: Some(1_800.0 * f64::from(generation)),
            };
            (generation, effort)
        };
        let efforts = (0..3).map(effort).collect();
        RatingTable::of_results(all.iter().map(keyed).collect(), efforts)
    }

    #[test]
    fn results_that_do_not_count_are_kept_and_rate_no_player() {
        let all = |last: f64| {
            results(&[
                (1, Player::FIRST, 0.75),
                (1, Player::Random, 0.95),
                (2, Player::Network(1), 0.75),
                (2, Player::Random, 0.95),
                (3, Player::Network(2), 0.75),
                (3, Player::Random, last),
            ])
        };
        assert_eq!(all(0.95).rated.ratings, all(0.5).rated.ratings);
        assert_eq!(all(0.95).results_of(3).count(), 2);
        assert_eq!(all(0.95).games_of(Player::Random), 60);
        let json = serde_json::to_value(all(0.5).file()).unwrap();
        let counted = |at: usize| &json["results"][at]["counted"];
        assert_eq!(json["results"][4]["b"], "random");
        assert_eq!([counted(2), counted(4), counted(5)], [true, false, true]);
    }

    #[test]
    fn material_has_zero_and_without_it_the_first_network_or_an_anchor_does() {
        let all = results(&[
            (1, Player::FIRST, 0.75),
            (1, Player::Material(Some(32)), 0.25),
        ]);
        assert_eq!(all.reference(), Some(Player::Material(Some(32))));
        let with = results(&[
            (1, Player::FIRST, 0.75),
            (1, Player::Random, 0.95),
            (0, Player::Random, 0.9),
        ]);
        assert_eq!(with.reference(), Some(Player::FIRST));
        assert_eq!(with.rating(Player::FIRST).map(|it| it.elo), Some(0.0));
        assert!(with.rating(Player::Random).unwrap().elo < -300.0);
        assert_eq!(with.results_of(1).count(), 2);
        let without = results(&[
            (1, Player::Random, 0.75),
            (1, Player::Material(Some(32)), 0.5),
        ]);
        assert_eq!(without.reference(), Some(Player::Material(Some(32))));
        let anchors = [Player::Random, Player::Material(Some(32))];
        assert_eq!(without.anchors(), anchors);
        let random = results(&[(2, Player::Network(1), 0.75), (1, Player::Random, 0.75)]);
        assert_eq!(random.reference(), Some(Player::Random));
        let networks = results(&[(2, Player::Network(1), 0.75)]);
        assert_eq!(networks.reference(), Some(Player::Network(1)));
        // Nothing links the first network with the newest.
        let apart = results(&[(0, Player::Random, 0.75), (3, Player::Network(2), 0.75)]);
        assert_eq!(apart.reference(), Some(Player::Network(2)));
        assert_eq!(results(&[]).reference(), None);
    }

    #[test]
    fn the_file_holds_every_result_and_every_rating() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path());
        let ratings = results(&[
            (0, Player::Random, 0.5),
            (1, Player::FIRST, 0.75),
            (3, Player::Network(1), 0.5),
        ]);
        assert!(!ratings.is_written(&run).unwrap());
        ratings.write(&run).unwrap();
        assert!(ratings.is_written(&run).unwrap());
        let text = std::fs::read_to_string(run.ratings()).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["reference"], "00000");
        let ratings = &json["ratings"];
        assert_eq!(ratings.as_array().unwrap().len(), 4);
        assert_eq!(ratings[0]["player"], "random");
        assert_eq!(ratings[0]["generation"], serde_json::Value::Null);
        assert_eq!(ratings[0]["games"], 20);
        assert_eq!(ratings[0].get("hours"), None);
        assert_eq!(ratings[2]["player"], "00001");
        assert_eq!(ratings[2]["generation"], 1);
        assert_eq!(ratings[2]["generated_games"], 100);
        assert_eq!(ratings[2]["generated_evaluations"], 9_000);
        assert_eq!(ratings[2]["hours"], 0.5);
        assert_eq!(ratings[3].get("generated_games"), None, "not known");
        assert!(!text.contains("-0.0"), "{text}");
        assert_eq!(json["results"][1]["a"], "00001");
        assert_eq!(json["results"][1]["b"], "00000");
        assert_eq!(json["results"][1]["score"], 0.75);
        assert_eq!(
            json["results"][1]["pairs"],
            serde_json::json!([0, 1, 2, 3, 4])
        );
        assert_eq!(json["results"][0].get("pairs"), None);
        let read: RatingsFile = serde_json::from_str(&text).unwrap();
        assert_eq!(read.ratings[2].hours, Some(0.5));
        let more = results(&[(0, Player::Random, 0.5)]);
        assert!(!more.is_written(&run).unwrap());
    }

    #[test]
    fn errors_follow_the_pairs_where_every_result_has_them() {
        let result = |pairs: Option<[u64; 5]>| MatchResult {
            games: 200,
            unfinished: 0,
            score: 0.5,
            pairs: pairs.map(PairCounts::from),
        };
        let error = |pairs| {
            let results = [
                ((1, Player::FIRST), result(pairs)),
                ((2, Player::FIRST), result(Some([0, 0, 100, 0, 0]))),
            ];
            let ratings = RatingTable::of_results(results.into(), BTreeMap::new());
            ratings.rating(Player::Network(1)).unwrap().high
        };
        assert!(error(Some([0, 0, 100, 0, 0])) < 0.6 * error(None));
    }

    #[test]
    fn the_plot_has_every_rated_network_and_anchor() {
        let ratings = results(&[
            (0, Player::Random, 0.75),
            (1, Player::FIRST, 0.75),
            (3, Player::Network(1), 0.5),
        ]);
        let file = ratings.file();
        let positions = |marks: Vec<RatingMark>| marks.into_iter().map(|mark| mark.0);
        let games = file.marks(|it| it.generated_games.map(|games| games as f64));
        assert!(positions(games).eq([0.0, 100.0]), "of the third not known");
        assert!(positions(file.marks(|it| it.hours)).any(|hours| hours == 0.5));
        // The bars say how well the distance to the newest is known: its own has no length.
        let marks = file.marks(|it| it.generation.map(f64::from));
        let [first, second, (_, newest, bar)] = marks[..] else {
            panic!("{marks:?}");
        };
        assert_eq!(bar, Some((newest, newest)));
        let length = |(_, _, bar): RatingMark| bar.map(|(low, high)| high - low).unwrap();
        assert!(100.0 < length(second) && length(second) < length(first));
        let (_, rating, bar) = second;
        let (low, high) = bar.unwrap();
        assert!(low < rating && rating < high);
        let mut anchors = file.ratings.iter().filter(|it| it.generation.is_none());
        assert!(anchors.next().unwrap().rating < -50.0 && anchors.next().is_none());
    }
}
