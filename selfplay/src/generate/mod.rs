//! `selfplay generate`: plays games against itself and writes them to shards.
//!
//! ```text
//! worker 0: games ── leaves ──> evaluator ─┐
//! worker 1: games ── leaves ──> evaluator ─┼─ finished games ──> this thread ──> shards
//! …                                        ┘
//! ```

pub(crate) mod game;
pub(crate) mod worker;

use crate::batch::Tally;
use crate::cache::EvaluationCache;
use crate::crew::{self, CrewArguments};
use crate::output;
use crate::player::{Player, PlayerName};
use anyhow::{Result, bail};
use clap::Args;
use engine::config::{Config, ConfigArguments};
use engine::encoding::ENCODING_VERSION;
use engine::progress::Progress;
use engine::rules::Side;
use engine::run::{RunDirectory, claim_generator, make_folder, write_file};
use engine::shard::{self, GameRecord, Header, ShardName, ShardWriter};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use worker::{Counts, Work};

/// Play games against oneself and write them to shards
#[derive(Debug, Args)]
pub(crate) struct GenerateArguments {
    #[command(flatten)]
    config: ConfigArguments,
    /// The network that plays: its file; without one `uniform`, which knows nothing, or `material`, which counts by hand [default: a
    /// run's newest network, else `uniform`]
    #[arg(long, value_name = "FILE|uniform|material", value_parser = searcher)]
    network: Option<PlayerName>,
    #[command(flatten)]
    target: Target,
    /// How many games to play
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    games: u64,
    /// All randomness follows from it, the generator's number and the game's
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    crew: CrewArguments,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Target {
    /// Write the shards into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write the shards into this run; its configuration and newest network are used unless others are named
    #[arg(long, value_name = "DIR")]
    run: Option<PathBuf>,
}

/// A player whose searches can be learned from.
fn searcher(text: &str) -> Result<PlayerName, String> {
    match text.parse() {
        Ok(PlayerName::Random) => {
            Err("a random player has no search to learn from; `uniform` and `material` have".into())
        }
        Ok(player) => Ok(player),
        Err(never) => match never {},
    }
}

/// Where the games come from and where they go.
struct Plan {
    config: Config,
    player: PlayerName,
    shards: PathBuf,
    /// The folder in which generators have their numbers.
    numbers: PathBuf,
}

impl GenerateArguments {
    fn plan(&self) -> Result<Plan> {
        match (&self.target.out, &self.target.run) {
            (Some(out), _) => Ok(Plan {
                config: self.config.resolve(None)?,
                player: self.network.clone().unwrap_or(PlayerName::Uniform),
                shards: out.clone(),
                numbers: out.clone(),
            }),
            (None, Some(root)) => {
                let run = RunDirectory::new(root);
                let saved = run.config();
                let newest = run
                    .list_networks()?
                    .pop()
                    .map(|(_, path)| PlayerName::Network(path));
                Ok(Plan {
                    config: self
                        .config
                        .resolve(saved.exists().then_some(saved.as_path()))?,
                    player: self
                        .network
                        .clone()
                        .or(newest)
                        .unwrap_or(PlayerName::Uniform),
                    shards: run.shards(),
                    numbers: root.clone(),
                })
            }
            (None, None) => bail!("neither --out nor --run says where the games go"),
        }
    }
}

/// Runs `selfplay generate`.
pub(crate) fn run(arguments: &GenerateArguments) -> Result<ExitCode> {
    let plan = arguments.plan()?;
    if arguments.config.print_config {
        output::print(&plan.config.to_toml())?;
        return Ok(ExitCode::SUCCESS);
    }
    let player = Player::open(&plan.player, &arguments.crew.device.place(&plan.config)?)?;
    make_folder(&plan.shards)?;
    if let Some(root) = &arguments.target.run {
        save_config(&RunDirectory::new(root), &plan.config)?;
    }
    let generator = claim_generator(&plan.numbers)?;
    let header = Header {
        encoding_version: ENCODING_VERSION,
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        evaluator: player.shard_evaluator(),
        config_digest: shard::digest(plan.config.to_toml().as_bytes()),
        generator,
    };
    let games_in_flight = arguments
        .crew
        .games_in_flight(arguments.games, plan.config.selfplay.games_in_flight);
    let work = Work::new(
        plan.config,
        player,
        arguments.seed,
        generator,
        arguments.games,
    );
    let mut shards = Shards::new(&plan.shards, header, work.config.selfplay.games_per_shard);
    let mut totals = Totals::default();
    let threads = arguments.crew.threads();
    let given_up = play(&work, threads, games_in_flight, &mut shards, &mut totals);
    // Whatever went wrong elsewhere: the games that are finished are kept. The first error says why.
    let finished = shards.finish();
    let given_up = given_up?;
    finished?;
    output::print(&report(&totals, given_up, &plan.shards))?;
    Ok(ExitCode::SUCCESS)
}

/// Keeps the configuration in a run that has none yet.
fn save_config(run: &RunDirectory, config: &Config) -> Result<()> {
    if !run.config().exists() {
        write_file(&run.config(), config.to_toml().as_bytes())?;
    }
    Ok(())
}

/// Plays until all games are done or the user asks to stop. Returns how many games in play were given up.
fn play(
    work: &Work,
    threads: usize,
    games_in_flight: usize,
    shards: &mut Shards,
    totals: &mut Totals,
) -> Result<usize> {
    let begun = Instant::now();
    let mut progress = Progress::new("generate", work.games);
    let workers = crew::run(
        threads,
        &work.stop,
        |finished| work.run(games_in_flight, finished),
        |record| {
            if let Some(record) = record {
                totals.add(&record);
                shards.push(&record)?;
            }
            progress.show(totals.games, || {
                totals.message(&work.counts, begun.elapsed())
            });
            Ok(())
        },
    )?;
    let mut tally = Tally::default();
    workers.iter().for_each(|worker| tally.add(&worker.tally));
    progress.finish(&format!(
        "{} games, {}; {}{}",
        totals.games,
        totals.message(&work.counts, begun.elapsed()),
        tally.times,
        cache_message(work.cache.as_deref()),
    ));
    Ok(workers.iter().map(|worker| worker.given_up).sum())
}

/// What the cache was good for, if there is one.
fn cache_message(cache: Option<&EvaluationCache>) -> String {
    let Some((asked, found)) = cache.map(EvaluationCache::uses) else {
        return String::new();
    };
    let share = 100.0 * found as f64 / asked.max(1) as f64;
    format!("; {share:.1}% of the evaluations from the cache")
}

/// The shards of one generator: a new one is begun whenever the last is full.
pub(crate) struct Shards {
    folder: PathBuf,
    header: Header,
    games_per_shard: usize,
    sequence: u32,
    writer: Option<ShardWriter>,
}

impl Shards {
    pub(crate) fn new(folder: &Path, header: Header, games_per_shard: u32) -> Self {
        Self {
            folder: folder.to_owned(),
            header,
            games_per_shard: games_per_shard as usize,
            sequence: 0,
            writer: None,
        }
    }

