//! The trainer: from a run's shards to its next network.
//!
//! `training` trains one generation by its `plan`; `step` makes each optimizer step, `checkpoint` saves it, and `record` logs it.

pub(crate) mod bad_batch;
pub(crate) mod change;
pub(crate) mod checkpoint;
mod device;
mod gradients;
pub(crate) mod lock;
mod loss;
mod measurement;
mod meter;
pub(crate) mod metrics;
pub(crate) mod optimizer;
pub(crate) mod plan;
pub(crate) mod record;
pub(crate) mod state;
pub(crate) mod step;
mod supply;
mod tensor_file;
pub(crate) mod training;
pub(crate) mod waiting;
pub(crate) mod workers_seen;
