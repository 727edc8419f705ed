//! `selfplay import`: makes shards of games that others have played.
//!
//! This thread reads the files and writes the shards, in the order of the games. All threads check the rules and make the rows, a
//! batch of games at a time. So a file may be of any size.

mod choice;
mod shards;
mod source;

use crate::output;
use crate::shard_target::ShardTarget;
use anyhow::Result;
use arimaa::notation::{NotationError, NotationReason};
use choice::Choice;
use clap::Args;
use engine::progress::{Progress, say};
use engine::record::{GameId, GameRecord, import};
use engine::stop::{Exit, Stop};
use rayon::prelude::*;
use shards::ImportedShards;
use source::{Format, Source, Unread, UnreadGame};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Which games to import, and where to.
#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// Files of games
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    target: ShardTarget,
    /// Format of the files [default: detected from each file's first line]
    #[arg(long, value_enum)]
    format: Option<Format>,
    #[command(flatten)]
    choice: Choice,
    /// Name every faulty game, not only the first 20
    #[arg(long)]
    verbose: bool,
}

/// Faulty games that are named, unless all are to be.
const NAMED: u64 = 20;

/// The games of a batch at most, and their bytes.
const BATCH_GAMES: usize = 512;
const BATCH_BYTES: usize = 8 << 20;

/// Runs `selfplay import`. After a stop, the same command imports the rest.
pub(crate) fn run(arguments: &ImportArguments) -> Result<ExitCode> {
    let mut import = Import {
        arguments,
        stop: Stop::listen()?,
        shards: ImportedShards::new(&arguments.target)?,
        // In KiB: bytes are too long to read.
        progress: Progress::new("import", total_size(&arguments.files) >> 10),
        counts: Counts::default(),
        bytes: 0,
    };
    for path in &arguments.files {
        if import.stop.is_requested() {
            break;
        }
        match import.import_file(path) {
            Ok(()) => {}
            Err(ImportError::File(error)) => {
                import.counts.unreadable += 1;
                import.progress.say(&format!("error: {error:#}"));
            }
            Err(ImportError::Shards(error)) => {
                // Finished games are kept; the first error says why the others are not.
                let _ = import.shards.finish();
                return Err(error);
            }
        }
    }
    import.shards.finish()?;
    let Import {
        stop,
        counts,
        progress,
        shards,
        ..
    } = import;
    if counts.broken > NAMED && !arguments.verbose {
        let more = counts.broken - NAMED;
        progress.say(&format!(
            "{more} more faulty games are left out; --verbose names them all"
        ));
    }
    progress.finish(&format!("{} games", counts.imported));
    output::print(&counts.report(shards.folder()))?;
    let found = counts.imported + counts.present;
    let is_stopped = stop.is_requested();
    if is_stopped {
        say("stopped: the same command imports the rest");
    } else if found == 0 && counts.unreadable == 0 {
        say("error: there is no game to import");
    }
    Ok(if counts.unreadable == 0 && (is_stopped || found > 0) {
        Exit::of(!is_stopped).into()
    } else {
        ExitCode::FAILURE
    })
}

/// The size of files in bytes. One that can't be read counts 0, and is named later.
fn total_size(files: &[PathBuf]) -> u64 {
    let sizes = files.iter().map(std::fs::metadata);
    sizes
        .map(|about| about.map_or(0, |about| about.len()))
        .sum()
}

/// Why a file could not be imported.
enum ImportError {
    /// The file can't be read; others may be.
    File(anyhow::Error),
    /// The shards can't be written: the import ends.
    Shards(anyhow::Error),
}

/// An import in progress.
struct Import<'a> {
    arguments: &'a ImportArguments,
    stop: Stop,
    shards: ImportedShards,
    progress: Progress,
    counts: Counts,
    /// Read so far.
    bytes: u64,
}

