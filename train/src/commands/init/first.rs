//! The network that a run begins with: a random one, or one that was trained elsewhere.

use crate::error::TrainError;
use crate::plan::other_size;
use crate::terminal::grouped;
use engine::config::Config;
use engine::network::{Network, NetworkFile, Origin};
use engine::progress::say;
use engine::run::{RunDirectory, make_folder, write_file};
use std::path::Path;

/// What a network is called that is built into the programs.
const BUILT_IN: &str = "tusker";

/// Refuses a folder that holds a run.
pub(super) fn check_new(run: &RunDirectory) -> Result<(), TrainError> {
    if run.list_networks()?.is_empty() {
        return Ok(());
    }
    Err(TrainError::RunExists {
        path: run.root().to_owned(),
    })
}

/// Makes the configuration, if it isn't there (a run may begin with games of `uniform`), and then a random network: whoever is
/// stopped between the two can begin again, and a network that is there is never replaced.
pub(crate) fn begin_run(run: &RunDirectory, config: &Config, seed: u64) -> Result<(), TrainError> {
    let network = Network::new(config.network.into(), seed)?;
    let origin: Origin = [
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("generation", "0".to_owned()),
        ("seed", seed.to_string()),
        ("step", "0".to_owned()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into();
    begin(run, config, 0, &network, &origin)?;
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

/// Reads the network that a run is to begin with: a file, or by the name `tusker` the one that is built in.
pub(super) fn load(path: &Path, config: &Config) -> Result<NetworkFile, TrainError> {
    let file = match path.to_str() {
        Some(BUILT_IN) => Network::built_in()?,
        _ => Network::load(path)?,
    };
    match other_size(config, file.network.architecture()) {
        None => Ok(file),
        Some((key, configured, found)) => Err(TrainError::OtherSize {
            key,
            configured,
            file: path.to_owned(),
            found,
        }),
    }
}

/// Makes the configuration, and then the first network, which was trained elsewhere. It keeps its number, and its seed unless another
/// is given.
pub(super) fn begin_with(
    run: &RunDirectory,
    config: &Config,
    file: NetworkFile,
    seed: Option<u64>,
) -> Result<(), TrainError> {
    let mut origin = file.origin;
    if let Some(seed) = seed.map(|seed| seed.to_string())
        && origin.get("seed") != Some(&seed)
    {
        origin.insert("seed".into(), seed);
        origin.insert("parent".into(), file.identity);
    }
    // One without a number has learnt something all the same, and network 0 is one that knows nothing.
    let generation = origin.get("generation").and_then(|it| it.parse().ok());
    let generation = generation.unwrap_or(1);
    begin(run, config, generation, &file.network, &origin)?;
    say(&format!(
        "new run {}, which goes on from a trained network: {}",
        run.root().display(),
        run.network(generation).display()
    ));
    Ok(())
}

fn begin(
    run: &RunDirectory,
    config: &Config,
    generation: u32,
    network: &Network,
    origin: &Origin,
) -> Result<(), TrainError> {
    check_new(run)?;
    run.ensure_format()?;
    make_folder(&run.networks())?;
    if !run.config().exists() {
        write_file(&run.config(), config.to_toml().as_bytes())?;
    }
    network.save(&run.network(generation), origin)?;
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
