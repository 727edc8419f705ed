//! How self-play games are played and kept.

use super::search::SearchConfig;
use super::values::{AutoOr, MAX_EVALUATIONS, auto_within, not_allowed, within};
use garde::Validate;
use serde::{Deserialize, Serialize};

/// Self-play games.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct SelfplayConfig {
    /// Evaluations a turn, and the most simulations.
    #[garde(custom(within(1..=MAX_EVALUATIONS)))]
    pub evaluations: u32,
    /// The other turns that the goal solver tries where the chosen one lets the opponent win at once; 0 for none.
    pub loss_proof_limit: u32,
    /// Games that each worker thread plays at once; their leaves are evaluated in common batches.
    #[garde(custom(within(1..=16_384)))]
    pub games_in_flight: u32,
    /// Groups that each worker thread's games are split into: one is searched while another's batch is evaluated.
    #[garde(custom(auto_within(1..=64)))]
    pub groups: AutoOr,
    /// A game is truncated after this many turns, setups included.
    // A record of so many turns fits a frame of a shard, at some 700 bytes a turn.
    #[garde(custom(within(3..=10_000)))]
    pub max_turns: u32,
    /// When a new network of the run takes over.
    pub network_change: NetworkChange,
    /// Games a shard, at most.
    #[garde(custom(within(1..=1_000_000)))]
    pub games_per_shard: u32,
    /// MiB a shard, at most, but for the last game.
    #[garde(custom(within(1..=65_536)))]
    pub shard_mib: u32,
    /// The run's newest shards that are always kept; older ones are removed once the replay window has moved past them. 0 keeps all.
    #[garde(custom(within(0..=1_000_000_000)))]
    pub keep_shards: u32,
    /// The search of a turn.
    #[garde(dive)]
    pub search: SearchConfig,
    /// Randomness that makes games differ.
    #[garde(dive)]
    pub exploration: ExplorationConfig,
    /// What training learns from the searches.
    #[garde(dive)]
    pub targets: TargetsConfig,
    /// How games begin.
    #[garde(dive)]
    pub openings: OpeningsConfig,
    /// Games between unequal sides.
    #[garde(dive)]
    pub handicap: HandicapConfig,
    /// Less work on games that are decided.
    #[garde(dive)]
    pub soft_resignation: SoftResignationConfig,
    /// The end of games that are decided.
    #[garde(dive)]
    pub resignation: ResignationConfig,
}

/// Randomness that makes games differ.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
pub struct ExplorationConfig {
    /// Mode `puct`: the temperature at which turns are drawn from the visits, at the start of a game.
    #[garde(custom(within(0.0..=10.0)))]
    pub temperature: f32,
    /// The turns (of both sides) in which the temperature falls by half.
    #[garde(custom(within(0.1..=1e6)))]
    pub temperature_half_life: f32,
    /// The lower limit of the temperature.
    #[garde(custom(within(0.0..=10.0)))]
    pub final_temperature: f32,
    /// Mode `puct`: the priors at the current turn's states are raised to 1 over this.
    #[garde(custom(within(0.1..=10.0)))]
    pub prior_temperature: f32,
    /// Mode `puct`: the share of Dirichlet noise in the priors at the current turn's states.
    #[garde(custom(within(0.0..=1.0)))]
    pub dirichlet_share: f32,
    /// The Dirichlet noise's concentration, spread over the legal actions.
    #[garde(custom(within(0.01..=1_000.0)))]
    pub dirichlet_concentration: f32,
    /// Mode `gumbel`: the scale of the Gumbel noise.
    #[garde(custom(within(0.0..=10.0)))]
    pub gumbel_noise: f32,
}

/// What training learns from the searches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct TargetsConfig {
    /// The policy target. In mode `gumbel` always the improved policy.
    pub kind: PolicyTargetKind,
    /// The weight of a win probability of 1 in the exponent of the improved policy.
    #[garde(custom(within(0.0..=1_000.0)))]
    pub value_scale: f32,
    /// The minimum visits of a state's search for a row, but for those of proven wins and for the state that a game begins with.
    #[garde(custom(within(1..=10_000_000)))]
    pub min_visits: u32,
    /// The share of a game's row weights that is given by surprise; 0 weighs all rows alike.
    #[garde(custom(within(0.0..=1.0)))]
    pub surprise_share: f32,
    /// What the weights of a truncated game's rows are multiplied with.
    #[garde(custom(within(0.0..=1.0)))]
    pub truncated_weight: f32,
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

