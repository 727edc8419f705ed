//! The command line of `selfplay generate`, and the plan made of it.

use crate::shard_target::ShardTarget;
use crate::telemetry::{Limits, TelemetryArguments};
use crate::worker::devices::Devices;
use crate::worker::player::PlayerName;
use crate::worker::worker_pool::WorkerArguments;
use anyhow::{Context, Result};
use clap::Args;
use engine::config::{Config, ConfigArguments, LoopOrder, NetworkChange, printed_or};
use engine::run::{BLOCKS, GeneratorPaths, RunDirectory, WorkerName, block_numbers};
use network::Network;
use std::path::PathBuf;

/// Play games against oneself and write them to shards
///
/// In a run, its configuration and its newest network are used unless others are named.
#[derive(Debug, Args)]
#[command(mut_group("ShardTarget", |target| target.required(false)))]
#[command(group = printed_or(["out", "run"]))]
pub(crate) struct GenerateArguments {
    #[command(flatten)]
    pub(super) config: ConfigArguments,
    /// Evaluator: a network's file, `tusker` (the built-in network), `material` (hand-made) or `uniform` (equal values and priors)
    /// [default: the run's newest network and its successors; else `uniform`]
    #[arg(long, value_name = "FILE|tusker|uniform|material", value_parser = searcher)]
    network: Option<PlayerName>,
    #[command(flatten)]
    target: ShardTarget,
    /// Games to play. After a kill or a stop, the same command plays the rest; once all are played, as many again
    /// [default: no end]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) games: Option<u64>,
    /// Stop after this many hours
    #[arg(long, value_name = "H", value_parser = positive)]
    hours: Option<f64>,
    /// Stop when the run, or the folder of shards, takes this many GiB on disk
    #[arg(long, value_name = "GIB", value_parser = positive)]
    max_disk: Option<f64>,
    /// Play fewer games at once while the program takes more than this many GiB of memory
    #[arg(long, value_name = "GIB", value_parser = positive)]
    max_memory: Option<f64>,
    /// Seed of all randomness, with the numbers of the generator and the game
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(super) seed: u64,
    /// Name of this worker, which no other worker of the run has: after a restart, it takes up its own games [default: given by Slurm or
    /// Kubernetes; else the host's name, which several generators may have]
    #[arg(long, value_name = "NAME")]
    worker: Option<WorkerName>,
    /// Number a new generator from K·1000 to K·1000 + 999: for machines without a common folder, each of which has a K of its own
    /// [default: from 0]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(..i64::from(BLOCKS)))]
    block: Option<u32>,
    #[command(flatten)]
    pub(super) telemetry: TelemetryArguments,
    #[command(flatten)]
    pub(super) workers: WorkerArguments,
}

/// A player whose searches give training rows.
fn searcher(text: &str) -> Result<PlayerName, String> {
    let Ok(player) = text.parse::<PlayerName>();
    match player.without_search() {
        Some(reason) => Err(format!("{reason}: there is nothing to learn from")),
        None => Ok(player),
    }
}

/// A number above 0.
fn positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if 0.0 < number && number < f64::INFINITY => Ok(number),
        _ => Err("expected a number above 0".into()),
    }
}

/// Whether `uniform` plays the games of the first generation: a random first network knows no more. A loop with a generator of its own
/// sees to it.
fn is_without_network(config: &Config, trained: Option<u32>, run: Option<&RunDirectory>) -> bool {
    let settings = &config.training_loop;
    let is_random = |run: &RunDirectory| {
        // One that can't be read is replaced or reported where it is opened.
        Network::load(&run.network(0)).is_ok_and(|file| !file.is_trained())
    };
    settings.order == LoopOrder::External
        && settings.first_games > 0
        && trained == Some(0)
        && run.is_some_and(is_random)
}

/// The player and its network, and where the games go.
pub(super) struct GenerationPlan {
    pub(super) config: Config,
    pub(super) player: PlayerName,
    /// The evaluator that the command names, whichever network plays first.
    pub(super) subject: String,
    pub(super) devices: Devices,
    pub(super) paths: GeneratorPaths,
    /// The run, if there is one.
    pub(super) run: Option<RunDirectory>,
    /// The generation that plays first.
    pub(super) generation: Option<u32>,
    /// The networks before it, the oldest first: the newest that can be used replaces one that can't.
    pub(super) older: Vec<(u32, PathBuf)>,
    /// Whether new networks of the run take over.
    pub(super) follows: bool,
    pub(super) limits: Limits,
}

impl GenerateArguments {
    /// The configuration: by default the run's.
    pub(super) fn config(&self) -> Result<Config> {
        let saved = self.target.run().map(|run| run.config());
        let saved = saved.filter(|path| path.exists());
        Ok(self.config.resolve(saved.as_deref())?)
    }

    /// This worker's name.
    pub(super) fn worker(&self) -> WorkerName {
        self.worker
            .clone()
            .unwrap_or_else(WorkerName::of_environment)
    }

    pub(super) fn plan(&self) -> Result<GenerationPlan> {
        let run = self.target.run();
        let config = self.config()?;
        let mut networks = match &run {
            Some(run) => run.list_networks()?,
            None => Vec::new(),
        };
        let newest = networks.pop();
        let follows = run.is_some()
            && self.network.is_none()
            && config.selfplay.network_change != NetworkChange::Never;
        let generation = newest.as_ref().map(|(generation, _)| *generation);
        let newest = newest.map(|(_, path)| PlayerName::of_file(path));
        let subject = match (&self.network, &newest) {
            (Some(named), _) => named.to_string(),
            (None, _) if follows => "the run's networks".into(),
            (None, Some(newest)) => newest.to_string(),
            (None, None) => PlayerName::Uniform.to_string(),
        };
        let older = match self.network {
            Some(_) => Vec::new(),
            None => networks,
        };
        let trained = match &run {
            Some(run) => run.newest_trained()?,
            None => None,
        };
        let trained = trained.map(|(generation, _)| generation);
        let newest = newest.filter(|_| !is_without_network(&config, trained, run.as_ref()));
        let player = self.network.clone().or(newest);
        let mut paths = self.target.paths()?;
        if let Some(block) = self.block {
            paths.numbers = block_numbers(block);
        }
        Ok(GenerationPlan {
            devices: self.workers.device.devices(&config)?,
            config,
            player: player.unwrap_or(PlayerName::Uniform),
            subject,
            paths,
            run,
            generation,
            older,
            follows,
            limits: self.limits()?,
        })
    }

    fn limits(&self) -> Result<Limits> {
        let bytes = |gib: f64| (gib * f64::from(1 << 30)) as u64;
        if self.max_memory.is_some() {
            crate::memory::Resident::measure()
                .now
                .context("--max-memory: this system doesn't say how much memory a program takes")?;
        }
        Ok(Limits {
            games: self.games,
            hours: self.hours,
            disk_bytes: self.max_disk.map(bytes),
            memory_bytes: self.max_memory.map(bytes),
        })
    }
}
