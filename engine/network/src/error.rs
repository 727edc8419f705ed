//! What can go wrong with networks.

use arimaa::notation::NotationError;
use engine::config::Precision;
use safetensors::SafeTensorError;
use std::any::Any;
use std::cell::Cell;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::Once;
use tch::TchError;

/// Why a network could not be made, read, written or computed with.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The file can't be read.
    #[error("can't read the network {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The file can't be written; what was there before is untouched.
    #[error("can't write the network {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The file is not a network of this program.
    #[error("{}: {fault}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: FileFault,
    },
    /// Sizes that no network has.
    #[error("a network's {key} must be {allowed}, not {value}")]
    Architecture {
        /// `blocks` or `channels`.
        key: &'static str,
        /// Its value.
        value: u32,
        /// The range.
        allowed: String,
    },
    /// A device that can't be used.
    #[error("device {device}: {reason}")]
    Device {
        /// As given: `cuda:1`.
        device: String,
        /// Why not.
        reason: String,
    },
    /// The outputs of the network's fast form are too far from those of the network itself.
    #[error(
        "{network}: computed in {precision} on {device} it drifts too far from itself in fp32: the root mean square error of \
         the values is {value_error:.2e} (at most {value_bound:.0e}), the mean divergence of the policies {divergence:.2e} (at \
         most {divergence_bound:.0e}); set network.precision to \"auto\" or \"fp32\""
    )]
    Drift {
        /// The network's name.
        network: String,
        /// The precision of the fast form.
        precision: Precision,
        /// Where.
        device: String,
        /// The root of the mean square of the win probabilities' differences.
        value_error: f64,
        /// Its bound.
        value_bound: f64,
        /// The mean Kullback-Leibler divergence over the legal actions, in nats.
        divergence: f64,
        /// Its bound.
        divergence_bound: f64,
    },
    /// Outputs of the network are NaN or infinite.
    #[error(
        "{network}: computed in {precision} on {device}, {place} gives numbers that are not finite"
    )]
    NotFinite {
        /// The network's name.
        network: String,
        /// The precision of the computation.
        precision: Precision,
        /// Where.
        device: String,
        /// The first layer or head at fault: `layer blocks.3.first`, `the policy head`.
        place: String,
    },
    /// The positions that come with the program can't be read.
    #[error("the positions for the check of a network: {0}")]
    Positions(#[from] NotationError),
    /// No device is left to evaluate on, or the device that loads a network failed.
    #[error("{0}")]
    Service(String),
    /// A thread of the evaluation service panicked.
    #[error("its evaluation thread panicked: {0}")]
    Panic(String),
    /// libtorch failed.
    #[error("libtorch: {0}")]
    Torch(String),
}

/// What is wrong with a network's file.
#[derive(Debug, thiserror::Error)]
pub enum FileFault {
    /// It is no safetensors file, or a broken one.
    #[error("this is not a network, or it is damaged: {0}")]
    Format(String),
    /// Its metadata is not what this program writes.
    #[error("metadata: {0}")]
    Metadata(String),
    /// It is of another version.
    #[error(
        "{what} version {found}, but this program knows version {known}: use the program that wrote the file"
    )]
    Version {
        /// What has a version: `format` or `encoding`.
        what: &'static str,
        /// The file's.
        found: u32,
        /// This program's.
        known: u32,
    },
    /// A tensor of the architecture is not there.
    #[error("tensor `{0}` is missing")]
    MissingTensor(String),
    /// A tensor is not what its architecture requires.
    #[error("tensor `{tensor}`: {reason}")]
    Tensor {
        /// Its name.
        tensor: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl From<SafeTensorError> for FileFault {
    fn from(error: SafeTensorError) -> Self {
        Self::Format(error.to_string())
    }
}

impl From<serde_json::Error> for FileFault {
    fn from(error: serde_json::Error) -> Self {
        Self::Metadata(error.to_string())
    }
}

impl NetworkError {
    /// A device, by its name, that can't be used.
    pub(super) fn device(device: impl Display, reason: impl Into<String>) -> Self {
        Self::Device {
            device: device.to_string(),
            reason: reason.into(),
        }
    }

    /// Whether a device had no memory left. libtorch says so in its message alone. cuDNN reports that it finds no engine
    /// when none has enough memory to work in.
    pub fn is_out_of_memory(&self) -> bool {
        self.is_failed_allocation() || self.says(&["unable to find an engine"])
    }

    /// Whether an allocation failed.
    pub(super) fn is_failed_allocation(&self) -> bool {
        self.says(&[
            "out of memory",
            "alloc_failed",
            "allocation_failed",
            "can't allocate memory",
            "not enough memory",
        ])
    }

    /// Whether libtorch's message has any of these words.
    fn says(&self, words: &[&str]) -> bool {
        let Self::Torch(text) = self else {
            return false;
        };
        let text = text.to_lowercase();
        words.iter().any(|words| text.contains(words))
    }

    /// Whether the device can't be trusted any more.
    pub(super) fn is_device_failure(&self) -> bool {
        matches!(self, Self::Torch(_) | Self::Panic(_)) && !self.is_out_of_memory()
    }
}

/// As [`catch_torch_panics`], but other panics become errors, too.
pub(super) fn catch_panics<T>(
    work: impl FnOnce() -> Result<T, NetworkError>,
) -> Result<T, NetworkError> {
    catch_unwind(AssertUnwindSafe(|| catch_torch_panics(work))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(NetworkError::Panic(
            text.unwrap_or("no reason given").into(),
        ))
    })
}

