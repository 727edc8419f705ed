//! What waits to be evaluated, and which thread takes it.

use super::request::Part;
use super::usage::DeviceCounters;
use crate::device::Device;
use crate::packed::Forward;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// While another batch of the device computes, an incomplete one is sent no earlier than after this share of that one's time:
/// early enough to be there when the device is free, and late enough for more rows to join.
const FILL_SHARE: f64 = 0.5;

/// Names a network in a service.
pub(super) type NetworkId = u64;

/// The networks that a thread has loaded.
pub(super) type Networks = HashMap<NetworkId, Box<dyn Forward>>;

/// A size of a batch, and how long a device takes for it, from the rows in the host's memory to the answers there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BatchSize {
    pub(super) rows: usize,
    pub(super) seconds: f64,
}

/// The rows of one batch, all of one network.
#[derive(Debug)]
pub(super) struct DeviceBatch {
    pub(super) network: NetworkId,
    /// In the order in which they stand in the batch.
    pub(super) parts: Vec<Part>,
    /// Together.
    pub(super) rows: usize,
    /// With the padding.
    pub(super) size: usize,
}

/// Something that a thread does with its networks; an error is a failure of its device.
pub(super) type Job = Box<dyn FnOnce(&mut Networks) -> Result<(), String> + Send>;

/// What a thread is to do next.
pub(super) enum Task {
    Job(Job),
    Evaluate(DeviceBatch),
}

/// What follows from a batch that a device's memory did not hold.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shortage {
    /// The network's batches on the device have at most this many rows from now on.
    Halved(usize),
    /// Nothing new: another thread met the limit before, or the network has been unloaded.
    Known,
    /// It was the smallest size.
    Smallest,
}

/// The state that a device's threads share.
struct DeviceState {
    /// `busy` without the present time with batches in hand.
    counters: DeviceCounters,
    /// Batches that its threads have in hand.
    in_hand: usize,
    /// Since when there have been such.
    busy_since: Option<Instant>,
    /// Until when an incomplete batch waits while another computes.
    fill_deadline: Option<Instant>,
    /// By thread.
    jobs: Vec<VecDeque<Job>>,
    /// Why it is not used any more.
    lost: Option<String>,
}

impl DeviceState {
    fn new(device: Device, threads: usize) -> Self {
        Self {
            counters: DeviceCounters::new(device),
            in_hand: 0,
            busy_since: None,
            fill_deadline: None,
            jobs: (0..threads).map(|_| VecDeque::new()).collect(),
            lost: None,
        }
    }

    /// A thread takes a batch.
    fn begin(&mut self, now: Instant) {
        self.in_hand += 1;
        self.busy_since.get_or_insert(now);
    }

    /// A thread has done with a batch, well or not.
    fn release(&mut self) {
        self.in_hand -= 1;
        if self.in_hand == 0 {
            self.rest();
        }
    }

    fn rest(&mut self) {
        self.counters.busy = self.counters().busy;
        self.busy_since = None;
    }

    fn counters(&self) -> DeviceCounters {
        let now = self.busy_since.map_or(Duration::ZERO, |at| at.elapsed());
        DeviceCounters {
            busy: self.counters.busy + now,
            ..self.counters
        }
    }

    fn take_jobs(&mut self) -> Vec<VecDeque<Job>> {
        self.jobs.iter_mut().map(std::mem::take).collect()
    }
}

/// A network, and what waits for it.
struct NetworkState {
    name: String,
    parts: VecDeque<Part>,
    /// Of all parts.
    rows: usize,
    /// By device: the sizes that its memory has allowed so far, ascending; none on a device that is lost.
    sizes: Vec<Vec<BatchSize>>,
}

#[derive(Default)]
struct State {
    networks: BTreeMap<NetworkId, NetworkState>,
    devices: Vec<DeviceState>,
    /// Of requests so far.
    requests: u64,
    /// Why nothing more is evaluated.
    ended: Option<String>,
}

/// What waits, first come, first served; shared by the clients and all threads of all devices. Devices are numbered from 0, and so
/// are the threads of each.
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

