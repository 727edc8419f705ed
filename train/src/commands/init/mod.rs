//! `train init`: makes a run.

mod first;
mod games;

use crate::commands::run::{Workplace, train_next};
use crate::error::TrainError;
use crate::ratings::clock::TrainingClock;
use crate::terminal::print;
use crate::trainer::change::differences;
use crate::trainer::lock::lock_run;
use crate::trainer::plan::TrainingBudget;
use anyhow::{Context, Result, anyhow};
use clap::Args;
use engine::config::{Config, ConfigArguments};
use engine::progress::say;
use engine::run::RunDirectory;
use engine::stop::{Exit, Stop, StopArguments};
use first::{
    begin_run, begin_with, check_new, check_size, check_untrained, check_weights, with_size_of,
};
use games::{shards_of, take_over};
use network::NetworkSource;
use std::path::PathBuf;

pub(crate) use first::{began_trained, begin_or_resume};

/// Make a run: its configuration, and its first network
///
/// By default the first network is random. With --network it is one that was trained elsewhere: it plays the first games, and the
/// optimizer begins anew.
///
/// With --from the run takes over the configuration and the games of another run, and trains network 1 on them: a wider or deeper
/// one, for example, once the other has stopped learning. With both, network 1 continues from the given network.
#[derive(Debug, Args)]
pub(crate) struct InitArguments {
    /// Folder of the new run; only --print-config does without
    #[arg(long, value_name = "DIR", required_unless_present = "print_config")]
    run: Option<PathBuf>,
    /// Take over the games and, without --config, the configuration of this run. Network 1 is trained on them
    #[arg(long, value_name = "RUN")]
    from: Option<PathBuf>,
    /// Begin with this network's weights instead of random ones: a file, or `tusker` for the built-in network. Without --config the run
    /// has its size
    #[arg(long, value_name = "FILE")]
    network: Option<NetworkSource>,
    /// With --from: training steps of network 1 [default: as many as use each row train.reuse_factor times]
    #[arg(long, value_name = "N", requires = "from", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    steps: Option<u64>,
    #[command(flatten)]
    config: ConfigArguments,
    /// Seed of the first weights, the games and the order of training
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    workplace: Workplace,
    #[command(flatten)]
    stop: StopArguments,
}

/// Runs `train init`.
pub(crate) fn init(arguments: &InitArguments) -> Result<Exit> {
    let run = arguments.run.as_ref().map(RunDirectory::new);
    let old = arguments.from.as_ref().map(RunDirectory::new);
    if !arguments.config.print_config {
        // Before libtorch computes anything.
        arguments.workplace.open()?;
    }
    let brought = match &arguments.network {
        Some(source) => Some((source.load()?, source)),
        None => None,
    };
    let given = match &brought {
        Some((network, _)) => with_size_of(network, &arguments.config),
        None => arguments.config.clone(),
    };
    let config = match &old {
        Some(old) => inherited(run.as_ref(), old, &given)?,
        None => configuration(run.as_ref(), &given)?,
    };
    if let Some((network, source)) = &brought {
        check_size(network, source, &config)?;
    }
    if arguments.config.print_config {
        print(config.to_toml().trim_end())?;
        return Ok(Exit::Done);
    }
    let run = run.context("--run names the folder of the new run")?;
    if let Some(old) = &old {
        // Before any file is made.
        shards_of(old)?;
    }
    let stop = arguments.stop.listen()?;
    let seed = arguments.seed;
    let check = || match &old {
        Some(_) => {
            check_untrained(&run, seed)?;
            check_weights(&run, brought.as_ref().map(|(network, _)| network))
        }
        None => check_new(&run),
    };
    // Before waiting for the lock, too.
    check()?;
    let Some(_lock) = lock_run(&run, &stop)? else {
        return Ok(Exit::Interrupted);
    };
    check()?;
    if let Some(old) = &old {
        let games = take_over(old, &run)?;
        say(&format!(
            "{games} shards of {} are taken over",
            old.root().display()
        ));
        if let (Some((network, _)), false) = (&brought, run.network(0).exists()) {
            begin_with(&run, &config, network, seed)?;
        }
        begin_or_resume(&run, &config, Some(seed))?;
        return train_first(arguments, &run, &config, &stop);
    }
    match brought {
        Some((network, _)) => begin_with(&run, &config, &network, seed)?,
        None => begin_run(&run, &config, seed)?,
    }
    Ok(Exit::Done)
}

/// The configuration of a run with the games of another: by default the other run's.
fn inherited(
    run: Option<&RunDirectory>,
    old: &RunDirectory,
    arguments: &ConfigArguments,
) -> Result<Config, TrainError> {
    old.check_format()?;
    let path = old.config();
    if !path.exists() {
        return Err(TrainError::NoRun {
            path: old.root().to_owned(),
            missing: "config.toml",
        });
    }
    let given = arguments.resolve(Some(&path))?;
    if let Some(run) = run {
        run.check_format()?;
        if run.config().exists() {
            check_same(run, &Config::load(&run.config())?, &given)?;
        }
    }
    Ok(given)
}

/// The run's own configuration, which a given one must be equal to; a new run's is the given one, as it is without a run.
pub(crate) fn configuration(
    run: Option<&RunDirectory>,
    arguments: &ConfigArguments,
) -> Result<Config, TrainError> {
    let Some(run) = run else {
        return Ok(arguments.resolve(None)?);
    };
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
fn check_same(run: &RunDirectory, saved: &Config, given: &Config) -> Result<(), TrainError> {
    match differences(saved, given).into_iter().next() {
        None => Ok(()),
        Some(difference) => Err(TrainError::OtherConfig {
            run: run.root().to_owned(),
            given: difference.new_value(),
            key: difference.key,
            saved: difference.old.to_string(),
        }),
    }
}

/// Trains network 1 of a new run.
fn train_first(
    arguments: &InitArguments,
    run: &RunDirectory,
    config: &Config,
    stop: &Stop,
) -> Result<Exit> {
    let budget = TrainingBudget {
        steps: arguments.steps,
        wait: false,
    };
    let command = format!("`train run --run {}`", run.root().display());
    // The loop, which resumes this run, shows its hours.
    let clock = TrainingClock::open(run, 0)?;
    clock.run(true);
    train_next(run, config, budget, arguments.workplace, stop, &command)
        .map_err(|error| anyhow!("{error:#}; {command} resumes"))
}
