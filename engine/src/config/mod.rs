//! The configuration of a run: one TOML file, one typed definition, read by every program.
//!
//! A key that is not named in the file has the value of [`Config::default`]; a key that is not known is an error, and so is a
//! value out of its range. `configs/tiny.toml` explains every key where it stands.

/// Checks the range of a section's value, whose key is what the value is called here.
macro_rules! check_range {
    ($section:ident $(.$key:ident)+, $range:expr) => {
        check(
            concat!(stringify!($section) $(, ".", stringify!($key))+),
            $section $(.$key)+,
            $range,
        )
    };
}

mod anchor;
mod auto;
mod cycle;
mod precision;
mod selfplay;
mod source;
mod training;

pub use anchor::Anchor;
pub use auto::AutoOr;
pub use cycle::{LoopConfig, LoopOrder};
pub use precision::Precision;
pub use selfplay::{
    HandicapConfig, NetworkChange, OpeningsConfig, PlayoutCapConfig, ResignationConfig,
    SelfplayConfig, SoftResignationConfig,
};
pub use source::{ConfigArguments, ConfigError};
pub use training::{OptimizerKind, ScheduleKind, TrainConfig, TrainingPrecision};

use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// Everything that a run can be told.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The network's architecture.
    pub network: NetworkConfig,
    /// The search for one turn.
    pub search: SearchConfig,
    /// Self-play games.
    pub selfplay: SelfplayConfig,
    /// The training of a network on them.
    pub train: TrainConfig,
    /// Matches between players.
    pub pit: PitConfig,
    /// The loop of generating, training and comparing.
    #[serde(rename = "loop")]
    pub cycle: LoopConfig,
}

/// The network's architecture: a residual tower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkConfig {
    /// Residual blocks of two 3×3 convolutions.
    pub blocks: u32,
    /// Channels of the tower.
    pub channels: u32,
    /// What it computes with when it plays.
    pub precision: Precision,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        Self {
            blocks: 6,
            channels: 64,
            precision: Precision::Auto,
        }
    }
}

/// The search for one whole turn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SearchConfig {
    /// How turns are found.
    pub mode: SearchMode,
    /// Evaluations a turn in self-play, and the most simulations.
    pub evaluations: u32,
    /// Whether what the search found below a turn is kept for the next.
    pub reuse_tree: bool,
    /// MiB that the tree of one game may take.
    pub memory_mib: u32,
    /// How many leaves of one tree are evaluated together.
    pub parallel_leaves: AutoOr,
    /// Whether the search looks at the start of every turn for goals and eliminations within it.
    pub goal_solver: bool,
    /// The distinct turns that self-play tries with the goal solver before it accepts one that lets the enemy win at once.
    pub lost_turn_checks: u32,
    /// PUCT's exploration factor at few visits.
    pub exploration: f32,
    /// The visits at which the exploration factor has grown by ln 2.
    pub exploration_base: f32,
    /// How much lower an unvisited step's value is assumed than its state's, times the square root of the prior already
    /// visited.
    pub first_play_reduction: f32,
    /// In self-play the priors at the turn's own states are raised to 1 over this.
    pub prior_temperature: f32,
    /// The share of Dirichlet noise in the priors of the turn's own states, in self-play.
    pub noise_share: f32,
    /// The Dirichlet noise's concentration, spread over the legal actions.
    pub noise_concentration: f32,
    /// The search moves on to the next step once a part of the budget is used, unless complete turns hold this many visits.
    pub min_turn_visits: u32,
    /// What the policy learns from the search.
    pub policy_target: PolicyTargetKind,
    /// What a win probability of 1 weighs in the exponent of the improved policy.
    pub target_value_scale: f32,
    /// Mode `gumbel`: the most turns that are compared.
    pub gumbel_candidates: AutoOr,
    /// Mode `gumbel`: the width of the beam that samples them.
    pub gumbel_beam_width: AutoOr,
    /// Mode `gumbel`: what a prefix's value weighs in the beam beside its probability.
    pub gumbel_beam_value_scale: f32,
    /// Mode `gumbel`: what is added to the most visited candidate's visits in σ.
    pub gumbel_visit_constant: f32,
    /// Mode `gumbel`: what σ is scaled with.
    pub gumbel_value_scale: f32,
    /// Mode `gumbel`: the scale of the Gumbel noise in self-play.
    pub gumbel_noise: f32,
}

