//! What is kept of a game. The order of the fields is the order of the bytes.

use crate::rules::Outcome;
use serde::{Deserialize, Serialize};

/// Which game it is: unique within a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GameId {
    /// The number of the generator that started the game.
    pub generator: u32,
    /// The generator's own count of its games, from 0.
    pub counter: u64,
}

impl std::fmt::Display for GameId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.generator, self.counter)
    }
}

/// One game from the empty board on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GameRecord {
    /// Which game it is.
    pub id: GameId,
    /// The run's seed; the game's own randomness follows from it and the id.
    pub seed: u64,
    /// The turns, beginning with Gold's setup.
    pub turns: Vec<TurnRecord>,
    /// How it ended.
    pub ending: Ending,
}

/// How a game ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// By the rules.
    Won(Outcome),
    /// It stopped at the turn limit. Nobody has lost.
    Unfinished,
}

/// One turn, and the search that chose it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnRecord {
    /// The policy indices of its actions as the mover sees the board ([`Action::index`](crate::rules::Action::index)): one to
    /// four steps, or eight placements. The end of the turn is implied and never stored.
    pub actions: Vec<u16>,
    /// The search's value of the turn's start: Gold's win probability, 0 to 1.
    pub value: f32,
    /// The evaluator's own value of the turn's start: Gold's win probability, 0 to 1.
    pub network_value: f32,
    /// The visits that the search used.
    pub visits: u32,
    /// The step states of the turn that are worth training on, by ascending step.
    pub rows: Vec<RowRecord>,
}

/// One step state of a turn, with what the search would have a network answer there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RowRecord {
    /// How many actions of the turn come before the state.
    pub step: u8,
    /// The visits behind the target.
    pub visits: u32,
    /// The policy target over all legal actions, the end of the turn included, in the order of
    /// [`ActionSet::in_index_order`](crate::rules::ActionSet::in_index_order) for the mover; the sum is exactly
    /// [`POLICY_TOTAL`](super::POLICY_TOTAL).
    pub policy: Vec<u16>,
    /// The row's weight in training; finite, 0 or more.
    pub weight: f32,
}

/// What all games of a shard have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The version of the encoding: what action indices mean.
    pub encoding_version: u32,
    /// The version of the program that wrote the shard.
    pub program_version: String,
    /// Who judged the step states.
    pub evaluator: Evaluator,
    /// [`digest`] of the resolved configuration's TOML.
    pub config_digest: String,
    /// The number of the generator that wrote the shard.
    pub generator: u32,
}

/// Who judged the step states of a shard's games.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Evaluator {
    /// Its name: a network's file name, or a player without one: `uniform`, `material`.
    pub name: String,
    /// [`digest`] of the network's file, or the name again.
    pub identity: String,
}

/// The BLAKE3 hash of some bytes in 64 hexadecimal digits: the identity of networks and configurations.
pub fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}
