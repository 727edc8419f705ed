//! How self-play games are played and kept.

use super::{AutoOr, ConfigError, check};
use serde::{Deserialize, Serialize};

/// Self-play games.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SelfplayConfig {
    /// Games that each worker thread plays at once; their leaves are evaluated in common batches.
    pub games_in_flight: u32,
    /// The groups that each worker thread's games are split into: one is searched while another's batch is evaluated.
    pub groups: AutoOr,
    /// The temperature at which turns are drawn from the visits at the start of a game.
    pub temperature: f32,
    /// The turns (of both sides) in which the temperature falls by half.
    pub temperature_half_life: f32,
    /// The temperature never falls below this.
    pub final_temperature: f32,
    /// A state's search gives a policy row only with at least this many visits, but for those of proven wins and for the state that a
    /// game begins with.
    pub min_target_visits: u32,
    /// The share of a game's row weights that goes to the rows by their surprise; 0 weighs them all alike.
    pub surprise_share: f32,
    /// A game is recorded as unfinished after this many turns, setups included.
    pub max_turns: u32,
    /// When a new network of the run takes over.
    pub network_change: NetworkChange,
    /// Games a shard, at most.
    pub games_per_shard: u32,
    /// MiB a shard, at most, but for the last game.
    pub shard_mib: u32,
    /// The run's newest shards that are always kept; older ones are removed once the trainer has left them behind. 0 keeps all.
    pub keep_shards: u32,
    /// Full and fast turns.
    pub playout_cap: PlayoutCapConfig,
    /// How games begin.
    pub openings: OpeningsConfig,
    /// Games between unequal sides.
    pub handicap: HandicapConfig,
    /// Less work on games that are decided.
    pub soft_resignation: SoftResignationConfig,
    /// The end of games that are decided.
    pub resignation: ResignationConfig,
}

/// When a new network of the run takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkChange {
    /// In every game, from its next turn on.
    Turn,
    /// In games that begin.
    Game,
    /// Never: the network that was there at the start plays on.
    Never,
}

/// Playout-cap randomisation (Wu, Accelerating Self-Play Learning in Go, 2019): most turns are searched fast, to get on with the
/// game; a share in full, to learn the policy from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PlayoutCapConfig {
    /// The share of turns that are searched in full; 1 for all.
    pub full_share: f32,
    /// Evaluations of a fast turn.
    pub fast_evaluations: u32,
    /// Mode `gumbel`: the scale of the Gumbel noise in fast turns.
    pub fast_gumbel_noise: f32,
    /// Whether fast turns give rows, too.
    pub record_fast: bool,
}

/// How games begin, where that is not with two searched setups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OpeningsConfig {
    /// The share of games whose first turns are drawn from the policy alone.
    pub policy_share: f32,
    /// The most turns that are.
    pub policy_turns: u32,
    /// The temperature at which they are.
    pub policy_temperature: f32,
    /// The share of games that leave an earlier game of the run somewhere in its middle.
    pub fork_share: f32,
    /// The share of games that start from the file.
    pub file_share: f32,
    /// A file of positions or game records; empty for none.
    pub file: String,
}

/// Games between unequal sides.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HandicapConfig {
    /// The share of games in which one side, drawn at random, is weaker.
    pub share: f32,
    /// The share of the evaluations that it has.
    pub evaluations: f32,
}

/// Soft resignation (KataGo's reduced visits): once the last searches all see the same side win, both get fewer evaluations, and their
/// rows less weight.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SoftResignationConfig {
    /// How many searches must agree; 0 for no soft resignation.
    pub turns: u32,
    /// The win probability from which on they do.
    pub threshold: f32,
    /// The share of the evaluations that is left where the win is certain.
    pub evaluations: f32,
    /// The weight of the rows there.
    pub weight: f32,
}

/// Resignation: once the last searches all see the same side lose, the game is over.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ResignationConfig {
    /// How many searches must agree; 0 for no resignation.
    pub turns: u32,
    /// The win probability of the loser up to which they do.
    pub threshold: f32,
    /// The share of games that are played to their end whatever the searches see, to measure how often they are wrong.
    pub played_out_share: f32,
}