impl From<TchError> for NetworkError {
    fn from(error: TchError) -> Self {
        Self::Torch(message(&error))
    }
}

/// What libtorch says, in a line.
fn message(error: &TchError) -> String {
    let text = match error {
        TchError::Torch(text) => text.clone(),
        other => other.to_string(),
    };
    without_appendix(&text)
}

/// The first line: the rest is the stack of C++ functions, and advice for authors of CUDA programs.
fn without_appendix(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let end = line.find(" If reserved but unallocated memory is large");
    line[..end.unwrap_or(line.len())].to_owned()
}

/// What the panics of tch begin with: it unwraps errors of libtorch where it can't return them.
const TCH_PANIC: &str = "called `Result::unwrap()` on an `Err` value: ";

thread_local!(static CATCHING: Cell<bool> = const { Cell::new(false) });

/// Runs `work`, and returns what tch panics with as the error that it should have been.
///
/// tch's fallible calls panic all the same where they take a scalar: the scalar's destructor finds libtorch's error before
/// the call returns it. Calls without a fallible form panic, too. Everything that may fail on a device runs in here: what
/// the thread was computing is lost, and nothing else. Other panics are passed on.
pub fn catch_torch_panics<T, E: From<NetworkError>>(
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    silence_caught_panics();
    let outer = CATCHING.replace(true);
    // What `work` has half changed is not looked at after an error: callers give up what they computed with.
    let result = catch_unwind(AssertUnwindSafe(work));
    CATCHING.set(outer);
    match result {
        Ok(result) => result,
        Err(panic) => match torch_error(panic.as_ref()) {
            Some(error) => Err(error.into()),
            None => resume_unwind(panic),
        },
    }
}

/// The error of libtorch in what a thread panicked with, if there is one.
fn torch_error(panic: &(dyn Any + Send)) -> Option<NetworkError> {
    let text = panic.downcast_ref::<String>()?.strip_prefix(TCH_PANIC)?;
    let text = match text.strip_prefix("Torch(\"") {
        Some(text) => text.strip_suffix("\")").unwrap_or(text),
        None => text,
    };
    // The text was written by `Debug`.
    let text = text.replace("\\n", "\n").replace("\\\"", "\"");
    Some(NetworkError::Torch(without_appendix(&text)))
}

/// Keeps panics that become errors from being printed.
fn silence_caught_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let becomes_error = CATCHING.get() && torch_error(panic.payload()).is_some();
            if !becomes_error {
                print(panic);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::{Kind, Tensor};

    fn masked_fill() -> Result<Tensor, NetworkError> {
        let numbers = Tensor::f_zeros([2], (Kind::Float, tch::Device::Cpu))?;
        let mask = Tensor::f_zeros([3], (Kind::Bool, tch::Device::Cpu))?;
        Ok(numbers.f_masked_fill(&mask, 1.0)?)
    }

    #[test]
    fn a_fallible_call_that_panics_returns_its_error() {
        // tch itself: without the containment this is a panic.
        assert!(std::panic::catch_unwind(masked_fill).is_err());
        let error = catch_torch_panics(masked_fill).unwrap_err().to_string();
        assert!(error.starts_with("libtorch: The size of tensor"), "{error}");
        assert!(
            !error.contains('\n') && !error.contains("Exception"),
            "{error}"
        );
        // The next computation succeeds.
        assert!(Tensor::f_zeros([2], (Kind::Float, tch::Device::Cpu)).is_ok());
    }

    #[test]
    fn a_lack_of_memory_is_recognised_by_its_message() {
        let says = |text: &str| NetworkError::Torch(text.into()).is_out_of_memory();
        assert!(says("CUDA out of memory. Tried to allocate 2.00 GiB."));
        assert!(says("CUDA error: out of memory"));
        assert!(says(
            "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"
        ));
        assert!(!says(
            "CUDA error: an illegal memory access was encountered"
        ));
    }

    #[test]
    fn an_error_of_cuda_is_one_line() {
        let text = "CUDA error: an illegal memory access was encountered\nSearch for `cudaErrorIllegalAddress' in https://docs.nvidia.com \
                    for more information.\nCUDA kernel errors might be asynchronously reported at some other API call.\nCompile with \
                    `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n\nException raised from c10_cuda_check";
        assert_eq!(
            without_appendix(text),
            "CUDA error: an illegal memory access was encountered"
        );
        let text = "CUDA out of memory. Tried to allocate 32.00 MiB. If reserved but unallocated memory is large try setting";
        assert_eq!(
            without_appendix(text),
            "CUDA out of memory. Tried to allocate 32.00 MiB."
        );
    }

    #[test]
    fn other_panics_are_passed_on() {
        let result = std::panic::catch_unwind(|| {
            catch_torch_panics(|| -> Result<(), NetworkError> { panic!("of another kind") })
        });
        assert_eq!(result.unwrap_err().downcast_ref(), Some(&"of another kind"));
        assert!(catch_torch_panics(|| Ok::<_, NetworkError>(3)).is_ok());
    }
}
