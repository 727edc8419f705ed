//! Checks by the NVIDIA driver itself that a CUDA device can be used, with errors that say what to repair.
//!
//! libtorch gives no clear error for a driver that is too old, and none for a GPU that it has no kernels for until the first kernel is
//! launched. The driver's own interface is stable and small. It is queried once, before libtorch's CUDA half is loaded.

mod driver;
mod system;

pub(super) use system::load_libtorch;

use driver::{Capability, Driver, Failure, Gpu};
use std::sync::OnceLock;

/// The CUDA version of libtorch 2.11.0 from PyPI, as CUDA writes versions: 1000 × major + 10 × minor.
const USUAL_RUNTIME: u32 = 13_000;

/// CUDA 13 compiles for GPUs of this compute capability and later. (libtorch 2.11.0+cu130 holds kernels for 7.5, 8.0, 8.6, 9.0,
/// 10.0 and 12.0: `strings libtorch_cuda.so | grep gencode`.)
const MIN_CAPABILITY_OF_CUDA_13: Capability = (7, 5);

/// The state of CUDA on this machine, found without libtorch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cuda {
    /// The driver, or why its library can't be loaded.
    driver: Result<Driver, String>,
    /// The CUDA version that libtorch was built with.
    runtime: u32,
    /// The environment variable `CUDA_VISIBLE_DEVICES`.
    visible: Option<String>,
}

impl Cuda {
    /// The state of this machine; found once.
    pub(super) fn of_this_machine() -> &'static Self {
        static FOUND: OnceLock<Cuda> = OnceLock::new();
        FOUND.get_or_init(|| Self {
            driver: system::driver(),
            runtime: system::runtime().unwrap_or(USUAL_RUNTIME),
            visible: std::env::var_os("CUDA_VISIBLE_DEVICES")
                .map(|text| text.to_string_lossy().into_owned()),
        })
    }

    /// Makes GPU `number` ready for libtorch, whose CUDA half `load` loads; the error is the first thing to repair.
    pub(super) fn open(
        &self,
        number: u16,
        load: impl Fn() -> Result<(), String>,
    ) -> Result<(), String> {
        let driver = self.driver.as_ref().map_err(|reason| {
            // Without both, the error names both.
            let and_libtorch = match load() {
                Ok(()) => "",
                Err(_) => ", and libtorch's CUDA half by `scripts/setup --cuda`",
            };
            format!(
                "no NVIDIA driver ({reason}): install {}{and_libtorch}; a container has to be started with its GPUs",
                self.needed_driver()
            )
        })?;
        self.check(driver, number)?;
        load().map_err(|reason| {
            format!("libtorch's CUDA half can't be loaded ({reason}): install it by `scripts/setup --cuda`")
        })
    }

    /// GPU `number`, if libtorch can use it and the driver has the functions that describe it.
    pub(super) fn gpu(&self, number: u16) -> Option<&Gpu> {
        let driver = self.driver.as_ref().ok()?;
        self.check(driver, number).ok()?
    }

    /// Checks that libtorch can use GPU `number`, as far as the driver has the functions for it.
    fn check<'d>(&self, driver: &'d Driver, number: u16) -> Result<Option<&'d Gpu>, String> {
        let is_too_old = |version: &u32| version / 1000 < self.runtime / 1000;
        if let Some(version) = driver.version.filter(is_too_old) {
            return Err(format!(
                "the NVIDIA driver is too old: it is for CUDA {}, and this libtorch for CUDA {}: install {}",
                in_words(version),
                in_words(self.runtime),
                self.needed_driver()
            ));
        }
        let gpus = match &driver.gpus {
            Ok(gpus) => gpus.as_slice(),
            Err(failure) => match failure.code {
                Failure::NOT_FOUND => return Ok(None),
                Failure::NO_DEVICE => &[],
                _ => {
                    return Err(format!(
                        "the NVIDIA driver fails: {failure}: {}",
                        failure.advice()
                    ));
                }
            },
        };
        let gpu = gpus.get(usize::from(number)).ok_or_else(|| {
            let hint = self.visible.as_ref().map(|visible| {
                format!("; CUDA_VISIBLE_DEVICES=`{visible}` may hide some: unset it, or name others in it")
            });
            match gpus {
                [] => {
                    let hint = hint.unwrap_or_else(|| ": see whether `nvidia-smi -L` lists one".into());
                    format!("the NVIDIA driver finds no GPU{hint}")
                }
                gpus => format!("there is no such GPU, only {}{}", list(gpus), hint.unwrap_or_default()),
            }
        })?;
        let is_cuda_13 = self.runtime / 1000 == 13;
        if is_cuda_13 && gpu.capability < MIN_CAPABILITY_OF_CUDA_13 {
            let (major, minor) = gpu.capability;
            return Err(format!(
                "the GPU is too old: {} has compute capability {major}.{minor}, and this libtorch has kernels for 7.5 and later: \
                 use another",
                gpu.name
            ));
        }
        Ok(Some(gpu))
    }

    fn needed_driver(&self) -> String {
        match self.runtime / 1000 {
            13 => "the driver R580 or later".into(),
            major => format!("a driver for CUDA {major}.0 or later"),
        }
    }
}

