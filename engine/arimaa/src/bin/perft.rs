//! `perft`: counts the turns of positions, and checks the rules against files of positions and cases.

use anyhow::{Context, Result, bail};
use arimaa::notation::parse_position;
use arimaa::perft::{
    Case, Count, FoundLine, PositionLine, SequenceCounts, count, count_turns, sequences,
};
use arimaa::rules::{Game, Phase, Position, TurnEnumerator};
use clap::{Args, Parser};
use rayon::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Count turns of Arimaa positions, or check the rules against files of positions and cases.
///
/// Files hold one JSON object a line; the documentation of the module `arimaa::perft` describes them. Uses all cores, or as many as
/// the environment variable RAYON_NUM_THREADS says. Exit codes: 0 when everything agrees, 1 on a difference or a faulty input, 2 on wrong
/// usage.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    mode: Mode,

    /// With --positions: leave out the checksums, and print the turns counted a second to standard error at the end
    #[arg(long, requires = "positions", conflicts_with_all = ["depth", "position", "check", "cases"])]
    count: bool,

    /// Number of turns in a sequence. With --positions, each line holds the counts for each depth up to N
    #[arg(
        long,
        value_name = "N",
        conflicts_with_all = ["check", "cases"],
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    depth: Option<u32>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Mode {
    /// Count the distinct turns of each position of a file
    #[arg(long, value_name = "FILE")]
    positions: Option<PathBuf>,

    /// Count likewise, and compare with the counts in the file
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,

    /// Count the sequences of distinct turns from one position, `g [64 letters, a8 to h1]`, for each depth up to N
    #[arg(long, value_name = "POSITION", requires = "depth")]
    position: Option<String>,

    /// Compare each case of a file with the rules
    #[arg(long, value_name = "FILE")]
    cases: Option<PathBuf>,
}

