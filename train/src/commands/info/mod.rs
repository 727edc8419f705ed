//! `train info`: describes a network, a checkpoint or a run.
//!
//! `file` describes files; `run` describes a run, from its shards (`games`) and from what `engine::run` reports. `words` is its text.

pub(super) mod file;
mod games;
mod header;
mod run;
mod words;

use crate::terminal::print;
use anyhow::{Context, Result, bail};
use clap::Args;
use file::{CheckpointReport, NetworkReport};
use header::FileHeader;
use run::RunReport;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Describe a network, a checkpoint or a run
#[derive(Debug, Args)]
pub(crate) struct InfoArguments {
    /// Network file, checkpoint or run folder
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What is printed, with its kind where it is JSON.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum InfoReport {
    Network(NetworkReport),
    Checkpoint(Box<CheckpointReport>),
    Run(Box<RunReport>),
}

/// Runs `train info`.
pub(crate) fn info(arguments: &InfoArguments) -> Result<()> {
    let report = report(&arguments.path)?;
    let text = if arguments.json {
        serde_json::to_string_pretty(&report).context("can't write JSON")?
    } else {
        match &report {
            InfoReport::Network(network) => network.to_string(),
            InfoReport::Checkpoint(checkpoint) => checkpoint.to_string(),
            InfoReport::Run(run) => run.to_string(),
        }
    };
    Ok(print(text.trim_end())?)
}

fn report(path: &Path) -> Result<InfoReport> {
    let cant_read = || format!("can't read {}", path.display());
    let about = std::fs::metadata(path).with_context(cant_read)?;
    if about.is_dir() {
        return Ok(InfoReport::Run(Box::new(RunReport::of(path)?)));
    }
    if !about.is_file() {
        bail!("{} is neither a file nor a folder", path.display());
    }
    Ok(match header::read(path).with_context(cant_read)? {
        FileHeader::Network => InfoReport::Network(NetworkReport::of(path)?),
        FileHeader::Checkpoint => InfoReport::Checkpoint(Box::new(CheckpointReport::of(path)?)),
        FileHeader::Other(found) => bail!(
            "{} is neither a network nor a checkpoint: {found}",
            path.display()
        ),
    })
}
