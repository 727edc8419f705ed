//! `selfplay export`: games of shards as standard text, their rows as arrays for numpy.
//!
//! This thread reads shards and writes files in the games' order. All threads replay the games and encode their rows, a batch at a
//! time. Memory is bounded by a batch and one file of rows.

mod files;
mod rows;

use crate::inspect::{ShardGames, in_frame, shards_of};
use crate::output::print;
use anyhow::Result;
use arimaa::notation::format_concluded_record;
use clap::{ArgGroup, Args};
use engine::progress::Progress;
use engine::record::{FrameLocation, GameRecord, ReplayError};
use files::{RowFiles, TextFile};
use rayon::prelude::*;
use rows::{Row, rows_of};
use std::fmt::Display;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

/// What to export, and where to.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("target").required(true).multiple(true).args(["text", "rows"])))]
pub(crate) struct ExportArguments {
    /// Shards, folders of shards, or run directories
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Write the games as standard records one after another, which `import` reads; `-` is standard output
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// Write the recorded step states as arrays for numpy; several files are named NAME-000.npz, NAME-001.npz, …
    #[arg(long, value_name = "NAME.npz", value_parser = npz_path)]
    rows: Option<PathBuf>,
    /// Only these games, counted from 0 over all shards, like 0..100 (without 100), 100.. or ..100
    #[arg(long, value_name = "A..B", default_value = "..")]
    games: GameRange,
    /// Write only the first N rows
    #[arg(long, value_name = "N", requires = "rows")]
    limit: Option<u64>,
    /// Rows a file at most; each takes about 3 KB of memory in numpy, and less here
    #[arg(long, value_name = "N", requires = "rows", default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rows_per_file: u32,
}

fn npz_path(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.extension().is_some_and(|extension| extension == "npz") {
        Ok(path)
    } else {
        Err("the name must end in .npz".to_owned())
    }
}

/// Games by number, the last not included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct GameRange {
    first: u64,
    end: u64,
}

impl FromStr for GameRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("`{text}` is not a range of games like 0..100, 100.. or ..100");
        let (first, end) = text.split_once("..").ok_or_else(wrong)?;
        let number = |digits: &str, default| match digits {
            "" => Ok(default),
            digits => digits.parse().map_err(|_| wrong()),
        };
        let (first, end) = (number(first, 0)?, number(end, u64::MAX)?);
        if first < end {
            Ok(Self { first, end })
        } else {
            Err(format!("there is no game in the range {text}"))
        }
    }
}

/// The games of a batch.
const BATCH_GAMES: usize = 64;

/// Runs `selfplay export`; the exit code is 1 where anything is wrong with a shard.
pub(crate) fn run(arguments: &ExportArguments) -> Result<ExitCode> {
    let shards = shards_of(&arguments.paths)?;
    let text = arguments.text.as_deref().map(TextFile::create);
    let rows_per_file = arguments.rows_per_file as usize;
    let rows = arguments.rows.as_deref();
    let rows = rows.map(|path| RowFiles::create(path, rows_per_file));
    let mut export = Export {
        range: arguments.games,
        readable: 0,
        text: text.transpose()?,
        rows: rows.transpose()?,
        limit: arguments.limit.unwrap_or(u64::MAX),
        games_written: 0,
        rows_written: 0,
        faults: 0,
        progress: Progress::new("export", shards.len() as u64),
    };
    for (done, path) in shards.iter().enumerate() {
        if export.shard(path, done as u64)?.is_break() {
            break;
        }
    }
    let faults = export.faults;
    let report = export.finish()?;
    // With `-`, standard output has the games alone.
    if arguments.text.as_deref() != Some(Path::new("-")) {
        print(&report)?;
    }
    Ok(match faults {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// An export in progress.
struct Export {
    /// The wanted games.
    range: GameRange,
    /// The readable games so far, wanted or not.
    readable: u64,
    text: Option<TextFile>,
    rows: Option<RowFiles>,
    /// Rows at most.
    limit: u64,
    games_written: u64,
    rows_written: u64,
    faults: u64,
    progress: Progress,
}

/// A game as it is written.
struct Exported {
    text: String,
    rows: Vec<Row>,
}

impl Export {
    /// Exports the wanted games of a shard, after `done` others. Faults are reported. Breaks once nothing more is wanted.
    fn shard(&mut self, path: &Path, done: u64) -> Result<ControlFlow<()>> {
        let games = match ShardGames::open(path) {
            Ok(games) => games,
            Err(fault) => {
                self.complain(&fault);
                return Ok(ControlFlow::Continue(()));
            }
        };
        let mut batch = Vec::new();
        for (at, game) in games {
            match game {
                Ok(record) => {
                    if self.range.first <= self.readable {
                        batch.push((at, record));
                    }
                    self.readable += 1;
                }
                Err(fault) => self.complain(&fault),
            }
            let is_last = self.readable >= self.range.end;
            if batch.len() >= BATCH_GAMES || is_last {
                let flow = self.batch(path, &mut batch)?;
                if is_last || flow.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            let rows = self.rows_written;
            self.progress.show(done, || format!("shards, {rows} rows"));
        }
        self.batch(path, &mut batch)
    }

    fn complain(&mut self, fault: &dyn Display) {
        self.faults += 1;
        self.progress.say(&fault.to_string());
    }

    /// Exports a batch of a shard's games, and empties it.
    fn batch(
        &mut self,
        path: &Path,
        batch: &mut Vec<(FrameLocation, GameRecord)>,
    ) -> Result<ControlFlow<()>> {
        let (with_text, with_rows) = (self.text.is_some(), self.rows.is_some());
        let exported: Vec<(FrameLocation, Result<Exported, ReplayError>)> = batch
            .par_drain(..)
            .map(|(at, record)| (at, export_game(&record, with_text, with_rows)))
            .collect();
        for (at, exported) in exported {
            match exported {
                Ok(exported) => self.write(exported)?,
                Err(error) => self.complain(&in_frame(path, at, error)),
            }
            if self.rows_written == self.limit && self.text.is_none() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn write(&mut self, exported: Exported) -> Result<()> {
        self.games_written += 1;
        if let Some(text) = &mut self.text {
            text.write(&exported.text)?;
        }
        if let Some(files) = &mut self.rows {
            for row in exported.rows {
                if self.rows_written == self.limit {
                    break;
                }
                files.push(row)?;
                self.rows_written += 1;
            }
        }
        Ok(())
    }

    /// Completes the files. Returns a line of text for each.
    fn finish(self) -> Result<String> {
        let (games, rows) = (self.games_written, self.rows_written);
        let mut report = String::new();
        if let Some(text) = self.text {
            report.push_str(&format!("{games} games: {}\n", text.finish()?.display()));
        }
        if let Some(files) = self.rows {
            for (path, rows) in files.finish()? {
                report.push_str(&format!("{rows} rows: {}\n", path.display()));
            }
        }
        self.progress.finish(&format!("{games} games, {rows} rows"));
        Ok(report)
    }
}

fn export_game(
    record: &GameRecord,
    with_text: bool,
    with_rows: bool,
) -> Result<Exported, ReplayError> {
    // Each checks the whole game.
    let text = if with_text {
        format_concluded_record(&record.to_game()?, record.ending.conclusion())
    } else {
        String::new()
    };
    let rows = if with_rows {
        rows_of(record)?
    } else {
        Vec::new()
    };
    Ok(Exported { text, rows })
}
