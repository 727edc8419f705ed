//! The evaluation service: threads that own the devices, networks that come and go in them, and clients in the workers.
//!
//! ```text
//! worker: encode and pack ── submit ──▶ queue ──▶ device thread: merge, pad, send, compute, fetch
//!    ▲                                                      │
//!    └── receive: softmax of the legal logits ◀── answers ──┘
//! ```
//!
//! Each device has a few threads (two by default), each with a stream of its own, so that one batch is merged and sent while another
//! computes. The threads stay while networks are loaded into them and dropped: cuDNN keeps its plans by thread, and a network of a
//! size that was there before needs no new ones. A network is loaded by one thread of each device while the others evaluate.
//!
//! What waits, waits in one queue for all devices, first come, first served; a batch holds rows of one network, and a request that
//! does not fit into it is cut. Batches have a few fixed sizes, as GPUs plan their computations size by size; the last rows may be
//! padding.
//!
//! A device without memory for a batch continues with half the size, which is told, and fails at the smallest size. What a device
//! that fails had in hand is evaluated by the others; the service ends with the last one: every client gets the reason, now and
//! later. A service lives as long as a network in it, and a network as long as its clients.

mod client;
mod queue;
mod remembered;
#[cfg(test)]
mod tests;
mod thread;
mod usage;

pub use client::EvaluationClient;
pub use usage::{DeviceCounters, DeviceUse};

use super::calibration::{Calibration, LARGEST, calibrate};
use super::error::catch_panics;
use super::evaluator::leaves_at_once;
use super::packed::{Forward, PackedForward};
use super::prepare::{Check, Prepared};
use super::stream;
use super::{Accuracy, Architecture, Device, Network, NetworkError, Precision};
use queue::{NetworkId, Networks, Queue};
use remembered::Remembered;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use thread::{Thread, lose};

/// Called with what people should read while the service runs; from any of its threads.
type Notes = Arc<dyn Fn(&str) + Send + Sync>;

/// The sizes of a processor's batches: it stands in for a GPU, and is not calibrated.
const CPU_SIZES: [usize; 4] = [8, 16, 32, 64];

/// A size of a batch, and how long a device takes for it, from the rows in the host's memory to the answers there.
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
    /// Host threads for each device.
    pub threads_per_device: usize,
    /// The sizes of batches, in rows. None: GPUs are calibrated, which takes some seconds a device where nothing is remembered.
    pub batch_sizes: Option<Vec<usize>>,
    /// The file in which calibrations are remembered. None: they are not.
    pub calibrations: Option<PathBuf>,
}

impl ServiceOptions {
    /// Two threads for each device, and calibrations that are remembered in the user's cache folder
    /// (`$XDG_CACHE_HOME/tusker/calibrations.json`, by default in `~/.cache`).
    pub fn new(devices: Vec<Device>) -> Self {
        Self {
            devices,
            threads_per_device: 2,
            batch_sizes: None,
            calibrations: remembered::default_path(),
        }
    }
}

/// How a device computes a network.
#[derive(Debug, Clone)]
pub struct ServiceDevice {
    /// The device.
    pub device: Device,
    /// What the network is computed in there; never [`Precision::Auto`].
    pub precision: Precision,
    /// How far it is from the network itself there.
    pub accuracy: Accuracy,
    /// What was measured, now or earlier; none where the sizes of batches were given.
    pub calibration: Option<Calibration>,
}

impl ServiceDevice {
    /// What a network is computed in, and how far that is from the network itself.
    fn choice(&self, network: &str) -> String {
        let bound = Accuracy::bound(self.precision);
        format!(
            "{}: {network} is computed in {}: its values are off by {:.4} (root mean square; {} is allowed), its policies by {:.1e} nats \
             ({} is allowed)",
            self.device,
            self.precision,
            self.accuracy.value_error,
            bound.value_error,
            self.accuracy.divergence,
            bound.divergence
        )
    }
}

/// Evaluates the batches of many workers on one or several devices. On a GPU the last digits of an answer depend on the size of the
/// batch that its query came into.
pub struct EvaluationService {
    options: ServiceOptions,
    queue: Arc<Queue>,
    notes: Notes,
    remembered: Arc<Mutex<Remembered>>,
    next_network: AtomicU64,
    /// Held while a network is loaded: networks come one at a time. What the last one is computed in, by device.
    loading: Mutex<BTreeMap<usize, Precision>>,
    threads: Vec<JoinHandle<()>>,
}

