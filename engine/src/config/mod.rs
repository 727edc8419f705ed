//! The configuration of a run: one TOML file, one typed definition, read by every program.
//!
//! `configs/small.toml` holds every key with its default and explains it. It is built into the programs: [`Config::default`] is that
//! file. Another file, and `--set`, replace keys of it. An unknown key is an error, and so is a value out of its range, which stands
//! beside the field here.

mod auto;
mod load;
mod old_keys;
mod player;
mod precision;
mod range;
mod search;
mod selfplay;
mod training;
mod training_loop;

pub use auto::AutoOr;
pub use load::{ConfigArguments, ConfigError, Problem};
pub use player::{MOST_EVALUATIONS, PlayerSpec, PlayerSpecError};
pub use precision::Precision;
pub use search::{GumbelConfig, PuctConfig, SearchConfig, SearchMode};
pub use selfplay::{
    ExplorationConfig, HandicapConfig, NetworkChange, OpeningsConfig, PlayoutCapConfig,
    PolicyTargetKind, ResignationConfig, SelfplayConfig, SoftResignationConfig, TargetsConfig,
};
pub use training::{LossWeight, OptimizerKind, ScheduleKind, TrainConfig, TrainingPrecision};
pub use training_loop::{LoopConfig, LoopOrder};

use garde::Validate;
use range::within;
use serde::{Deserialize, Serialize};

/// The configuration of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The network's architecture.
    #[garde(dive)]
    pub network: NetworkConfig,
    /// Self-play games.
    #[garde(dive)]
    pub selfplay: SelfplayConfig,
    /// The training of a network on them.
    #[garde(dive)]
    pub train: TrainConfig,
    /// Matches between players, analysis and play.
    #[garde(dive)]
    #[serde(rename = "match")]
    pub matches: MatchConfig,
    /// The loop of generating, training and comparing.
    #[garde(dive)]
    #[serde(rename = "loop")]
    pub training_loop: LoopConfig,
}

/// The network's architecture: a residual tower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NetworkConfig {
    /// Residual blocks of two 3×3 convolutions.
    #[garde(custom(within(1..=100)))]
    pub blocks: u32,
    /// Channels of the tower.
    #[garde(custom(within(8..=2_048)))]
    pub channels: u32,
    /// The number format for play.
    pub precision: Precision,
}

/// Matches between players, analysis and play.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
pub struct MatchConfig {
    /// A game is truncated after this many turns, setups included, and counts half a point for each side.
    #[garde(custom(within(3..=100_000)))]
    pub max_turns: u32,
    /// The search of a turn.
    #[garde(dive)]
    pub search: SearchConfig,
}
