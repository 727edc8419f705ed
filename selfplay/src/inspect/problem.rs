//! A fault as it is reported, of a shard or of a journal.

use engine::record::ShardError;
use serde::Serialize;
use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

/// One fault.
#[derive(Debug, Serialize)]
pub(super) struct Problem {
    pub(super) file: PathBuf,
    /// The frame, if the fault is in one: 0 is the header, games count from 1. None of a journal.
    pub(super) frame: Option<u64>,
    /// The byte of the file where the fault begins.
    pub(super) offset: u64,
    pub(super) reason: String,
}

/// A journal's fault.
impl Display for Problem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: byte {}: {}",
            self.file.display(),
            self.offset,
            self.reason
        )
    }
}

impl From<&ShardError> for Problem {
    fn from(error: &ShardError) -> Self {
        Self {
            file: error.path.clone(),
            frame: error.frame,
            offset: error.offset,
            reason: error.fault.to_string(),
        }
    }
}
