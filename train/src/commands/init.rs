//! `train init`: makes a run.

use super::Workplace;
use crate::cycle::{check_same, configuration};
use crate::error::TrainError;
use crate::lock::RunLock;
use crate::plan::Demand;
use crate::stop::Stop;
use crate::terminal::{grouped, print};
use crate::training::{Ending, train};
use anyhow::{Context, Result};
use clap::Args;
use engine::config::{Config, ConfigArguments};
use engine::files;
use engine::network::{Network, Origin};
use engine::progress::say;
use engine::run::{RunDirectory, make_folder, write_file};
use engine::shard::{ShardName, list_shards};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Make a run: its configuration, and a network that knows nothing
///
/// With --from the run takes over the configuration and the games of another one, and a first network is trained on them: a wider or
/// deeper one, say, that goes on where the other has stopped learning.
#[derive(Debug, Args)]
pub(crate) struct InitArguments {
    /// The folder of the run, which must not hold one yet
    #[arg(long, value_name = "DIR")]
    run: PathBuf,
    /// Take over the games and, without --config, the configuration of this run, and train the new run's network 1 on them
    #[arg(long, value_name = "RUN")]
    from: Option<PathBuf>,
    /// With --from: steps of the optimizer for network 1 [default: as many as use the rows train.uses_per_row times each]
    #[arg(long, value_name = "N", requires = "from", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    steps: Option<u64>,
    #[command(flatten)]
    config: ConfigArguments,
    /// The run's seed: the network's first weights and the order of training follow from it
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    workplace: Workplace,
}

/// Runs `train init`.
pub(crate) fn init(arguments: &InitArguments) -> Result<()> {
    let run = RunDirectory::new(&arguments.run);
    let old = arguments.from.as_ref().map(RunDirectory::new);
    let config = match &old {
        Some(old) => inherited(&run, old, &arguments.config)?,
        None => configuration(&run, &arguments.config)?,
    };
    if arguments.config.print_config {
        return Ok(print(config.to_toml().trim_end())?);
    }
    arguments.workplace.device.open()?;
    if let Some(old) = &old {
        // Before anything is made.
        shards_of(old)?;
    }
    let _lock = RunLock::take(&run)?;
    if let Some(old) = &old {
        check_new(&run)?;
        let games = take_over(old, &run)?;
        say(&format!(
            "{games} shards of {} are taken over",
            old.root().display()
        ));
    }
    begin_run(&run, &config, arguments.seed)?;
    if old.is_some() {
        train_first(arguments, &run, &config)?;
    }
    Ok(())
}

/// The configuration of a run that is begun with the games of another: without `--config` it is that run's.
fn inherited(
    run: &RunDirectory,
    old: &RunDirectory,
    arguments: &ConfigArguments,
) -> Result<Config, TrainError> {
    run.check_format()?;
    old.check_format()?;
    let path = old.config();
    if !path.exists() {
        return Err(TrainError::NoRun {
            path: old.root().to_owned(),
            missing: "config.toml",
        });
    }
    let given = arguments.resolve(Some(&path))?;
    if run.config().exists() {
        check_same(run, &Config::load(&run.config())?, &given)?;
    }
    Ok(given)
}

/// Brings the shards of a run into another: the same files under a second name, or copies where the system has none. What is there
/// already stays. Returns how many there are.
fn take_over(old: &RunDirectory, run: &RunDirectory) -> Result<usize, TrainError> {
    let shards = shards_of(old)?;
    make_folder(&run.shards())?;
    for (name, path) in &shards {
        let own = run.shards().join(name.to_string());
        match fs::hard_link(path, &own) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => check_equal(path, &own)?,
            Err(_) => copy(path, &own).map_err(|error| TrainError::Io {
                what: "copy a shard to",
                path: own.clone(),
                error,
            })?,
            Ok(()) => {}
        }
    }
    Ok(shards.len())
}

/// The shards of a run, of which there must be some.
fn shards_of(old: &RunDirectory) -> Result<BTreeMap<ShardName, PathBuf>, TrainError> {
    let folder = old.shards();
    let shards = match folder.exists() {
        true => list_shards(&folder)?,
        false => BTreeMap::new(),
    };
    match shards.is_empty() {
        true => Err(TrainError::NoGames { folder }),
        false => Ok(shards),
    }
}

/// Refuses to take another shard of the same name for the one that is to be taken over.
fn check_equal(path: &Path, own: &Path) -> Result<(), TrainError> {
    let digest_of = |path: &Path| {
        let mut hasher = blake3::Hasher::new();
        let hashed = File::open(path).and_then(|file| Ok(hasher.update_reader(file)?.finalize()));
        hashed.map_err(|error| TrainError::Io {
            what: "read",
            path: path.to_owned(),
            error,
        })
    };
    if digest_of(path)? == digest_of(own)? {
        return Ok(());
    }
    Err(TrainError::OtherShard {
        own: own.to_owned(),
        path: path.to_owned(),
    })
}

/// Copies a file, whole or not at all, with the time of its last change: shards are in the order of their ages.
fn copy(path: &Path, own: &Path) -> io::Result<()> {
    let mut from = File::open(path)?;
    let mut to = files::temporary_in(files::folder_of(own))?;
    io::copy(&mut from, &mut to)?;
    to.as_file().set_modified(from.metadata()?.modified()?)?;
    files::publish_new(to, own)
}

/// Trains network 1 of a new run.
fn train_first(arguments: &InitArguments, run: &RunDirectory, config: &Config) -> Result<()> {
    arguments.workplace.apply()?;
    let stop = Stop::listen().context("can't listen for signals")?;
    let demand = Demand {
        steps: arguments.steps,
        least_new_games: 0,
        wait: false,
    };
    let device = arguments.workplace.device;
    let goes_on = || format!("`train run --run {}` goes on", run.root().display());
    match train(run, config, demand, device, &stop).with_context(goes_on)? {
        Ending::Published { path, .. } => print(&path.display().to_string())?,
        Ending::Stopped { step, steps, .. } => {
            print(&format!("stopped at step {step} of {steps}: {}", goes_on()))?;
        }
        Ending::NotBegun => {}
    }
    Ok(())
}

/// Refuses a folder that holds a run.
fn check_new(run: &RunDirectory) -> Result<(), TrainError> {
    if run.list_networks()?.is_empty() {
        return Ok(());
    }
    Err(TrainError::RunExists {
        path: run.root().to_owned(),
    })
}

/// Makes the configuration, if it isn't there (a run may begin with games of `uniform`), and then the first network: whoever is
/// stopped between the two can begin again, and a network that is there is never replaced.
pub(crate) fn begin_run(run: &RunDirectory, config: &Config, seed: u64) -> Result<(), TrainError> {
    check_new(run)?;
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
