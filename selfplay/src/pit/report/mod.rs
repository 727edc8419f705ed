//! The report of a match: as JSON (its fields are the keys of `--json`) and as text.

mod text;

use super::folder::MatchFolder;
use super::plan::MatchPlan;
use super::player::ResolvedPlayer;
use super::result::End;
use super::sprt::SprtReport;
use super::standings::{FirstFault, Results, Score};
use super::worker::WorkTimes;
use engine::ratings::Rating;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The result of a match.
#[derive(Debug, Serialize)]
pub(super) struct MatchReport {
    #[serde(flatten)]
    pub(super) players: Players,
    pub(super) seed: u64,
    /// The turn limit.
    pub(super) max_turns: u32,
    /// The kind of openings.
    pub(super) openings: String,
    /// Requested games of all pairings.
    pub(super) games_asked: u64,
    /// Games that are over. Those of whole pairs count, or with a sequential test those that it has counted.
    pub(super) games_over: u64,
    /// Games that count and are no copy of another.
    pub(super) distinct_games: u64,
    /// How the games that count ended.
    pub(super) ends: BTreeMap<End, u64>,
    /// The first game that an external engine lost other than by the rules; `results.jsonl` has all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first_fault: Option<FirstFault>,
    /// Whether the same command plays the same games.
    pub(super) reproducible: bool,
    /// The share of the workers' time outside the players; null if no game was played.
    pub(super) overhead: Option<f64>,
    /// The duration of this run in seconds.
    pub(super) seconds: f64,
    /// The match's folder.
    pub(super) folder: PathBuf,
    /// The folder with its games' records.
    pub(super) records: PathBuf,
}

/// The players with their results.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Players {
    /// Two players.
    Two(Box<TwoPlayers>),
    /// More than two.
    Several(SeveralPlayers),
}

/// A match of two players.
#[derive(Debug, Serialize)]
pub(super) struct TwoPlayers {
    pub(super) a: Participant,
    pub(super) b: Participant,
    #[serde(flatten)]
    pub(super) score: Score,
    /// The sequential test, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sprt: Option<SprtReport>,
}

/// A match of more than two players.
#[derive(Debug, Serialize)]
pub(super) struct SeveralPlayers {
    /// As they were named.
    pub(super) players: Vec<RatedPlayer>,
    /// Those that met.
    pub(super) pairings: Vec<Pairing>,
    /// Games that count, of all pairings.
    pub(super) games: u64,
    /// Of these, truncated games.
    pub(super) unfinished: u64,
}

/// A player of several.
#[derive(Debug, Serialize)]
pub(super) struct RatedPlayer {
    #[serde(flatten)]
    pub(super) player: Participant,
    /// Games that count.
    pub(super) games: u64,
    /// Points in them.
    pub(super) points: f64,
    /// The rating in Elo, where the first player has 0; null where it has no games.
    pub(super) elo: Option<f64>,
    /// The lower end of its 95% interval.
    pub(super) elo_low: Option<f64>,
    /// Its upper end.
    pub(super) elo_high: Option<f64>,
}

/// Two of several players with their score.
#[derive(Debug, Serialize)]
pub(super) struct Pairing {
    /// Their names.
    pub(super) a: String,
    pub(super) b: String,
    #[serde(flatten)]
    pub(super) score: Score,
}

/// A player of the match, and its usage.
#[derive(Debug, Serialize)]
pub(super) struct Participant {
    #[serde(flatten)]
    pub(super) resolved: ResolvedPlayer,
    /// Turns that it decided in the games that count.
    pub(super) turns: u64,
    /// Their mean evaluations.
    pub(super) evaluations_per_turn: f64,
    /// Their mean time: that of one worker thread, searching and evaluating.
    pub(super) milliseconds_per_turn: f64,
    /// Games that count and that it lost other than by the rules.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) faults: BTreeMap<End, u64>,
}

impl MatchReport {
    /// The report of a match whose workers spent `times`, and which was played for `played`, this time.
    pub(super) fn new(
        plan: &MatchPlan,
        results: &Results,
        folder: &MatchFolder,
        times: WorkTimes,
        played: Duration,
    ) -> Self {
        let count = plan.players.len();
        let players = plan.players.iter().cloned();
        let players = players.zip(results.usage(count)).zip(results.faults(count));
        let players = players.map(|((resolved, usage), faults)| Participant {
            resolved,
            turns: usage.turns,
            evaluations_per_turn: usage.evaluations_per_turn(),
            milliseconds_per_turn: usage.milliseconds_per_turn(),
            faults,
        });
        Self {
            players: Players::new(players.collect(), results),
            seed: plan.seed,
            max_turns: plan.max_turns,
            openings: plan.openings.to_string(),
            games_asked: results.games().count(),
            games_over: results.played() as u64,
            distinct_games: results.distinct() as u64,
            ends: results.ends(),
            first_fault: results.first_fault(),
            reproducible: !plan.is_timed(),
            overhead: times.overhead(),
            seconds: played.as_secs_f64(),
            folder: folder.path().to_owned(),
            records: folder.games(),
        }
    }
}

impl Players {
    fn new(mut players: Vec<Participant>, results: &Results) -> Self {
        if players.len() == 2
            && let (Some(b), Some(a)) = (players.pop(), players.pop())
        {
            return Self::Two(Box::new(TwoPlayers {
                a,
                b,
                score: results.score(0),
                sprt: results.test().map(|test| test.report()),
            }));
        }
        Self::Several(SeveralPlayers::new(players, results))
    }
}

impl SeveralPlayers {
    fn new(players: Vec<Participant>, results: &Results) -> Self {
        let ratings = results.ratings();
        let scores = results.scores();
        let mut games = vec![0; players.len()];
        let mut points = vec![0.0; players.len()];
        for &([a, b], score) in &scores {
            let of_a = score.score * score.games as f64;
            for (player, gained) in [(a, of_a), (b, score.games as f64 - of_a)] {
                games[player] += score.games;
                points[player] += gained;
            }
        }
        let name = |player: usize| {
            players
                .get(player)
                .map_or(String::new(), |player| player.resolved.name().to_owned())
        };
        let pairings = scores.iter().map(|&([a, b], score)| Pairing {
            a: name(a),
            b: name(b),
            score,
        });
        let pairings: Vec<Pairing> = pairings.collect();
        let rated = players.into_iter().enumerate().map(|(index, player)| {
            let rating = ratings.get(&index).filter(|_| games[index] > 0);
            let of = |value: fn(&Rating) -> f64| rating.map(value);
            RatedPlayer {
                player,
                games: games[index],
                points: points[index],
                elo: of(|rating| rating.elo),
                elo_low: of(|rating| rating.low),
                elo_high: of(|rating| rating.high),
            }
        });
        Self {
            players: rated.collect(),
            games: pairings.iter().map(|pairing| pairing.score.games).sum(),
            unfinished: pairings
                .iter()
                .map(|pairing| pairing.score.unfinished)
                .sum(),
            pairings,
        }
    }
}
