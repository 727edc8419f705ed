//! `train init`: makes a run.

use crate::cycle::configuration;
use crate::error::TrainError;
use crate::lock::RunLock;
use crate::terminal::{grouped, print};
use anyhow::Result;
use clap::Args;
use engine::config::{Config, ConfigArguments};
use engine::network::{Network, Origin};
use engine::progress::say;
use engine::run::{RunDirectory, make_folder, write_file};
use std::path::PathBuf;

/// Make a run: its configuration, and a network that knows nothing
#[derive(Debug, Args)]
pub(crate) struct InitArguments {
    /// The folder of the run, which must not hold one yet
    #[arg(long, value_name = "DIR")]
    run: PathBuf,
    #[command(flatten)]
    config: ConfigArguments,
    /// The run's seed: the network's first weights and the order of training follow from it
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
}

/// Runs `train init`.
pub(crate) fn init(arguments: &InitArguments) -> Result<()> {
    let run = RunDirectory::new(&arguments.run);
    let config = configuration(&run, &arguments.config)?;
    if arguments.config.print_config {
        return Ok(print(config.to_toml().trim_end())?);
    }
    let _lock = RunLock::take(&run)?;
    begin_run(&run, &config, arguments.seed)?;
    Ok(())
}

/// Makes the configuration, if it isn't there (a run may begin with games of `uniform`), and then the first network: whoever is
/// stopped between the two can begin again, and a network that is there is never replaced.
pub(crate) fn begin_run(run: &RunDirectory, config: &Config, seed: u64) -> Result<(), TrainError> {
    if !run.list_networks()?.is_empty() {
        return Err(TrainError::RunExists {
            path: run.root().to_owned(),
        });
    }
    run.ensure_format()?;
    let network = Network::new(config.network.into(), seed)?;
    let origin: Origin = [
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("generation", "0".to_owned()),
        ("seed", seed.to_string()),
        ("step", "0".to_owned()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into();
    make_folder(&run.networks())?;
    if !run.config().exists() {
        write_file(&run.config(), config.to_toml().as_bytes())?;
    }
    network.save(&run.network(0), &origin)?;
    say(&format!(
        "new run {}: a random network of {} blocks and {} channels, {} parameters: {}",
        run.root().display(),
        config.network.blocks,
        config.network.channels,
        grouped(network.parameter_count() as u64),
        run.network(0).display()
    ));
    Ok(())
}

/// The seed that a run was begun with, as its newest network says.
pub(crate) fn run_seed(run: &RunDirectory) -> Result<u64, TrainError> {
    let newest = run.list_networks()?.pop();
    let (_, path) = newest.ok_or_else(|| TrainError::NoRun {
        path: run.root().to_owned(),
        missing: "network",
    })?;
    let seed = Network::load(&path)?
        .origin
        .get("seed")
        .and_then(|seed| seed.parse().ok());
    Ok(seed.unwrap_or(0))
}