/// How games begin, where that is not with two searched setups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
pub struct OpeningsConfig {
    /// The share of games whose first turns are drawn from the policy alone.
    #[garde(custom(within(0.0..=1.0)))]
    pub policy_share: f32,
    /// Maximum number of turns drawn from the policy.
    #[garde(custom(within(1..=1_000)))]
    pub policy_turns: u32,
    /// Temperature of these draws.
    #[garde(custom(within(0.0..=10.0)))]
    pub policy_temperature: f32,
    /// Share of games that branch off an earlier game of the run.
    #[garde(custom(within(0.0..=1.0)), custom(fits_beside(self)))]
    pub fork_share: f32,
    /// The share of games that start from the file.
    #[garde(custom(within(0.0..=1.0)))]
    pub file_share: f32,
    /// A file of positions or game records; empty for none.
    #[garde(custom(named_for(self.file_share)))]
    pub file: String,
    /// The share of games that start without many of the pieces.
    #[garde(custom(within(0.0..=1.0)))]
    pub sparse_share: f32,
    /// The maximum number of pieces that each side then has.
    #[garde(custom(within(MIN_PIECES..=16)))]
    pub sparse_pieces: u32,
}

/// The minimum number of pieces of each side in a game that starts without many of them.
pub const MIN_PIECES: u32 = 3;

/// Games between unequal sides.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
pub struct HandicapConfig {
    /// The share of games in which one side, drawn at random, is weaker.
    #[garde(custom(within(0.0..=1.0)))]
    pub share: f32,
    /// The share of the evaluations that it has.
    #[garde(custom(within(0.001..=1.0)))]
    pub evaluations: f32,
}

/// Soft resignation (KataGo's reduced visits): once the last searches all see the same side win, both get fewer evaluations, and their
/// rows less weight.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
pub struct SoftResignationConfig {
    /// How many searches must agree; 0 for no soft resignation.
    #[garde(custom(within(0..=1_000)))]
    pub turns: u32,
    /// Win probability of the winner from which the searches agree.
    #[garde(custom(within(0.5..=0.999_999)))]
    pub threshold: f32,
    /// The share of the evaluations that is left where the win is certain.
    #[garde(custom(within(0.001..=1.0)))]
    pub evaluations: f32,
    /// Weight of the rows of turns with fewer evaluations.
    #[garde(custom(within(0.0..=1.0)))]
    pub weight: f32,
}

/// Resignation: once the last searches all see the same side lose, the game is over.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
pub struct ResignationConfig {
    /// How many searches must agree; 0 for no resignation.
    #[garde(custom(within(0..=1_000)))]
    pub turns: u32,
    /// Highest win probability of the loser at which the searches agree.
    #[garde(custom(within(0.0..=0.499_999)))]
    pub threshold: f32,
    /// The share of games that are played to their end whatever the searches see, to measure how often they are wrong.
    #[garde(custom(within(0.0..=1.0)))]
    pub played_out_share: f32,
}

/// A game forks or starts from the file, or neither.
fn fits_beside(openings: &OpeningsConfig) -> impl FnOnce(&f32, &()) -> garde::Result {
    let (file, sparse) = (openings.file_share, openings.sparse_share);
    move |fork_share, ()| {
        // Shares like 0.27, 0.66 and 0.07 are rounded.
        if f64::from(*fork_share) + f64::from(file) + f64::from(sparse) > 1.0 + 1e-6 {
            Err(not_allowed(
                fork_share,
                format!(
                    "0 to 1 together with selfplay.openings.file_share = {file} and selfplay.openings.sparse_share = {sparse}"
                ),
            ))
        } else {
            Ok(())
        }
    }
}

/// Games can't start from a file without a name.
fn named_for(file_share: f32) -> impl FnOnce(&String, &()) -> garde::Result {
    move |file, ()| {
        if file_share > 0.0 && file.is_empty() {
            Err(not_allowed(
                "\"\"",
                "the name of a file, where selfplay.openings.file_share is not 0",
            ))
        } else {
            Ok(())
        }
    }
}
