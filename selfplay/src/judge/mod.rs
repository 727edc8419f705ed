//! `selfplay judge`: compares a network, without a search, with recorded games: its values with the results, its policy with the played
//! turns and with goals within reach.
//!
//! One worker at a time reads games, and all of them judge, some games at once: their positions are evaluated in common batches.

mod evaluation;
mod report;

use crate::inspect::{FoundGame, games_of, shards_of};
use crate::output::print;
use crate::worker::player::{Player, PlayerName};
use crate::worker::worker_pool::{self, WorkerArguments};
use anyhow::{Context, Result, ensure};
use clap::Args;
use engine::config::Config;
use engine::progress::Progress;
use engine::record::ShardError;
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
    let shards = shards_of(&arguments.paths)?;
    let devices = arguments.workers.device.devices(&Config::default())?;
    devices.open("--device")?;
    let player = Player::open(name, &devices)?;
    let stop = AtomicBool::new(false);
    let mut games = games_of(shards)
        .take_while(|_| !stop.load(Relaxed))
        .filter(|game| match (game, arguments.validation) {
            (Ok(found), Some(share)) => found.record.id.is_for_validation(share),
            _ => true,
        });
    let chunks = std::iter::from_fn(|| {
        let chunk: Vec<_> = games.by_ref().take(GAMES_AT_ONCE).collect();
        (!chunk.is_empty()).then_some(chunk)
    });
    let chunks = Mutex::new(chunks.enumerate());
    let next = || chunks.lock().ok()?.next();
    let mut progress = Progress::new("judge", None);
    let mut parts = BTreeMap::new();
    let (mut judged, mut faults) = (0, 0);
    let work = |results: &Sender<(usize, Judged)>| {
        let channel = player.channel()?;
        let mut judge = Judge::new(channel.with_context(|| format!("{name} has no evaluator"))?);
        while let Some((number, chunk)) = next() {
            let part = judge_chunk(&mut judge, chunk)?;
            if results.send((number, part)).is_err() {
                break;
            }
        }
        Ok(())
    };
    let threads = arguments.workers.threads();
    worker_pool::run(threads, &stop, &requested, work, |part| {
        if let Some((number, (evaluation, found))) = part {
            for fault in &found {
                faults += 1;
                progress.say(&fault.to_string());
            }
            judged += evaluation.games;
            parts.insert(number, evaluation);
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

/// The sums over some games, and the faults among them.
type Judged = (NetworkEvaluation, Vec<ShardError>);

fn judge_chunk(judge: &mut Judge, chunk: Vec<Result<FoundGame, ShardError>>) -> Result<Judged> {
    let mut evaluation = NetworkEvaluation::default();
    let mut faults = Vec::new();
    for game in chunk {
        let taken = game.and_then(|found| {
            let taken = judge.take(&found.record);
            taken.map_err(|error| found.fault(error))
        });
        match taken {
            Ok(()) => evaluation.games += 1,
            Err(fault) => faults.push(fault),
        }
    }
    judge.form(&mut evaluation)?;
    Ok((evaluation, faults))
}
