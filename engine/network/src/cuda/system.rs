//! The calls: of the driver, of CUDA's runtime and of the dynamic loader.

use super::driver::{Driver, Failure, Gpu};
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW, Symbol};
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::path::PathBuf;
use std::ptr::null;
use std::sync::OnceLock;

const CPU_LIBRARY: &str = "libtorch_cpu.so";
const CUDA_LIBRARY: &str = "libtorch_cuda.so";
const DRIVER_LIBRARY: &str = "libcuda.so.1";

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `_MINOR` in `cuda.h`.
const CAPABILITY_ATTRIBUTES: [c_int; 2] = [75, 76];

/// Loads libtorch's CUDA half once; the result is kept.
pub(crate) fn load_libtorch() -> Result<(), String> {
    static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| {
        let path = beside_cpu_library().unwrap_or_else(|| PathBuf::from(CUDA_LIBRARY));
        // SAFETY: the library is libtorch's own other half, made to be loaded into this process: its initialisers only
        // register kernels. It is never unloaded.
        unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_GLOBAL) }
            .map_err(|error| reason(&error))
    });
    library.as_ref().map(|_| ()).map_err(String::clone)
}

/// The dynamic loader's message.
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

/// Writes one int, and returns an error code or 0.
type GetInt = unsafe extern "C" fn(*mut c_int) -> c_int;

/// The CUDA version of the runtime that libtorch's CPU half brought into this process.
pub(super) fn runtime() -> Option<u32> {
    let mut version = 0;
    // SAFETY: the function has this type in `cuda_runtime_api.h`.
    let code = unsafe {
        let get: Symbol<GetInt> = Library::this().get(b"cudaRuntimeGetVersion\0").ok()?;
        get(&mut version)
    };
    u32::try_from(version).ok().filter(|_| code == 0)
}

/// The driver with its GPUs, or why its library can't be loaded.
pub(super) fn driver() -> Result<Driver, String> {
    // SAFETY: the driver's library is made to be loaded into any process.
    let library = unsafe { Library::open(Some(DRIVER_LIBRARY), RTLD_NOW | RTLD_LOCAL) };
    let library = Functions(library.map_err(|error| reason(&error))?);
    let driver = Driver {
        version: library.version(),
        gpus: library.gpus(),
    };
    // It is initialised now, and is never unloaded.
    std::mem::forget(library);
    Ok(driver)
}

/// The driver's library.
struct Functions(Library);

impl Functions {
    /// A function of the library.
    ///
    /// # Safety
    ///
    /// `T` is the function's type in `cuda.h`.
    unsafe fn get<T>(&self, name: &'static str) -> Result<Symbol<T>, Failure> {
        // SAFETY: as above.
        let function = unsafe { self.0.get(name) };
        function.map_err(|error| Failure {
            call: name,
            code: Failure::NOT_FOUND,
            name: reason(&error),
        })
    }

    /// Known before `cuInit`, which fails for a version that is too old.
    fn version(&self) -> Option<u32> {
        let mut version = 0;
        // SAFETY: the function has this type.
        let code = unsafe { self.get::<GetInt>("cuDriverGetVersion").ok()?(&mut version) };
        u32::try_from(version)
            .ok()
            .filter(|&version| code == 0 && version > 0)
    }

    fn gpus(&self) -> Result<Vec<Gpu>, Failure> {
        type Init = unsafe extern "C" fn(c_uint) -> c_int;
        let mut count = 0;
        // SAFETY: the functions have these types; `cuInit` comes before all that follow.
        unsafe {
            self.check("cuInit", self.get::<Init>("cuInit")?(0))?;
            self.check(
                "cuDeviceGetCount",
                self.get::<GetInt>("cuDeviceGetCount")?(&mut count),
            )?;
        }
        (0..count).map(|number| self.gpu(number)).collect()
    }

    fn gpu(&self, number: c_int) -> Result<Gpu, Failure> {
        type GetDevice = unsafe extern "C" fn(*mut c_int, c_int) -> c_int;
        type GetName = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int;
        type GetAttribute = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int;
        let mut device = 0;
        let mut name: [c_char; 256] = [0; 256];
        let mut capability = [0; 2];
        // SAFETY: the functions have these types. `cuDeviceGetName` writes at most this many characters and ends them with 0.
        let name = unsafe {
            let get_device: Symbol<GetDevice> = self.get("cuDeviceGet")?;
            self.check("cuDeviceGet", get_device(&mut device, number))?;
            let get_name: Symbol<GetName> = self.get("cuDeviceGetName")?;
            let code = get_name(name.as_mut_ptr(), name.len() as c_int, device);
            self.check("cuDeviceGetName", code)?;
            let get_attribute: Symbol<GetAttribute> = self.get("cuDeviceGetAttribute")?;
            for (part, attribute) in capability.iter_mut().zip(CAPABILITY_ATTRIBUTES) {
                let code = get_attribute(part, attribute, device);
                self.check("cuDeviceGetAttribute", code)?;
            }
            CStr::from_ptr(name.as_ptr())
        };
        let [major, minor] = capability.map(|part| u32::try_from(part).unwrap_or_default());
        Ok(Gpu {
            name: name.to_string_lossy().into_owned(),
            capability: (major, minor),
        })
    }

    fn check(&self, call: &'static str, code: c_int) -> Result<(), Failure> {
        match code {
            0 => Ok(()),
            code => Err(Failure {
                call,
                code,
                name: self
                    .name_of(code)
                    .unwrap_or_else(|| "an unknown error".into()),
            }),
        }
    }

    /// The name of an error code: `CUDA_ERROR_…`.
    fn name_of(&self, code: c_int) -> Option<String> {
        type GetErrorName = unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int;
        let mut name = null();
        // SAFETY: the function has this type, and writes the address of a constant text, or null.
        unsafe {
            self.get::<GetErrorName>("cuGetErrorName").ok()?(code, &mut name);
            (!name.is_null()).then(|| CStr::from_ptr(name).to_string_lossy().into_owned())
        }
    }
}