impl Mode {
    /// Whether the exit code is an answer, for which all of the file is read even if the output is closed.
    fn has_verdict(&self) -> bool {
        self.check.is_some() || self.cases.is_some()
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut out = BufWriter::new(Output {
        to: io::stdout().lock(),
        ignores_closed_reader: arguments.mode.has_verdict(),
    });
    let agreed = run(&arguments, &mut out).and_then(|agreed| {
        out.flush()?;
        Ok(agreed)
    });
    match agreed {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // What was found before the fault is shown; whether it can be is no longer of interest.
            let _ = out.flush();
            eprintln!("perft: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the reader of the output has gone.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Where the output goes.
struct Output<W> {
    to: W,
    /// Whether what is written when its reader has gone goes nowhere, instead of failing.
    ignores_closed_reader: bool,
}

impl<W: Write> Output<W> {
    fn forgive<T>(&self, result: io::Result<T>, instead: T) -> io::Result<T> {
        match result {
            Err(error)
                if self.ignores_closed_reader && error.kind() == io::ErrorKind::BrokenPipe =>
            {
                Ok(instead)
            }
            result => result,
        }
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes);
        self.forgive(written, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.to.flush();
        self.forgive(flushed, ())
    }
}

/// Does what the arguments ask for; says whether everything agreed.
fn run(arguments: &Arguments, out: &mut impl Write) -> Result<bool> {
    let mode = &arguments.mode;
    if let Some(path) = &mode.positions {
        match arguments.depth {
            Some(depth) => write_sequences_of_all(path, depth, out),
            None if arguments.count => write_turn_counts(path, out),
            None => write_each(path, out, count, |_| ()),
        }
    } else if let Some(path) = &mode.check {
        check_counts(path, out)
    } else if let Some(path) = &mode.cases {
        check_cases(path, out)
    } else if let (Some(position), Some(depth)) = (&mode.position, arguments.depth) {
        write_sequences(position, depth, out)
    } else {
        bail!("nothing to do")
    }
}

/// Writes a line with what is found of each position of a file, and hands it to `note`.
fn write_each<Found: Serialize + Send>(
    path: &Path,
    out: &mut impl Write,
    find: impl Fn(&Position, &mut TurnEnumerator) -> Found + Sync,
    mut note: impl FnMut(&Found),
) -> Result<bool> {
    let work = |line: PositionLine, enumerator: &mut TurnEnumerator| {
        Ok(FoundLine {
            found: find(&line.position()?, enumerator),
            id: line.id,
        })
    };
    for_each_line(path, work, |line| {
        note(&line.found);
        write_json(out, &line)
    })?;
    Ok(true)
}

fn write_turn_counts(path: &Path, out: &mut impl Write) -> Result<bool> {
    let (mut positions, mut turns) = (0_u64, 0_u64);
    let start = Instant::now();
    write_each(path, out, count_turns, |count| {
        positions += 1;
        turns += count.distinct_turns;
    })?;
    let seconds = start.elapsed().as_secs_f64();
    out.flush()?;
    eprintln!(
        "{turns} distinct turns of {positions} positions in {seconds:.3} s: {:.0} turns/s ({} threads)",
        turns as f64 / seconds,
        rayon::current_num_threads()
    );
    Ok(true)
}

fn write_sequences_of_all(path: &Path, depth: u32, out: &mut impl Write) -> Result<bool> {
    let find = |position: &Position, _: &mut TurnEnumerator| {
        let game = Game::from_position(*position);
        let sequences = (1..=depth).map(|depth| sequences(&game, depth)).collect();
        SequenceCounts { sequences }
    };
    write_each(path, out, find, |_| ())
}

fn check_counts(path: &Path, out: &mut impl Write) -> Result<bool> {
    /// What the file says, and what was found.
    #[derive(serde::Deserialize)]
    struct Expected {
        #[serde(flatten)]
        line: PositionLine,
        #[serde(flatten)]
        count: Count,
    }
    let work = |expected: Expected, enumerator: &mut TurnEnumerator| -> Result<(Expected, Count)> {
        let found = count(&expected.line.position()?, enumerator);
        Ok((expected, found))
    };
    let (mut total, mut different) = (0_u64, 0_u64);
    for_each_line(path, work, |(expected, found)| {
        total += 1;
        if expected.count != found {
            different += 1;
            write_differences(out, &expected.line.id, &expected.count, &found)?;
        }
        Ok(())
    })?;
    writeln!(out, "{total} positions, {different} different")?;
    Ok(different == 0)
}

/// Writes a line for each field in which two counts differ.
fn write_differences(
    out: &mut impl Write,
    id: &str,
    expected: &Count,
    found: &Count,
) -> io::Result<()> {
    let fields = |count: &Count| {
        let turns = &count.turns;
        [
            ("distinct_turns", turns.distinct_turns.to_string()),
            ("has_legal_turn", turns.has_legal_turn.to_string()),
            ("first_steps", format!("[{}]", turns.first_steps.join(" "))),
            ("turns_checksum", count.turns_checksum.clone()),
        ]
    };
    for ((field, expected), (_, found)) in fields(expected).into_iter().zip(fields(found)) {
        if expected != found {
            writeln!(out, "{id}: {field} is {found}, not {expected}")?;
        }
    }
    Ok(())
}

fn check_cases(path: &Path, out: &mut impl Write) -> Result<bool> {
    let mut all = true;
    let work = |case: Case, _: &mut TurnEnumerator| Ok(case.answer()?);
    for_each_line(path, work, |answer| {
        all &= answer.pass;
        write_json(out, &answer)
    })?;
    Ok(all)
}

fn write_sequences(position: &str, depth: u32, out: &mut impl Write) -> Result<bool> {
    #[derive(Serialize)]
    struct Line {
        depth: u32,
        sequences: u64,
    }
    let position = parse_position(position).context("--position")?;
    if position.phase() == Phase::Setup {
        bail!("--position: a setup's 64,864,800 turns are not counted");
    }
    let game = Game::from_position(position);
    for depth in 1..=depth {
        let sequences = sequences(&game, depth);
        write_json(out, &Line { depth, sequences })?;
        if sequences == 0 {
            // Every game is over by then, and stays so.
            break;
        }
        out.flush()?;
    }
    Ok(true)
}

fn write_json(out: &mut impl Write, value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string(value)?;
    writeln!(out, "{text}")?;
    Ok(())
}

/// No line of a file has more bytes; a file without line ends can't fill the memory.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// Reads the next line of a file; `None` at the end.
fn next_line(file: &mut impl BufRead) -> Option<io::Result<String>> {
    let mut line = String::new();
    match file.take(MAX_LINE_BYTES + 1).read_line(&mut line) {
        Ok(0) => None,
        Ok(bytes) if bytes as u64 > MAX_LINE_BYTES => Some(Err(io::Error::other(format!(
            "the line is longer than {MAX_LINE_BYTES} bytes"
        )))),
        Ok(_) => Some(Ok(line)),
        Err(error) => Some(Err(error)),
    }
}

/// Reads a file of JSON lines, works on them in parallel, and hands the results over in the order of the lines. Errors name
/// the file and the line; blank lines don't matter.
fn for_each_line<I, O>(
    path: &Path,
    work: impl Fn(I, &mut TurnEnumerator) -> Result<O> + Sync,
    mut take: impl FnMut(O) -> Result<()>,
) -> Result<()>
where
    I: DeserializeOwned,
    O: Send,
{
    let file = File::open(path).with_context(|| path.display().to_string())?;
    let mut file = BufReader::new(file);
    let mut lines = std::iter::from_fn(|| next_line(&mut file)).enumerate();
    let batch = 16 * rayon::current_num_threads();
    loop {
        let lines: Vec<(usize, io::Result<String>)> = lines.by_ref().take(batch).collect();
        if lines.is_empty() {
            return Ok(());
        }
        let results: Vec<Option<Result<O>>> = lines
            .into_par_iter()
            .map_init(TurnEnumerator::new, |enumerator, (index, line)| {
                let result = match line {
                    Ok(line) if line.trim().is_empty() => return None,
                    Ok(line) => serde_json::from_str(&line)
                        .map_err(anyhow::Error::from)
                        .and_then(|input| work(input, enumerator)),
                    Err(error) => Err(error.into()),
                };
                Some(result.with_context(|| format!("{}:{}", path.display(), index + 1)))
            })
            .collect();
        for result in results.into_iter().flatten() {
            take(result?)?;
        }
    }
}
