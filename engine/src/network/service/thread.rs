//! A thread that evaluates batches on a device.

use super::super::packed::{ANSWER_FLOATS, Forward};
use super::super::{Device, NetworkError};
use super::queue::{Batch, Queue};
use super::{BatchSize, Notes};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tch::no_grad_guard;

/// What a thread of the service has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadCounters {
    /// Its device.
    pub device: Device,
    /// Batches.
    pub batches: u64,
    /// Rows that somebody asked for.
    pub rows: u64,
    /// Rows with those that filled the batches up.
    pub padded_rows: u64,
    /// The time with a batch in hand: writing, computing, waiting for the device, reading.
    pub busy: Duration,
    /// The time without.
    pub waiting: Duration,
}

/// [`ThreadCounters`] as they are counted; times in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct Counters {
    batches: AtomicU64,
    rows: AtomicU64,
    padded_rows: AtomicU64,
    busy: AtomicU64,
    waiting: AtomicU64,
}

impl Counters {
    pub(super) fn read(&self, device: Device) -> ThreadCounters {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ThreadCounters {
            device,
            batches: get(&self.batches),
            rows: get(&self.rows),
            padded_rows: get(&self.padded_rows),
            busy: Duration::from_nanos(get(&self.busy)),
            waiting: Duration::from_nanos(get(&self.waiting)),
        }
    }
}

/// The sizes that a device's memory has allowed so far, ascending; shared by the device's threads.
#[derive(Debug)]
pub(super) struct Sizes {
    allowed: Mutex<Vec<BatchSize>>,
    /// Held by the thread that is warming up: what it times is not to be disturbed by the others.
    warming_up: Mutex<()>,
}

impl Sizes {
    pub(super) fn new(mut sizes: Vec<BatchSize>) -> Self {
        sizes.sort_by_key(|size| size.rows);
        Self {
            allowed: Mutex::new(sizes),
            warming_up: Mutex::new(()),
        }
    }

    pub(super) fn get(&self) -> Vec<BatchSize> {
        let allowed = self.allowed.lock();
        allowed.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What is left when a batch of `size` rows was too large: sizes up to the half of it. None where the smallest was too
    /// large. The number is the new largest, and whether it is new: another thread may have met the limit before.
    fn halve(&self, size: usize) -> Option<(usize, bool)> {
        let allowed = self.allowed.lock();
        let mut allowed = allowed.unwrap_or_else(PoisonError::into_inner);
        let (smallest, largest) = (*allowed.first()?, allowed.last()?.rows);
        if largest < size {
            return Some((largest, false));
        }
        if size <= smallest.rows {
            return None;
        }
        allowed.retain(|other| other.rows <= size / 2);
        if allowed.is_empty() {
            allowed.push(smallest);
        }
        allowed.last().map(|largest| (largest.rows, true))
    }
}

/// A thread of the service, before it runs.
pub(super) struct Thread {
    pub(super) name: String,
    /// The place of its device among the devices.
    pub(super) index: usize,
    pub(super) device: Device,
    pub(super) queue: Arc<Queue>,
    pub(super) sizes: Arc<Sizes>,
    pub(super) counters: Arc<Counters>,
    pub(super) notes: Notes,
    pub(super) forward: Box<dyn Forward>,
}

/// Ends the service when its thread ends, for whatever reason: nobody waits for an answer that can't come.
struct EndsWithThread {
    queue: Arc<Queue>,
    device: Device,
}

impl Drop for EndsWithThread {
    fn drop(&mut self) {
        // Where there was a reason, it has been given before, and stays.
        let device = self.device;
        self.queue
            .end(&format!("device {device}: its evaluation thread has ended"));
    }
}

impl Thread {
    /// Evaluates batches until the service ends, or the device fails.
    pub(super) fn run(mut self) {
        super::super::device::apply_thread_count();
        let _no_grad = no_grad_guard();
        let _ends = EndsWithThread {
            queue: self.queue.clone(),
            device: self.device,
        };
        if let Err(reason) = self.serve() {
            self.queue.end(&reason);
        }
    }

    fn serve(&mut self) -> Result<(), String> {
        self.warm_up()?;
        loop {
            let began = Instant::now();
            let batch = self.queue.take(self.index, &self.sizes.get());
            let got = Instant::now();
            add_time(&self.counters.waiting, got - began);
            let Some(batch) = batch else {
                return Ok(());
            };
            self.evaluate(batch)?;
            add_time(&self.counters.busy, got.elapsed());
        }
    }

