//! `train bench`: how fast rows become batches, and what that takes in memory.

mod generate;
mod measure;

use crate::commands::Workplace;
use crate::terminal::print;
use anyhow::{Context, Result};
use clap::Args;
use engine::config::ConfigArguments;
use engine::network::Device;
use measure::measure;
use std::path::PathBuf;

/// Measure how fast a part of the trainer is
#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    /// Measure the loader: from shards to batches in memory, without a network
    #[arg(long, required = true)]
    loader: bool,
    /// The folder of shards to read [default: games of random steps, which are made for this]
    #[arg(long, value_name = "DIR")]
    shards: Option<PathBuf>,
    /// Rows of the games of random steps
    #[arg(long, value_name = "N", default_value_t = 200_000, conflicts_with = "shards",
          value_parser = clap::value_parser!(u64).range(1_000..=1_000_000_000))]
    rows: u64,
    /// Rows to measure with, once the first pool is used up
    #[arg(long, value_name = "N", default_value_t = 500_000, value_parser = clap::value_parser!(u64).range(1..))]
    deliver: u64,
    /// Threads to work with [default: one a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Print what was measured as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigArguments,
}

/// Runs `train bench`.
pub(crate) fn bench(arguments: &BenchArguments) -> Result<()> {
    let config = arguments.config.resolve(None)?;
    if arguments.config.print_config {
        return Ok(print(config.to_toml().trim_end())?);
    }
    let workplace = Workplace {
        device: Device::Cpu,
        threads: arguments.threads,
    };
    workplace.apply()?;
    let generated;
    let folder = match &arguments.shards {
        Some(folder) => folder,
        None => {
            generated = tempfile::tempdir().context("can't make a folder for shards")?;
            generate::write_shards(generated.path(), arguments.rows)?;
            &generated.path().to_owned()
        }
    };
    let report = measure(folder, &config.train, arguments.deliver)?;
    match arguments.json {
        true => print(&serde_json::to_string_pretty(&report)?)?,
        false => print(&report.to_string())?,
    }
    Ok(())
}
