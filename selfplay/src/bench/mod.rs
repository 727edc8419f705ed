//! `selfplay bench`: the speed of self-play beside that of the bare network on the same worker threads.
//!
//! ```text
//! warm-up │ raw, by size │ raw  play  raw  play  …  raw │ play with other games in flight
//! ```
//!
//! Machines are noisy: self-play, and the bare network at self-play's own batch size, are measured in turns and compared within the
//! run.

mod measure;
mod report;
mod worker;

use crate::output;
use crate::worker::player::{Player, PlayerName};
use crate::worker::worker_pool::WorkerArguments;
use anyhow::{Context, Result};
use clap::Args;
use engine::config::ConfigArguments;
use engine::stop::Exit;
use measure::Bench;
use network::Architecture;
use report::BenchPlan;
use std::process::ExitCode;
use std::time::Duration;

/// Measure the speed of self-play on this machine beside the bare network, and where the time goes
#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    #[command(flatten)]
    config: ConfigArguments,
    /// Network: `tusker` (built in), a file, or a random one with these blocks and channels [default: a random one of the
    /// configuration's size]
    #[arg(long, value_name = "NETWORK|random:BLOCKSxCHANNELS", value_parser = network, conflicts_with = "evaluator")]
    network: Option<PlayerName>,
    /// Measure without a network. `null` does everything except compute one; `uniform` and `material` are evaluators
    #[arg(long, value_name = "null|uniform|material", value_parser = evaluator)]
    evaluator: Option<PlayerName>,
    #[command(flatten)]
    workers: WorkerArguments,
    /// How long self-play is measured; the whole bench takes about three times as long, on GPUs up to four
    #[arg(long, value_name = "S", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// Batch sizes at which the bare network is measured, beside that of self-play
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,16,64,256", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    batch_sizes: Vec<u32>,
    /// Print an object with a key for each number, null where it is not known
    #[arg(long)]
    json: bool,
}

/// A network to measure: `tusker`, a file, or `random:6x64`.
fn network(text: &str) -> Result<PlayerName, String> {
    let Some(sizes) = text.strip_prefix("random:") else {
        let Ok(network) = text.parse();
        return Ok(PlayerName::Network(network));
    };
    let fault = || format!("`{sizes}` is not a size: expected BLOCKSxCHANNELS, as in random:6x64");
    let (blocks, channels) = sizes.split_once('x').ok_or_else(fault)?;
    let number = |digits: &str| digits.parse().map_err(|_| fault());
    let (blocks, channels) = (number(blocks)?, number(channels)?);
    for (what, number, allowed) in [
        ("blocks", blocks, 1..=100),
        ("channels", channels, 8..=2_048),
    ] {
        if !allowed.contains(&number) {
            let (least, most) = allowed.into_inner();
            return Err(format!("{number} {what}: expected {least} to {most}"));
        }
    }
    Ok(PlayerName::RandomNetwork(Architecture { blocks, channels }))
}

fn evaluator(text: &str) -> Result<PlayerName, String> {
    match text {
        "null" => Ok(PlayerName::Null),
        "uniform" => Ok(PlayerName::Uniform),
        "material" => Ok(PlayerName::Material),
        _ => Err("expected null, uniform or material".into()),
    }
}

/// Runs `selfplay bench`.
pub(crate) fn run(arguments: &BenchArguments) -> Result<ExitCode> {
    let config = arguments.config.resolve(None)?;
    if arguments.config.print_config {
        output::print(&config.to_toml())?;
        return Ok(ExitCode::SUCCESS);
    }
    let stop = arguments.workers.stop.listen()?;
    let named = arguments.network.as_ref().or(arguments.evaluator.as_ref());
    let configured = PlayerName::RandomNetwork(config.network.into());
    let name = named.cloned().unwrap_or(configured);
    let mut devices = arguments.workers.device.devices(&config)?;
    // Speeds of other runs can't be compared.
    devices.tunes_anew = true;
    devices.open("--device")?;
    let plan = BenchPlan {
        player: Player::open(&name, &devices)?,
        evaluator: name.to_string(),
        devices,
        threads: arguments.workers.threads(),
        time: Duration::from_secs(arguments.seconds.into()),
        batch_sizes: arguments
            .batch_sizes
            .iter()
            .map(|&size| size as usize)
            .collect(),
        config,
    };
    let report = Bench::run(&plan, stop.flag())?;
    output::print(&if arguments.json {
        let text = serde_json::to_string_pretty(&report).context("can't write the report")?;
        text + "\n"
    } else {
        report.to_string()
    })?;
    Ok(Exit::of(!stop.is_requested()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_random_networks_are_read_and_bad_ones_named() {
        let size = |blocks, channels| PlayerName::RandomNetwork(Architecture { blocks, channels });
        assert_eq!(network("random:6x64"), Ok(size(6, 64)));
        assert_eq!(network("random:10x128"), Ok(size(10, 128)));
        assert_eq!(network("6x64"), Ok(PlayerName::of_file("6x64".into())));
        for (text, said) in [
            ("random:0x64", "0 blocks: expected 1 to 100"),
            ("random:6x4", "4 channels: expected 8 to 2048"),
            ("random:6", "`6` is not a size"),
            ("random:-6x64", "`-6x64` is not a size"),
            ("random:6x64x2", "`6x64x2` is not a size"),
            ("random:", "`` is not a size"),
        ] {
            let error = network(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