    /// Evaluates every size once: libtorch looks for the fastest way to compute a size when it first meets it, each thread
    /// for itself.
    fn warm_up(&mut self) -> Result<(), String> {
        if self.device == Device::Cpu {
            return Ok(());
        }
        let sizes = self.sizes.clone();
        let _alone = sizes.warming_up.lock();
        for size in sizes.get() {
            match self.forward.run(size.rows) {
                Ok(()) => {}
                Err(error) if is_out_of_memory(&error) => return self.halve(size.rows, &error),
                Err(error) => return Err(self.failure(&error)),
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, mut batch: Batch) -> Result<(), String> {
        match self.forward(&mut batch) {
            Ok(()) => {
                self.queue.done(self.index);
                let count = |counter: &AtomicU64, number: usize| {
                    counter.fetch_add(number as u64, Ordering::Relaxed)
                };
                count(&self.counters.batches, 1);
                count(&self.counters.rows, batch.rows);
                count(&self.counters.padded_rows, batch.size);
                batch.parts.into_iter().for_each(|part| part.answer());
                Ok(())
            }
            Err(error) if is_out_of_memory(&error) => {
                let size = batch.size;
                let halved = self.halve(size, &error);
                match &halved {
                    Ok(()) => self.queue.put_back(batch, self.index),
                    Err(reason) => batch.parts.into_iter().for_each(|part| part.fail(reason)),
                }
                halved
            }
            Err(error) => {
                let reason = self.failure(&error);
                batch.parts.into_iter().for_each(|part| part.fail(&reason));
                Err(reason)
            }
        }
    }

    fn forward(&mut self, batch: &mut Batch) -> Result<(), NetworkError> {
        let mut first = 0;
        for part in &batch.parts {
            self.forward.load(first, part.words())?;
            first += part.len();
        }
        self.forward.run(batch.size)?;
        let mut first = 0;
        for part in &mut batch.parts {
            let rows = part.len();
            self.forward.read(first, part.space(rows * ANSWER_FLOATS))?;
            first += rows;
        }
        Ok(())
    }

    fn failure(&self, error: &NetworkError) -> String {
        format!("device {}: {error}", self.device)
    }

    fn halve(&self, size: usize, error: &NetworkError) -> Result<(), String> {
        let (name, device) = (&self.name, self.device);
        match self.sizes.halve(size) {
            Some((largest, true)) => (self.notes)(&format!(
                "device {device}: out of memory with {size} rows of {name}; going on with at most {largest} rows a batch"
            )),
            Some((_, false)) => {}
            None => {
                return Err(format!(
                    "device {device}: out of memory with {size} rows of {name}, the smallest batch: {error}"
                ));
            }
        }
        Ok(())
    }
}

fn add_time(counter: &AtomicU64, time: Duration) {
    counter.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
}

/// Whether the device had no memory left. libtorch says so in words alone; cuDNN, when no way to compute finds room to work in, says
/// that there is no engine.
pub(in super::super) fn is_out_of_memory(error: &NetworkError) -> bool {
    let NetworkError::Torch(text) = error else {
        return false;
    };
    let text = text.to_lowercase();
    let words = [
        "out of memory",
        "alloc_failed",
        "can't allocate memory",
        "not enough memory",
        "unable to find an engine",
    ];
    words.iter().any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(rows: &[usize]) -> Sizes {
        let sizes = rows.iter().map(|&rows| BatchSize { rows, seconds: 1.0 });
        Sizes::new(sizes.collect())
    }

    #[test]
    fn the_largest_size_is_halved_down_to_the_smallest() {
        let allowed = sizes(&[128, 32, 64]);
        assert_eq!(allowed.halve(128), Some((64, true)));
        // The device's other thread had such a batch in hand as well.
        assert_eq!(allowed.halve(128), Some((64, false)));
        assert_eq!(allowed.halve(64), Some((32, true)));
        assert_eq!(allowed.halve(32), None);
        // Where the half is no size, the smallest is left.
        assert_eq!(sizes(&[48, 64]).halve(64), Some((48, true)));
        assert_eq!(sizes(&[]).halve(1), None);
    }

    #[test]
    fn libtorch_says_in_words_that_memory_is_out() {
        let says = |text: &str| is_out_of_memory(&NetworkError::Torch(text.into()));
        assert!(says("CUDA out of memory. Tried to allocate 2.00 GiB."));
        assert!(says("CUDA error: out of memory"));
        assert!(!says(
            "CUDA error: an illegal memory access was encountered"
        ));
    }
}
