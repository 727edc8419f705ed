//! `selfplay judge`: compares a network, without a search, with recorded games: its values with the results, its policy with the played
//! turns and with goals within reach.
//!
//! One worker at a time reads games, and all of them judge, some games at once: their positions are evaluated in common batches.

mod evaluation;
mod report;

use crate::inspect::{ShardGames, in_frame, shards_at};
use crate::output::print;
use crate::worker::player::{Player, PlayerName};
use crate::worker::worker_pool::{self, WorkerArguments};
use anyhow::{Context, Result, ensure};
use clap::Args;
use engine::config::Config;
use engine::progress::Progress;
use engine::record::{FrameLocation, GameRecord, ShardError};
use engine::stop::Exit;
use evaluation::{Judge, NetworkEvaluation};
use report::JudgeReport;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::Sender;

/// The network, and the games that it is compared with.
#[derive(Debug, Args)]
pub(crate) struct JudgeArguments {
    /// Shards, folders of shards, or run directories
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Network: `tusker` (built in), a network's file, `material` or `uniform`
    #[arg(long, value_name = "PLAYER", default_value_t = PlayerName::BUILT_IN)]
    network: PlayerName,
    /// Only the validation games of a training with this `train.validation_share`
    #[arg(long, value_name = "SHARE", value_parser = share)]
    validation: Option<f32>,
    #[command(flatten)]
    workers: WorkerArguments,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

/// A share above 0.
fn share(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(share) if 0.0 < share && share <= 1.0 => Ok(share),
        _ => Err("expected a number above 0, 1 at most".into()),
    }
}

/// Games that are judged at once: a few hundred positions.
const GAMES_AT_ONCE: usize = 8;

/// Runs `selfplay judge`; the exit code is 1 if a shard has a fault.
pub(crate) fn run(arguments: &JudgeArguments) -> Result<ExitCode> {
    let name = &arguments.network;
    if let Some(reason) = name.without_search() {
        anyhow::bail!("--network {name}: {reason}, so that there are no values to judge");
    }
    let requested = arguments.workers.stop.listen()?;
    let mut shards = Vec::new();
    for path in &arguments.paths {
        shards.extend(shards_at(path)?);
    }
    let devices = arguments.workers.device.devices(&Config::default())?;
    devices.open("--device")?;
    let player = Player::open(name, &devices)?;
    let games = Mutex::new(Games {
        shards: shards.into_iter(),
        open: None,
        validation: arguments.validation,
        chunks: 0,
    });
    let stop = AtomicBool::new(false);
    let mut progress = Progress::new("judge", None);
    let mut parts = BTreeMap::new();
    let (mut judged, mut faults) = (0, 0);
    let work = |found: &Sender<Found>| {
        let channel = player.channel()?;
        let mut judge = Judge::new(channel.with_context(|| format!("{name} has no evaluator"))?);
        while !stop.load(Relaxed) {
            let Some(chunk) = games.lock().unwrap_or_else(|held| held.into_inner()).next() else {
                break;
            };
            if found.send(judge_chunk(&mut judge, chunk)?).is_err() {
                break;
            }
        }
        Ok(())
    };
    let threads = arguments.workers.threads();
    worker_pool::run(threads, &stop, &requested, work, |found| {
        if let Some(found) = found {
            for fault in &found.faults {
                faults += 1;
                progress.say(&fault.to_string());
            }
            judged += found.evaluation.games;
            parts.insert(found.chunk, found.evaluation);
        }
        progress.show(judged, || "games".into());
        Ok(())
    })?;
    progress.finish(&format!("{judged} games"));
    ensure!(
        judged > 0 || faults > 0 || requested.is_requested(),
        "there is no game to judge by{}",
        match arguments.validation {
            Some(share) => format!(" among those that are for validation with a share of {share}"),
            None => String::new(),
        }
    );
    // Added in the games' order: the same games give exactly the same sums.
    let mut evaluation = NetworkEvaluation::default();
    parts.values().for_each(|part| evaluation.add(part));
    let report = JudgeReport::new(player.shard_evaluator(), &evaluation, faults);
    print(&if arguments.json {
        serde_json::to_string(&report)? + "\n"
    } else {
        report.to_string()
    })?;
    Ok(match faults {
        0 => Exit::of(!requested.is_requested()).into(),
        _ => ExitCode::FAILURE,
    })
}

/// Some games of a shard, and the faults among them.
struct Chunk {
    number: u64,
    shard: PathBuf,
    games: Vec<(FrameLocation, GameRecord)>,
    faults: Vec<ShardError>,
}

/// The result of a chunk.
struct Found {
    chunk: u64,
    evaluation: NetworkEvaluation,
    faults: Vec<ShardError>,
}

fn judge_chunk(judge: &mut Judge, mut chunk: Chunk) -> Result<Found> {
    let mut evaluation = NetworkEvaluation::default();
    for (at, record) in &chunk.games {
        if let Err(error) = judge.take(record) {
            chunk.faults.push(in_frame(&chunk.shard, *at, error));
        } else {
            evaluation.games += 1;
        }
    }
    judge.form(&mut evaluation)?;
    Ok(Found {
        chunk: chunk.number,
        evaluation,
        faults: chunk.faults,
    })
}

/// The games of shards, some at a time.
struct Games {
    shards: std::vec::IntoIter<PathBuf>,
    open: Option<(PathBuf, ShardGames)>,
    validation: Option<f32>,
    chunks: u64,
}

impl Iterator for Games {
    type Item = Chunk;

    fn next(&mut self) -> Option<Chunk> {
        let (shard, games) = match self.open.take() {
            Some((shard, games)) => (shard, Ok(games)),
            None => {
                let shard = self.shards.next()?;
                let games = ShardGames::open(&shard);
                (shard, games)
            }
        };
        self.chunks += 1;
        let mut chunk = Chunk {
            number: self.chunks,
            shard,
            games: Vec::new(),
            faults: Vec::new(),
        };
        match games {
            Ok(mut games) => {
                if chunk.read(&mut games, self.validation) {
                    self.open = Some((chunk.shard.clone(), games));
                }
            }
            Err(fault) => chunk.faults.push(fault),
        }
        Some(chunk)
    }
}

impl Chunk {
    /// Reads games until there are enough; false once the shard has no more.
    fn read(&mut self, games: &mut ShardGames, validation: Option<f32>) -> bool {
        while self.games.len() < GAMES_AT_ONCE {
            match games.next() {
                Some((at, Ok(record))) => {
                    if validation.is_none_or(|share| record.id.is_for_validation(share)) {
                        self.games.push((at, record));
                    }
                }
                Some((_, Err(fault))) => self.faults.push(fault),
                None => return false,
            }
        }
        true
    }
}
