//! `perft`: counts the turns of positions, and holds the rules against files of positions and cases.

use anyhow::{Context, Result, bail};
use clap::{Args, Parser};
use engine::notation::parse_position;
use engine::perft::{Case, Count, CountLine, PositionLine, count, sequences};
use engine::rules::{Game, Phase};
use rayon::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Counts turns of Arimaa positions, and checks the rules against files of positions and cases.
///
/// Files hold one JSON object a line; engine/tests/data/oracle/README.md describes them. Exit codes: 0 when everything agrees,
/// 1 on a difference or a faulty input, 2 on wrong usage.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    mode: Mode,

    /// How many turns in a row to count
    #[arg(
        long,
        value_name = "N",
        requires = "position",
        conflicts_with_all = ["positions", "check", "cases"],
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    depth: Option<u32>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Mode {
    /// Counts the distinct turns of each position of a file
    #[arg(long, value_name = "FILE")]
    positions: Option<PathBuf>,

    /// Counts likewise, and compares with the counts that the file holds
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,

    /// Counts the sequences of distinct turns from one position, `g [64 letters, a8 to h1]`, for each depth up to N
    #[arg(long, value_name = "POSITION", requires = "depth")]
    position: Option<String>,

    /// Asks the rules about each case of a file, and compares
    #[arg(long, value_name = "FILE")]
    cases: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut out = BufWriter::new(io::stdout().lock());
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

/// Does what the arguments ask for; says whether everything agreed.
fn run(arguments: &Arguments, out: &mut impl Write) -> Result<bool> {
    let mode = &arguments.mode;
    if let Some(path) = &mode.positions {
        write_counts(path, out)
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

fn write_counts(path: &Path, out: &mut impl Write) -> Result<bool> {
    let work = |line: PositionLine| -> Result<CountLine> {
        Ok(CountLine {
            count: count(&line.position()?),
            id: line.id,
        })
    };
    for_each_line(path, work, |line| write_json(out, &line))?;
    Ok(true)
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
    let work = |expected: Expected| -> Result<(Expected, Count)> {
        let found = count(&expected.line.position()?);
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

fn write_differences(
    out: &mut impl Write,
    id: &str,
    expected: &Count,
    found: &Count,
) -> io::Result<()> {
    let mut line = |what: &str, expected: &dyn std::fmt::Display, found: &dyn std::fmt::Display| {
        writeln!(out, "{id}: {what} is {found}, not {expected}")
    };
    if expected.distinct_turns != found.distinct_turns {
        line(
            "distinct_turns",
            &expected.distinct_turns,
            &found.distinct_turns,
        )?;
    }
    if expected.has_legal_turn != found.has_legal_turn {
        line(
            "has_legal_turn",
            &expected.has_legal_turn,
            &found.has_legal_turn,
        )?;
    }
    if expected.first_steps != found.first_steps {
        let [expected, found] = [expected, found].map(|count| count.first_steps.join(" "));
        line(
            "first_steps",
            &format!("[{expected}]"),
            &format!("[{found}]"),
        )?;
    }
    if expected.turns_checksum != found.turns_checksum {
        line(
            "turns_checksum",
            &expected.turns_checksum,
            &found.turns_checksum,
        )?;
    }
    Ok(())
}

fn check_cases(path: &Path, out: &mut impl Write) -> Result<bool> {
    let mut all = true;
    let work = |case: Case| Ok(case.answer()?);
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

/// Reads a file of JSON lines, works on them in parallel, and hands the results over in the order of the lines. Errors name
/// the file and the line; blank lines don't matter.
fn for_each_line<I, O>(
    path: &Path,
    work: impl Fn(I) -> Result<O> + Sync,
    mut take: impl FnMut(O) -> Result<()>,
) -> Result<()>
where
    I: DeserializeOwned,
    O: Send,
{
    let file = File::open(path).with_context(|| path.display().to_string())?;
    let mut lines = BufReader::new(file).lines().enumerate();
    let batch = 4 * rayon::current_num_threads();
    loop {
        let lines: Vec<(usize, io::Result<String>)> = lines.by_ref().take(batch).collect();
        if lines.is_empty() {
            return Ok(());
        }
        let results: Vec<Option<Result<O>>> = lines
            .into_par_iter()
            .map(|(index, line)| {
                let result = match line {
                    Ok(line) if line.trim().is_empty() => return None,
                    Ok(line) => serde_json::from_str(&line)
                        .map_err(anyhow::Error::from)
                        .and_then(&work),
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