impl Queue {
    pub(super) fn new(devices: &[Device], threads_per_device: usize) -> Self {
        let devices = devices.iter();
        let devices = devices.map(|&device| DeviceState::new(device, threads_per_device));
        let state = State {
            devices: devices.collect(),
            ..State::default()
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing under the lock leaves it half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes the threads.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        result
    }

    /// Has a thread do something before it takes another batch. Where its device is lost the job is dropped.
    pub(super) fn push_job(&self, device: usize, thread: usize, job: Job) {
        self.change(|state| {
            let has_ended = state.ended.is_some();
            let device = &mut state.devices[device];
            if !has_ended && device.lost.is_none() {
                device.jobs[thread].push_back(job);
            }
        });
    }

    /// Adds a network that the threads have loaded, with the sizes of batches by device.
    pub(super) fn add_network(&self, id: NetworkId, name: &str, sizes: Vec<Vec<BatchSize>>) {
        let network = NetworkState {
            name: name.to_owned(),
            parts: VecDeque::new(),
            rows: 0,
            sizes,
        };
        self.lock().networks.insert(id, network);
    }

    /// Has all threads drop a network.
    pub(super) fn unload(&self, id: NetworkId) {
        let network = self.change(|state| {
            let used = state.devices.iter_mut().filter(|it| it.lost.is_none());
            for jobs in used.flat_map(|it| &mut it.jobs) {
                jobs.push_back(Box::new(move |networks: &mut Networks| {
                    drop(networks.remove(&id));
                    Ok(())
                }));
            }
            state.networks.remove(&id)
        });
        // No client waits for what is left of it: a client keeps its network.
        drop(network);
    }

    /// Adds a request at the end.
    pub(super) fn push(&self, network: NetworkId, mut part: Part) {
        self.change(|state| {
            if let Some(reason) = &state.ended {
                return part.fail(reason);
            }
            state.requests += 1;
            part.number = state.requests;
            if let Some(network) = state.networks.get_mut(&network) {
                network.rows += part.len();
                network.parts.push_back(part);
            }
        });
    }

    /// Puts back a batch that a device could not evaluate, before all others.
    pub(super) fn put_back(&self, batch: DeviceBatch, device: usize) {
        self.change(|state| {
            state.devices[device].release();
            if let Some(reason) = &state.ended {
                batch.parts.into_iter().for_each(|part| part.fail(reason));
            } else if let Some(network) = state.networks.get_mut(&batch.network) {
                network.rows += batch.rows;
                for part in batch.parts.into_iter().rev() {
                    network.parts.push_front(part);
                }
            }
        });
    }

    /// Ends everything: what waits and what comes later gets this reason.
    pub(super) fn end(&self, reason: &str) {
        let jobs = self.change(|state| {
            let reason = state.ended.get_or_insert_with(|| reason.to_owned());
            for network in state.networks.values_mut() {
                network.rows = 0;
                network.parts.drain(..).for_each(|part| part.fail(reason));
            }
            let devices = state.devices.iter_mut();
            devices.map(DeviceState::take_jobs).collect::<Vec<_>>()
        });
        // Without the lock: what they hold may take its time.
        drop(jobs);
    }

    /// Stops the use of a device that failed, and ends everything where it was the last. Returns a message for the user with
    /// the devices that are left; none where the device was lost before.
    pub(super) fn lose(&self, device: usize, reason: &str) -> Option<String> {
        let (reason, jobs, left) = self.change(|state| {
            let lost = &mut state.devices[device];
            if state.ended.is_some() || lost.lost.is_some() {
                return None;
            }
            let reason = format!("device {} failed: {reason}", lost.counters.device);
            lost.lost = Some(reason.clone());
            let jobs = lost.take_jobs();
            for network in state.networks.values_mut() {
                network.sizes[device].clear();
            }
            let left = state.devices.iter().filter(|it| it.lost.is_none());
            let left: Vec<String> = left.map(|it| it.counters.device.to_string()).collect();
            Some((reason, jobs, left))
        })?;
        drop(jobs);
        if left.is_empty() {
            self.end(&reason);
            return None;
        }
        Some(format!("{reason}; {} continues without it", left.join(",")))
    }

    /// Whether a device is not used any more.
    pub(super) fn is_lost(&self, device: usize) -> bool {
        self.lock().devices[device].lost.is_some()
    }

    /// Whether no device is left.
    pub(super) fn has_ended(&self) -> bool {
        self.lock().ended.is_some()
    }

    /// Why a device, or the whole service, is not used any more.
    pub(super) fn reason(&self, device: usize) -> String {
        let state = self.lock();
        let lost = state.devices[device].lost.clone();
        lost.or_else(|| state.ended.clone())
            .unwrap_or_else(|| "the evaluation service has ended".into())
    }

    /// Whether networks are evaluated.
    pub(super) fn has_networks(&self) -> bool {
        !self.lock().networks.is_empty()
    }

    /// Waits for something that a thread of a device is to do. None when everything has ended, or the device is lost.
    ///
    /// A device that computes nothing gets what there is. While one of its batches computes, the next is filled, or at least
    /// not sent before half of that one's time is over.
    pub(super) fn take(&self, device: usize, thread: usize) -> Option<Task> {
        let mut state = self.lock();
        loop {
            if state.ended.is_some() || state.devices[device].lost.is_some() {
                return None;
            }
            if let Some(job) = state.devices[device].jobs[thread].pop_front() {
                return Some(Task::Job(job));
            }
            let Some((id, network)) = state.longest_waiting(device) else {
                let woken = self.changed.wait(state);
                state = woken.unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let sizes = &network.sizes[device];
            let is_full = sizes.last().is_some_and(|size| network.rows >= size.rows);
            let now = Instant::now();
            let of_device = &state.devices[device];
            let until = of_device
                .fill_deadline
                .filter(|&until| of_device.in_hand > 0 && !is_full && until > now);
            if let Some(until) = until {
                let woken = self.changed.wait_timeout(state, until - now);
                state = woken.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            let size = choose(sizes, network.rows)?;
            let device = &mut state.devices[device];
            device.begin(now);
            device.fill_deadline = Some(now + Duration::from_secs_f64(size.seconds * FILL_SHARE));
            return state.cut(id, size.rows).map(Task::Evaluate);
        }
    }

    /// The rows that wait for a device.
    pub(super) fn rows_waiting(&self) -> usize {
        let state = self.lock();
        state.networks.values().map(|network| network.rows).sum()
    }

    /// What each device has done so far.
    pub(super) fn device_counters(&self) -> Vec<DeviceCounters> {
        let state = self.lock();
        state.devices.iter().map(DeviceState::counters).collect()
    }

    /// Notes that a device has evaluated a batch.
    pub(super) fn done(&self, batch: &DeviceBatch, device: usize) {
        self.change(|state| {
            let device = &mut state.devices[device];
            device.release();
            device.counters.batches += 1;
            device.counters.rows += batch.rows as u64;
            device.counters.padded_rows += batch.size as u64;
        });
    }

    /// Allows a network no batch of `size` rows on a device any more, whose memory has not held it: sizes up to the half of it are
    /// left. Returns the network's name, and what follows.
    pub(super) fn halve(
        &self,
        network: NetworkId,
        device: usize,
        size: usize,
    ) -> (String, Shortage) {
        match self.lock().networks.get_mut(&network) {
            Some(network) => (
                network.name.clone(),
                halve(&mut network.sizes[device], size),
            ),
            // Nothing waits for its batch.
            None => (String::new(), Shortage::Known),
        }
    }

    /// The largest batch of a network on each device, in rows.
    #[cfg(test)]
    pub(super) fn largest_batches(&self, network: NetworkId) -> Vec<usize> {
        let sizes = &self.lock().networks[&network].sizes;
        let largest = |sizes: &Vec<BatchSize>| sizes.last().map_or(0, |size| size.rows);
        sizes.iter().map(largest).collect()
    }
}

fn halve(allowed: &mut Vec<BatchSize>, size: usize) -> Shortage {
    let (Some(&smallest), Some(&largest)) = (allowed.first(), allowed.last()) else {
        return Shortage::Smallest;
    };
    if largest.rows < size {
        return Shortage::Known;
    }
    if size <= smallest.rows {
        return Shortage::Smallest;
    }
    allowed.retain(|other| other.rows <= (size / 2).max(smallest.rows));
    Shortage::Halved(allowed.last().unwrap_or(&smallest).rows)
}

impl State {
    /// The network whose first rows have waited longest, among those that a device evaluates.
    fn longest_waiting(&self, device: usize) -> Option<(NetworkId, &NetworkState)> {
        let usable = |network: &&NetworkState| !network.sizes[device].is_empty();
        let waiting = self.networks.iter().filter_map(|(&id, network)| {
            let network = Some(network).filter(usable)?;
            Some((network.parts.front()?.number, id, network))
        });
        let (_, id, network) = waiting.min_by_key(|(number, ..)| *number)?;
        Some((id, network))
    }

    /// A network's first rows, as many as there are and fit.
    fn cut(&mut self, id: NetworkId, size: usize) -> Option<DeviceBatch> {
        let network = self.networks.get_mut(&id)?;
        let mut batch = DeviceBatch {
            network: id,
            parts: Vec::new(),
            rows: 0,
            size,
        };
        while let Some(mut part) = network.parts.pop_front() {
            let room = size - batch.rows;
            if part.len() > room {
                let first = (room > 0).then(|| part.split(room));
                batch.rows += first.as_ref().map_or(0, Part::len);
                batch.parts.extend(first);
                network.parts.push_front(part);
                break;
            }
            batch.rows += part.len();
            batch.parts.push(part);
        }
        network.rows -= batch.rows;
        Some(batch)
    }
}

/// The size for so many rows: the smallest that holds all of them, or the largest that they fill, whichever evaluates more rows a
/// second. More padding never pays.
fn choose(sizes: &[BatchSize], waiting: usize) -> Option<BatchSize> {
    let rate = |size: &BatchSize| size.rows.min(waiting) as f64 / size.seconds.max(1e-9);
    let full = sizes.iter().rfind(|size| size.rows <= waiting);
    let holding = sizes.iter().find(|size| size.rows >= waiting);
    let candidates = full.into_iter().chain(holding).copied();
    candidates.max_by(|a, b| rate(a).total_cmp(&rate(b)))
}

#[cfg(test)]
mod tests;
