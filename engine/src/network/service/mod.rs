//! The evaluation service: threads that own the devices, and clients in the workers.
//!
//! ```text
//! worker: encode and pack ── submit ──▶ queue ──▶ device thread: merge, pad, send, compute, fetch
//!    ▲                                                      │
//!    └── receive: gather the legal priors ◀── answers ──────┘
//! ```
//!
//! Each device has a few threads (two by default), so that one batch is merged and sent while another computes: libtorch
//! queues what several threads ask of a GPU in one stream. What waits, waits in one queue for all devices, first come, first
//! served; a request that does not fit into a batch is cut. Batches have a few fixed sizes, as GPUs plan their computations
//! size by size; the last rows may be padding.
//!
//! A device without memory for a batch goes on with half the size, which is told, and ends at the smallest size. A device
//! that fails ends the service: every client gets the reason, now and later.

mod client;
mod queue;
#[cfg(test)]
mod tests;
mod thread;

pub use client::EvaluationClient;
pub use thread::ThreadCounters;
pub(super) use thread::is_out_of_memory;

use super::calibration::{CALIBRATION_TIME, Calibration, calibrate_prepared};
use super::packed::{Forward, PackedForward};
use super::prepare::Prepared;
use super::{Accuracy, Device, Network, NetworkError, Precision};
use queue::Queue;
use std::fmt;
use std::sync::Arc;
use std::thread::JoinHandle;
use thread::{Counters, Sizes, Thread};

/// Called with what people should read while the service runs; from any of its threads.
type Notes = Arc<dyn Fn(&str) + Send + Sync>;

/// A size of a batch, and how long a device computes on it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct BatchSize {
    rows: usize,
    seconds: f64,
}

/// What a service is to use.
#[derive(Debug, Clone)]
pub struct ServiceOptions {
    /// The devices; each computes a share of all batches.
    pub devices: Vec<Device>,
    /// What the network is computed in.
    pub precision: Precision,
    /// Host threads for each device.
    pub threads_a_device: usize,
    /// The sizes of batches, in rows. None: a calibration finds them at the start, which takes some seconds a device.
    pub batch_sizes: Option<Vec<usize>>,
}

impl Default for ServiceOptions {
    fn default() -> Self {
        Self {
            devices: vec![Device::Cpu],
            precision: Precision::Auto,
            threads_a_device: 2,
            batch_sizes: None,
        }
    }
}

/// A device as the service uses it.
#[derive(Debug, Clone)]
pub struct ServiceDevice {
    /// The device.
    pub device: Device,
    /// What the network is computed in there; never [`Precision::Auto`].
    pub precision: Precision,
    /// How far it is from the network itself there.
    pub accuracy: Accuracy,
    /// What was measured, if the sizes were not given.
    pub calibration: Option<Calibration>,
}

/// Evaluates the batches of many workers on one or several devices. On a GPU the last digits of an answer depend on the size of
/// the batch that its query came into. Ends when it is dropped: clients that still wait, and
/// those that ask later, get an error.
pub struct EvaluationService {
    name: String,
    queue: Arc<Queue>,
    devices: Vec<ServiceDevice>,
    counters: Vec<(Device, Arc<Counters>)>,
    sizes: Vec<Arc<Sizes>>,
    threads: Vec<JoinHandle<()>>,
}

/// A device's part of a service before it starts.
struct Setup {
    device: Device,
    sizes: Vec<BatchSize>,
    /// One a thread.
    forwards: Vec<Box<dyn Forward>>,
}

