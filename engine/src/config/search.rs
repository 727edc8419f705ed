//! How turns are searched, in self-play and in matches.

use super::values::{AutoOr, AutoValue, auto_within, within};
use garde::Validate;
use serde::{Deserialize, Serialize};

/// The search of one whole turn. Self-play and matches each have their own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct SearchConfig {
    /// How turns are found.
    pub mode: AutoOr<SearchMode>,
    /// Whether goals and eliminations within a turn are searched at the start of each, and immobilizations at the root and behind
    /// the turns that the choice is among.
    pub goal_solver: bool,
    /// Whether the tree below the played turn is kept for the next turn.
    pub reuse_tree: bool,
    /// MiB for the tree of one game.
    #[garde(custom(within(1..=16_384)))]
    pub memory_mib: u32,
    /// The most leaves of one tree that are evaluated together.
    #[garde(custom(auto_within(1..=4_096)))]
    pub parallel_leaves: AutoOr,
    /// Selection of steps; in mode `gumbel` below the root's turn alone.
    #[garde(dive)]
    pub puct: PuctConfig,
    /// Mode `gumbel`.
    #[garde(dive)]
    pub gumbel: GumbelConfig,
}

/// How turns are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum SearchMode {
    /// Simulations go down step by step; the turn is drawn from their visits.
    Puct,
    /// Whole turns are sampled from the policy and compared by sequential halving.
    Gumbel,
}

impl AutoValue for SearchMode {
    const ALLOWED: &str = "\"puct\", \"gumbel\"";
}

/// Selection by PUCT.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
pub struct PuctConfig {
    /// The exploration factor at few visits, for values of 0 to 1.
    #[garde(custom(within(0.0..=100.0)))]
    pub exploration: f32,
    /// The visits at which the exploration factor has grown by ln 2.
    #[garde(custom(within(1.0..=1e9)))]
    pub exploration_base: f32,
    /// An unvisited step's value is its state's minus this times the root of the visited prior mass.
    #[garde(custom(within(0.0..=1.0)))]
    pub first_play_reduction: f32,
    /// Mode `puct`: after each part of the budget a step is made final, unless complete turns have this many visits.
    #[garde(custom(within(1..=10_000_000)))]
    pub min_turn_visits: u32,
}

/// Sampling and comparison of whole turns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
pub struct GumbelConfig {
    /// The maximum number of turns that are compared.
    #[garde(custom(auto_within(1..=4_096)))]
    pub candidates: AutoOr,
    /// The width of the beam that samples them.
    #[garde(custom(auto_within(1..=4_096)))]
    pub beam_width: AutoOr,
    /// The weight of a prefix's value in the beam beside the logarithm of its probability.
    #[garde(custom(within(0.0..=1e6)))]
    pub beam_value_scale: f32,
    /// Added to the most visited candidate's visits in σ.
    #[garde(custom(within(0.0..=1e6)))]
    pub visit_constant: f32,
    /// The scale of σ.
    #[garde(custom(within(0.0..=1e3)))]
    pub value_scale: f32,
}