/// How turns are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum SearchMode {
    /// In self-play the mode that teaches better, elsewhere the one that plays better with few evaluations.
    Auto,
    /// Simulations step by step.
    Puct,
    /// Whole turns, sampled and compared.
    Gumbel,
}

/// What a policy learns from a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyTargetKind {
    /// The shares of the visits.
    Visits,
    /// The improved policy of completed values.
    Improved,
}

impl Default for SearchConfig {
    fn default() -> Self {
        Self {
            mode: SearchMode::Auto,
            evaluations: 128,
            reuse_tree: true,
            memory_mib: 1_024,
            parallel_leaves: AutoOr::Auto,
            goal_solver: true,
            lost_turn_checks: 20_000,
            exploration: 0.5,
            exploration_base: 19_652.0,
            first_play_reduction: 0.2,
            prior_temperature: 1.0,
            noise_share: 0.25,
            noise_concentration: 10.0,
            min_turn_visits: 32,
            policy_target: PolicyTargetKind::Improved,
            target_value_scale: 10.0,
            gumbel_candidates: AutoOr::Auto,
            gumbel_beam_width: AutoOr::Auto,
            gumbel_beam_value_scale: 40.0,
            gumbel_visit_constant: 50.0,
            gumbel_value_scale: 10.0,
            gumbel_noise: 1.0,
        }
    }
}

/// Matches between players.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PitConfig {
    /// A game counts half for both after this many turns, setups included.
    pub max_turns: u32,
}

impl Default for PitConfig {
    fn default() -> Self {
        Self { max_turns: 400 }
    }
}

impl Config {
    /// Checks every value's range; the error names the key.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let Self {
            network,
            search,
            selfplay,
            train,
            pit,
            cycle,
        } = self;
        check_range!(network.blocks, 1..=100)?;
        check_range!(network.channels, 8..=2_048)?;

        check_range!(search.evaluations, 1..=10_000_000)?;
        check_range!(search.memory_mib, 1..=16_384)?;
        check(
            "search.parallel_leaves",
            search.parallel_leaves.number().unwrap_or(1),
            1..=4_096,
        )?;
        check_range!(search.prior_temperature, 0.1..=10.0)?;
        for (key, number) in [
            ("search.gumbel_candidates", search.gumbel_candidates),
            ("search.gumbel_beam_width", search.gumbel_beam_width),
        ] {
            check(key, number.number().unwrap_or(1), 1..=4_096)?;
        }
        check_range!(search.gumbel_beam_value_scale, 0.0..=1e6)?;
        check_range!(search.gumbel_visit_constant, 0.0..=1e6)?;
        check_range!(search.gumbel_value_scale, 0.0..=1e3)?;
        check_range!(search.gumbel_noise, 0.0..=10.0)?;
        check_range!(search.exploration, 0.0..=100.0)?;
        check_range!(search.exploration_base, 1.0..=1e9)?;
        check_range!(search.first_play_reduction, 0.0..=1.0)?;
        check_range!(search.noise_share, 0.0..=1.0)?;
        check_range!(search.noise_concentration, 0.01..=1_000.0)?;
        check_range!(search.min_turn_visits, 1..=10_000_000)?;
        check_range!(search.target_value_scale, 0.0..=1_000.0)?;

        selfplay.validate()?;

        train.validate()?;

        check_range!(pit.max_turns, 3..=100_000)?;

        cycle.validate(selfplay)
    }
}

/// A NaN is in no range.
fn check<T: PartialOrd + std::fmt::Display + Copy>(
    key: &'static str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<(), ConfigError> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(ConfigError::OutOfRange {
        key,
        value: value.to_string(),
        allowed: format!("{} to {}", range.start(), range.end()),
    })
}
