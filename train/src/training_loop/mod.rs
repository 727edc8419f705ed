//! `train loop`: generate, train, publish, compare, and again.
//!
//! The loop finds out what is done from the run's files alone: the games that are new to the trainer, the networks, the results of
//! their matches. So it may be killed at any moment, and resumes when it is started again.
//!
//! ```text
//! in turns       generate ─► train ─► gate ─► matches ─► ratings ─► generate …
//! side by side   generate all the time, with the newest network
//!                wait for new games ─► train ─► gate ─► matches ─► ratings ─► wait …
//! external       others generate
//!                wait for new games ─► train ─► gate ─► matches ─► ratings ─► wait …
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`games`] | the games of a generation: counted, played or waited for |
//! | [`mod@matches`], [`show`] | the gate, matches, ratings; games to show |
//! | [`page`] | the server of the run's page |
//! | [`phase`] | the phases of a generation, in the log |
//! | [`self_play_meter`] | the speed of self-play |
//! | [`selfplay`], [`child`] | the program `selfplay` |
//! | [`state`] | what a loop holds, and where its run stands |
//! | [`table`] | what the user sees |

mod child;
mod games;
mod matches;
mod page;
mod phase;
mod self_play_meter;
mod selfplay;
mod show;
mod state;
mod table;

use crate::commands::{Workplace, began_trained, begin_or_resume, configuration};
use crate::data::Index;
use crate::error::TrainError;
use crate::plots::ratings as rating_plot;
use crate::ratings::clock::TrainingClock;
use crate::terminal::{grouped, print};
use crate::trainer::change::changed;
use crate::trainer::checkpoint;
use crate::trainer::lock::lock_run;
use crate::trainer::metrics::LoopPhase;
use crate::trainer::plan::{TrainingBudget, allowed_changes};
use crate::trainer::training::{TrainingEnd, train};
use crate::trainer::workers_seen::WorkersSeen;
use anyhow::{Context, Result, ensure};
use child::BackgroundProcess;
use clap::Args;
use engine::config::{Config, ConfigArguments, LoopOrder};
use engine::progress::{in_words, say};
use engine::run::RunDirectory;
use engine::stop::{Exit, StopArguments};
use network::Device;
use page::Page;
use self_play_meter::SelfPlayMeter;
use selfplay::Selfplay;
use state::{LoopWorkers, TrainingLoop};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use table::table_of;

/// Generate games, train a network on them and compare it, generation after generation
///
/// Makes the run if it is missing, and resumes it otherwise.
#[derive(Debug, Args)]
pub(crate) struct LoopArguments {
    /// Run folder; only --print-config does without
    #[arg(long, value_name = "DIR", required_unless_present = "print_config")]
    run: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigArguments,
    /// Seed of the first network, the games and the order of training. With several threads, games are stored in the order in which
    /// they end, which training sees [default: 0]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    #[command(flatten)]
    workplace: Workplace,
    /// Device that computes the generator's networks: cpu, cuda, cuda:N, or several GPUs, such as cuda:1,cuda:2 [default: as --device]
    #[arg(long, value_name = "DEVICE", value_delimiter = ',')]
    generator_device: Vec<Device>,
    /// Serve the run's page at this address while the loop runs, as `selfplay serve --run DIR --address ADDR` does
    #[arg(long, value_name = "ADDR")]
    serve: Option<String>,
    #[command(flatten)]
    stop: StopArguments,
}

