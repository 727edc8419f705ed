//! What the file of a network or a checkpoint is.

use super::text::Facts;
use crate::checkpoint::Checkpoint;
use crate::error::TrainError;
use crate::schedule::learning_rate;
use crate::terminal::grouped;
use engine::config::{Config, OptimizerKind};
use engine::encoding::ENCODING_VERSION;
use network::{FORMAT_VERSION, Network, Origin};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};

/// What a network's file is.
#[derive(Debug, Serialize)]
pub(super) struct NetworkReport {
    path: PathBuf,
    #[serde(flatten)]
    versions: Versions,
    #[serde(flatten)]
    pub(super) size: Size,
    identity: String,
    pub(super) origin: Origin,
}

/// What a checkpoint is.
#[derive(Debug, Serialize)]
pub(super) struct CheckpointReport {
    path: PathBuf,
    #[serde(flatten)]
    versions: Versions,
    #[serde(flatten)]
    size: Size,
    /// Of everything in it.
    identity: String,
    optimizer: OptimizerKind,
    /// Of the next step.
    learning_rate: f64,
    state: StateSummary,
    /// Where its configuration differs from what is so without one.
    config: Vec<Difference>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Versions {
    format: u32,
    encoding: u32,
}

/// How large a network is, and what it costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Size {
    pub(super) blocks: u32,
    pub(super) channels: u32,
    /// Numbers that are trained.
    parameters: u64,
    /// Those of them that are needed to play.
    playing_parameters: u64,
    /// Floating-point operations of an evaluation, in play.
    pub(super) flop_per_evaluation: u64,
}

/// What is told of a training's state, of which later programs may know more.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct StateSummary {
    pub(super) generation: u32,
    pub(super) step: u64,
    pub(super) first_step: u64,
    pub(super) last_step: u64,
    optimizer_steps: u64,
    cursor: CursorSummary,
    segment: Option<u32>,
    new_games: u64,
    new_rows: u64,
    dropped: Option<u64>,
    seed: u64,
    parent: String,
    pub(super) supply: Option<SupplySummary>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct CursorSummary {
    epoch: u64,
}

/// What was known of the run's games.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct SupplySummary {
    /// Since the run began.
    pub(super) seen_games: u64,
    /// Since the run began.
    pub(super) seen_rows: u64,
    /// How far the window reaches back.
    pub(super) window_rows: u64,
}

/// A key of the configuration that is not as it would be without one.
#[derive(Debug, PartialEq, Serialize)]
struct Difference {
    key: String,
    value: toml::Value,
    default: toml::Value,
}

impl Size {
    fn of(network: &Network) -> Self {
        let sizes = network.architecture();
        let numbers = |parameter: &network::Parameter| parameter.tensor.numel() as u64;
        Self {
            blocks: sizes.blocks,
            channels: sizes.channels,
            parameters: network.parameters().map(|one| numbers(&one)).sum(),
            playing_parameters: playing(network).map(|one| numbers(&one)).sum(),
            flop_per_evaluation: flop_per_evaluation(network),
        }
    }

    fn add_to(&self, facts: &mut Facts) {
        facts.add("architecture", self.shape());
        let parameters = grouped(self.parameters);
        facts.add(
            "parameters",
            match self.parameters == self.playing_parameters {
                true => parameters,
                false => format!(
                    "{parameters}, of which {} play",
                    grouped(self.playing_parameters)
                ),
            },
        );
        facts.add("evaluation", self.cost());
    }

    pub(super) fn shape(&self) -> String {
        format!("{} blocks, {} channels", self.blocks, self.channels)
    }

    pub(super) fn cost(&self) -> String {
        format!("{:.1} MFLOP", self.flop_per_evaluation as f64 / 1e6)
    }
}

/// The parameters that are needed to play: not those of the helper heads.
fn playing(network: &Network) -> impl Iterator<Item = network::Parameter<'_>> {
    network.parameters().filter(|parameter| parameter.plays)
}

/// The floating-point operations of one evaluation, a multiplication and an addition being two: those of the convolutions,
/// which use each weight at every square, and of the linear layers, which use each weight once.
pub(in crate::commands) fn flop_per_evaluation(network: &Network) -> u64 {
    let of_weight = |tensor: &tch::Tensor| match tensor.dim() {
        4 => 2 * 64 * tensor.numel() as u64,
        2 => 2 * tensor.numel() as u64,
        _ => 0,
    };
    playing(network)
        .map(|parameter| of_weight(parameter.tensor))
        .sum()
}

impl NetworkReport {
    pub(super) fn of(path: &Path) -> Result<Self, TrainError> {
        let file = Network::load(path)?;
        Ok(Self {
            path: path.to_owned(),
            // A file of other versions is not read.
            versions: Versions {
                format: FORMAT_VERSION,
                encoding: ENCODING_VERSION,
            },
            size: Size::of(&file.network),
            identity: file.identity,
            origin: file.origin,
        })
    }
}

impl fmt::Display for NetworkReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut facts = Facts::default();
        facts.add("network", self.path.display());
        self.versions.add_to(&mut facts);
        self.size.add_to(&mut facts);
        facts.add("identity", &self.identity);
        for (key, value) in &self.origin {
            facts.add(&key.replace('_', " "), value);
        }
        facts.fmt(f)
    }
}

impl Versions {
    fn add_to(self, facts: &mut Facts) {
        facts.add("format", format!("version {}", self.format));
        facts.add("encoding", format!("version {}", self.encoding));
    }
}

impl StateSummary {
    /// From a state as JSON; what is not there is nothing.
    pub(super) fn of(state: &Value) -> Self {
        serde_json::from_value(state.clone()).unwrap_or_default()
    }

