//! What a match says, in words and as JSON.

use super::contender::Contender;
use super::statistics::Score;
use engine::config::SearchConfig;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// What a player's turns took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// Turns that were decided.
    pub(super) turns: u64,
    /// Evaluations for them.
    pub(super) evaluations: u64,
    /// Time of a worker thread, for searches and evaluations.
    pub(super) time: Duration,
}

impl Usage {
    pub(super) fn add(&mut self, other: Self) {
        self.turns += other.turns;
        self.evaluations += other.evaluations;
        self.time += other.time;
    }
}

/// The result of a match, as printed with `--json`.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) a: PlayerReport,
    pub(super) b: PlayerReport,
    pub(super) seed: u64,
    #[serde(flatten)]
    pub(super) score: Score,
    /// The folder with the match's games.
    pub(super) records: PathBuf,
}

/// A player of the match.
#[derive(Debug, Serialize)]
pub(super) struct PlayerReport {
    /// As named on the command line.
    player: String,
    #[serde(flatten)]
    search: Option<SearchReport>,
}

/// How a player searched.
#[derive(Debug, Serialize)]
struct SearchReport {
    /// The evaluations that a turn could take.
    evaluations: u32,
    /// The settings that the other player had not.
    settings: Vec<String>,
    /// The mean evaluations of a turn.
    evaluations_per_turn: f64,
    /// The mean time of a turn: that of one worker thread, searching and evaluating.
    milliseconds_per_turn: f64,
    /// Everything that the search was told.
    search: SearchConfig,
}

impl PlayerReport {
    pub(super) fn new(contender: &Contender, usage: Usage) -> Self {
        let turns = usage.turns.max(1) as f64;
        let search = contender.search.as_ref().map(|search| SearchReport {
            evaluations: search.config.evaluations,
            settings: search.settings.clone(),
            evaluations_per_turn: usage.evaluations as f64 / turns,
            milliseconds_per_turn: 1e3 * usage.time.as_secs_f64() / turns,
            search: search.config,
        });
        Self {
            player: contender.name.clone(),
            search,
        }
    }
}

impl fmt::Display for PlayerReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.player)?;
        let Some(search) = &self.search else {
            return Ok(());
        };
        write!(f, ", {} evaluations a turn", search.evaluations)?;
        for setting in &search.settings {
            write!(f, ", {setting}")?;
        }
        write!(
            f,
            ": used {:.1} and {:.2} ms",
            search.evaluations_per_turn, search.milliseconds_per_turn
        )
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            games,
            wins_a,
            losses_a,
            score,
            elo,
            elo_low,
            elo_high,
            ..
        } = self;
        write!(
            f,
            "{wins_a} won, {losses_a} lost of {games}: {:.1}%, Elo {elo:+.0} [{elo_low:+.0}, {elo_high:+.0}]",
            100.0 * score
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "a: {}", self.a)?;
        writeln!(f, "b: {}", self.b)?;
        writeln!(f, "a has {}", self.score)?;
        let [none, half, one, one_and_a_half, two] = self.score.pairs;
        writeln!(
            f,
            "pairs with 0, ½, 1, 1½, 2 points for a: {none}, {half}, {one}, {one_and_a_half}, {two}"
        )?;
        if self.score.unfinished > 0 {
            writeln!(
                f,
                "{} games stopped at the turn limit, half a point each",
                self.score.unfinished
            )?;
        }
        writeln!(f, "games: {}", self.records.display())
    }
}
