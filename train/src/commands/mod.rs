//! The commands that do one thing: `init`, `run`, `info` and `bench`.

mod bench;
mod info;
mod init;
pub(crate) mod run;

pub(crate) use bench::{BenchArguments, bench};
pub(crate) use info::{InfoArguments, info};
pub(crate) use init::{InitArguments, began_trained, begin_or_resume, configuration, init};
pub(crate) use run::{RunArguments, Workplace, run};
