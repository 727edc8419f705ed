//! The program `selfplay`: games of Arimaa for training, and everything that is done with them.

mod aei;
mod analyze;
mod bench;
mod export;
mod generate;
mod import;
mod inspect;
mod judge;
mod memory;
mod openings;
mod output;
mod pit;
mod statistics;
mod telemetry;
mod worker;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Games of Arimaa, played by the program against itself
#[derive(Debug, Parser)]
#[command(name = "selfplay", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Play games against oneself and write them to shards
    Generate(generate::GenerateArguments),
    /// Let players play matches: pairs of games from the same opening with colours swapped
    ///
    /// A player is `tusker` (a search with the network that is built in), a network's file (a search with that), `policy:` and one of
    /// these (what the network's policy says, without a search), `uniform` (a search that knows nothing), `material` (a search that
    /// counts by hand), `random` (any legal step), or
    /// `aei:COMMAND` (another program, which speaks the Arimaa Engine Interface over its standard input and output; it needs a
    /// --clock). Ctrl-C stops the match and prints what is known until then; the same command with --resume resumes it.
    Pit(Box<pit::PitArguments>),
    /// Search for the turn of one position, and print what was found
    ///
    /// The best turns, the line that both sides are expected to play, and what the search took. Ctrl-C ends the search at any time and
    /// prints what was found until then.
    Analyze(analyze::AnalyzeArguments),
    /// Play in other programs: an engine that speaks the Arimaa Engine Interface, version 1
    ///
    /// On the standard input and output, or over a socket. Without `--network` it plays with the network that is built in.
    Aei(aei::AeiArguments),
    /// Measure how fast self-play is on this machine, beside the bare network, and where the time goes
    ///
    /// Ctrl-C ends it at any time and prints what was measured until then.
    Bench(bench::BenchArguments),
    /// Verify shards by replaying every game, and print totals or one game
    ///
    /// Whatever is wrong is named on the standard error with file, frame, byte and reason; the exit code is 1 then, also where it was
    /// repaired.
    Inspect(inspect::InspectArguments),
    /// Hold a network, without a search, against recorded games: its values against the results, its policy against the turns
    ///
    /// Ctrl-C ends it at any time and prints what was found until then.
    Judge(judge::JudgeArguments),
    /// Make shards of games that others have played: of standard texts, or of the official server's archive
    Import(import::ImportArguments),
    /// Write the games of shards as standard text, or their rows as arrays for numpy
    Export(export::ExportArguments),
}

fn main() -> ExitCode {
    engine::allocator::keep_freed_memory();
    // Every worker thread evaluates its own batches: more threads inside libtorch would only fight the workers.
    network::set_single_threaded();
    let result = match Cli::parse().command {
        Command::Generate(arguments) => generate::run(&arguments),
        Command::Pit(arguments) => pit::run(&arguments),
        Command::Analyze(arguments) => analyze::run(&arguments),
        Command::Aei(arguments) => aei::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Judge(arguments) => judge::run(&arguments),
        Command::Import(arguments) => import::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
    };
    result.unwrap_or_else(|error| {
        output::complain(format_args!("error: {error:#}"));
        ExitCode::FAILURE
    })
}
