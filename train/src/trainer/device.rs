//! The errors of a failing device, as errors of a training.

use crate::error::TrainError;
use engine::config::TrainConfig;
use network::{Architecture, Device, Network, NetworkError, catch_torch_panics};

/// What is computed on a device, for its errors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeviceTask {
    device: tch::Device,
    network: Architecture,
    /// The rows of a batch.
    rows: u32,
}

impl DeviceTask {
    /// The training of a network on a device.
    pub(crate) fn new(network: &Network, device: tch::Device, config: &TrainConfig) -> Self {
        Self {
            device,
            network: network.architecture(),
            rows: config.batch_size,
        }
    }

    /// Runs the work. Errors of libtorch, panics of tch included, become errors that say what to do.
    pub(crate) fn run<T>(
        self,
        work: impl FnOnce() -> Result<T, TrainError>,
    ) -> Result<T, TrainError> {
        catch_torch_panics(work).map_err(|error| self.explain(error))
    }

    fn explain(self, error: TrainError) -> TrainError {
        let device = match self.device {
            tch::Device::Cuda(number) => Device::Cuda(number as u16),
            _ => Device::Cpu,
        };
        match error {
            TrainError::Network(error) if error.is_out_of_memory() => TrainError::Other(format!(
                "device {device}: out of memory with batches of {} rows of a {}x{} network: lower train.batch_size, take a smaller \
                 network (network.blocks, network.channels), or end other programs that use the device ({})",
                self.rows,
                self.network.blocks,
                self.network.channels,
                first_line(&error)
            )),
            TrainError::Network(error @ NetworkError::Torch(_)) if self.device.is_cuda() => {
                TrainError::Other(format!(
                    "device {device} failed ({}): this process can compute nothing more on it; the same command resumes from what is \
                     saved",
                    first_line(&error)
                ))
            }
            error => error,
        }
    }
}

/// The rest of libtorch's texts are hints for its own developers.
fn first_line(error: &NetworkError) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::{Kind, Tensor};

    const WORK: DeviceTask = DeviceTask {
        device: tch::Device::Cuda(1),
        network: Architecture {
            blocks: 20,
            channels: 256,
        },
        rows: 4_096,
    };

    fn message(work: DeviceTask, text: &str) -> String {
        let error = NetworkError::Torch(text.into());
        work.run::<()>(|| Err(error.into()))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_lack_of_memory_is_an_error_that_says_what_helps() {
        let text = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has 10.00 GiB.\nSee the documentation";
        assert_eq!(
            message(WORK, text),
            "device cuda:1: out of memory with batches of 4096 rows of a 20x256 network: lower train.batch_size, take a smaller \
             network (network.blocks, network.channels), or end other programs that use the device (libtorch: CUDA out of memory. \
             Tried to allocate 2.00 GiB. GPU 1 has 10.00 GiB.)"
        );
        // An allocation that is really too large for a CPU's memory.
        let work = DeviceTask {
            device: tch::Device::Cpu,
            ..WORK
        };
        let numbers = 1 << 50;
        let result = work.run(|| Ok(Tensor::f_zeros([numbers], (Kind::Float, work.device))?));
        let error = result.unwrap_err().to_string();
        assert!(
            error.starts_with("device cpu: out of memory with"),
            "{error}"
        );
    }

    #[test]
    fn a_device_that_fails_is_named_with_how_to_go_on() {
        let text = "CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be reported later";
        assert_eq!(
            message(WORK, text),
            "device cuda:1 failed (libtorch: CUDA error: an illegal memory access was encountered): this process can compute \
             nothing more on it; the same command resumes from what is saved"
        );
        // What fails on a CPU is no device.
        let work = DeviceTask {
            device: tch::Device::Cpu,
            ..WORK
        };
        assert_eq!(
            message(work, "of another kind"),
            "libtorch: of another kind"
        );
    }

    #[test]
    fn a_panic_of_tch_is_an_error() {
        let error = WORK.run(|| {
            let numbers = Tensor::f_zeros([2], (Kind::Float, tch::Device::Cpu))?;
            let mask = Tensor::f_zeros([3], (Kind::Bool, tch::Device::Cpu))?;
            Ok(numbers.f_masked_fill(&mask, 1.0)?)
        });
        let error = error.unwrap_err().to_string();
        assert!(
            error.starts_with("device cuda:1 failed (libtorch: The size of tensor"),
            "{error}"
        );
    }
}
