//! `train run`: trains a run's next network.

use crate::error::TrainError;
use crate::ratings::clock::TrainingClock;
use crate::terminal::print;
use crate::trainer::checkpoint;
use crate::trainer::lock::lock_run;
use crate::trainer::plan::TrainingBudget;
use crate::trainer::record::Recorder;
use crate::trainer::training::{TrainingEnd, train};
use crate::trainer::workers_seen::WorkersSeen;
use anyhow::{Context, Result};
use clap::Args;
use engine::config::Config;
use engine::run::RunDirectory;
use engine::stop::{Exit, Stop, StopArguments};
use network::{Device, set_single_threaded};
use std::path::PathBuf;

/// Train a run's next network on its games, or resume its training
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Run folder
    #[arg(long, value_name = "DIR")]
    run: PathBuf,
    /// Training steps of this network [default: as many as use each new row train.reuse_factor times]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    steps: Option<u64>,
    /// Fail if games are missing, instead of waiting for a generator
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    workplace: Workplace,
    #[command(flatten)]
    stop: StopArguments,
}

/// The device and the threads to work on.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Workplace {
    /// Device that computes networks: cpu, cuda or cuda:N
    #[arg(long, default_value = "cpu")]
    pub(crate) device: Device,
    /// Number of threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
}

impl Workplace {
    /// The number of threads.
    pub(crate) fn thread_count(self) -> usize {
        match self.threads {
            Some(threads) => threads.into(),
            None => std::thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// Opens the device, so that an unusable one is an error before any work.
    pub(crate) fn open(self) -> Result<()> {
        self.device.open().context("--device")?;
        Ok(())
    }

    /// Sets the number of threads that read games and that compute.
    pub(crate) fn apply(self) -> Result<()> {
        set_single_threaded();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.thread_count());
        pool.build_global()
            .context("can't start the threads that read games")
    }
}

/// Runs `train run`.
pub(crate) fn run(arguments: &RunArguments) -> Result<Exit> {
    let run = RunDirectory::new(&arguments.run);
    run.check_format()?;
    if !run.config().exists() {
        let (path, missing) = (arguments.run.clone(), "config.toml");
        return Err(TrainError::NoRun { path, missing }.into());
    }
    arguments.workplace.open()?;
    let stop = arguments.stop.listen()?;
    let Some(_lock) = lock_run(&run, &stop)? else {
        return Ok(Exit::Interrupted);
    };
    // After the wait for the lock: the user may have changed it.
    let config = Config::load(&run.config())?;
    train_next(
        &run,
        &config,
        TrainingBudget {
            steps: arguments.steps,
            wait: !arguments.no_wait,
        },
        arguments.workplace,
        &stop,
        "the same command",
    )
}

/// Logs that `train loop` is in no phase: a loop that was killed has not said so.
fn end_phase(run: &RunDirectory) -> Result<()> {
    let trained = run.newest_trained()?;
    let generation = trained.map_or(0, |(trained, _)| trained + 1);
    let step = checkpoint::newest_step(&run.checkpoints());
    Recorder::new(run, step).phase(generation, step, None, None);
    Ok(())
}

/// Trains a run's next network and prints the result; `command` resumes the training.
pub(super) fn train_next(
    run: &RunDirectory,
    config: &Config,
    budget: TrainingBudget,
    workplace: Workplace,
    stop: &Stop,
    command: &str,
) -> Result<Exit> {
    workplace.apply()?;
    end_phase(run)?;
    // A run that knows its hours counts these too.
    let clock = run.clock().exists().then(|| TrainingClock::open(run, 0));
    let clock = clock.transpose()?;
    if let Some(clock) = &clock {
        clock.run(true);
    }
    let ending = train(
        run,
        config,
        budget,
        workplace.device,
        &mut WorkersSeen::default(),
        stop,
    )?;
    if let Some(clock) = clock {
        clock.record_new(run)?;
    }
    let exit = Exit::of(matches!(ending, TrainingEnd::Published { .. }));
    print(&match ending {
        TrainingEnd::Published { path, .. } => path.display().to_string(),
        TrainingEnd::Stopped {
            generation,
            step,
            steps,
            checkpoint,
        } => format!(
            "stopped at step {step} of {steps} for network {generation}; {command} resumes from {}",
            checkpoint.display()
        ),
        TrainingEnd::NotBegun => format!("stopped while it waited for games; {command} resumes"),
    })?;
    Ok(exit)
}
