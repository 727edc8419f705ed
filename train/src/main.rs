//! The program `train`: makes runs, trains networks on their games, and runs the whole loop.

mod commands;
mod data;
mod error;
mod plots;
mod ratings;
mod terminal;
mod trainer;
mod training_loop;

use clap::{Parser, Subcommand};
use engine::process::run_as_init;
use engine::progress::say;
use engine::stop::Exit;
use error::TrainError;
use std::process::ExitCode;

/// Train Arimaa networks from self-play games
#[derive(Debug, Parser)]
#[command(name = "train", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Init(commands::InitArguments),
    Run(commands::RunArguments),
    Loop(training_loop::LoopArguments),
    Info(commands::InfoArguments),
    Bench(commands::BenchArguments),
}

fn main() -> ExitCode {
    if let Some(code) = run_as_init() {
        return code;
    }
    let arguments = Arguments::parse();
    let result = match &arguments.command {
        Command::Init(arguments) => commands::init(arguments),
        Command::Run(arguments) => commands::run(arguments),
        Command::Loop(arguments) => training_loop::run(arguments),
        Command::Info(arguments) => commands::info(arguments).map(|()| Exit::Done),
        Command::Bench(arguments) => commands::bench(arguments).map(|()| Exit::Done),
    };
    match result {
        Ok(exit) => exit.into(),
        Err(error) => {
            say(&format!("error: {error:#}"));
            match error.downcast_ref() {
                // Killed for memory, for example: the same command may succeed.
                Some(&TrainError::Child {
                    signal: Some(signal),
                    ..
                }) => ExitCode::from(128_u8.saturating_add(signal.unsigned_abs() as u8)),
                _ => ExitCode::FAILURE,
            }
        }
    }
}
