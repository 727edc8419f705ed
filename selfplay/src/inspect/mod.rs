//! `selfplay inspect`: reads shards and journals, replays each game, and prints a summary and the faults.
//!
//! | where | what |
//! |---|---|
//! | `read` | all games and faults of a shard, doubled games |
//! | `summary`, `lengths`, `losses` | the summary of the good games: the keys of the JSON object |
//! | `journals` | games in flight, and damage to their journals |
//! | `problem` | a fault as it is reported |
//! | `text` | the summary as text |
//! | `game` | finding one game, and printing it |
//! | `repair` | copying the good games of damaged shards |

mod game;
mod journals;
mod lengths;
mod losses;
mod problem;
mod read;
mod repair;
mod summary;
mod text;

pub(crate) use game::{GameChoice, find_game, format_action};
pub(crate) use read::{FoundGame, ShardGames, games_of, in_frame};

use crate::output::print;
use anyhow::{Context, ensure};
use engine::progress::say;
use engine::record::list_shards;
use journals::{JournalSummary, is_journal};
use rayon::prelude::*;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use summary::{Inspected, ShardSummary};

/// What to inspect, and what to print.
#[derive(Debug, clap::Args)]
pub(crate) struct InspectArguments {
    /// Shards, folders of shards, run directories, or files of a journal
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Print the totals as one JSON object
    ///
    /// Shares and means of nothing are null.
    #[arg(long)]
    json: bool,
    /// Count the lost games whose loser had a last turn after which the winner could not win at once
    ///
    /// Games whose loser's last turn was not searched are left out. It takes some milliseconds a game.
    #[arg(long, conflicts_with = "game")]
    avoidable_losses: bool,
    /// Print one game with its boards and searches
    ///
    /// K is the place among the readable games of all shards, from 0. An id such as 3-1041 is the number of the generator and of its
    /// game.
    #[arg(long, value_name = "K|ID", conflicts_with_all = ["json", "repair"])]
    game: Option<GameChoice>,
    /// Copy the good games of each damaged shard into a shard of the same name in this folder
    ///
    /// A missing folder is made. Shards without a fault are not copied, nothing is overwritten (a copy
    /// with the same games stays), and the damaged shards stay as they are. Of a doubled game the first is kept. A shard whose header can't be read can't be repaired: the origin of its games is
    /// not known. The new shards are of the newest format version.
    #[arg(long, value_name = "DIR")]
    repair: Option<PathBuf>,
}

/// Runs `selfplay inspect`. The exit code is 1 where a shard has a fault, repaired or not.
pub(crate) fn run(arguments: &InspectArguments) -> anyhow::Result<ExitCode> {
    let paths = arguments.paths.iter();
    let shards = shards_of(paths.filter(|path| !is_journal(path)))?;
    let good = match arguments.game {
        Some(choice) => game::print_game(shards, choice)?,
        None => print_totals(&shards, arguments)?,
    };
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The shards of several paths, each once.
///
/// # Errors
///
/// A path can't be read, or a folder holds no shards.
pub(crate) fn shards_of<'a>(
    paths: impl IntoIterator<Item = &'a PathBuf>,
) -> anyhow::Result<Vec<PathBuf>> {
    let mut shards = Vec::new();
    let mut known = HashSet::new();
    for path in paths {
        let here = shards_at(path)?.into_iter();
        shards.extend(here.filter(|shard| is_new(&mut known, shard)));
    }
    Ok(shards)
}

/// Whether a file is not among those that have come before. Those are canonical.
fn is_new(known: &mut HashSet<PathBuf>, path: &Path) -> bool {
    known.insert(path.canonicalize().unwrap_or_else(|_| path.to_owned()))
}

/// The shards of a path: itself, or all in the folder, or in the `shards` folder of a run.
pub(crate) fn shards_at(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let metadata =
        std::fs::metadata(path).with_context(|| format!("can't read {}", path.display()))?;
    if !metadata.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let of_run = path.join("shards");
    let folder = if of_run.is_dir() { &of_run } else { path };
    let shards: Vec<PathBuf> = list_shards(folder)?.into_values().collect();
    ensure!(!shards.is_empty(), "{} holds no shards", folder.display());
    Ok(shards)
}

/// Prints the summary, and each fault on stderr. Returns whether there is no fault.
fn print_totals(shards: &[PathBuf], arguments: &InspectArguments) -> anyhow::Result<bool> {
    let mut inspected: Vec<Inspected> = shards
        .par_iter()
        .map(|path| Inspected::of_shard(path, arguments.avoidable_losses))
        .collect();
    read::find_doubled(&mut inspected);
    for fault in inspected.iter().flat_map(|shard| &shard.faults) {
        say(&fault.to_string());
    }
    let journal = JournalSummary::of(&arguments.paths)?;
    for fault in &journal.faults {
        say(&fault.to_string());
    }
    let repaired = match &arguments.repair {
        Some(folder) => repair::repair(&inspected, folder)?,
        None => Vec::new(),
    };
    let summary = ShardSummary::new(&inspected, journal, repaired);
    if arguments.json {
        print(&format!("{}\n", serde_json::to_string(&summary)?))?;
    } else {
        print(&summary.to_string())?;
    }
    Ok(summary.bad_frames == 0)
}
