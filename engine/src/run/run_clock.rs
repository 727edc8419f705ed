//! What `clock.json` holds.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The time that a run has generated and trained.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunClock {
    /// The seconds so far; none if they were not measured from the beginning.
    pub seconds: Option<f64>,
    /// By generation, from 1 on.
    pub networks: BTreeMap<u32, Effort>,
}

/// The games, the evaluations and the time behind a network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// The games generated for it and for earlier networks; none if an earlier network doesn't state them.
    pub games: Option<u64>,
    /// The evaluations by networks in these games; likewise.
    pub evaluations: Option<u64>,
    /// The seconds of generating them and of training; none if part of it was before the clock.
    pub seconds: Option<f64>,
}

impl Effort {
    /// Of the first network.
    pub const NOTHING: Self = Self {
        games: Some(0),
        evaluations: Some(0),
        seconds: Some(0.0),
    };

    /// The time in hours.
    pub fn hours(&self) -> Option<f64> {
        self.seconds.map(|seconds| seconds / 3600.0)
    }
}