/// A network in a service. It leaves the service when the last handle and the last client are dropped.
#[derive(Debug)]
pub struct ServedNetwork {
    id: NetworkId,
    name: String,
    leaves_at_once: u32,
    devices: Vec<ServiceDevice>,
    service: Arc<EvaluationService>,
}

/// Makes what a thread evaluates a network with, in that thread.
type Make = Box<dyn FnOnce() -> Result<Box<dyn Forward>, NetworkError> + Send>;

/// What a device's first thread made of a network.
struct Loaded {
    forward: Box<dyn Forward>,
    /// For the device's other threads.
    others: Vec<Make>,
    sizes: Vec<BatchSize>,
    notes: Vec<String>,
    used: ServiceDevice,
}

/// Makes a network ready in a device's first thread.
type Load = Box<dyn FnOnce() -> Result<Loaded, NetworkError> + Send>;

impl EvaluationService {
    /// Opens the devices and starts their threads. `notes` gets what people should read: a precision that was given up, fused
    /// convolutions, memory that ran out, a device that failed.
    ///
    /// # Errors
    /// A device that can't be used, and options that can't.
    pub fn start(
        options: ServiceOptions,
        notes: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Arc<Self>, NetworkError> {
        options.check()?;
        for device in &options.devices {
            device.open()?;
        }
        let remembered = Remembered::new(options.calibrations.clone());
        Self::launch(options, remembered, Arc::new(notes))
    }

    fn launch(
        options: ServiceOptions,
        remembered: Remembered,
        notes: Notes,
    ) -> Result<Arc<Self>, NetworkError> {
        let threads = options.threads_per_device;
        let queue = Arc::new(Queue::new(&options.devices, threads));
        let mut service = Self {
            queue: queue.clone(),
            notes: notes.clone(),
            remembered: Arc::new(Mutex::new(remembered)),
            next_network: AtomicU64::new(0),
            loading: Mutex::default(),
            threads: Vec::new(),
            options,
        };
        for (place, &device) in service.options.devices.iter().enumerate() {
            for number in 0..threads {
                let thread = Thread {
                    number: place * threads + number,
                    place,
                    device,
                    queue: queue.clone(),
                    notes: notes.clone(),
                    networks: Networks::default(),
                    shortages: 0,
                };
                let spawned = std::thread::Builder::new()
                    .name(format!("evaluation {device}"))
                    .spawn(move || thread.run());
                service.threads.push(spawned.map_err(|error| {
                    device_error(device, format!("can't start its thread: {error}"))
                })?);
            }
        }
        Ok(Arc::new(service))
    }

    /// Loads a network into the threads of every device, beside those that are there, and waits until it is ready. `name` is what
    /// messages and records call it.
    ///
    /// # Errors
    /// Those of [`NetworkEvaluator::new`](super::NetworkEvaluator::new), and a device that fails. Where another device evaluates
    /// networks already, one that fails is left out, which is told.
    pub fn load(
        self: &Arc<Self>,
        network: &Network,
        precision: Precision,
        name: impl Into<String>,
    ) -> Result<Arc<ServedNetwork>, NetworkError> {
        let name = name.into();
        let mut loads: Vec<Load> = Vec::new();
        for &device in &self.options.devices {
            let request = LoadRequest {
                network: network.copy()?,
                device,
                precision,
                name: name.clone(),
                threads: self.options.threads_per_device,
                batch_sizes: self.options.sizes_for(device),
                remembered: self.remembered.clone(),
            };
            loads.push(Box::new(move || request.load()));
        }
        let leaves_at_once = leaves_at_once(network.architecture(), self.options.devices[0]);
        self.load_by(loads, name, leaves_at_once)
    }

    /// Loads a network, given how each device's first thread does it.
    fn load_by(
        self: &Arc<Self>,
        loads: Vec<Load>,
        name: String,
        leaves_at_once: u32,
    ) -> Result<Arc<ServedNetwork>, NetworkError> {
        let mut precisions = locked(&self.loading);
        let id = self.next_network.fetch_add(1, Ordering::Relaxed);
        let threads = self.options.threads_per_device;
        // All devices at once.
        let loads = loads.into_iter().enumerate();
        let loading: Vec<_> = loads
            .map(|(place, load)| {
                if self.queue.is_lost(place) {
                    return None;
                }
                Some(self.in_thread(place * threads, move |networks| {
                    let Loaded {
                        forward,
                        others,
                        sizes,
                        notes,
                        used,
                    } = load()?;
                    networks.insert(id, forward);
                    Ok((others, sizes, notes, used))
                }))
            })
            .collect();
        let mut devices = Vec::new();
        let mut sizes = vec![Vec::new(); self.options.devices.len()];
        let mut error = None;
        for (place, loaded) in loading.into_iter().enumerate() {
            let Some(loaded) = loaded else {
                continue;
            };
            let ready = self
                .result_of(place, loaded)
                .and_then(|(others, sizes, notes, used)| {
                    let numbers = place * threads + 1..;
                    let made = others.into_iter().zip(numbers).map(|(make, number)| {
                        self.in_thread(number, move |networks| {
                            networks.insert(id, make()?);
                            Ok(())
                        })
                    });
                    for made in made.collect::<Vec<_>>() {
                        self.result_of(place, made)?;
                    }
                    notes.iter().for_each(|note| (self.notes)(note));
                    Ok((sizes, used))
                });
            match ready {
                Ok((own, used)) => {
                    sizes[place] = own;
                    let before = precisions.insert(place, used.precision);
                    if used.device.is_cuda() && before != Some(used.precision) {
                        (self.notes)(&used.choice(&name));
                    }
                    devices.push(used);
                }
                // A device that failed while others evaluate was told of by its thread.
                Err(_) if self.queue.is_lost(place) && self.queue.has_networks() => {}
                Err(failure) => error = error.or(Some(failure)),
            }
        }
        if devices.is_empty() {
            error = error.or_else(|| Some(NetworkError::Service(self.queue.reason(0))));
        }
        if let Some(error) = error {
            self.queue.unload(id);
            return Err(error);
        }
        self.queue.add_network(id, &name, sizes);
        Ok(Arc::new(ServedNetwork {
            id,
            name,
            leaves_at_once,
            devices,
            service: self.clone(),
        }))
    }

    /// Has a thread do something with its networks. A failure of the device is the thread's as well.
    fn in_thread<T: Send + 'static>(
        &self,
        thread: usize,
        work: impl FnOnce(&mut Networks) -> Result<T, NetworkError> + Send + 'static,
    ) -> Receiver<Result<T, NetworkError>> {
        let place = thread / self.options.threads_per_device;
        let device = self.options.devices[place];
        let (queue, notes) = (self.queue.clone(), self.notes.clone());
        let (reply, result) = channel();
        self.queue.push_job(thread, move |networks| {
            let done = catch_panics(|| work(networks));
            let failure = match &done {
                Err(error) if error.is_device_failure() => Err(error.to_string()),
                _ => Ok(()),
            };
            if let Err(reason) = &failure {
                // Before the result is there: what waits for it asks whether the device is lost.
                lose(&queue, &notes, place, device, reason);
            }
            let named = done.map_err(|error| match error {
                NetworkError::Torch(reason) => device_error(device, reason),
                error => error,
            });
            // It is waited for no more where something else failed before.
            let _ = reply.send(named);
            failure
        });
        result
    }

