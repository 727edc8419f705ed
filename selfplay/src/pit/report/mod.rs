//! What a match says at its end: an object for programs (its fields are the keys of `--json`), and words for people.

mod text;

use super::player::ResolvedPlayer;
use super::result::End;
use super::sprt::SprtReport;
use super::standings::{Results, Score};
use super::usage::Usage;
use super::worker::WorkTimes;
use engine::ratings::Rating;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The result of a match.
#[derive(Debug, Serialize)]
pub(super) struct MatchReport {
    #[serde(flatten)]
    pub(super) players: Players,
    pub(super) seed: u64,
    /// The turn limit.
    pub(super) max_turns: usize,
    /// Where the games began.
    pub(super) openings: String,
    /// How many games were requested, of all pairings.
    pub(super) games_asked: u64,
    /// How many are over; those count whose pair is whole, and where there is a sequential test, those that it has counted.
    pub(super) games_over: u64,
    /// How many of those that count are no copy of another.
    pub(super) distinct_games: u64,
    /// How the games that count ended.
    pub(super) ends: BTreeMap<End, u64>,
    /// The first of the games that an external engine lost besides by the rules, and why; the results have all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first_fault: Option<FirstFault>,
    /// Whether the same command plays the same games.
    pub(super) reproducible: bool,
    /// The share of the workers' time that was not the players'; null where no game was played.
    pub(super) overhead: Option<f64>,
    /// Seconds that were played for, this time.
    pub(super) seconds: f64,
    /// The match's folder.
    pub(super) folder: PathBuf,
    /// The folder with its games' records.
    pub(super) records: PathBuf,
}

/// A game that was lost besides by the rules.
#[derive(Debug, Serialize)]
pub(super) struct FirstFault {
    /// Its number in the match.
    pub(super) game: u64,
    /// Why, with the last lines of the engine.
    pub(super) reason: String,
}

/// The players, and what came of their games.
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

/// Two of several players, and what came of their games.
#[derive(Debug, Serialize)]
pub(super) struct Pairing {
    /// Their names.
    pub(super) a: String,
    pub(super) b: String,
    #[serde(flatten)]
    pub(super) score: Score,
}

/// A player of the match, and what it took.
#[derive(Debug, Serialize)]
pub(super) struct Participant {
    #[serde(flatten)]
    pub(super) resolved: ResolvedPlayer,
    #[serde(flatten)]
    pub(super) used: Used,
    /// How it lost games that count besides by the rules.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) faults: BTreeMap<End, u64>,
}

/// What a player's turns took in the games that count.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Used {
    /// Turns that it decided.
    pub(super) turns: u64,
    /// Their mean evaluations.
    pub(super) evaluations_per_turn: f64,
    /// Their mean time: that of one worker thread, searching and evaluating.
    pub(super) milliseconds_per_turn: f64,
}

/// What else there is to say of a match.
#[derive(Debug)]
pub(super) struct MatchInfo {
    pub(super) seed: u64,
    pub(super) max_turns: usize,
    pub(super) openings: String,
    pub(super) games_asked: u64,
    pub(super) reproducible: bool,
    pub(super) times: WorkTimes,
    pub(super) seconds: f64,
    pub(super) folder: PathBuf,
    pub(super) records: PathBuf,
}

impl MatchReport {
    pub(super) fn new(players: &[ResolvedPlayer], results: &Results, about: MatchInfo) -> Self {
        let usage = results.usage(players.len());
        let lost = usage.into_iter().zip(results.faults(players.len()));
        let players = players.iter().zip(lost);
        let players =
            players.map(|(player, (usage, faults))| Participant::new(player, usage, faults));
        Self {
            players: Players::new(players.collect(), results),
            seed: about.seed,
            max_turns: about.max_turns,
            openings: about.openings,
            games_asked: about.games_asked,
            games_over: results.played() as u64,
            distinct_games: results.distinct() as u64,
            ends: results.ends(),
            first_fault: results.first_fault().map(|(game, reason)| FirstFault {
                game,
                reason: reason.to_owned(),
            }),
            reproducible: about.reproducible,
            overhead: about.times.overhead(),
            seconds: about.seconds,
            folder: about.folder,
            records: about.records,
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

impl Participant {
    fn new(resolved: &ResolvedPlayer, usage: Usage, faults: BTreeMap<End, u64>) -> Self {
        Self {
            resolved: resolved.clone(),
            faults,
            used: Used {
                turns: usage.turns,
                evaluations_per_turn: usage.evaluations_per_turn(),
                milliseconds_per_turn: usage.milliseconds_per_turn(),
            },
        }
    }
}