/// Runs `train loop`.
pub(crate) fn run(arguments: &LoopArguments) -> Result<Exit> {
    let run = arguments.run.as_ref().map(RunDirectory::new);
    let config = configuration(run.as_ref(), None, &arguments.config)?;
    if arguments.config.print_config {
        print(config.to_toml().trim_end())?;
        return Ok(Exit::Done);
    }
    let run = run.context("--run names the run's folder")?;
    arguments.workplace.open()?;
    ensure!(
        arguments.generator_device.is_empty() || config.training_loop.order != LoopOrder::External,
        "--generator-device: with loop.order = \"external\" the loop has no generator; each `selfplay generate` has its --device"
    );
    // The generator may begin much later: a device that it can't use is an error now.
    for device in &arguments.generator_device {
        device.open().context("--generator-device")?;
    }
    let stop = arguments.stop.listen()?;
    let selfplay = Selfplay::find(stop.clone(), arguments.stop)?;
    let Some(_lock) = lock_run(&run, &stop)? else {
        return Ok(Exit::Interrupted);
    };
    let workers = LoopWorkers::new(&config, arguments.workplace, &arguments.generator_device);
    let own_threads = u16::try_from(workers.matches.threads).ok();
    let workplace = arguments.workplace;
    Workplace {
        threads: own_threads,
        ..workplace
    }
    .apply()?;
    let trained = run.newest_trained()?;
    let trained = trained.map_or(0, |(generation, _)| generation);
    if trained < config.training_loop.generations {
        // The trainer would refuse a checkpoint of another version, or a change, only after the first games and matches.
        if let Some(checkpoint) = checkpoint::newest(&run.checkpoints())? {
            allowed_changes(&run, &config, &checkpoint)?;
        }
    }
    let seed = begin_or_resume(&run, &config, arguments.seed)?;
    let page = arguments.serve.as_deref();
    let page = page.map(|address| Page::start(&selfplay, &run, address));
    let page = page.transpose()?;
    let began_trained = began_trained(&run)?;
    let clock = TrainingClock::open(&run, trained)?;
    let index = Index::new(&run.shards(), config.train.validation_share);
    let self_play = SelfPlayMeter::start(&run);
    let mut training_loop = TrainingLoop {
        run,
        config,
        seed,
        began_trained,
        workplace,
        workers,
        selfplay,
        generator: None,
        page,
        workers_seen: WorkersSeen::default(),
        index,
        clock,
        phase: None,
        self_play,
        stop,
    };
    match training_loop.go() {
        Ok(()) => {
            training_loop.report()?;
            Ok(Exit::Done)
        }
        Err(TrainError::Stopped) => {
            print(&format!(
                "stopped: `train loop --run {}` resumes it",
                training_loop.run.root().display()
            ))?;
            Ok(Exit::Interrupted)
        }
        Err(error) => Err(error.into()),
    }
}

impl TrainingLoop {
    /// Goes through the remaining generations, and ends the generator in any case.
    fn go(&mut self) -> Result<(), TrainError> {
        self.announce()?;
        let went = self.go_through();
        let ended = self.end_generator();
        self.begin_phase(None);
        match went {
            // If it ended by itself, that is why everything else was stopped.
            Ok(()) | Err(TrainError::Stopped) => ended.and(went),
            Err(_) => went,
        }
    }

    fn go_through(&mut self) -> Result<(), TrainError> {
        let generations = self.config.training_loop.generations;
        self.start_generator()?;
        // A kill may have come between a network and its record.
        self.clock.record_new(&self.run)?;
        self.clock.run(self.is_played_beside());
        // Ratings without an anchor are measured from the first network's matches; a later network's may be left from a kill.
        self.measure()?;
        loop {
            let trained = self.trained()?;
            if trained >= generations {
                return Ok(());
            }
            let begun = Instant::now();
            let next = trained + 1;
            say(&format!("\n== generation {next} of {generations}"));
            self.wait_for_config()?;
            self.start_generator()?;
            self.clock.run(true);
            self.provide_and_train(trained)?;
            self.clock.record_new(&self.run)?;
            if next >= generations {
                // More games would not be trained on.
                self.end_generator()?;
            }
            self.clock.run(self.is_played_beside());
            self.measure()?;
            let took = begun.elapsed();
            let left = match generations - next {
                0 => String::new(),
                left => format!(", {left} left: about {} more", in_words(took * left)),
            };
            say(&format!("generation {next} took {}{left}", in_words(took)));
        }
    }

    /// Trains the next network as soon as there are games for it. It takes more games than configured if their rows don't suffice: for
    /// a step, or for all steps of a training that resumed with larger batches or fewer shards.
    fn provide_and_train(&mut self, trained: u32) -> Result<(), TrainError> {
        for times in 1.. {
            self.provide_games(trained, times)?;
            self.begin_phase(Some((LoopPhase::Training, trained + 1)));
            self.wait_for_config()?;
            match self.train() {
                Err(error) => match error.missing_games() {
                    Some(missing) => say(&missing),
                    None => return Err(error),
                },
                Ok(()) => break,
            }
        }
        Ok(())
    }

    /// Waits while the run's configuration file has a value that the run can't have: the loop's programs read it too.
    pub(super) fn wait_for_config(&self) -> Result<(), TrainError> {
        let path = self.run.config();
        let worked = self.clock.runs();
        let mut said = None;
        loop {
            let fault = match Config::load(&path) {
                Ok(config) => changed(&self.config, &config)
                    .map_err(|refusal| format!("{}: {refusal}", path.display())),
                Err(error) if !self.run.root().exists() => return Err(error.into()),
                Err(error) => Err(error.to_string().trim_end().to_owned()),
            };
            let Err(fault) = fault else {
                self.clock.run(worked);
                return Ok(());
            };
            if !self.is_played_beside() {
                self.clock.run(false);
            }
            if said.as_ref() != Some(&fault) {
                say(&format!("waits until config.toml is mended: {fault}"));
                said = Some(fault);
            }
            if !self.stop.sleep(Duration::from_secs(1)) {
                return Err(TrainError::Stopped);
            }
        }
    }

