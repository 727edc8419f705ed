//! The service itself: it starts the threads, loads networks into them, and lets networks go.

use super::load::{Load, LoadRequest, Loaded, ServiceDevice};
use super::queue::{BatchSize, NetworkId, Networks, Queue};
use super::thread::{Notes, Thread};
use super::tuning_cache::TuningCache;
use super::usage::DeviceCounters;
use crate::device::Device;
use crate::error::{NetworkError, catch_panics};
use crate::evaluator::leaves_at_once;
use crate::model::Network;
use engine::config::Precision;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Host threads for each device.
const THREADS: usize = 2;

/// Evaluates the batches of many workers on one or several devices. On a GPU the last digits of an answer depend on the size of the
/// batch that its query came into.
pub struct EvaluationService {
    devices: Vec<Device>,
    /// Of each device.
    threads_per_device: usize,
    pub(super) queue: Arc<Queue>,
    notes: Notes,
    tunings: Arc<Mutex<TuningCache>>,
    next_network: AtomicU64,
    /// Held while a network is loaded: networks come one at a time. What the last one is computed in, by device.
    loading: Mutex<BTreeMap<usize, Precision>>,
    threads: Vec<JoinHandle<()>>,
}

/// A network in a service. It leaves the service when the last handle and the last client are dropped.
#[derive(Debug)]
pub struct ServedNetwork {
    pub(super) id: NetworkId,
    pub(super) name: String,
    pub(super) leaves_at_once: u32,
    devices: Vec<ServiceDevice>,
    pub(super) service: Arc<EvaluationService>,
}