/// Why a game is left out.
enum LeftOut {
    /// What is wrong with it.
    Broken(String),
    /// Why it is not wanted.
    Unwanted(&'static str),
}

impl LeftOut {
    /// The reason may quote the file, whose control characters must not reach the terminal.
    fn broken(reason: &str) -> Self {
        Self::Broken(reason.replace(char::is_control, "\u{fffd}"))
    }
}

impl Import<'_> {
    fn import_file(&mut self, path: &Path) -> Result<(), ImportError> {
        let (hash, size) = source::digest_of(path).map_err(ImportError::File)?;
        let mut source = Source::open(path, self.arguments.format).map_err(ImportError::File)?;
        self.shards.begin_file(hash).map_err(ImportError::Shards)?;
        let bytes_before = self.bytes;
        loop {
            let (batch, end) = read_batch(&mut source);
            let bytes: usize = batch.iter().flatten().map(Unread::bytes).sum();
            self.import_batch(path, batch)
                .map_err(ImportError::Shards)?;
            self.bytes += bytes as u64;
            let imported = self.counts.imported;
            self.progress
                .show(self.bytes >> 10, || format!("KiB, {imported} games"));
            match end {
                None if self.stop.is_requested() => return Ok(()),
                None => {}
                Some(Ok(())) => break,
                Some(Err(error)) => {
                    let error = anyhow::Error::new(error).context(path.display().to_string());
                    return Err(ImportError::File(error));
                }
            }
        }
        self.bytes = bytes_before + size;
        Ok(())
    }

    fn import_batch(&mut self, path: &Path, batch: Vec<UnreadGame>) -> Result<()> {
        let choice = &self.arguments.choice;
        let imported: Vec<Result<GameRecord, LeftOut>> = batch
            .into_par_iter()
            .map(|unread| import_game(unread, choice))
            .collect();
        for game in imported {
            self.counts.read += 1;
            match game {
                Ok(record) => {
                    let turns = record.turns.len();
                    let rows = record.row_count();
                    if self.shards.push(record)? {
                        self.counts.add(turns, rows);
                    } else {
                        self.counts.present += 1;
                    }
                }
                Err(LeftOut::Unwanted(reason)) => {
                    *self.counts.unwanted.entry(reason).or_default() += 1;
                }
                Err(LeftOut::Broken(reason)) => {
                    self.counts.broken += 1;
                    if self.arguments.verbose || self.counts.broken <= NAMED {
                        self.progress
                            .say(&format!("left out: {}: {reason}", path.display()));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Some games, and how the file ends; none where it may have more.
fn read_batch(source: &mut Source) -> (Vec<UnreadGame>, Option<Result<(), NotationError>>) {
    let mut batch = Vec::new();
    let mut bytes = 0;
    while batch.len() < BATCH_GAMES && bytes < BATCH_BYTES {
        match source.next() {
            None => return (batch, Some(Ok(()))),
            Some(Err(error)) if matches!(error.reason, NotationReason::Io(_)) => {
                return (batch, Some(Err(error)));
            }
            Some(unread) => {
                bytes += unread.as_ref().map_or(0, Unread::bytes);
                batch.push(unread);
            }
        }
    }
    (batch, None)
}

/// Makes a record of a game; it is numbered later.
fn import_game(unread: UnreadGame, choice: &Choice) -> Result<GameRecord, LeftOut> {
    let played = unread
        .and_then(|unread| unread.read())
        .map_err(|error| LeftOut::broken(&error.to_string()))?;
    if let Some(reason) = choice.refuses(&played) {
        return Err(LeftOut::Unwanted(reason));
    }
    let id = GameId {
        generator: 0,
        counter: 0,
    };
    let mut record = import(&played.game, played.conclusion, id)
        .map_err(|error| LeftOut::broken(&format!("line {}: {error}", played.line)))?;
    choice.remove_rows(&mut record);
    Ok(record)
}

/// What became of the games.
#[derive(Debug, Default)]
struct Counts {
    read: u64,
    imported: u64,
    turns: u64,
    rows: u64,
    /// Those that an earlier import has brought.
    present: u64,
    /// Those that something is wrong with.
    broken: u64,
    /// By the reason, as [`Choice::refuses`] gives it.
    unwanted: BTreeMap<&'static str, u64>,
    /// Files that could not be read, or not to their end.
    unreadable: u64,
}

impl Counts {
    fn add(&mut self, turns: usize, rows: u64) {
        self.imported += 1;
        self.turns += turns as u64;
        self.rows += rows;
    }

    fn report(&self, folder: &Path) -> String {
        let Self {
            read,
            imported,
            turns,
            rows,
            ..
        } = self;
        let mut report = format!(
            "{read} games read, {imported} imported with {turns} turns and {rows} rows: {}\n",
            folder.display()
        );
        if self.present > 0 {
            report.push_str(&format!("{} were there already\n", self.present));
        }
        if self.broken > 0 {
            report.push_str(&format!("left out: {} with something wrong\n", self.broken));
        }
        for (reason, games) in &self.unwanted {
            report.push_str(&format!("left out: {games} {reason}\n"));
        }
        report
    }
}
