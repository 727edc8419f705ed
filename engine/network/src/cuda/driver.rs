//! The NVIDIA driver and its GPUs.

use std::fmt;

/// Major and minor.
pub(crate) type Capability = (u32, u32);

/// The NVIDIA driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Driver {
    /// The newest CUDA version that it supports, if known.
    pub(super) version: Option<u32>,
    /// The GPUs that this process sees, or the first call that failed.
    pub(super) gpus: Result<Vec<Gpu>, Failure>,
}

/// A GPU that this process sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gpu {
    pub(crate) name: String,
    pub(crate) capability: Capability,
}

/// A call of the driver that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) call: &'static str,
    pub(super) code: i32,
    /// `CUDA_ERROR_…`
    pub(super) name: String,
}

impl Failure {
    pub(super) const NO_DEVICE: i32 = 100;
    /// The driver's library doesn't have the function.
    pub(super) const NOT_FOUND: i32 = 500;

    /// Advice for the user.
    pub(super) fn advice(&self) -> &'static str {
        match self.code {
            34 => "libcuda.so.1 is the stub of a CUDA toolkit: put the driver's own before it",
            802 => "start the service nvidia-fabricmanager, in the driver's version",
            803 => {
                "the driver was updated: restart the machine, or the container from an image of the driver's version"
            }
            804 => "take cuda-compat's libcuda.so.1 off LD_LIBRARY_PATH, or install a newer driver",
            _ => "see what `nvidia-smi` and `dmesg` say, and restart the machine",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, code, name } = self;
        write!(f, "{call} returns {code} ({name})")
    }
}