impl EvaluationService {
    /// Opens the devices and starts two threads for each. Each device computes a share of all batches. `tunings` is the file of
    /// [`tuning_file`](super::tuning_file); without it each GPU is tuned anew, which takes some seconds. `notes` gets
    /// messages for the user: a precision that was given up, fused convolutions, memory that ran out, a device that failed.
    ///
    /// # Errors
    /// No device, and a device that can't be used.
    pub fn start(
        devices: &[Device],
        tunings: Option<PathBuf>,
        notes: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Arc<Self>, NetworkError> {
        if devices.is_empty() {
            return Err(NetworkError::device("none", "a service needs a device"));
        }
        for device in devices {
            device.open()?;
        }
        Self::launch(devices, THREADS, tunings, Arc::new(notes))
    }

    pub(super) fn launch(
        devices: &[Device],
        threads_per_device: usize,
        tunings: Option<PathBuf>,
        notes: Notes,
    ) -> Result<Arc<Self>, NetworkError> {
        let mut service = Self {
            devices: devices.to_vec(),
            threads_per_device,
            queue: Arc::new(Queue::new(devices, threads_per_device)),
            notes,
            tunings: Arc::new(Mutex::new(TuningCache::new(tunings))),
            next_network: AtomicU64::new(0),
            loading: Mutex::default(),
            threads: Vec::new(),
        };
        for (place, &device) in devices.iter().enumerate() {
            for number in 0..threads_per_device {
                let thread = Thread {
                    number,
                    place,
                    device,
                    queue: service.queue.clone(),
                    notes: service.notes.clone(),
                    networks: Networks::default(),
                    shortages: 0,
                };
                let spawned = std::thread::Builder::new()
                    .name(format!("evaluation {device}"))
                    .spawn(move || thread.run());
                service.threads.push(spawned.map_err(|error| {
                    NetworkError::device(device, format!("can't start its thread: {error}"))
                })?);
            }
        }
        Ok(Arc::new(service))
    }

    /// Loads a network into the threads of every device, beside those that are there, and waits until it is ready. `name` is what
    /// messages and records call it.
    ///
    /// # Errors
    /// Those of [`NetworkEvaluator::new`](crate::NetworkEvaluator::new), and a device that fails. Where another device evaluates
    /// networks already, one that fails is left out, with a note.
    pub fn load(
        self: &Arc<Self>,
        network: &Network,
        precision: Precision,
        name: impl Into<String>,
    ) -> Result<Arc<ServedNetwork>, NetworkError> {
        let name = name.into();
        let mut loads: Vec<Load> = Vec::new();
        for &device in &self.devices {
            let request = LoadRequest {
                network: network.copy()?,
                device,
                precision,
                name: name.clone(),
                threads: self.threads_per_device,
                tunings: self.tunings.clone(),
            };
            loads.push(Box::new(move || request.load()));
        }
        let leaves_at_once = leaves_at_once(network.architecture(), self.devices[0]);
        self.load_by(loads, name, leaves_at_once)
    }

    /// Loads a network, given how each device's first thread does it.
    pub(super) fn load_by(
        self: &Arc<Self>,
        loads: Vec<Load>,
        name: String,
        leaves_at_once: u32,
    ) -> Result<Arc<ServedNetwork>, NetworkError> {
        let loading = self.loading.lock();
        let mut precisions = loading.unwrap_or_else(PoisonError::into_inner);
        let id = self.next_network.fetch_add(1, Ordering::Relaxed);
        // All devices at once.
        let loads = loads.into_iter().enumerate();
        let firsts: Vec<_> = loads
            .filter(|(place, _)| !self.queue.is_lost(*place))
            .map(|(place, load)| {
                let first = self.in_thread(place, 0, move |networks| {
                    let (forward, loaded) = load()?;
                    networks.insert(id, forward);
                    Ok(loaded)
                });
                (place, first)
            })
            .collect();
        let mut devices = Vec::new();
        let mut sizes = vec![Vec::new(); self.devices.len()];
        let mut error = None;
        for (place, first) in firsts {
            match self.load_others(id, place, first) {
                Ok((own, used)) => {
                    sizes[place] = own;
                    let before = precisions.insert(place, used.precision);
                    if used.device.is_cuda() && before != Some(used.precision) {
                        (self.notes)(&used.choice(&name));
                    }
                    devices.push(used);
                }
                // The device's thread has given a note of it.
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

    /// Waits until a device's first thread has loaded a network, and loads it into the others.
    fn load_others(
        &self,
        id: NetworkId,
        place: usize,
        first: Receiver<Result<Loaded, NetworkError>>,
    ) -> Result<(Vec<BatchSize>, ServiceDevice), NetworkError> {
        let loaded = self.result_of(place, first)?;
        let made = loaded.others.into_iter().zip(1..).map(|(make, thread)| {
            self.in_thread(place, thread, move |networks| {
                let (forward, note) = make()?;
                networks.insert(id, forward);
                Ok(note)
            })
        });
        let mut notes = loaded.notes;
        for made in made.collect::<Vec<_>>() {
            notes.extend(self.result_of(place, made)?);
        }
        notes.iter().for_each(|note| (self.notes)(note));
        Ok((loaded.sizes, loaded.used))
    }

    /// Has a thread of the device at `place` do something with its networks. A failure of the device is the thread's as well.
    fn in_thread<T: Send + 'static>(
        &self,
        place: usize,
        thread: usize,
        work: impl FnOnce(&mut Networks) -> Result<T, NetworkError> + Send + 'static,
    ) -> Receiver<Result<T, NetworkError>> {
        let device = self.devices[place];
        let (queue, notes) = (self.queue.clone(), self.notes.clone());
        let (reply, result) = channel();
        let job = move |networks: &mut Networks| {
            let done = catch_panics(|| work(networks));
            let failure = match &done {
                Err(error) if error.is_device_failure() => Err(error.to_string()),
                _ => Ok(()),
            };
            if let Err(reason) = &failure {
                // Before the result is there: what waits for it checks whether the device is lost.
                if let Some(note) = queue.lose(place, reason) {
                    notes(&note);
                }
            }
            let named = done.map_err(|error| match error {
                NetworkError::Torch(reason) => NetworkError::device(device, reason),
                error => error,
            });
            // The receiver is gone if another load failed before.
            let _ = reply.send(named);
            failure
        };
        self.queue.push_job(place, thread, Box::new(job));
        result
    }

    /// What came of that.
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
            .field("devices", &self.devices)
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
    /// How each device computes it.
    pub fn devices(&self) -> &[ServiceDevice] {
        &self.devices
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