    /// What came of that, in a thread of the device at `place`.
    fn result_of<T>(
        &self,
        place: usize,
        result: Receiver<Result<T, NetworkError>>,
    ) -> Result<T, NetworkError> {
        // A job that is dropped is one of a device that was lost.
        let lost = |_| Err(NetworkError::Service(self.queue.reason(place)));
        result.recv().unwrap_or_else(lost)
    }

    /// Whether no device is left to evaluate on. Then every load and every evaluation fails.
    pub fn has_ended(&self) -> bool {
        self.queue.has_ended()
    }

    /// The rows that wait for a device.
    pub fn rows_waiting(&self) -> usize {
        self.queue.rows_waiting()
    }

    /// What each device has done so far.
    pub fn device_counters(&self) -> Vec<DeviceCounters> {
        self.queue.device_counters()
    }
}

impl fmt::Debug for EvaluationService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EvaluationService")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Drop for EvaluationService {
    fn drop(&mut self) {
        self.queue.end("the evaluation service has ended");
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so itself.
            let _ = thread.join();
        }
    }
}

impl ServedNetwork {
    /// A new client. Every worker has its own.
    pub fn client(self: &Arc<Self>) -> EvaluationClient {
        EvaluationClient::new(self.clone())
    }

    /// How each device computes it.
    pub fn devices(&self) -> &[ServiceDevice] {
        &self.devices
    }

    /// The largest batch of each device, in rows: less than at the start where memory ran out.
    pub fn largest_batches(&self) -> Vec<usize> {
        self.service.queue.largest_batches(self.id)
    }

    /// The service that it is in.
    pub fn service(&self) -> &Arc<EvaluationService> {
        &self.service
    }
}

impl Drop for ServedNetwork {
    fn drop(&mut self) {
        self.service.queue.unload(self.id);
    }
}

