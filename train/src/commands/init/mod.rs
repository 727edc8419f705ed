//! `train init`: makes a run.

mod first;
mod games;

use crate::commands::run::{Workplace, train_next};
use crate::error::TrainError;
use crate::ratings::clock::TrainingClock;
use crate::terminal::print;
use crate::trainer::change::{Difference, differences};
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
/// one, for example, once the other has stopped learning. With both, network 1 continues from the given network. --steps, --threads
/// and --grace are for this training.
#[derive(Debug, Args)]
#[command(mut_arg("threads", |threads| threads.requires("from")))]
#[command(mut_arg("grace", |grace| grace.requires("from")))]
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
    let config = configuration(run.as_ref(), old.as_ref(), &given)?;
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

/// The given configuration, which must be equal to the run's own, if it has one. By default it is that of the run `old`, whose games
/// are taken over, or else the run's own.
pub(crate) fn configuration(
    run: Option<&RunDirectory>,
    old: Option<&RunDirectory>,
    arguments: &ConfigArguments,
) -> Result<Config, TrainError> {
    for run in old.into_iter().chain(run) {
        run.check_format()?;
    }
    if let Some(old) = old.filter(|old| !old.config().exists()) {
        return Err(TrainError::NoRun {
            path: old.root().to_owned(),
            missing: "config.toml",
        });
    }
    let begun = run.filter(|run| run.config().exists());
    let default = old.or(begun).map(RunDirectory::config);
    let given = arguments.resolve(default.as_deref())?;
    if let Some(run) = begun {
        let saved = Config::load(&run.config())?;
        if let Some(Difference { key, new, old }) = differences(&saved, &given).into_iter().next() {
            return Err(TrainError::Other(format!(
                "{key} = {new}, but the run {} has {key} = {old}: change it in {}, begin another run, or omit --config and --set",
                run.root().display(),
                run.config().display()
            )));
        }
    }
    Ok(given)
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
    // The run knows its hours from the first network on.
    drop(TrainingClock::open(run, 0)?);
    train_next(run, config, budget, arguments.workplace, stop, &command)
        .map_err(|error| anyhow!("{error:#}; {command} resumes"))
}
