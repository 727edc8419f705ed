//! What a loop begins with: the run's configuration and its first network.

use crate::commands::{begin_run, run_seed};
use crate::error::TrainError;
use engine::config::{Config, ConfigArguments};
use engine::run::{RunDirectory, write_file};

/// The run's own configuration, which a given one must be equal to; a new run's is the given one.
pub(crate) fn configuration(
    run: &RunDirectory,
    arguments: &ConfigArguments,
) -> Result<Config, TrainError> {
    run.check_format()?;
    let path = run.config();
    if !path.exists() {
        return Ok(arguments.resolve(None)?);
    }
    let saved = Config::load(&path)?;
    let given = arguments.resolve(Some(&path))?;
    check_same(run, &saved, &given)?;
    Ok(saved)
}

/// Refuses a configuration that is not the run's.
pub(crate) fn check_same(
    run: &RunDirectory,
    saved: &Config,
    given: &Config,
) -> Result<(), TrainError> {
    match first_difference(saved, given) {
        None => Ok(()),
        Some((key, saved, given)) => Err(TrainError::OtherConfig {
            run: run.root().to_owned(),
            key,
            given,
            saved,
        }),
    }
}

/// The first key that differs, with both values.
fn first_difference(saved: &Config, given: &Config) -> Option<(String, String, String)> {
    let table =
        |config: &Config| toml::from_str::<toml::Table>(&config.to_toml()).unwrap_or_default();
    difference_of_tables(&table(saved), &table(given))
}

fn difference_of_tables(
    saved: &toml::Table,
    given: &toml::Table,
) -> Option<(String, String, String)> {
    saved.iter().find_map(|(key, value)| {
        let other = given.get(key);
        if other == Some(value) {
            return None;
        }
        if let (Some(saved), Some(given)) =
            (value.as_table(), other.and_then(toml::Value::as_table))
        {
            let (below, saved, given) = difference_of_tables(saved, given)?;
            return Some((format!("{key}.{below}"), saved, given));
        }
        let other = other.map_or_else(String::new, ToString::to_string);
        Some((key.clone(), value.to_string(), other))
    })
}

/// Makes the run if it is new, and returns its seed.
pub(super) fn begin_or_go_on(
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
    if !run.config().exists() {
        // A first network that was brought along, or a run whose beginning was killed. The other program must not take its own
        // defaults for the run's configuration.
        write_file(&run.config(), config.to_toml().as_bytes())?;
    }
    let saved = run_seed(run)?;
    match seed {
        Some(given) if given != saved => Err(TrainError::OtherSeed {
            run: run.root().to_owned(),
            given,
            saved,
        }),
        _ => Ok(saved),
    }
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
        assert_eq!(begin_or_go_on(&run, &config, Some(7)).unwrap(), 7);
        let network = std::fs::read(run.network(0)).unwrap();
        std::fs::remove_file(run.config()).unwrap();
        assert_eq!(begin_or_go_on(&run, &config, None).unwrap(), 7);
        assert_eq!(Config::load(&run.config()).unwrap(), config);
        assert_eq!(std::fs::read(run.network(0)).unwrap(), network);
    }

    #[test]
    fn the_first_key_that_differs_is_named_with_both_values() {
        let config = Config::default();
        assert_eq!(first_difference(&config, &config), None);
        let other = config
            .with("train.batch_size=64")
            .unwrap()
            .with("loop.generations=3")
            .unwrap();
        let difference = first_difference(&config, &other);
        let deeper = config.with("selfplay.handicap.share=0.5").unwrap();
        assert_eq!(
            first_difference(&config, &deeper),
            Some(("selfplay.handicap.share".into(), "0.0".into(), "0.5".into()))
        );
        let expected = ("train.batch_size".into(), "256".into(), "64".into());
        assert!(
            difference == Some(expected)
                || difference.is_some_and(|(key, ..)| key == "loop.generations")
        );
    }
}
