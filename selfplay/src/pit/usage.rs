//! What a player's turns took.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a player's turns took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Usage {
    /// Turns that were decided.
    pub(super) turns: u64,
    /// Evaluations for them.
    pub(super) evaluations: u64,
    /// Time of a worker thread for them.
    #[serde(with = "seconds")]
    pub(super) time: Duration,
}

impl Usage {
    pub(super) fn add(&mut self, other: Self) {
        self.turns += other.turns;
        self.evaluations += other.evaluations;
        self.time += other.time;
    }

    /// A turn's mean evaluations.
    pub(super) fn evaluations_per_turn(&self) -> f64 {
        self.evaluations as f64 / self.turns.max(1) as f64
    }

    /// A turn's mean time.
    pub(super) fn milliseconds_per_turn(&self) -> f64 {
        match self.turns {
            // What was lost without a turn took none.
            0 => 0.0,
            turns => 1e3 * self.time.as_secs_f64() / turns as f64,
        }
    }
}

/// A time in seconds with a microsecond's resolution.
mod seconds {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::time::Duration;

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64((time.as_secs_f64() * 1e6).round() / 1e6)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(from)?).map_err(D::Error::custom)
    }
}
