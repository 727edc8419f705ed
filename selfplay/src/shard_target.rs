//! Where new shards go.

use anyhow::{Result, bail};
use clap::Args;
use engine::run::{GeneratorPaths, RunDirectory};
use std::path::PathBuf;

/// A folder or a run that shards are written into.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct ShardTarget {
    /// Write the shards into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write the shards into this run
    #[arg(long, value_name = "DIR")]
    run: Option<PathBuf>,
}

impl ShardTarget {
    /// The run, if it is one.
    pub(crate) fn run(&self) -> Option<RunDirectory> {
        self.run.as_ref().map(RunDirectory::new)
    }

    /// The folders of the shards and of what belongs to them.
    ///
    /// # Errors
    /// Neither option is given, which the command line excludes.
    pub(crate) fn paths(&self) -> Result<GeneratorPaths> {
        match (self.run(), &self.out) {
            (Some(run), _) => Ok(GeneratorPaths::from(&run)),
            (None, Some(out)) => Ok(GeneratorPaths {
                root: out.clone(),
                journal: out.join("journal"),
                shards: out.clone(),
                numbers: GeneratorPaths::ALL,
            }),
            (None, None) => bail!("neither --out nor --run says where the games go"),
        }
    }
}