impl EvaluationService {
    /// Prepares a network on every device and starts the threads. `name` is what messages and records call the network. `notes`
    /// gets what people should read: a precision that was given up, fused convolutions, memory that ran out.
    ///
    /// Errors are those of [`NetworkEvaluator::new`](super::NetworkEvaluator::new); options that can't be used are one of the
    /// device.
    pub fn start(
        network: &Network,
        options: &ServiceOptions,
        name: impl Into<String>,
        notes: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, NetworkError> {
        let (name, notes): (String, Notes) = (name.into(), Arc::new(notes));
        options.check()?;
        super::device::apply_thread_count();
        let (mut setups, mut devices) = (Vec::new(), Vec::new());
        for &device in &options.devices {
            let (setup, used) = options.set_up(network, device, &name, &notes)?;
            setups.push(setup);
            devices.push(used);
        }
        let mut service = Self::launch(&name, setups, &notes)?;
        service.devices = devices;
        Ok(service)
    }

    fn launch(name: &str, setups: Vec<Setup>, notes: &Notes) -> Result<Self, NetworkError> {
        let queue = Arc::new(Queue::new(setups.len()));
        let mut service = Self {
            name: name.to_owned(),
            queue: queue.clone(),
            devices: Vec::new(),
            counters: Vec::new(),
            sizes: Vec::new(),
            threads: Vec::new(),
        };
        for (index, setup) in setups.into_iter().enumerate() {
            let device = setup.device;
            let sizes = Arc::new(Sizes::new(setup.sizes));
            service.sizes.push(sizes.clone());
            for forward in setup.forwards {
                let counters = Arc::new(Counters::default());
                service.counters.push((device, counters.clone()));
                let thread = Thread {
                    name: name.to_owned(),
                    index,
                    device,
                    queue: queue.clone(),
                    sizes: sizes.clone(),
                    counters,
                    notes: notes.clone(),
                    forward,
                };
                let spawned = std::thread::Builder::new()
                    .name(format!("evaluation {device}"))
                    .spawn(move || thread.run());
                service.threads.push(spawned.map_err(|error| {
                    device_error(device, format!("can't start its thread: {error}"))
                })?);
            }
        }
        Ok(service)
    }

    /// A new client. Every worker has its own.
    pub fn client(&self) -> EvaluationClient {
        EvaluationClient::new(self.name.clone(), self.queue.clone())
    }

    /// The devices, as they are used.
    pub fn devices(&self) -> &[ServiceDevice] {
        &self.devices
    }

    /// The largest batch of each device, in rows: less than at the start where memory ran out.
    pub fn largest_batches(&self) -> Vec<usize> {
        let largest = |sizes: &Arc<Sizes>| sizes.get().last().map_or(0, |size| size.rows);
        self.sizes.iter().map(largest).collect()
    }

    /// What each thread has done so far.
    pub fn counters(&self) -> Vec<ThreadCounters> {
        let threads = self.counters.iter();
        threads
            .map(|(device, counters)| counters.read(*device))
            .collect()
    }
}

impl fmt::Debug for EvaluationService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EvaluationService")
            .field("name", &self.name)
            .field("devices", &self.devices)
            .finish_non_exhaustive()
    }
}

impl Drop for EvaluationService {
    fn drop(&mut self) {
        self.queue.end("the evaluation service has ended");
        for thread in self.threads.drain(..) {
            // A thread that panicked has ended the service itself.
            let _ = thread.join();
        }
    }
}

impl ServiceOptions {
    fn check(&self) -> Result<(), NetworkError> {
        let fault = |reason: &str| Err(device_error(self.devices.first().copied(), reason.into()));
        if self.devices.is_empty() {
            return fault("a service needs a device");
        }
        if self.threads_a_device == 0 {
            return fault("a service needs a thread for each device");
        }
        match &self.batch_sizes {
            Some(sizes) if sizes.is_empty() || sizes.contains(&0) => {
                fault("a service needs sizes of batches, from 1 row")
            }
            _ => Ok(()),
        }
    }

    fn set_up(
        &self,
        network: &Network,
        device: Device,
        name: &str,
        notes: &Notes,
    ) -> Result<(Setup, ServiceDevice), NetworkError> {
        let mut prepared = Prepared::new(network, device, self.precision, name.to_owned())?;
        if let Device::Cuda(_) = device {
            // The sizes are few: looking for the fastest way to compute each is worth its time.
            tch::Cuda::cudnn_set_benchmark(true);
        }
        let (sizes, calibration) = match &self.batch_sizes {
            Some(sizes) => (untimed(sizes), None),
            None => {
                let calibration = calibrate_prepared(&mut prepared, None, CALIBRATION_TIME)?;
                (timed(&calibration), Some(calibration))
            }
        };
        let found = calibration.as_ref().map_or(&[][..], |found| &found.notes);
        prepared
            .notes
            .iter()
            .chain(found)
            .for_each(|note| notes(note));
        let rows: Vec<usize> = sizes.iter().map(|size| size.rows).collect();
        let capacity = rows.iter().copied().max().unwrap_or(1);
        let forwards = (0..self.threads_a_device)
            .map(|_| {
                let mut forward = PackedForward::new(&prepared, capacity)?;
                forward.check(&prepared, &rows)?;
                Ok(Box::new(forward) as Box<dyn Forward>)
            })
            .collect::<Result<_, NetworkError>>()?;
        let setup = Setup {
            device,
            sizes,
            forwards,
        };
        let used = ServiceDevice {
            device,
            precision: prepared.precision,
            accuracy: prepared.accuracy,
            calibration,
        };
        Ok((setup, used))
    }
}

/// Sizes of which nothing is known: as if every row took the same time.
fn untimed(sizes: &[usize]) -> Vec<BatchSize> {
    let sizes = sizes.iter().map(|&rows| BatchSize {
        rows,
        seconds: rows as f64 * 1e-6,
    });
    sizes.collect()
}

/// The measured sizes up to the chosen one.
fn timed(calibration: &Calibration) -> Vec<BatchSize> {
    let rates = calibration.rates.iter();
    let sizes = rates.filter(|rate| rate.batch <= calibration.batch);
    sizes
        .map(|rate| BatchSize {
            rows: rate.batch,
            seconds: rate.batch as f64 / rate.evaluations_per_second,
        })
        .collect()
}

fn device_error(device: impl Into<Option<Device>>, reason: String) -> NetworkError {
    let device = device.into();
    NetworkError::Device {
        device: device.map_or_else(|| "none".into(), |device: Device| device.to_string()),
        reason,
    }
}