impl Default for SelfplayConfig {
    fn default() -> Self {
        Self {
            games_in_flight: 64,
            groups: AutoOr::Auto,
            temperature: 1.0,
            temperature_half_life: 20.0,
            final_temperature: 0.2,
            min_target_visits: 8,
            surprise_share: 0.0,
            max_turns: 300,
            network_change: NetworkChange::Turn,
            games_per_shard: 256,
            shard_mib: 64,
            keep_shards: 0,
            playout_cap: PlayoutCapConfig::default(),
            openings: OpeningsConfig::default(),
            handicap: HandicapConfig::default(),
            soft_resignation: SoftResignationConfig::default(),
            resignation: ResignationConfig::default(),
        }
    }
}

impl Default for PlayoutCapConfig {
    fn default() -> Self {
        Self {
            full_share: 1.0,
            fast_evaluations: 32,
            fast_gumbel_noise: 0.5,
            record_fast: false,
        }
    }
}

impl Default for OpeningsConfig {
    fn default() -> Self {
        Self {
            policy_share: 0.0,
            policy_turns: 4,
            policy_temperature: 1.0,
            fork_share: 0.0,
            file_share: 0.0,
            file: String::new(),
        }
    }
}

impl Default for HandicapConfig {
    fn default() -> Self {
        Self {
            share: 0.0,
            evaluations: 0.25,
        }
    }
}

impl Default for SoftResignationConfig {
    fn default() -> Self {
        Self {
            turns: 0,
            threshold: 0.95,
            evaluations: 0.25,
            weight: 0.1,
        }
    }
}

impl Default for ResignationConfig {
    fn default() -> Self {
        Self {
            turns: 0,
            threshold: 0.02,
            played_out_share: 0.1,
        }
    }
}

impl SelfplayConfig {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let selfplay = self;
        check_range!(selfplay.games_in_flight, 1..=16_384)?;
        let groups = selfplay.groups.number().unwrap_or(1);
        check("selfplay.groups", groups, 1..=64)?;
        check_range!(selfplay.temperature, 0.0..=10.0)?;
        check_range!(selfplay.temperature_half_life, 0.1..=1e6)?;
        check_range!(selfplay.final_temperature, 0.0..=10.0)?;
        check_range!(selfplay.min_target_visits, 1..=10_000_000)?;
        check_range!(selfplay.surprise_share, 0.0..=1.0)?;
        // A record of so many turns fits a frame of a shard, at some 700 bytes a turn.
        check_range!(selfplay.max_turns, 3..=10_000)?;
        check_range!(selfplay.games_per_shard, 1..=1_000_000)?;
        check_range!(selfplay.shard_mib, 1..=65_536)?;
        check_range!(selfplay.keep_shards, 0..=1_000_000_000)?;

        check_range!(selfplay.playout_cap.full_share, 0.0..=1.0)?;
        check_range!(selfplay.playout_cap.fast_evaluations, 1..=10_000_000)?;
        check_range!(selfplay.playout_cap.fast_gumbel_noise, 0.0..=10.0)?;

        check_range!(selfplay.openings.policy_share, 0.0..=1.0)?;
        check_range!(selfplay.openings.policy_turns, 1..=1_000)?;
        check_range!(selfplay.openings.policy_temperature, 0.0..=10.0)?;
        check_range!(selfplay.openings.fork_share, 0.0..=1.0)?;
        check_range!(selfplay.openings.file_share, 0.0..=1.0)?;
        let openings = &self.openings;
        if openings.fork_share + openings.file_share > 1.0 {
            return Err(ConfigError::OutOfRange {
                key: "selfplay.openings.fork_share + selfplay.openings.file_share",
                value: (openings.fork_share + openings.file_share).to_string(),
                allowed: "0 to 1".into(),
            });
        }
        if openings.file_share > 0.0 && openings.file.is_empty() {
            return Err(ConfigError::OutOfRange {
                key: "selfplay.openings.file",
                value: "\"\"".into(),
                allowed: "the name of a file, where selfplay.openings.file_share is not 0".into(),
            });
        }

        check_range!(selfplay.handicap.share, 0.0..=1.0)?;
        check_range!(selfplay.handicap.evaluations, 0.001..=1.0)?;

        check_range!(selfplay.soft_resignation.turns, 0..=1_000)?;
        check_range!(selfplay.soft_resignation.threshold, 0.5..=0.999_999)?;
        check_range!(selfplay.soft_resignation.evaluations, 0.001..=1.0)?;
        check_range!(selfplay.soft_resignation.weight, 0.0..=1.0)?;

        check_range!(selfplay.resignation.turns, 0..=1_000)?;
        check_range!(selfplay.resignation.threshold, 0.0..=0.499_999)?;
        check_range!(selfplay.resignation.played_out_share, 0.0..=1.0)
    }
}
