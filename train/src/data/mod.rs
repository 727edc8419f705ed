//! From shards to batches: the window of games, their rows, and the threads that deliver them shuffled.
//!
//! ```text
//! shards ──Index──> window of games ──pool thread (rayon)──> shuffled pools of rows ──batch thread (rayon)──> batches ──> trainer
//! ```
//!
//! `rows` keeps a game's rows with their `targets`; `pool` draws and shuffles them, `loader` has the threads.
//! Memory holds only the index (16 bytes a game), two pools of rows, and a few batches: no more than the configuration allows.

mod batch;
mod index;
mod loader;
mod pool;
mod rows;
#[cfg(test)]
pub(crate) mod samples;
mod targets;
mod window;

pub(crate) use batch::{Batch, BatchTensors};
pub(crate) use index::{Index, WindowCounts, open_shard, window_rows};
pub(crate) use loader::{Loader, MemoryBudget};
pub(crate) use pool::{Cursor, LoaderOptions};
pub(crate) use rows::{GameRows, RowRef};
#[cfg(test)]
pub(crate) use targets::Target;
pub(crate) use targets::TargetOptions;
pub(crate) use window::Window;
