//! From shards to batches: which games are trained on, their rows, and the threads that deliver them shuffled.
//!
//! ```text
//! shards ──Index──> window of games ──pool thread (rayon)──> shuffled pools of rows ──batch thread (rayon)──> batches ──> trainer
//! ```
//!
//! Nothing is kept in memory but the window's index (16 bytes a game), two pools of rows, and a few batches.

mod batch;
mod index;
mod loader;
mod rows;
#[cfg(test)]
pub(crate) mod samples;
mod window;

pub(crate) use batch::{Batch, BatchTensors};
pub(crate) use index::{Counts, Index, window_rows};
pub(crate) use loader::{Cursor, Loader, LoaderOptions};
pub(crate) use rows::{HelperTargets, TrainingRow, rows_of};
pub(crate) use window::Window;
