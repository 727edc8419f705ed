//! Searches as requests and answers state them.

use super::error::{ApiError, ApiResult};
use super::players::Players;
use super::registry::WorkState;
use super::rules::GameText;
use arimaa::notation::TurnLabel;
use arimaa::rules::Side;
use engine::search::{Budget, Proven, SearchOptions, SearchReport};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The limit of a search.
const MAX_TIME: Duration = Duration::from_secs(600);

/// The tree of a search, in MiB.
pub(super) const MEMORY_MIB: u32 = 64;

/// The limits of a search in a request.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limits {
    #[serde(default)]
    evaluations: Option<u32>,
    #[serde(default)]
    seconds: Option<f64>,
}

impl Limits {
    pub(super) fn of_evaluations(evaluations: u32) -> Self {
        Self {
            evaluations: Some(evaluations),
            seconds: None,
        }
    }

    pub(super) fn check(&self) -> ApiResult<()> {
        let seconds = self.seconds.unwrap_or(1.0);
        let most = MAX_TIME.as_secs_f64();
        if !(0.001..=most).contains(&seconds) {
            return Err(ApiError::wrong(format!(
                "`seconds` must be a number from 0.001 to {most}"
            )));
        }
        if self.evaluations == Some(0) {
            return Err(ApiError::wrong("`evaluations` must be a number from 1 on"));
        }
        Ok(())
    }

    /// The options of a search within these limits.
    pub(super) fn options(&self, players: &Players, parallel_leaves: u32) -> SearchOptions {
        let config = players.search();
        let budget = Budget {
            evaluations: self.evaluations,
            visits: None,
            time: Some(self.seconds.map_or(MAX_TIME, Duration::from_secs_f64)),
            memory_mib: config.memory_mib.min(MEMORY_MIB),
            stops_when_decided: self.evaluations.is_some() || self.seconds.is_some(),
        };
        let mut options = SearchOptions::strongest_within(config, budget);
        if config.parallel_leaves.fixed().is_none() {
            options.parallel_leaves = parallel_leaves;
        }
        options
    }
}

/// `POST /api/searches`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchRequest {
    pub(super) game: GameText,
    pub(super) player: String,
    #[serde(default)]
    evaluations: Option<u32>,
    #[serde(default)]
    seconds: Option<f64>,
    #[serde(default = "usual_lines")]
    pub(super) lines: usize,
}

fn usual_lines() -> usize {
    5
}

impl SearchRequest {
    /// The limits, checked.
    pub(super) fn limits(&self) -> ApiResult<Limits> {
        let limits = Limits {
            evaluations: self.evaluations,
            seconds: self.seconds,
        };
        limits.check()?;
        if !(1..=100).contains(&self.lines) {
            return Err(ApiError::wrong("`lines` must be a number from 1 to 100"));
        }
        Ok(limits)
    }
}

/// `GET /api/searches/ID`.
#[derive(Debug, Clone, Serialize)]
pub(super) struct SearchAnswer {
    pub(super) search: String,
    pub(super) player: String,
    pub(super) label: String,
    pub(super) state: WorkState,
    pub(super) error: Option<String>,
    pub(super) report: Option<SearchUpdate>,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct SearchUpdate {
    gold_value: Option<f32>,
    own_gold_value: Option<f32>,
    pub(super) evaluations: u32,
    evaluations_per_second: f64,
    pub(super) seconds: f64,
    nodes: usize,
    is_decided: bool,
    proven: Option<Proven>,
    turns: Vec<FoundTurn>,
    line: Vec<LineTurn>,
}

#[derive(Debug, Clone, Serialize)]
struct FoundTurn {
    turn: String,
    visits: f64,
    gold_value: Option<f32>,
    prior: Option<f64>,
    is_chosen: bool,
    proven: Option<Proven>,
    line: Vec<LineTurn>,
}

#[derive(Debug, Clone, Serialize)]
struct LineTurn {
    label: String,
    turn: String,
}

impl SearchUpdate {
    /// `before` holds the evaluations and the seconds before the search was resumed.
    pub(super) fn new(report: SearchReport, label: TurnLabel, before: (u32, f64)) -> Self {
        let side = report.side;
        let for_gold = |value: f32| match side {
            Side::Gold => value,
            Side::Silver => 1.0 - value,
        };
        let labelled = |line: Vec<engine::search::LineTurn>| {
            let turns = line.into_iter().enumerate();
            let turns = turns.map(|(index, turn)| LineTurn {
                label: label.after(index).to_string(),
                turn: turn.turn,
            });
            turns.collect()
        };
        let turns = report.turns.into_iter().map(|turn| FoundTurn {
            turn: turn.turn,
            visits: turn.visits,
            gold_value: turn.value.map(for_gold),
            prior: turn.prior,
            is_chosen: turn.is_chosen,
            proven: turn.proven,
            line: labelled(turn.line),
        });
        Self {
            gold_value: report.gold_value,
            own_gold_value: report.own_value.map(for_gold),
            evaluations: before.0.saturating_add(report.evaluations),
            evaluations_per_second: report.evaluations_per_second,
            seconds: before.1 + report.seconds,
            nodes: report.nodes,
            is_decided: report.is_decided,
            proven: report.proven,
            turns: turns.collect(),
            line: labelled(report.line),
        }
    }
}
