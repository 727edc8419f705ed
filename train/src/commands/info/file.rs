//! The report on a network's file or a checkpoint.

use crate::error::TrainError;
use crate::terminal::{Facts, grouped};
use crate::trainer::change::{Difference, differences};
use crate::trainer::checkpoint::Checkpoint;
use crate::trainer::optimizer::learning_rate;
use crate::trainer::state::TrainingState;
use engine::config::{Config, OptimizerKind};
use network::{Network, Origin};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// The description of a network's file.
#[derive(Debug, Serialize)]
pub(super) struct NetworkReport {
    #[serde(flatten)]
    file: FileReport,
    origin: Origin,
}

/// The description of a checkpoint.
#[derive(Debug, Serialize)]
pub(super) struct CheckpointReport {
    #[serde(flatten)]
    file: FileReport,
    optimizer: OptimizerKind,
    /// Of the next step.
    learning_rate: f64,
    state: TrainingState,
    /// Where its configuration differs from the default one.
    config: Vec<Difference>,
}

/// The part of the description that both kinds of files have.
#[derive(Debug, Serialize)]
struct FileReport {
    path: PathBuf,
    format: u32,
    encoding: u32,
    #[serde(flatten)]
    size: Size,
    /// Of all contents of the file.
    identity: String,
}

/// A network's size and cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Size {
    pub(super) blocks: u32,
    pub(super) channels: u32,
    /// Trained parameters.
    parameters: u64,
    /// Those of them that play uses.
    playing_parameters: u64,
    /// Floating-point operations of an evaluation, in play.
    pub(super) flop_per_evaluation: u64,
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

    pub(super) fn shape(&self) -> String {
        format!("{} blocks, {} channels", self.blocks, self.channels)
    }

    pub(super) fn cost(&self) -> String {
        format!("{:.1} MFLOP", self.flop_per_evaluation as f64 / 1e6)
    }
}

impl FileReport {
    /// The lines of both kinds of files.
    fn facts(&self, kind: &str) -> Facts {
        let mut facts = Facts::default();
        facts.add(kind, self.path.display());
        facts.add("format", format!("version {}", self.format));
        facts.add("encoding", format!("version {}", self.encoding));
        facts.add("architecture", self.size.shape());
        let [parameters, playing] =
            [self.size.parameters, self.size.playing_parameters].map(grouped);
        facts.add(
            "parameters",
            if parameters == playing {
                parameters
            } else {
                format!("{parameters}, of which {playing} play")
            },
        );
        facts.add("evaluation", self.size.cost());
        facts.add("identity", &self.identity);
        facts
    }
}

/// The parameters that play uses: all but those of the auxiliary heads.
fn playing(network: &Network) -> impl Iterator<Item = network::Parameter<'_>> {
    network
        .parameters()
        .filter(|parameter| parameter.used_in_inference)
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
            file: FileReport {
                path: path.to_owned(),
                format: file.format,
                encoding: file.encoding,
                size: Size::of(&file.network),
                identity: file.identity,
            },
            origin: file.origin,
        })
    }

    pub(super) fn size(&self) -> Size {
        self.file.size
    }
}

impl fmt::Display for NetworkReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut facts = self.file.facts("network");
        for (key, value) in &self.origin {
            facts.add(&key.replace('_', " "), value);
        }
        f.write_str(&facts.finish())
    }
}

impl CheckpointReport {
    /// The checkpoint is checked as if training were to resume from it.
    pub(super) fn of(path: &Path) -> Result<Self, TrainError> {
        let header = Checkpoint::load(path)?.header;
        let (step, optimizer_step) = (header.state.step + 1, header.state.optimizer_steps + 1);
        Ok(Self {
            file: FileReport {
                path: path.to_owned(),
                format: header.format,
                encoding: header.encoding,
                size: Size::of(&Network::new(header.architecture, 0)?),
                identity: header.digest,
            },
            optimizer: header.config.train.optimizer,
            learning_rate: learning_rate(&header.config.train, step, optimizer_step),
            config: differences(&Config::default(), &header.config),
            state: header.state,
        })
    }
}

impl fmt::Display for CheckpointReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (state, supply) = (&self.state, &self.state.supply);
        let mut facts = self.file.facts("checkpoint");
        facts.add("training", format!("network {}", state.generation));
        facts.add("step", steps(state));
        facts.add("optimizer", self.optimizer);
        facts.add("learning rate", format!("{:.3e}", self.learning_rate));
        facts.add("epoch", state.cursor.epoch);
        facts.add("segment", state.segment);
        let (games, rows) = (grouped(supply.seen_games), grouped(supply.seen_rows));
        facts.add("seen", format!("{games} games with {rows} rows"));
        let window = grouped(supply.window_rows);
        facts.add("window", format!("the newest {window} rows"));
        facts.add("new games", grouped(state.new_games));
        facts.add("new rows", grouped(state.new_rows));
        facts.add_some(
            "dropped",
            Some(state.dropped).filter(|&batches| batches > 0),
        );
        facts.add("seed", state.seed);
        facts.add("parent", &state.parent);
        f.write_str(&facts.finish())?;
        if self.config.is_empty() {
            return writeln!(f, "\nthe configuration is the default one");
        }
        writeln!(f, "\ndifferences from the default configuration:")?;
        for Difference { key, new, old } in &self.config {
            writeln!(f, "{key} = {new} (default {old})")?;
        }
        Ok(())
    }
}

/// The step that a training has reached, and its first and last.
pub(super) fn steps(state: &TrainingState) -> String {
    let [step, first, last] = [state.step, state.first_step, state.last_step].map(grouped);
    format!("{step} (from {first} to {last})")
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
        // 39 planes in; two blocks of two convolutions; two heads of 1x1; five planes out; pooling in the second block; the
        // end of the turn; the value's two layers.
        let convolutions = 9 * 8 * 39 + 4 * 9 * 8 * 8 + 2 * 8 * 8 + 5 * 8;
        let linear = 8 * 16 + 16 + 64 * 16 + 64;
        assert_eq!(
            flop_per_evaluation(&network),
            2 * (64 * convolutions + linear)
        );
    }
}
