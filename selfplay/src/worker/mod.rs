//! What the commands that evaluate positions share: players, devices, channels to evaluators, decided turns, batches and worker threads.

pub(crate) mod batch;
pub(crate) mod channel;
pub(crate) mod devices;
pub(crate) mod parallel;
pub(crate) mod player;
pub(crate) mod turn_decider;
pub(crate) mod worker_pool;
