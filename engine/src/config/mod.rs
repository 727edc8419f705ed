//! The configuration of a run: one TOML file, one typed definition, read by every program.
//!
//! `configs/small.toml` holds every key with its default and explains it. It is built into the programs: [`Config::default`] is that
//! file. Another file, and `--set`, replace keys of it. An unknown key is an error, and so is a value out of its range, which stands
//! beside the field here.

mod load;
mod old_keys;
mod player;
mod search;
mod sections;
mod selfplay;
mod training;
mod training_loop;
mod values;

pub use load::{ConfigArguments, ConfigError, MATCH_SET_HELP, Problem, printed_or};
pub use player::{PlayerSpec, PlayerSpecError, SET_REPLACED};
pub use search::{GumbelConfig, PuctConfig, SearchConfig, SearchMode};
pub use sections::{Config, MatchConfig, NetworkConfig, Precision};
pub use selfplay::{
    ExplorationConfig, HandicapConfig, MIN_PIECES, NetworkChange, OpeningsConfig, PolicyTargetKind,
    ResignationConfig, SelfplayConfig, SoftResignationConfig, TargetsConfig,
};
pub use training::{LossWeight, OptimizerKind, ScheduleKind, TrainConfig, TrainingPrecision};
pub use training_loop::{LoopConfig, LoopOrder};
pub use values::{AutoOr, MAX_EVALUATIONS};