    pub(crate) fn push(&mut self, record: &GameRecord) -> Result<()> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                let name = ShardName {
                    generator: self.header.generator,
                    sequence: self.sequence,
                };
                self.sequence += 1;
                self.writer
                    .insert(ShardWriter::create(&self.folder, name, &self.header)?)
            }
        };
        writer.push(record)?;
        if writer.len() >= self.games_per_shard {
            self.finish()?;
        }
        Ok(())
    }

    pub(crate) fn finish(&mut self) -> Result<()> {
        if let Some(writer) = self.writer.take() {
            writer.finish()?;
        }
        Ok(())
    }
}

/// What the finished games add up to.
#[derive(Debug, Default)]
struct Totals {
    games: u64,
    turns: u64,
    rows: u64,
    gold_wins: u64,
    unfinished: u64,
}

impl Totals {
    fn add(&mut self, record: &GameRecord) {
        self.games += 1;
        self.turns += record.turns.len() as u64;
        self.rows += record
            .turns
            .iter()
            .map(|turn| turn.rows.len() as u64)
            .sum::<u64>();
        match record.ending.winner() {
            Some(winner) => self.gold_wins += u64::from(winner == Side::Gold),
            None => self.unfinished += 1,
        }
    }

    fn message(&self, counts: &Counts, elapsed: Duration) -> String {
        let seconds = elapsed.as_secs_f64().max(1e-3);
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let evaluations = counts.evaluations.load(Relaxed);
        let stopped = match self.unfinished {
            0 => String::new(),
            games => format!(", {games} unfinished"),
        };
        format!(
            "{:.0} turns/s, {:.0} evaluations/s in batches of {:.0}, {:.0} turns a game, Gold wins {:.0}%{stopped}",
            counts.turns.load(Relaxed) as f64 / seconds,
            evaluations as f64 / seconds,
            share(evaluations, counts.batches.load(Relaxed)),
            share(self.turns, self.games),
            100.0 * share(self.gold_wins, self.games - self.unfinished),
        )
    }
}

fn report(totals: &Totals, given_up: usize, shards: &Path) -> String {
    let Totals {
        games,
        turns,
        rows,
        unfinished,
        ..
    } = totals;
    let folder = shards.display();
    let mut report = format!(
        "{games} games, {turns} turns, {rows} rows, {unfinished} unfinished at the turn limit: {folder}\n"
    );
    if given_up > 0 {
        report.push_str(&format!(
            "stopped: {given_up} games in play were given up\n"
        ));
    }
    report
}
