//! How a network is made ready on a device: by the first of its threads, which prepares, tunes and checks it, and then by the
//! others, which share its tensors.

use super::queue::BatchSize;
use super::tuning_cache::TuningCache;
use crate::architecture::Architecture;
use crate::batch_tuning::{BatchTuning, MAX_BATCH, tune};
use crate::cuda::Cuda;
use crate::device::Device;
use crate::error::NetworkError;
use crate::model::Network;
use crate::packed::{Forward, PackedForward};
use crate::prepare::{Check, Drift, Prepared};
use engine::config::Precision;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The sizes of a CPU's batches: it stands in for a GPU, and is not tuned.
const CPU_SIZES: [usize; 4] = [8, 16, 32, 64];

/// How a device computes a network.
#[derive(Debug, Clone)]
pub struct ServiceDevice {
    /// The device.
    pub device: Device,
    /// What the network is computed in there; never [`Precision::Auto`].
    pub precision: Precision,
    /// How far it is from the network itself there.
    pub drift: Drift,
    /// What was measured, now or earlier; none for a CPU.
    pub tuning: Option<BatchTuning>,
}

impl ServiceDevice {
    /// What a network is computed in, and how far that is from the network itself.
    pub(super) fn choice(&self, network: &str) -> String {
        let bound = Drift::bound(self.precision);
        format!(
            "{}: {network} is computed in {}: its values are off by {:.4} (root mean square; {} is allowed), its policies by {:.1e} nats \
             ({} is allowed)",
            self.device,
            self.precision,
            self.drift.value_error,
            bound.value_error,
            self.drift.divergence,
            bound.divergence
        )
    }
}

/// Makes what a thread evaluates a network with, in that thread; with a note if it computes otherwise than the first thread.
pub(super) type Make =
    Box<dyn FnOnce() -> Result<(Box<dyn Forward>, Option<String>), NetworkError> + Send>;

/// Makes a network ready in a device's first thread.
pub(super) type Load = Box<dyn FnOnce() -> Result<(Box<dyn Forward>, Loaded), NetworkError> + Send>;

/// What a device's first thread leaves to the service, beside what it evaluates the network with.
pub(super) struct Loaded {
    /// For the device's other threads.
    pub(super) others: Vec<Make>,
    pub(super) sizes: Vec<BatchSize>,
    pub(super) notes: Vec<String>,
    pub(super) used: ServiceDevice,
}

/// What a device's first thread is to load.
pub(super) struct LoadRequest {
    pub(super) network: Network,
    pub(super) device: Device,
    pub(super) precision: Precision,
    pub(super) name: String,
    /// The threads of the device.
    pub(super) threads: usize,
    pub(super) tunings: Arc<Mutex<TuningCache>>,
}

impl LoadRequest {
    pub(super) fn load(self) -> Result<(Box<dyn Forward>, Loaded), NetworkError> {
        let device = self.device;
        device.use_own_stream()?;
        if device.is_cuda() {
            // The sizes are few: looking for the fastest way to compute each is worth its time.
            tch::Cuda::cudnn_set_benchmark(true);
        }
        let Prepared {
            body,
            precision,
            drift,
            mut notes,
            check,
        } = Prepared::new(&self.network, device, self.precision, &self.name)?;
        let capacity = if device.is_cuda() {
            MAX_BATCH
        } else {
            CPU_SIZES[CPU_SIZES.len() - 1]
        };
        let mut forward = PackedForward::new(body, device, precision, capacity)?;
        let mut tuning = if device.is_cuda() {
            Some(self.tuning(&mut forward, &check, precision, &mut notes)?)
        } else {
            None
        };
        let mut sizes = tuning.as_ref().map_or_else(|| untimed(&CPU_SIZES), timed);
        let rows: Vec<usize> = sizes.iter().map(|size| size.rows).collect();
        let mut checked = forward.check(&check, &rows);
        // What was right for another version of cuDNN, or for another network, may be wrong for this one.
        if let (Err(error), Some(found)) = (&checked, &mut tuning)
            && found.fused
        {
            notes.push(format!(
                "device {device}: cuDNN's fused convolutions are not used: {error}"
            ));
            found.fused = false;
            forward.body.set_fused(false);
            checked = forward.check(&check, &rows);
        }
        let fitting = checked?;
        let capacity = fitting.last().copied().unwrap_or(1);
        if fitting.len() < rows.len() {
            notes.push(format!(
                "device {device}: out of memory with {} rows of {}; batches have at most {capacity} rows",
                rows[fitting.len()],
                self.name
            ));
        }
        sizes.truncate(fitting.len());
        let is_fused = tuning.as_ref().is_some_and(|tuning| tuning.fused);
        let others = (1..self.threads).map(|_| {
            let (body, check, sizes) =
                (forward.body.shallow_clone(), check.clone(), fitting.clone());
            Box::new(move || {
                device.use_own_stream()?;
                let mut forward = PackedForward::new(body, device, precision, capacity)?;
                let mut note = None;
                // cuDNN chooses for each thread.
                match forward.check(&check, &sizes) {
                    Err(error) if is_fused => {
                        note = Some(format!(
                            "device {device}: a thread does not use cuDNN's fused convolutions: {error}"
                        ));
                        forward.body.set_fused(false);
                        forward.check(&check, &sizes)?;
                    }
                    checked => drop(checked?),
                }
                Ok((Box::new(forward) as Box<dyn Forward>, note))
            }) as Make
        });
        let loaded = Loaded {
            others: others.collect(),
            sizes,
            notes,
            used: ServiceDevice {
                device,
                precision,
                drift,
                tuning,
            },
        };
        Ok((Box::new(forward), loaded))
    }

    /// What is known of such a network on such a device, or is measured now.
    fn tuning(
        &self,
        forward: &mut PackedForward,
        check: &Check,
        precision: Precision,
        notes: &mut Vec<String>,
    ) -> Result<BatchTuning, NetworkError> {
        let Architecture { blocks, channels } = self.network.architecture();
        let gpu = match self.device {
            Device::Cuda(number) => Cuda::of_this_machine().gpu(number),
            Device::Cpu | Device::CpuService => None,
        };
        let key = format!(
            "{}, {blocks}x{channels}, {precision}, {}",
            gpu.map_or("unknown GPU", |gpu| &gpu.name),
            env!("CARGO_PKG_VERSION")
        );
        let known = self.cache().get(&key);
        if let Some(tuning) = known {
            forward.body.set_fused(tuning.fused);
            return Ok(tuning);
        }
        let (found, is_final) = tune(forward, check, (self.device, precision), notes)?;
        if is_final {
            notes.extend(self.cache().put(key, &found));
        }
        Ok(found)
    }

    fn cache(&self) -> MutexGuard<'_, TuningCache> {
        let locked = self.tunings.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sizes of which nothing is known: as if every row took the same time.
pub(super) fn untimed(sizes: &[usize]) -> Vec<BatchSize> {
    let sizes = sizes.iter().map(|&rows| BatchSize {
        rows,
        seconds: rows as f64 * 1e-6,
    });
    sizes.collect()
}

/// The measured sizes up to the chosen one.
fn timed(tuning: &BatchTuning) -> Vec<BatchSize> {
    let rates = tuning.rates.iter();
    let rates = rates.filter(|rate| rate.batch <= tuning.batch);
    let sizes = rates.map(|rate| BatchSize {
        rows: rate.batch,
        seconds: rate.batch as f64 / rate.evaluations_per_second,
    });
    sizes.collect()
}