impl ServiceOptions {
    fn check(&self) -> Result<(), NetworkError> {
        let fault = |reason: &str| Err(device_error(self.devices.first().copied(), reason.into()));
        if self.devices.is_empty() {
            return fault("a service needs a device");
        }
        if self.threads_per_device == 0 {
            return fault("a service needs a thread for each device");
        }
        match &self.batch_sizes {
            Some(sizes) if sizes.is_empty() || sizes.contains(&0) => {
                fault("a service needs sizes of batches, from 1 row")
            }
            _ => Ok(()),
        }
    }

    /// The sizes that are not to be found by a calibration, ascending.
    fn sizes_for(&self, device: Device) -> Option<Vec<usize>> {
        let fixed = (!device.is_cuda()).then(|| CPU_SIZES.to_vec());
        let mut sizes = self.batch_sizes.clone().or(fixed)?;
        sizes.sort_unstable();
        sizes.dedup();
        Some(sizes)
    }
}

/// What a device's first thread is asked for.
struct LoadRequest {
    network: Network,
    device: Device,
    precision: Precision,
    name: String,
    threads: usize,
    batch_sizes: Option<Vec<usize>>,
    remembered: Arc<Mutex<Remembered>>,
}

impl LoadRequest {
    fn load(self) -> Result<Loaded, NetworkError> {
        stream::use_own(self.device)?;
        if let Device::Cuda(_) = self.device {
            // The sizes are few: looking for the fastest way to compute each is worth its time.
            tch::Cuda::cudnn_set_benchmark(true);
        }
        let Prepared {
            body,
            precision,
            accuracy,
            mut notes,
            check,
        } = Prepared::new(&self.network, self.device, self.precision, &self.name)?;
        let largest = self.batch_sizes.as_ref().and_then(|sizes| sizes.last());
        let capacity = largest.copied().unwrap_or(LARGEST);
        let mut forward = PackedForward::new(body, self.device, precision, capacity)?;
        let (sizes, mut calibration) = match &self.batch_sizes {
            Some(sizes) => (untimed(sizes), None),
            None => {
                let calibration = self.calibration(&mut forward, &check, precision, &mut notes)?;
                (timed(&calibration), Some(calibration))
            }
        };
        let rows: Vec<usize> = sizes.iter().map(|size| size.rows).collect();
        let fused = calibration.as_mut().map(|found| &mut found.fused);
        let fitting = match (forward.check(&check, &rows), fused) {
            // What was right for another version of cuDNN, or for another network, may be wrong for this one.
            (Err(error), Some(fused)) if *fused => {
                notes.push(format!(
                    "device {}: cuDNN's fused convolutions are not used: {error}",
                    self.device
                ));
                *fused = false;
                forward.set_fused(false);
                forward.check(&check, &rows)?
            }
            (result, _) => result?,
        };
        if fitting.len() < rows.len() {
            notes.push(format!(
                "device {}: out of memory with {} rows of {}; batches have at most {} rows",
                self.device,
                rows[fitting.len()],
                self.name,
                fitting.last().copied().unwrap_or_default()
            ));
        }
        let device = self.device;
        let others = (1..self.threads).map(|_| {
            let (body, check, sizes) = (forward.share(), check.clone(), fitting.clone());
            let capacity = sizes.last().copied().unwrap_or(1);
            Box::new(move || {
                stream::use_own(device)?;
                let mut forward = PackedForward::new(body, device, precision, capacity)?;
                forward.check(&check, &sizes)?;
                Ok(Box::new(forward) as Box<dyn Forward>)
            }) as Make
        });
        Ok(Loaded {
            others: others.collect(),
            forward: Box::new(forward),
            sizes: sizes[..fitting.len()].to_vec(),
            notes,
            used: ServiceDevice {
                device,
                precision,
                accuracy,
                calibration,
            },
        })
    }

    /// What is known of such a network on such a device, or is measured now.
    fn calibration(
        &self,
        forward: &mut PackedForward,
        check: &Check,
        precision: Precision,
        notes: &mut Vec<String>,
    ) -> Result<Calibration, NetworkError> {
        let Architecture { blocks, channels } = self.network.architecture();
        let key = format!(
            "{}, {blocks}x{channels}, {precision}, {}",
            self.device.description()?.name,
            env!("CARGO_PKG_VERSION")
        );
        let known = locked(&self.remembered).get(&key);
        if let Some(calibration) = known {
            forward.set_fused(calibration.fused);
            return Ok(calibration);
        }
        let found = calibrate(forward, check, (self.device, precision), notes)?;
        notes.extend(locked(&self.remembered).put(key, &found));
        Ok(found)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
