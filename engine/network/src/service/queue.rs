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
            for jobs in state.devices.iter_mut().flat_map(|it| &mut it.jobs) {
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
            // A thread that panicked never gives its batch back.
            lost.rest();
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
mod tests {
    use super::super::request::Reply;
    use super::*;
    use crate::packed::ROW_BYTES;
    use std::sync::Arc;
    use std::sync::mpsc::{Sender, channel};

    fn sizes(pairs: &[(usize, f64)]) -> Vec<BatchSize> {
        let sizes = pairs
            .iter()
            .map(|&(rows, seconds)| BatchSize { rows, seconds });
        sizes.collect()
    }

    #[test]
    fn the_chosen_size_evaluates_most_rows_a_second() {
        // A CPU: the time grows with the rows, and padding costs as much as rows do.
        let cpu = sizes(&[(1, 0.01), (8, 0.08), (32, 0.32)]);
        // A GPU: small batches cost as much as middling ones.
        let gpu = sizes(&[(32, 1e-3), (128, 1.1e-3), (512, 3e-3)]);
        for (sizes, waiting, size) in [
            (&cpu, 1, 1),
            (&cpu, 7, 1),
            (&cpu, 9, 8),
            (&cpu, 500, 32),
            (&gpu, 1, 32),
            (&gpu, 33, 32),
            (&gpu, 40, 128),
            (&gpu, 200, 128),
            (&gpu, 400, 512),
        ] {
            assert_eq!(choose(sizes, waiting).unwrap().rows, size, "{waiting} wait");
        }
        assert!(choose(&[], 3).is_none());
    }

    /// A queue of so many devices with one thread each, and a network of these sizes everywhere.
    fn queue(devices: u16, sizes: &[BatchSize]) -> Queue {
        let devices: Vec<Device> = (0..devices).map(Device::Cuda).collect();
        let queue = Queue::new(&devices, 1);
        queue.add_network(7, "test", vec![sizes.to_vec(); devices.len()]);
        queue
    }

    fn batch(queue: &Queue, device: usize) -> DeviceBatch {
        match queue.take(device, 0) {
            Some(Task::Evaluate(batch)) => batch,
            _ => panic!("no batch"),
        }
    }

    #[test]
    fn an_incomplete_batch_waits_while_another_computes() {
        let queue = queue(2, &sizes(&[(4, 1e5)]));
        let (sender, _replies) = channel();
        let push = |rows| {
            let packed = Arc::new(vec![0; rows * ROW_BYTES]);
            queue.push(7, Part::new(packed, rows, Vec::new(), sender.clone()));
        };
        let rows = |device| batch(&queue, device).rows;
        push(1);
        let first = batch(&queue, 0);
        assert_eq!(first.rows, 1, "an idle device takes what there is");
        std::thread::scope(|scope| {
            push(2);
            let next = scope.spawn(|| rows(0));
            std::thread::sleep(Duration::from_millis(20));
            push(2);
            assert_eq!(next.join().unwrap(), 4, "filled while it waited");
            queue.done(&first, 0);
            push(1);
            let next = scope.spawn(|| rows(0));
            std::thread::sleep(Duration::from_millis(20));
            let waiting = queue.rows_waiting();
            queue.done(&first, 0);
            assert_eq!(waiting, 1);
            assert_eq!(next.join().unwrap(), 1, "sent when the device is idle");
            push(3);
            assert_eq!(rows(1), 3, "another device is idle");
        });
    }

    #[test]
    fn overlapping_batches_count_once_as_busy_time() {
        let queue = queue(2, &sizes(&[(4, 1e-3)]));
        let (sender, _replies) = channel();
        let pause = || std::thread::sleep(Duration::from_millis(10));
        let busy = || queue.device_counters()[0].busy;
        let begun = Instant::now();
        queue.push(7, request(7, 10, &sender));
        let (first, second) = (batch(&queue, 0), batch(&queue, 0));
        pause();
        assert!(busy() >= Duration::from_millis(10), "while it computes");
        queue.done(&first, 0);
        pause();
        queue.put_back(second, 0);
        let counters = queue.device_counters();
        let DeviceCounters {
            batches,
            rows,
            padded_rows,
            ..
        } = counters[0];
        assert_eq!((batches, rows, padded_rows), (1, 4, 4));
        assert!(busy() >= Duration::from_millis(20) && busy() <= begun.elapsed());
        let idle = busy();
        pause();
        assert_eq!(busy(), idle);
        assert_eq!(counters[1], DeviceCounters::new(Device::Cuda(1)));
        // A thread that panics never comes back with its batch.
        let _lost = batch(&queue, 0);
        queue.lose(0, "it broke");
        let lost = busy();
        pause();
        assert_eq!(busy(), lost);
    }

    fn request(rows: usize, mark: u8, sender: &Sender<Reply>) -> Part {
        let bytes = (0..rows).flat_map(|row| [mark + row as u8; ROW_BYTES]);
        Part::new(Arc::new(bytes.collect()), rows, Vec::new(), sender.clone())
    }

    fn marks(batch: &DeviceBatch) -> Vec<u8> {
        let bytes = batch.parts.iter().flat_map(Part::packed);
        bytes.copied().step_by(ROW_BYTES).collect()
    }

    #[test]
    fn requests_are_served_in_order_and_cut_to_size() {
        let queue = queue(1, &sizes(&[(4, 1e-3)]));
        let (sender, replies) = channel();
        for (rows, mark) in [(3, 10), (6, 20), (1, 30)] {
            queue.push(7, request(rows, mark, &sender));
        }
        let next = || {
            let batch = batch(&queue, 0);
            // The device is idle again.
            queue.done(&batch, 0);
            batch
        };
        let first = batch(&queue, 0);
        assert_eq!((first.rows, first.size), (4, 4));
        assert_eq!(marks(&first), [10, 11, 12, 20]);
        queue.put_back(first, 0);
        assert_eq!(marks(&next()), [10, 11, 12, 20]);
        let second = next();
        assert_eq!(marks(&second), [21, 22, 23, 24]);
        let third = next();
        assert_eq!(marks(&third), [25, 30]);
        assert_eq!(third.size, 4);

        // The first batch was dropped.
        assert!(replies.recv().unwrap().is_err() && replies.recv().unwrap().is_err());
        second.parts.into_iter().for_each(Part::answer);
        assert_eq!(replies.recv().unwrap(), Ok((1, vec![])));
        drop(third);
        assert!(replies.recv().unwrap().is_err() && replies.recv().unwrap().is_err());
        queue.end("it is over");
        assert!(queue.take(0, 0).is_none());
    }

    #[test]
    fn batches_hold_rows_of_one_network_in_order_of_arrival() {
        let queue = queue(1, &sizes(&[(4, 1e-3)]));
        queue.add_network(8, "other", vec![sizes(&[(2, 1e-3)])]);
        let (sender, _replies) = channel();
        for (network, mark) in [(7, 10), (8, 20), (7, 30), (8, 40)] {
            queue.push(network, request(1, mark, &sender));
        }
        let next = || {
            let batch = batch(&queue, 0);
            queue.done(&batch, 0);
            (batch.network, batch.size, marks(&batch))
        };
        assert_eq!(next(), (7, 4, vec![10, 30]));
        assert_eq!(next(), (8, 2, vec![20, 40]));
        assert_eq!(queue.rows_waiting(), 0);
    }

    #[test]
    fn a_lost_device_leaves_its_rows_to_the_others() {
        let queue = queue(2, &sizes(&[(4, 1e-3)]));
        let (sender, replies) = channel();
        queue.push(7, request(3, 10, &sender));
        let failed = batch(&queue, 0);
        let note = queue.lose(0, "it broke").unwrap();
        assert_eq!(
            note,
            "device cuda:0 failed: it broke; cuda:1 continues without it"
        );
        assert_eq!(queue.lose(0, "again"), None);
        queue.put_back(failed, 0);
        assert!(queue.take(0, 0).is_none());
        let saved = batch(&queue, 1);
        assert_eq!(marks(&saved), [10, 11, 12]);
        // The last one takes everything with it.
        assert_eq!(queue.lose(1, "it broke, too"), None);
        queue.put_back(saved, 1);
        let reason = "device cuda:1 failed: it broke, too".to_owned();
        assert_eq!(replies.recv().unwrap(), Err(reason.clone()));
        queue.push(7, request(1, 20, &sender));
        assert_eq!(replies.recv().unwrap(), Err(reason));
    }

    #[test]
    fn the_largest_size_is_halved_down_to_the_smallest() {
        let mut allowed = sizes(&[(32, 1.0), (64, 1.0), (128, 1.0)]);
        assert_eq!(halve(&mut allowed, 128), Shortage::Halved(64));
        // The device's other thread had such a batch in hand as well.
        assert_eq!(halve(&mut allowed, 128), Shortage::Known);
        assert_eq!(halve(&mut allowed, 64), Shortage::Halved(32));
        assert_eq!(halve(&mut allowed, 32), Shortage::Smallest);
        // Where the half is no size, the smallest is left.
        let mut two = sizes(&[(48, 1.0), (64, 1.0)]);
        assert_eq!(halve(&mut two, 64), Shortage::Halved(48));
        assert_eq!(halve(&mut Vec::new(), 1), Shortage::Smallest);
    }
}
