//! The program `selfplay`: games of Arimaa for training, matches, and tools for both.

mod aei;
mod analyze;
mod bench;
mod compare_targets;
mod export;
mod generate;
mod http;
mod import;
mod inspect;
mod judge;
mod memory;
#[cfg(test)]
#[path = "../tests/support/mutation.rs"]
mod mutation;
mod openings;
mod output;
mod pit;
mod removed_options;
mod serve;
mod shard_target;
mod statistics;
mod telemetry;
mod worker;

use clap::{Parser, Subcommand};
use engine::process::run_as_init;
use engine::progress::say;
use std::process::ExitCode;

/// Arimaa self-play, matches and analysis
#[derive(Debug, Parser)]
#[command(name = "selfplay", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Play self-play games and write them to shards
    Generate(generate::GenerateArguments),
    /// Play matches: pairs of games from the same opening with colours swapped
    ///
    /// Ctrl-C stops the match and prints its result so far; the same command resumes it.
    Pit(Box<pit::PitArguments>),
    /// Search one position and print the best turns
    ///
    /// Prints the best turns, the principal variation, and the cost of the search. Ctrl-C ends the search and prints its result so far.
    Analyze(analyze::AnalyzeArguments),
    /// Play in other programs, as an engine of the Arimaa Engine Interface, version 1
    ///
    /// It uses the standard input and output, or a socket. By default it plays with the built-in network.
    Aei(aei::AeiArguments),
    /// Measure the speed of self-play on this machine beside the bare network
    ///
    /// Ctrl-C ends it and prints the measurements so far.
    Bench(bench::BenchArguments),
    /// Verify shards by replaying each game, and print totals or one game
    ///
    /// Prints each fault to standard error with file, frame, byte and reason. The exit code is 1 if there is a fault, also after a
    /// repair.
    Inspect(inspect::InspectArguments),
    /// Compare a network, without a search, with recorded games: values with results, policy with turns
    ///
    /// Ctrl-C ends it and prints the result so far.
    Judge(judge::JudgeArguments),
    /// Compare policy targets of self-play's search with deep searches, for variants of the settings
    ///
    /// The value of a target is the mean of the deep search's values of the first actions, weighted by the target's shares.
    CompareTargets(compare_targets::CompareTargetsArguments),
    /// Serve a page: a run and its games, analysis, and play
    ///
    /// It reads the run and changes nothing but its index of games. Ctrl-C ends it.
    Serve(serve::ServeArguments),
    /// Make shards of other games: standard text, or the official server's archive
    Import(import::ImportArguments),
    /// Write the games of shards as standard text, or their rows as arrays for numpy
    Export(export::ExportArguments),
}

fn main() -> ExitCode {
    if let Some(code) = run_as_init() {
        return code;
    }
    // Every worker thread evaluates its own batches: more threads inside libtorch would only slow the workers down.
    network::set_single_threaded();
    if let Some(replacement) = removed_options::replacement(std::env::args_os().skip(1)) {
        say(&format!("error: {replacement}"));
        return ExitCode::from(2);
    }
    let result = match Cli::parse().command {
        Command::Generate(arguments) => generate::run(&arguments),
        Command::Pit(arguments) => pit::run(&arguments),
        Command::Analyze(arguments) => analyze::run(&arguments),
        Command::Aei(arguments) => aei::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Judge(arguments) => judge::run(&arguments),
        Command::CompareTargets(arguments) => compare_targets::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Import(arguments) => import::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
    };
    result.unwrap_or_else(|error| {
        say(&format!("error: {error:#}"));
        ExitCode::FAILURE
    })
}