/// `cuda:0 NVIDIA H100, cuda:1 NVIDIA H100`
fn list(gpus: &[Gpu]) -> String {
    let each = gpus.iter().enumerate();
    let each = each.map(|(number, gpu)| format!("cuda:{number} {}", gpu.name));
    each.collect::<Vec<_>>().join(", ")
}

/// A version in words: 12040 is 12.4.
fn in_words(version: u32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(name: &str, capability: Capability) -> Gpu {
        let name = name.to_owned();
        Gpu { name, capability }
    }

    fn machine(version: u32, gpus: Result<Vec<Gpu>, Failure>) -> Cuda {
        let version = Some(version);
        Cuda {
            driver: Ok(Driver { version, gpus }),
            runtime: USUAL_RUNTIME,
            visible: None,
        }
    }

    fn two() -> Cuda {
        let gpus = [gpu("NVIDIA H100", (9, 0)), gpu("Tesla V100", (7, 0))];
        machine(13_000, Ok(gpus.to_vec()))
    }

    fn fails(code: i32, name: &str) -> Cuda {
        let (call, name) = ("cuInit", name.to_owned());
        machine(13_000, Err(Failure { call, code, name }))
    }

    fn seeing(visible: &str, cuda: Cuda) -> Cuda {
        let visible = Some(visible.to_owned());
        Cuda { visible, ..cuda }
    }

    /// The error of `cuda:number` with the whole libtorch.
    fn error(cuda: &Cuda, number: u16) -> String {
        let message = cuda.open(number, || Ok(())).unwrap_err();
        assert!(!message.contains('\n'), "{message}");
        message
    }

    fn without_libtorch() -> Result<(), String> {
        Err("libcudnn.so.9: cannot open shared object file".into())
    }

    #[test]
    fn a_gpu_that_libtorch_can_use_is_opened_and_described() {
        assert_eq!(two().open(0, || Ok(())), Ok(()));
        let newer = machine(13_020, Ok(vec![gpu("NVIDIA T4", (7, 5))]));
        assert_eq!(newer.open(0, || Ok(())), Ok(()));
        assert_eq!(two().gpu(0), Some(&gpu("NVIDIA H100", (9, 0))));
    }

    #[test]
    fn without_a_driver_what_else_is_missing_is_named_too() {
        let cuda = Cuda {
            driver: Err("libcuda.so.1: cannot open shared object file".into()),
            ..two()
        };
        assert_eq!(
            error(&cuda, 0),
            "no NVIDIA driver (libcuda.so.1: cannot open shared object file): install the driver R580 or later; a container has to \
             be started with its GPUs"
        );
        let message = cuda.open(0, without_libtorch).unwrap_err();
        assert!(
            message.contains("R580 or later, and libtorch's CUDA half by `scripts/setup --cuda`;"),
            "{message}"
        );
    }

    #[test]
    fn libtorch_without_its_cuda_half_names_the_setup() {
        assert_eq!(
            two().open(0, without_libtorch).unwrap_err(),
            "libtorch's CUDA half can't be loaded (libcudnn.so.9: cannot open shared object file): install it by `scripts/setup --cuda`"
        );
    }

    #[test]
    fn an_old_driver_is_too_old_for_the_libtorch_that_is_there() {
        let old = machine(12_040, Ok(vec![gpu("NVIDIA H100", (9, 0))]));
        assert_eq!(
            error(&old, 0),
            "the NVIDIA driver is too old: it is for CUDA 12.4, and this libtorch for CUDA 13.0: install the driver R580 or later"
        );
        // Minor versions are compatible, and so is a libtorch for an older CUDA, which has kernels for older GPUs.
        let older_libtorch = Cuda {
            runtime: 12_060,
            ..machine(12_040, Ok(vec![gpu("Tesla V100", (7, 0))]))
        };
        assert_eq!(older_libtorch.open(0, || Ok(())), Ok(()));
    }

    #[test]
    fn a_driver_without_the_functions_is_left_to_libtorch() {
        let silent = fails(Failure::NOT_FOUND, "");
        assert_eq!(silent.open(7, || Ok(())), Ok(()));
        assert_eq!(silent.gpu(7), None);
    }

    #[test]
    fn an_old_gpu_is_named_with_its_capability() {
        assert_eq!(
            error(&two(), 1),
            "the GPU is too old: Tesla V100 has compute capability 7.0, and this libtorch has kernels for 7.5 and later: use another"
        );
        assert_eq!(two().gpu(1), None);
    }

    #[test]
    fn a_number_beyond_the_gpus_lists_those_that_are_there() {
        let only = "there is no such GPU, only cuda:0 NVIDIA H100, cuda:1 Tesla V100";
        assert_eq!(error(&two(), 2), only);
        assert_eq!(
            error(&seeing("0,1", two()), 2),
            format!(
                "{only}; CUDA_VISIBLE_DEVICES=`0,1` may hide some: unset it, or name others in it"
            )
        );
    }

    #[test]
    fn without_a_gpu_the_error_says_where_to_look() {
        let none = [
            machine(13_000, Ok(Vec::new())),
            fails(100, "CUDA_ERROR_NO_DEVICE"),
        ];
        for cuda in none {
            assert_eq!(
                error(&cuda, 0),
                "the NVIDIA driver finds no GPU: see whether `nvidia-smi -L` lists one"
            );
            assert_eq!(
                error(&seeing("", cuda), 0),
                "the NVIDIA driver finds no GPU; CUDA_VISIBLE_DEVICES=`` may hide some: unset it, or name others in it"
            );
        }
    }

    #[test]
    fn a_driver_that_fails_is_quoted_with_what_to_do() {
        for (code, name, advice) in [
            (34, "CUDA_ERROR_STUB_LIBRARY", "stub"),
            (802, "CUDA_ERROR_SYSTEM_NOT_READY", "nvidia-fabricmanager"),
            (
                803,
                "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
                "restart the machine, or",
            ),
            (
                804,
                "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
                "cuda-compat",
            ),
            (999, "CUDA_ERROR_UNKNOWN", "`nvidia-smi` and `dmesg`"),
        ] {
            let message = error(&fails(code, name), 0);
            let quoted = format!("the NVIDIA driver fails: cuInit returns {code} ({name}): ");
            assert!(message.starts_with(&quoted), "{message}");
            assert!(message[quoted.len()..].contains(advice), "{message}");
        }
    }
}