    /// Measures the newest network's strength, and decides whether it plays.
    fn measure(&mut self) -> Result<(), TrainError> {
        let trained = self.trained()?;
        self.begin_phase(Some((LoopPhase::Matches, trained)));
        self.judge()?;
        self.compare()?;
        self.rate()?;
        self.show()?;
        if self.stop.is_requested() {
            return Err(TrainError::Stopped);
        }
        Ok(())
    }

    /// Starts the generator if it should play beside the trainer and does not run yet. It does not start while `uniform` plays the
    /// first games.
    fn start_generator(&mut self) -> Result<(), TrainError> {
        let trained = self.trained()?;
        let is_wanted = self.config.training_loop.order == LoopOrder::SideBySide
            && trained < self.config.training_loop.generations
            && !self.is_without_network(trained);
        if is_wanted && self.generator.is_none() {
            let workers = &self.workers.generator;
            let started = self.selfplay.start_generator(&self.run, self.seed, workers);
            self.generator = Some(started?);
        }
        Ok(())
    }

    /// Whether games are played at the same time.
    fn is_played_beside(&self) -> bool {
        self.generator.is_some() || self.config.training_loop.order == LoopOrder::External
    }

    fn end_generator(&mut self) -> Result<(), TrainError> {
        self.generator.take().map_or(Ok(()), BackgroundProcess::end)
    }

    /// Reports what there is to do.
    fn announce(&self) -> Result<(), TrainError> {
        let settings = &self.config.training_loop;
        let trained = self.trained()?;
        if trained >= settings.generations {
            say(&format!(
                "run {}: all {} generations are complete",
                self.run.root().display(),
                settings.generations
            ));
            return Ok(());
        }
        let first_games = if self.is_without_network(trained) {
            settings.first_games
        } else {
            0
        };
        let first = match first_games {
            0 => String::new(),
            games => format!(" (the first: {} without a network)", grouped(games.into())),
        };
        let order = match settings.order {
            LoopOrder::InTurns => "then training",
            LoopOrder::SideBySide => "training beside it",
            LoopOrder::External => "by generators of other commands, training beside them",
        };
        say(&format!(
            "run {}: {} of {} generations to go, {} games of self-play at {} evaluations a turn each{first}, {order}, then {} \
             games against each of up to {} others (the last network: {}). \
             How long it takes is measured in the next generation.",
            self.run.root().display(),
            settings.generations - trained,
            settings.generations,
            grouped(settings.games_per_generation.into()),
            self.config.selfplay.evaluations,
            settings.match_games,
            settings.match_opponents as usize + settings.anchors.len(),
            settings.final_match_games,
        ));
        Ok(())
    }

    /// Trains the next network, with the run's configuration as its file has it now.
    fn train(&mut self) -> Result<(), TrainError> {
        self.workers_seen.look(&self.run, Instant::now());
        let mut config = Config::load(&self.run.config())?;
        // The loop's own settings apply after its restart.
        config.training_loop = self.config.training_loop.clone();
        let budget = TrainingBudget {
            steps: None,
            // Nothing else plays in turns, nor while `uniform` plays the first games.
            wait: self.is_played_beside(),
        };
        match train(
            &self.run,
            &config,
            budget,
            self.workplace.device,
            &mut self.workers_seen,
            &self.stop,
        )? {
            TrainingEnd::Published { .. } => Ok(()),
            TrainingEnd::Stopped {
                generation,
                step,
                steps,
                ..
            } => {
                say(&format!(
                    "network {generation} is stopped at step {step} of {steps}"
                ));
                Err(TrainError::Stopped)
            }
            TrainingEnd::NotBegun => Err(TrainError::Stopped),
        }
    }

    /// Prints the table of all generations, and the paths of the results.
    fn report(&self) -> Result<()> {
        let run = &self.run;
        print(&format!("\n{}", table_of(run)?))?;
        for (what, path) in [
            ("configuration", run.config()),
            ("networks", run.networks()),
            ("rejected", run.rejected()),
            ("games", run.shards()),
            ("checkpoints", run.checkpoints()),
            ("matches", run.pit()),
            ("ratings", run.ratings()),
            ("their plot", rating_plot::file(&run.logs())),
            ("logs", run.logs()),
        ] {
            if path.exists() {
                print(&format!("{what:<14} {}", path.display()))?;
            }
        }
        Ok(())
    }
}
