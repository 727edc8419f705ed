//! Where a network computes.

use crate::cuda::{Cuda, load_libtorch};
use crate::error::NetworkError;
use std::cell::Cell;
use std::ffi::c_int;
use std::fmt;
use std::str::FromStr;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

unsafe extern "C" {
    fn tusker_use_own_stream(device: i8) -> c_int;
}

/// A device as it is named on the command line: `cpu`, `cpu:service`, `cuda` (the first one) or `cuda:N`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Device {
    /// The CPU.
    #[default]
    Cpu,
    /// The CPU in the way that GPUs are used, through the [evaluation service](super::EvaluationService): it stands in for one
    /// in tests.
    CpuService,
    /// The NVIDIA GPU with this number, from 0.
    Cuda(u16),
}

/// Text that names no device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a device: expected cpu, cpu:service, cuda or cuda:N")]
pub struct DeviceParseError(pub String);

impl FromStr for Device {
    type Err = DeviceParseError;

    fn from_str(text: &str) -> Result<Self, DeviceParseError> {
        let fault = || DeviceParseError(text.to_owned());
        match text {
            "cpu" => Ok(Self::Cpu),
            "cpu:service" => Ok(Self::CpuService),
            "cuda" => Ok(Self::Cuda(0)),
            _ => {
                let number = text.strip_prefix("cuda:").ok_or_else(fault)?;
                if !number.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(fault());
                }
                number.parse().map(Self::Cuda).map_err(|_| fault())
            }
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => write!(f, "cpu"),
            Self::CpuService => write!(f, "cpu:service"),
            Self::Cuda(number) => write!(f, "cuda:{number}"),
        }
    }
}

impl Device {
    /// Whether it is a GPU.
    pub fn is_cuda(self) -> bool {
        matches!(self, Self::Cuda(_))
    }

    /// Makes the device ready for use. libtorch's CUDA half is loaded when a CUDA device is opened for the first time, so that
    /// one program serves machines with and without a GPU; no other CUDA function of libtorch may be called before.
    ///
    /// # Errors
    ///
    /// A CUDA device that can't be used: the first thing that is missing, and what to do about it, in one line. Nothing falls
    /// back to the CPU.
    pub fn open(self) -> Result<tch::Device, NetworkError> {
        let Self::Cuda(number) = self else {
            return Ok(tch::Device::Cpu);
        };
        let opened = Cuda::of_this_machine().open(number, load_libtorch);
        opened.map_err(|reason| NetworkError::device(self, reason))?;
        match tch::Cuda::device_count() {
            count if i64::from(number) < count => Ok(tch::Device::Cuda(number.into())),
            ..=0 => Err(NetworkError::device(self, "libtorch finds no GPU")),
            count => Err(NetworkError::device(
                self,
                format!("libtorch finds only {count} GPUs, from cuda:0"),
            )),
        }
    }

    /// Gives this thread a stream of its own on an open CUDA device, until the thread ends: by default libtorch queues the operations of
    /// all threads in one stream, and the copies of one batch don't overlap the computations of another. tch has no call for it;
    /// `stream.cpp` has one. A thread works on one device. Does nothing for a CPU.
    pub(super) fn use_own_stream(self) -> Result<(), NetworkError> {
        thread_local!(static OWN: Cell<Option<Device>> = const { Cell::new(None) });
        let Self::Cuda(number) = self else {
            return Ok(());
        };
        if OWN.get() == Some(self) {
            return Ok(());
        }
        let fault = |reason: &str| NetworkError::device(self, reason);
        let index = i8::try_from(number).map_err(|_| fault("libtorch numbers 128 devices"))?;
        // SAFETY: the function takes numbers alone, and no C++ exception leaves it.
        match unsafe { tusker_use_own_stream(index) } {
            0 => {
                OWN.set(Some(self));
                Ok(())
            }
            _ => Err(fault("libtorch can't make a stream there")),
        }
    }
}

static SINGLE_THREADED: AtomicBool = AtomicBool::new(false);

/// Makes libtorch compute each operation in the calling thread. For programs whose own threads evaluate in parallel: there several
/// threads for an operation only slow each other down. To be called once, when the program starts.
pub fn set_single_threaded() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        SINGLE_THREADED.store(true, Ordering::Relaxed);
        tch::set_num_interop_threads(1);
    });
    apply_thread_count();
}

/// Applies [`set_single_threaded`] to this thread. OpenMP keeps the number of threads for each calling thread; a new thread begins
/// with the number of the CPU's cores.
pub(super) fn apply_thread_count() {
    thread_local!(static APPLIED: Cell<bool> = const { Cell::new(false) });
    if SINGLE_THREADED.load(Ordering::Relaxed) && !APPLIED.get() {
        tch::set_num_threads(1);
        APPLIED.set(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_names() {
        for (text, device) in [
            ("cpu", Device::Cpu),
            ("cpu:service", Device::CpuService),
            ("cuda", Device::Cuda(0)),
            ("cuda:0", Device::Cuda(0)),
            ("cuda:3", Device::Cuda(3)),
        ] {
            assert_eq!(text.parse(), Ok(device));
            assert_eq!(device.to_string().parse(), Ok(device));
        }
        for text in [
            "",
            "gpu",
            "CPU",
            "cuda:",
            "cuda:-1",
            "cuda:+1",
            "cuda:x",
            "cuda:70000",
            "cpu:0",
        ] {
            let error = text.parse::<Device>().unwrap_err();
            assert!(error.to_string().contains(&format!("`{text}`")));
        }
    }

    #[test]
    fn a_missing_cuda_device_is_an_error_that_names_it() {
        assert_eq!(Device::Cpu.open().unwrap(), tch::Device::Cpu);
        for _ in 0..2 {
            let message = Device::Cuda(999).open().unwrap_err().to_string();
            assert!(message.starts_with("device cuda:999: "), "{message}");
        }
    }

    #[test]
    fn a_device_without_streams_is_an_error() {
        assert!(Device::Cpu.use_own_stream().is_ok());
        // Nothing has loaded CUDA here.
        let error = Device::Cuda(0).use_own_stream().unwrap_err().to_string();
        assert!(error.starts_with("device cuda:0: "), "{error}");
        assert!(Device::Cuda(200).use_own_stream().is_err());
    }
}
