//! `selfplay import`: makes shards of games that others have played.
//!
//! This thread reads the files and writes the shards, in the order of the games; what lies between, the rules and the rows, is done
//! by all threads, a batch of games at a time. So a file may be of any size.

mod choice;
mod shards;
mod source;

use crate::output;
use anyhow::Result;
use arimaa::notation::{NotationError, NotationReason};
use choice::{Choice, Unwanted};
use clap::Args;
use engine::progress::Progress;
use engine::record::{GameId, GameRecord, import};
use rayon::prelude::*;
use shards::ImportedShards;
use source::{Format, Source, Unread};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The evaluator of imported shards, as their headers say: none.
pub(crate) const EVALUATOR: &str = "import";

/// Which games to import, and where to.
#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// Files of games
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    target: Target,
    /// How the games are written [default: each file's first line says]
    #[arg(long, value_enum)]
    format: Option<Format>,
    #[command(flatten)]
    choice: Choice,
    /// Name every game that is left out because something is wrong with it, not only the first 20
    #[arg(long)]
    verbose: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Target {
    /// Write the shards into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write the shards into this run
    #[arg(long, value_name = "DIR")]
    run: Option<PathBuf>,
}

/// So many games are named that are left out, unless all are to be.
const NAMED: u64 = 20;

/// The games that are read before the threads get to work on them, and their bytes.
const BATCH_GAMES: usize = 512;
const BATCH_BYTES: usize = 8 << 20;

/// Runs `selfplay import`.
pub(crate) fn run(arguments: &ImportArguments) -> Result<ExitCode> {
    let shards = match (&arguments.target.out, &arguments.target.run) {
        (Some(folder), _) => ImportedShards::in_folder(folder),
        (None, Some(root)) => ImportedShards::in_run(root)?,
        (None, None) => anyhow::bail!("neither --out nor --run says where the games go"),
    };
    let mut import = Import {
        arguments,
        shards,
        // In KiB: bytes are too long to read.
        progress: Progress::new("import", total_size(&arguments.files) >> 10),
        counts: Counts::default(),
        bytes: 0,
    };
    for path in &arguments.files {
        if let Err(fault) = import.import_file(path) {
            if fault.is_ours {
                // What is finished is kept; the first error says why it is not more.
                let _ = import.shards.finish();
                return Err(fault.error);
            }
            import.counts.unreadable += 1;
            import.progress.say(&format!("error: {:#}", fault.error));
        }
    }
    import.shards.finish()?;
    let Import {
        counts,
        progress,
        shards,
        ..
    } = import;
    if counts.broken > NAMED && !arguments.verbose {
        let more = counts.broken - NAMED;
        progress.say(&format!(
            "{more} more are left out because something is wrong with them; --verbose names them all"
        ));
    }
    progress.finish(&format!("{} games", counts.imported));
    output::print(&counts.report(shards.folder()))?;
    if counts.imported == 0 && counts.unreadable == 0 {
        output::complain(format_args!("error: there is no game to import"));
    }
    Ok(match counts.imported > 0 && counts.unreadable == 0 {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// The size of files in bytes; what can't be asked is named when it is read.
fn total_size(files: &[PathBuf]) -> u64 {
    let sizes = files.iter().map(std::fs::metadata);
    sizes
        .map(|about| about.map_or(0, |about| about.len()))
        .sum()
}

/// Why a file could not be imported.
struct Problem {
    error: anyhow::Error,
    /// Whether the next file would fare no better.
    is_ours: bool,
}

impl Problem {
    fn of_file(error: anyhow::Error) -> Self {
        Self {
            error,
            is_ours: false,
        }
    }

    fn of_shards(error: anyhow::Error) -> Self {
        Self {
            error,
            is_ours: true,
        }
    }
}

/// An import under way.
struct Import<'a> {
    arguments: &'a ImportArguments,
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
    Unwanted(Unwanted),
}

impl LeftOut {
    /// What a file holds may be quoted, but must not steer the terminal.
    fn broken(reason: &str) -> Self {
        Self::Broken(reason.replace(char::is_control, "\u{fffd}"))
    }
}

impl Import<'_> {
    fn import_file(&mut self, path: &Path) -> Result<(), Problem> {
        let (hash, size) = source::digest_of(path).map_err(Problem::of_file)?;
        let mut source = Source::open(path, self.arguments.format).map_err(Problem::of_file)?;
        self.shards.begin_file(hash).map_err(Problem::of_shards)?;
        let bytes_before = self.bytes;
        loop {
            let (batch, end) = read_batch(&mut source);
            let bytes: usize = batch.iter().flatten().map(Unread::bytes).sum();
            self.import_batch(path, batch).map_err(Problem::of_shards)?;
            self.bytes += bytes as u64;
            let imported = self.counts.imported;
            self.progress
                .show(self.bytes >> 10, || format!("KiB, {imported} games"));
            match end {
                None => {}
                Some(End::Whole) => break,
                Some(End::Failed(error)) => {
                    let error = anyhow::Error::new(error).context(path.display().to_string());
                    return Err(Problem::of_file(error));
                }
            }
        }
        self.bytes = bytes_before + size;
        Ok(())
    }

    fn import_batch(
        &mut self,
        path: &Path,
        batch: Vec<Result<Unread, NotationError>>,
    ) -> Result<()> {
        let choice = &self.arguments.choice;
        let imported: Vec<Result<GameRecord, LeftOut>> = batch
            .into_par_iter()
            .map(|unread| import_game(unread, choice))
            .collect();
        for game in imported {
            self.counts.read += 1;
            match game {
                Ok(record) => {
                    self.counts.add(&record);
                    self.shards.push(record)?;
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

/// Where a file stops.
enum End {
    Whole,
    Failed(NotationError),
}

/// Some games, and whether the file has more.
fn read_batch(source: &mut Source) -> (Vec<Result<Unread, NotationError>>, Option<End>) {
    let mut batch = Vec::new();
    let mut bytes = 0;
    while batch.len() < BATCH_GAMES && bytes < BATCH_BYTES {
        match source.next() {
            None => return (batch, Some(End::Whole)),
            Some(Err(error)) if matches!(error.reason, NotationReason::Io(_)) => {
                return (batch, Some(End::Failed(error)));
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
fn import_game(
    unread: Result<Unread, NotationError>,
    choice: &Choice,
) -> Result<GameRecord, LeftOut> {
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
    choice.thin_out(&mut record);
    Ok(record)
}

/// What became of the games.
#[derive(Debug, Default)]
struct Counts {
    read: u64,
    imported: u64,
    turns: u64,
    rows: u64,
    /// Those that something is wrong with.
    broken: u64,
    unwanted: BTreeMap<Unwanted, u64>,
    /// Files that could not be read, or not to their end.
    unreadable: u64,
}

impl Counts {
    fn add(&mut self, record: &GameRecord) {
        let rows = record.turns.iter().map(|turn| turn.rows.len() as u64);
        self.imported += 1;
        self.turns += record.turns.len() as u64;
        self.rows += rows.sum::<u64>();
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
        if self.broken > 0 {
            report.push_str(&format!("left out: {} with something wrong\n", self.broken));
        }
        for (reason, games) in &self.unwanted {
            report.push_str(&format!("left out: {games} {}\n", reason.reason()));
        }
        report
    }
}
