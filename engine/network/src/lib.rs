//! The policy/value network on libtorch: its architecture, its weights file, the devices, and the evaluator for the search.
//!
//! The network is a residual tower over the planes of [`encoding`](engine::encoding): a 3×3 convolution, then blocks of two 3×3
//! convolutions with batch norm and ReLU. Every second block (the second, the fourth, …) has global pooling (Wu 2019, "Accelerating
//! Self-Play Learning in Go", section 3.3): the mean and the maximum of each channel over the board pass a linear layer and are added
//! before the second norm. Two heads read the tower: the policy's 321 logits, and the logit of the mover's win probability. Only
//! training computes the four [auxiliary heads](Head).
//!
//! [`Network`] is trained; [`NetworkEvaluator`] folds its norms, casts it to the CPU's fast type, and evaluates in the
//! calling thread. For GPUs an [`EvaluationService`] owns the devices, and merges what the workers' [`EvaluationClient`]s submit
//! into large batches; a [`BatchTuning`] determines their size.
//!
//! Each function that uses a tensor returns libtorch's errors instead of panicking. `no_grad` is a property of a thread: the
//! evaluator sets it itself, a caller of [`Network::forward_measure`] may want to.

/// The allocator of every program with a network, libtorch's C++ code included: each operation of libtorch allocates.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(test)]
mod accuracy_tests;
mod architecture;
mod batch;
mod batch_tuning;
mod body;
mod cuda;
mod device;
mod error;
mod evaluator;
mod file;
mod head_layers;
mod heads;
mod inference;
mod layers;
mod model;
mod packed;
mod positions;
mod precision;
mod prepare;
mod random_heads;
#[cfg(test)]
#[allow(dead_code, reason = "the engine uses more of it")]
#[path = "../../src/encoding/samples.rs"]
mod samples;
mod service;
mod source;

pub use architecture::Architecture;
pub use batch::{unpack_planes, unpack_sets};
pub use batch_tuning::{BatchTuning, Rate};
pub use device::{Device, DeviceParseError, set_single_threaded};
pub use engine::config::Precision;
pub use error::{FileFault, NetworkError, catch_torch_panics};
pub use evaluator::{MAX_CPU_BATCH, NetworkEvaluator};
pub use file::{NetworkFile, Origin};
pub use heads::{END_REASONS, HEADS, Head, HeadLoss, HeadOutput, HeadSpec, PerHead, RowWeight};
pub use model::{Network, Parameter};
pub use precision::{cpu_computes_bf16, training_kind};
pub use prepare::Drift;
pub use service::{
    DeviceCounters, EvaluationClient, EvaluationService, ServedNetwork, ServiceDevice, tuning_file,
};
pub use source::NetworkSource;
