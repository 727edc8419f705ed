//! The report of a match: as JSON (its fields are the keys of `--json`) and as text.

use super::folder::MatchFolder;
use super::plan::MatchPlan;
use super::player::ResolvedPlayer;
use super::result::End;
use super::sprt::SprtReport;
use super::standings::{FirstFault, Results, Score, in_whole};
use super::worker::WorkTimes;
use crate::output::table;
use engine::ratings::Rating;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
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
    /// Whether time limited turns.
    #[serde(skip)]
    pub(super) is_timed: bool,
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
        let totals = results.by_player(plan.players.len());
        let players = plan.players.iter().cloned().zip(totals);
        let players = players.map(|(resolved, (usage, faults))| Participant {
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
            reproducible: plan.is_repeatable(),
            is_timed: plan.is_timed(),
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
        let name = |player: usize| players[player].resolved.name().to_owned();
        let pairings = scores.iter().map(|&([a, b], score)| Pairing {
            a: name(a),
            b: name(b),
            score,
        });
        let pairings = pairings.collect();
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
            games: scores.iter().map(|(_, score)| score.games).sum(),
            unfinished: scores.iter().map(|(_, score)| score.unfinished).sum(),
            pairings,
        }
    }
}

impl fmt::Display for Participant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = &self.resolved.settings;
        f.write_str(&self.resolved.spec)?;
        if settings.clock.is_some() {
            write!(f, ": used {:.2} s a turn", self.milliseconds_per_turn / 1e3)?;
        } else if self.turns > 0 && (settings.temperature.is_some() || !settings.search.is_empty())
        {
            write!(
                f,
                ": used {:.1} evaluations and {:.2} ms a turn",
                self.evaluations_per_turn, self.milliseconds_per_turn
            )?;
        }
        if self.faults.is_empty() {
            return Ok(());
        }
        let (lost, faults) = (self.faults.values().sum::<u64>(), counted(&self.faults));
        write!(
            f,
            "; {lost} games were lost not by the rules, but by: {faults}"
        )
    }
}

/// Kinds of endings with their numbers of games.
fn counted(ends: &BTreeMap<End, u64>) -> String {
    let ends = ends.iter().map(|(end, games)| format!("{end} {games}"));
    ends.collect::<Vec<_>>().join(", ")
}

impl fmt::Display for TwoPlayers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { a, b, score, sprt } = self;
        let likelihood = percent(score.los);
        writeln!(f, "a: {a}\nb: {b}\na has {score}")?;
        writeln!(f, "a is stronger with a likelihood of {likelihood}")?;
        if let Some(sprt) = sprt {
            writeln!(f, "{sprt}")?;
        }
        let [none, half, one, one_and_a_half, two] = score.pairs;
        writeln!(
            f,
            "pairs with 0, ½, 1, 1½, 2 points for a: {none}, {half}, {one}, {one_and_a_half}, {two}"
        )
    }
}

/// A rating or difference in whole Elo points, and its interval.
fn elo_cells(elo: f64, low: f64, high: f64) -> [String; 2] {
    let [elo, low, high] = [elo, low, high].map(in_whole);
    [elo, format!("{low} to {high}")]
}

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

impl SeveralPlayers {
    /// The ratings, the best first.
    fn ratings(&self) -> String {
        let mut rated: Vec<_> = self.players.iter().collect();
        let elo = |elo: Option<f64>| elo.unwrap_or(f64::NEG_INFINITY);
        rated.sort_by(|a, b| elo(b.elo).total_cmp(&elo(a.elo)));
        let rows = rated.into_iter().map(|rated| {
            let [elo, interval] = match (rated.elo, rated.elo_low, rated.elo_high) {
                (Some(elo), Some(low), Some(high)) => elo_cells(elo, low, high),
                _ => Default::default(),
            };
            let name = rated.player.resolved.name().to_owned();
            let points = percent(rated.points / rated.games.max(1) as f64);
            [name, elo, interval, rated.games.to_string(), points]
        });
        table(
            ["player", "Elo", "95% interval", "games", "points"],
            |column| column > 0,
            rows,
        )
    }

    /// The scores of the pairings.
    fn scores(&self) -> String {
        let rows = self.pairings.iter().map(|Pairing { a, b, score }| {
            let [elo, interval] = elo_cells(score.elo, score.elo_low, score.elo_high);
            let [games, won, lost] = [score.games, score.wins_a, score.losses_a];
            let [games, won, lost] = [games, won, lost].map(|games| games.to_string());
            let (a, b, points, likelihood) = (
                a.clone(),
                b.clone(),
                percent(score.score),
                percent(score.los),
            );
            [a, b, games, won, lost, points, elo, interval, likelihood]
        });
        let header = [
            "player",
            "against",
            "games",
            "won",
            "lost",
            "points",
            "Elo",
            "95% interval",
            "likelihood",
        ];
        table(header, |column| column >= 2, rows)
    }
}

impl fmt::Display for SeveralPlayers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for rated in &self.players {
            writeln!(f, "{}", rated.player)?;
        }
        writeln!(f, "\n{}\n\n{}\n", self.ratings(), self.scores())
    }
}

impl fmt::Display for MatchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (games, unfinished) = match &self.players {
            Players::Two(two) => {
                write!(f, "{two}")?;
                (two.score.games, two.score.unfinished)
            }
            Players::Several(several) => {
                write!(f, "{several}")?;
                (several.games, several.unfinished)
            }
        };
        if !self.ends.is_empty() {
            writeln!(f, "games ended by: {}", counted(&self.ends))?;
        }
        if let Some(fault) = &self.first_fault {
            writeln!(
                f,
                "games lost other than by the rules say little about strength; the first such game, {}: {}",
                fault.game, fault.reason
            )?;
        }
        if unfinished > 0 {
            writeln!(
                f,
                "{unfinished} games truncated at the turn limit, half a point each"
            )?;
        }
        if self.distinct_games < games {
            writeln!(
                f,
                "only {} of {games} games differ: copies prove nothing, and the intervals are too narrow",
                self.distinct_games
            )?;
        }
        if self.is_timed {
            writeln!(
                f,
                "turns were limited by time: the same command plays other games"
            )?;
        } else if !self.reproducible {
            writeln!(
                f,
                "a GPU computed networks: the same command may play other games"
            )?;
        }
        if let Some(overhead) = self.overhead {
            writeln!(f, "overhead: {:.1}% of the workers' time", 100.0 * overhead)?;
        }
        writeln!(f, "games: {}", self.records.display())
    }
}
