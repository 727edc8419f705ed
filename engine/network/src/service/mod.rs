//! The evaluation service: threads that own the devices, networks that come and go in them, and clients in the workers.
//!
//! ```text
//! worker: encode and pack ── submit ──▶ queue ──▶ device thread: merge, pad, send, compute, fetch
//!    ▲                                                      │
//!    └── receive: softmax of the legal logits ◀── answers ──┘
//! ```
//!
//! Each device has two threads, each with a stream of its own, so that one batch is merged and sent while another
//! computes. The threads stay while networks are loaded into them and dropped: cuDNN keeps its plans by thread, and a network of a
//! size that was there before needs no new ones. A network is loaded by one thread of each device while the others evaluate.
//!
//! All requests wait in one queue for all devices, first come, first served. A batch holds rows of one network, and a request that
//! does not fit into it is cut. Batches have a few fixed sizes, as GPUs plan their computations size by size; the last rows may be
//! padding.
//!
//! A device without memory for a batch continues with half the size, with a note, and fails at the smallest size. The batch of a
//! device that fails is evaluated by the others. When the last device fails, the service ends, and each client gets the reason. A
//! service lives as long as a network in it, and a network as long as its clients.

mod client;
mod evaluation_service;
mod load;
mod queue;
mod request;
#[cfg(test)]
mod tests;
mod thread;
mod tuning_cache;
mod usage;

pub use client::EvaluationClient;
pub use evaluation_service::{EvaluationService, ServedNetwork};
pub use load::ServiceDevice;
pub use tuning_cache::tuning_file;
pub use usage::DeviceCounters;
