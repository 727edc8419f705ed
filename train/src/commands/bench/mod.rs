//! `train bench`: the speed and memory of the loader, and the speed of training steps.

mod generate;
mod loader;
mod steps;

use crate::commands::run::Workplace;
use crate::terminal::print;
use anyhow::{Context, Result};
use clap::Args;
use engine::config::ConfigArguments;
use network::Device;
use serde::Serialize;
use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

/// Measure the speed of the loader or of training steps
#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    /// Measure the loader: from shards to batches in memory, without a network (this or --steps)
    #[arg(long, required_unless_present_any = ["steps", "print_config"])]
    loader: bool,
    /// Measure training steps: from batches in memory to the average of the weights
    #[arg(long, conflicts_with = "loader")]
    steps: bool,
    /// With --steps: seconds to measure [default: 10]
    #[arg(long, value_name = "S", requires = "steps", value_parser = seconds)]
    seconds: Option<f64>,
    /// With --steps: device that computes the network: cpu, cuda or cuda:N [default: cpu]
    #[arg(long, requires = "steps")]
    device: Option<Device>,
    /// Folder of shards to read [default: generated games of random steps]
    #[arg(long, value_name = "DIR", conflicts_with = "steps")]
    shards: Option<PathBuf>,
    /// Rows of the generated games
    #[arg(long, value_name = "N", default_value_t = 200_000, conflicts_with_all = ["shards", "steps"],
          value_parser = clap::value_parser!(u64).range(1_000..=1_000_000_000))]
    rows: u64,
    /// With --loader: rows to measure with, once the first pool is used up
    #[arg(long, value_name = "N", default_value_t = 500_000, conflicts_with = "steps",
          value_parser = clap::value_parser!(u64).range(1..))]
    deliver: u64,
    /// Number of threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Print JSON
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
        device: arguments.device.unwrap_or(Device::Cpu),
        threads: arguments.threads,
    };
    workplace.open()?;
    workplace.apply()?;
    if arguments.steps {
        let time = Duration::from_secs_f64(arguments.seconds.unwrap_or(10.0));
        let report = steps::measure(&config, workplace.device, time)?;
        return show(&report, arguments.json);
    }
    let generated;
    let folder = match &arguments.shards {
        Some(folder) => folder.as_path(),
        None => {
            generated = tempfile::tempdir().context("can't make a folder for shards")?;
            generate::write_shards(generated.path(), arguments.rows)?;
            generated.path()
        }
    };
    let report = loader::measure(folder, &config.train, arguments.deliver)?;
    show(&report, arguments.json)
}

fn show(report: &(impl Serialize + Display), json: bool) -> Result<()> {
    let text = if json {
        serde_json::to_string_pretty(report)?
    } else {
        report.to_string()
    };
    Ok(print(&text)?)
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.1..=86_400.0).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("out of range: allowed is 0.1 to 86400 seconds".into())
    }
}
