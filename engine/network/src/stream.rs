//! A CUDA stream for a thread of its own.
//!
//! By default libtorch queues the operations of all threads on a GPU in one stream. With a stream for each thread, the copies of one
//! batch overlap the computations of another. tch has no call for it; `stream.cpp` has one.

use crate::device::Device;
use crate::error::NetworkError;
use std::cell::Cell;
use std::ffi::c_int;

unsafe extern "C" {
    fn tusker_use_own_stream(device: i8) -> c_int;
}

/// Gives this thread a stream of its own on an open CUDA device, until the thread ends. A thread works on one device. Does nothing for
/// a processor.
pub(super) fn use_own(device: Device) -> Result<(), NetworkError> {
    thread_local!(static OWN: Cell<Option<Device>> = const { Cell::new(None) });
    let Device::Cuda(number) = device else {
        return Ok(());
    };
    if OWN.get() == Some(device) {
        return Ok(());
    }
    let fault = |reason: &str| NetworkError::device(device, reason);
    let index = i8::try_from(number).map_err(|_| fault("libtorch numbers 128 devices"))?;
    // SAFETY: the function takes numbers alone, and no C++ exception leaves it.
    match unsafe { tusker_use_own_stream(index) } {
        0 => {
            OWN.set(Some(device));
            Ok(())
        }
        _ => Err(fault("libtorch can't make a stream there")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_without_streams_is_an_error() {
        assert!(use_own(Device::Cpu).is_ok());
        // Nothing has loaded CUDA here.
        let error = use_own(Device::Cuda(0)).unwrap_err().to_string();
        assert!(error.starts_with("device cuda:0: "), "{error}");
        assert!(use_own(Device::Cuda(200)).is_err());
    }
}