    pub(super) fn steps(&self) -> String {
        format!(
            "{} (from {} to {})",
            grouped(self.step),
            grouped(self.first_step),
            grouped(self.last_step)
        )
    }
}

impl CheckpointReport {
    /// `header` is the checkpoint's metadata as JSON. The checkpoint is checked as if it were to be used.
    pub(super) fn of(path: &Path, header: &Value) -> Result<Self, TrainError> {
        let checkpoint = Checkpoint::load(path)?;
        let fault = |reason: String| TrainError::Checkpoint {
            path: path.to_owned(),
            reason,
        };
        let known = &checkpoint.header;
        let state = serde_json::to_value(&known.state).map_err(|error| fault(error.to_string()))?;
        let state = StateSummary::of(&state);
        let (step, optimizer_step) = (state.step + 1, state.optimizer_steps + 1);
        Ok(Self {
            path: path.to_owned(),
            versions: serde_json::from_value(header.clone())
                .map_err(|error| fault(error.to_string()))?,
            size: Size::of(&Network::new(known.architecture, 0)?),
            identity: header["digest"].as_str().unwrap_or_default().to_owned(),
            optimizer: known.config.train.optimizer,
            learning_rate: learning_rate(&known.config.train, step, optimizer_step),
            config: differences(&known.config),
            state,
        })
    }
}

impl fmt::Display for CheckpointReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut facts = Facts::default();
        let state = &self.state;
        facts.add("checkpoint", self.path.display());
        self.versions.add_to(&mut facts);
        self.size.add_to(&mut facts);
        facts.add("identity", &self.identity);
        facts.add("training", format!("network {}", state.generation));
        facts.add("step", state.steps());
        facts.add("optimizer", self.optimizer);
        facts.add("learning rate", format!("{:.3e}", self.learning_rate));
        facts.add("epoch", state.cursor.epoch);
        facts.add_some("segment", state.segment);
        if let Some(supply) = &state.supply {
            let (games, rows) = (grouped(supply.seen_games), grouped(supply.seen_rows));
            facts.add("seen", format!("{games} games with {rows} rows"));
            let window = grouped(supply.window_rows);
            facts.add("window", format!("the newest {window} rows"));
        }
        facts.add("new games", grouped(state.new_games));
        facts.add("new rows", grouped(state.new_rows));
        facts.add_some("dropped", state.dropped.filter(|&batches| batches > 0));
        facts.add("seed", state.seed);
        facts.add("parent", &state.parent);
        facts.fmt(f)?;
        if self.config.is_empty() {
            return writeln!(f, "\nthe configuration is the default one");
        }
        writeln!(f, "\nwhat differs from the default configuration:")?;
        for Difference {
            key,
            value,
            default,
        } in &self.config
        {
            writeln!(f, "{key} = {value} (default {default})")?;
        }
        Ok(())
    }
}

/// The keys of a configuration that are not as they are without one, in alphabetical order.
fn differences(config: &Config) -> Vec<Difference> {
    let table = |config: &Config| toml::from_str(&config.to_toml()).unwrap_or_default();
    let mut found = Vec::new();
    compare("", &table(config), &table(&Config::default()), &mut found);
    found.sort_by(|a, b| a.key.cmp(&b.key));
    found
}

fn compare(
    section: &str,
    table: &toml::Table,
    defaults: &toml::Table,
    found: &mut Vec<Difference>,
) {
    for (key, default) in defaults {
        let name = format!("{section}{key}");
        match (table.get(key), default) {
            (Some(toml::Value::Table(table)), toml::Value::Table(defaults)) => {
                compare(&format!("{name}."), table, defaults, found);
            }
            (Some(value), default) if value != default => found.push(Difference {
                key: name,
                value: value.clone(),
                default: default.clone(),
            }),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use network::Architecture;

    #[test]
    fn operations_are_two_for_each_use_of_a_weight() {
        let architecture = Architecture {
            blocks: 2,
            channels: 8,
        };
        let network = Network::new(architecture, 0).unwrap();
        // 33 planes in; two blocks of two convolutions; two heads of 1x1; five planes out; pooling in the second block; the
        // end of the turn; the value's two layers.
        let convolutions = 9 * 8 * 33 + 4 * 9 * 8 * 8 + 2 * 8 * 8 + 5 * 8;
        let linear = 8 * 16 + 16 + 64 * 16 + 64;
        assert_eq!(
            flop_per_evaluation(&network),
            2 * (64 * convolutions + linear)
        );
    }

    #[test]
    fn what_differs_from_the_defaults_is_found_in_every_section() {
        let mut config = Config::default();
        assert_eq!(differences(&config), []);
        config.train.batch_size += 1;
        config.selfplay.playout_cap.full_share = 0.25;
        let found = differences(&config);
        let keys: Vec<&str> = found.iter().map(|one| one.key.as_str()).collect();
        assert_eq!(
            keys,
            ["selfplay.playout_cap.full_share", "train.batch_size"]
        );
        assert_eq!(found[0].value, toml::Value::Float(0.25));
        assert_ne!(found[1].value, found[1].default);
    }

    #[test]
    fn of_a_state_what_is_known_is_told() {
        let state = serde_json::json!({
            "generation": 3, "step": 7, "another": [], "supply": {"seen_rows": 9, "allowance": 0.5},
        });
        let summary = StateSummary::of(&state);
        assert_eq!((summary.generation, summary.step), (3, 7));
        assert_eq!(summary.supply.unwrap().seen_rows, 9);
        assert_eq!(summary.segment, None);
    }
}
