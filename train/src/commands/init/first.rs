//! The first network of a run: a random one, or one that was trained elsewhere.

use crate::error::TrainError;
use crate::terminal::grouped;
use crate::trainer::plan::number_in;
use engine::config::{Config, ConfigArguments};
use engine::progress::say;
use engine::run::{GeneratorPaths, RunDirectory, make_folder};
use network::{Architecture, Network, NetworkFile, NetworkSource, Origin};

/// Refuses a run that has trained a network, that was begun with another seed, or that generators play for.
pub(super) fn check_untrained(run: &RunDirectory, seed: u64) -> Result<(), TrainError> {
    let newest = run.newest_trained()?.map(|(generation, _)| generation);
    if newest.is_some_and(|newest| newest > 0) || GeneratorPaths::from(run).is_used() {
        return Err(run_exists(run));
    }
    match newest {
        Some(_) => check_seed(run, seed),
        None => Ok(()),
    }
}

/// Refuses a run that began with other weights than this network's; none for random ones.
pub(super) fn check_weights(
    run: &RunDirectory,
    trained: Option<&NetworkFile>,
) -> Result<(), TrainError> {
    let first = run.network(0);
    if !first.exists() {
        return Ok(());
    }
    let parent = Network::load(&first)?.origin.remove("parent");
    if parent.as_ref() == trained.map(|trained| &trained.identity) {
        Ok(())
    } else {
        let saved = parent.map_or_else(
            || "random weights".into(),
            |identity| format!("the weights of network {identity}"),
        );
        Err(TrainError::Other(format!(
            "{} already holds a run, which began with {saved}: give these, or begin another run",
            run.root().display()
        )))
    }
}

fn check_seed(run: &RunDirectory, given: u64) -> Result<(), TrainError> {
    let saved = run_seed(run)?;
    if given == saved {
        Ok(())
    } else {
        Err(TrainError::Other(format!(
            "--seed {given}: the run {} began with --seed {saved}; omit --seed",
            run.root().display()
        )))
    }
}

/// Refuses a folder that holds a run.
pub(super) fn check_new(run: &RunDirectory) -> Result<(), TrainError> {
    if run.list_networks()?.is_empty() {
        return Ok(());
    }
    Err(run_exists(run))
}

fn run_exists(run: &RunDirectory) -> TrainError {
    let root = run.root().display();
    TrainError::Other(format!(
        "{root} already holds a run: nothing was changed; `train run --run {root}` resumes it"
    ))
}

/// Makes the configuration, unless it exists (a run may begin with games of `uniform`), and then a random network. So a stop between
/// the two is harmless, and an existing network is never replaced.
pub(super) fn begin_run(run: &RunDirectory, config: &Config, seed: u64) -> Result<(), TrainError> {
    let network = Network::new(config.network.into(), seed)?;
    begin(run, config, &network, seed, None)?;
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

/// The options for a run that begins with this network: its size is the default, unless a file is the configuration.
pub(super) fn with_size_of(network: &NetworkFile, arguments: &ConfigArguments) -> ConfigArguments {
    let mut arguments = arguments.clone();
    if arguments.config.is_none() {
        let size = network.network.architecture();
        let settings = [
            format!("network.blocks={}", size.blocks),
            format!("network.channels={}", size.channels),
        ];
        // Before the user's own.
        arguments.set.splice(0..0, settings);
    }
    arguments
}

/// Refuses a network of another size than configured.
pub(super) fn check_size(
    network: &NetworkFile,
    source: &NetworkSource,
    config: &Config,
) -> Result<(), TrainError> {
    let configured: Architecture = config.network.into();
    let found = network.network.architecture();
    if configured == found {
        return Ok(());
    }
    let Architecture { blocks, channels } = found;
    Err(TrainError::Other(format!(
        "{source} has {blocks} blocks and {channels} channels, and the configuration has {} and {}: with `--set network.blocks={blocks} \
         --set network.channels={channels}` a run begins with it",
        configured.blocks, configured.channels
    )))
}

/// Makes the configuration, and then the first network, with the weights of a network that was trained elsewhere.
pub(super) fn begin_with(
    run: &RunDirectory,
    config: &Config,
    trained: &NetworkFile,
    seed: u64,
) -> Result<(), TrainError> {
    begin(run, config, &trained.network, seed, Some(&trained.identity))?;
    say(&format!(
        "new run {}, which continues from network {}: {}",
        run.root().display(),
        &trained.identity[..12],
        run.network(0).display()
    ));
    Ok(())
}

/// `parent` is the network that the weights come from.
fn begin(
    run: &RunDirectory,
    config: &Config,
    network: &Network,
    seed: u64,
    parent: Option<&str>,
) -> Result<(), TrainError> {
    check_new(run)?;
    run.ensure_format()?;
    let mut origin: Origin = [
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("generation", "0".to_owned()),
        ("seed", seed.to_string()),
        ("step", "0".to_owned()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into();
    if let Some(parent) = parent {
        origin.insert("parent".into(), parent.into());
    }
    make_folder(&run.networks())?;
    run.ensure_config(&config.to_toml())?;
    network.save(&run.network(0), &origin)?;
    Ok(())
}

/// Makes the run if it is new, and returns its seed.
pub(crate) fn begin_or_resume(
    run: &RunDirectory,
    config: &Config,
    seed: Option<u64>,
) -> Result<u64, TrainError> {
    run.ensure_format()?;
    if run.list_networks()?.is_empty() {
        let seed = seed.unwrap_or(0);
        begin_run(run, config, seed)?;
        return Ok(seed);
    }
    // The user put the first network there, or `train init` was killed. The generator must not use its own defaults.
    run.ensure_config(&config.to_toml())?;
    if let Some(given) = seed {
        check_seed(run, given)?;
    }
    run_seed(run)
}

/// Whether the run began with a network that was trained elsewhere.
pub(crate) fn began_trained(run: &RunDirectory) -> Result<bool, TrainError> {
    let path = run.network(0);
    Ok(path.exists() && Network::load(&path)?.is_trained())
}

/// The seed of a run, from its newest network.
fn run_seed(run: &RunDirectory) -> Result<u64, TrainError> {
    let newest = run.list_networks()?.pop();
    let (_, path) = newest.ok_or_else(|| TrainError::NoRun {
        path: run.root().to_owned(),
        missing: "network",
    })?;
    Ok(number_in(&Network::load(&path)?, "seed").unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_its_configuration_gets_the_given_one() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path());
        let mut config = Config::default();
        (config.network.blocks, config.network.channels) = (1, 8);
        assert_eq!(begin_or_resume(&run, &config, Some(7)).unwrap(), 7);
        let network = std::fs::read(run.network(0)).unwrap();
        std::fs::remove_file(run.config()).unwrap();
        assert_eq!(begin_or_resume(&run, &config, None).unwrap(), 7);
        assert_eq!(Config::load(&run.config()).unwrap(), config);
        assert_eq!(std::fs::read(run.network(0)).unwrap(), network);
    }
}
