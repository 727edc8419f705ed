//! Where a network computes.

use super::NetworkError;
use std::cell::Cell;
use std::fmt;
use std::str::FromStr;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// A device as it is named on the command line: `cpu`, `cpu:service`, `cuda` (the first one) or `cuda:N`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Device {
    /// The processor.
    #[default]
    Cpu,
    /// The processor in the way that GPUs are used, through the [evaluation service](super::EvaluationService): it stands in for one
    /// in tests.
    CpuService,
    /// The NVIDIA GPU with this number, from 0.
    Cuda(u16),
}

/// Text that names no device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no device: expected cpu, cpu:service, cuda or cuda:N")]
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
    /// A CUDA device that is not there is an error: nothing falls back to the processor.
    pub fn open(self) -> Result<tch::Device, NetworkError> {
        let Self::Cuda(number) = self else {
            return Ok(tch::Device::Cpu);
        };
        let fault = |reason: String| NetworkError::Device {
            device: self.to_string(),
            reason,
        };
        cuda::load().map_err(fault)?;
        match tch::Cuda::device_count() {
            count if i64::from(number) < count => Ok(tch::Device::Cuda(number.into())),
            ..=0 => Err(fault("libtorch finds no CUDA device".into())),
            count => Err(fault(format!(
                "there are only {count} CUDA devices, from cuda:0"
            ))),
        }
    }
}

#[cfg(target_os = "linux")]
mod cuda {
    use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
    use std::path::PathBuf;
    use std::sync::OnceLock;

    const CPU_LIBRARY: &str = "libtorch_cpu.so";
    const CUDA_LIBRARY: &str = "libtorch_cuda.so";

    /// Loads libtorch's CUDA half once, for good; the error is kept as well.
    pub(super) fn load() -> Result<(), String> {
        static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
        let library = LIBRARY.get_or_init(|| {
            let path = beside_cpu_library().unwrap_or_else(|| PathBuf::from(CUDA_LIBRARY));
            // SAFETY: the library is libtorch's own other half, made to be loaded into this process: its initialisers only
            // register kernels. It is never unloaded.
            unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_GLOBAL) }
                .map_err(|error| format!("can't load libtorch's CUDA library: {}", reason(&error)))
        });
        library.as_ref().map(|_| ()).map_err(String::clone)
    }

    /// The dynamic loader's own words.
    fn reason(error: &libloading::Error) -> String {
        let source = std::error::Error::source(error);
        source.map_or_else(|| error.to_string(), |source| source.to_string())
    }

    /// The CUDA library in the folder of the CPU library that this process runs with.
    fn beside_cpu_library() -> Option<PathBuf> {
        let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
        let line = maps.lines().find(|line| line.ends_with(CPU_LIBRARY))?;
        let path = &line[line.find('/')?..];
        Some(PathBuf::from(path).with_file_name(CUDA_LIBRARY))
    }
}

#[cfg(not(target_os = "linux"))]
mod cuda {
    pub(super) fn load() -> Result<(), String> {
        Err("CUDA is used on Linux only".into())
    }
}

static SINGLE_THREADED: AtomicBool = AtomicBool::new(false);

/// Makes libtorch compute every operation in the thread that asks for it. For programs whose own threads evaluate side by
/// side: several threads an operation only get into each other's way there. To be called once, when the program starts.
pub fn set_single_threaded() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        SINGLE_THREADED.store(true, Ordering::Relaxed);
        tch::set_num_interop_threads(1);
    });
    apply_thread_count();
}

/// Applies [`set_single_threaded`] to this thread. The number of threads belongs to the thread that asks for them (it is
/// OpenMP's), and a new thread starts with the processor's.
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
}
