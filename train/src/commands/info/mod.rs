//! `train info`: what a network, a checkpoint or a run is.

use crate::checkpoint::{self, Checkpoint};
use crate::cycle::Table;
use crate::data::shard_names;
use crate::error::TrainError;
use crate::terminal::{grouped, print};
use anyhow::{Context, Result};
use clap::Args;
use engine::encoding::ENCODING_VERSION;
use engine::network::Network;
use engine::run::RunDirectory;
use engine::shard::ShardReader;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Say what a network's file, a checkpoint or a run is
#[derive(Debug, Args)]
pub(crate) struct InfoArguments {
    /// A network's file, a checkpoint, or the folder of a run
    #[arg(value_name = "PATH")]
    path: PathBuf,
}

/// The most bytes of a safetensors header that are looked at.
const LARGEST_HEADER: u64 = 16 << 20;

/// Runs `train info`.
pub(crate) fn info(arguments: &InfoArguments) -> Result<()> {
    let path = &arguments.path;
    let metadata =
        std::fs::metadata(path).with_context(|| format!("can't read {}", path.display()))?;
    let text = if metadata.is_dir() {
        describe_run(path)?
    } else if is_checkpoint(path)? {
        describe_checkpoint(path)?
    } else {
        describe_network(path)?
    };
    Ok(print(text.trim_end())?)
}

/// Lines of a name and what it is.
#[derive(Default)]
struct Facts(String);

impl Facts {
    fn add(&mut self, name: &str, fact: impl std::fmt::Display) {
        self.0.push_str(&format!("{name:<14} {fact}\n"));
    }
}

/// Whether the file's metadata is that of a checkpoint. Whatever else is wrong with the file is found out later.
fn is_checkpoint(path: &Path) -> Result<bool> {
    let cant_read = || format!("can't read {}", path.display());
    let mut file = std::fs::File::open(path).with_context(cant_read)?;
    let mut length = [0; 8];
    if file.read_exact(&mut length).is_err() {
        return Ok(false);
    }
    let mut header = Vec::new();
    let length = u64::from_le_bytes(length).min(LARGEST_HEADER);
    file.take(length)
        .read_to_end(&mut header)
        .with_context(cant_read)?;
    let header = serde_json::from_slice::<serde_json::Value>(&header).unwrap_or_default();
    Ok(!header["__metadata__"][checkpoint::FORMAT].is_null())
}

fn describe_network(path: &Path) -> Result<String, TrainError> {
    let file = Network::load(path)?;
    let mut facts = Facts::default();
    facts.add("network", path.display());
    add_architecture(&mut facts, &file.network);
    facts.add("encoding", format!("version {ENCODING_VERSION}"));
    facts.add("identity", &file.identity);
    for (key, value) in &file.origin {
        facts.add(&key.replace('_', " "), value);
    }
    Ok(facts.0)
}

fn add_architecture(facts: &mut Facts, network: &Network) {
    let sizes = network.architecture();
    facts.add(
        "architecture",
        format!("{} blocks, {} channels", sizes.blocks, sizes.channels),
    );
    facts.add("parameters", grouped(network.parameter_count() as u64));
    let flop = flop_per_evaluation(network);
    facts.add("evaluation", format!("{:.1} MFLOP", flop as f64 / 1e6));
}

/// The floating-point operations of one evaluation in play, a multiplication and an addition being two: those of the convolutions,
/// which use each weight at every square, and of the linear layers, which use each weight once.
fn flop_per_evaluation(network: &Network) -> u64 {
    let of_weight = |tensor: &tch::Tensor| match tensor.dim() {
        4 => 2 * 64 * tensor.numel() as u64,
        2 => 2 * tensor.numel() as u64,
        _ => 0,
    };
    network
        .parameters()
        .filter(|parameter| parameter.plays)
        .map(|parameter| of_weight(parameter.tensor))
        .sum()
}

fn describe_checkpoint(path: &Path) -> Result<String, TrainError> {
    let checkpoint = Checkpoint::load(path)?;
    let header = &checkpoint.header;
    let state = &header.state;
    let mut facts = Facts::default();
    facts.add("checkpoint", path.display());
    add_architecture(&mut facts, &Network::new(header.architecture, 0)?);
    facts.add("encoding", format!("version {ENCODING_VERSION}"));
    facts.add("training", format!("network {}", state.generation));
    facts.add(
        "step",
        format!(
            "{} (from {} to {})",
            grouped(state.step),
            grouped(state.first_step),
            grouped(state.last_step)
        ),
    );
    facts.add("epoch", state.cursor.epoch);
    facts.add("shards", grouped(state.supply.shards.len() as u64));
    facts.add("new games", grouped(state.new_games));
    facts.add("new rows", grouped(state.new_rows));
    facts.add("seed", state.seed);
    facts.add("parent", &state.parent);
    Ok(facts.0)
}

fn describe_run(path: &Path) -> Result<String, TrainError> {
    let run = RunDirectory::new(path);
    run.check_format()?;
    if !run.config().exists() {
        return Err(TrainError::NoRun {
            path: path.to_owned(),
            missing: "config.toml",
        });
    }
    let networks = run.list_networks()?;
    let mut facts = Facts::default();
    facts.add("run", path.display());
    if let Some((generation, newest)) = networks.last() {
        facts.add(
            "newest network",
            format!("{generation}: {}", newest.display()),
        );
        add_architecture(&mut facts, &Network::load(newest)?.network);
    }
    let mut games = 0;
    let shards = shard_names(&run.shards())?;
    for name in &shards {
        games += ShardReader::open(run.shards().join(name))?
            .frame_offsets()?
            .len() as u64;
    }
    facts.add(
        "games",
        format!(
            "{} in {} shards",
            grouped(games),
            grouped(shards.len() as u64)
        ),
    );
    let checkpoints = checkpoint::list(&run.checkpoints())?;
    if let Some(newest) = checkpoints.last() {
        facts.add("checkpoint", newest.display());
    }
    facts.add("disk", format!("{:.1} MB", disk_bytes(path)? as f64 / 1e6));
    let table = Table::of_run(&run)?;
    Ok(format!("{}\n{table}", facts.0))
}

/// The bytes of all files below a folder.
fn disk_bytes(folder: &Path) -> Result<u64, TrainError> {
    let io = |error| TrainError::Io {
        what: "read the folder",
        path: folder.to_owned(),
        error,
    };
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).map_err(io)? {
        let entry = entry.map_err(io)?;
        bytes += match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => disk_bytes(&entry.path())?,
            Ok(metadata) => metadata.len(),
            // A file that another program has just renamed or removed.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
            Err(error) => return Err(io(error)),
        };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::network::Architecture;

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
}
