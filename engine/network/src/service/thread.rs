//! A thread that evaluates batches on a device.

use super::queue::{DeviceBatch, NetworkId, Networks, Queue, Shortage, Task};
use crate::device::{Device, apply_thread_count};
use crate::error::{NetworkError, catch_panics};
use crate::packed::Forward;
use std::sync::Arc;
use std::time::Duration;

/// Called with messages for the user, from any thread of the service.
pub(super) type Notes = Arc<dyn Fn(&str) + Send + Sync>;

/// A thread of the service, before it runs.
pub(super) struct Thread {
    /// Its number among the threads of its device.
    pub(super) number: usize,
    /// The number of its device in the queue.
    pub(super) place: usize,
    pub(super) device: Device,
    pub(super) queue: Arc<Queue>,
    pub(super) notes: Notes,
    pub(super) networks: Networks,
    /// How many times in a row memory did not hold the smallest batch.
    pub(super) shortages: u32,
}

/// How many times the smallest batch is tried again, and how long the first pause is; each is twice the previous one. A network that
/// is being loaded, or another program, may have taken the memory for a moment.
const RETRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(100);

impl Thread {
    /// Evaluates batches until the service ends, or the device fails.
    pub(super) fn run(mut self) {
        apply_thread_count();
        if let Err(reason) = self.serve() {
            self.lose(&reason);
        }
        if self.queue.is_lost(self.place) {
            // libtorch can't be trusted to free memory of a device that failed.
            std::mem::forget(self.networks);
        }
    }

    fn lose(&self, reason: &str) {
        if let Some(note) = self.queue.lose(self.place, reason) {
            (self.notes)(&note);
        }
    }

    fn serve(&mut self) -> Result<(), String> {
        while let Some(task) = self.queue.take(self.place, self.number) {
            match task {
                Task::Job(job) => job(&mut self.networks)?,
                Task::Evaluate(batch) => self.evaluate(batch)?,
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, mut batch: DeviceBatch) -> Result<(), String> {
        let Some(forward) = self.networks.get_mut(&batch.network) else {
            self.queue.put_back(batch, self.place);
            return Err("a batch came for a network that is not loaded".into());
        };
        let Err(error) = catch_panics(|| run(forward.as_mut(), &mut batch)) else {
            self.shortages = 0;
            self.queue.done(&batch, self.place);
            batch.parts.into_iter().for_each(|part| part.answer());
            return Ok(());
        };
        let result = if error.is_out_of_memory() {
            self.halve(batch.network, batch.size, &error)
        } else {
            Err(error.to_string())
        };
        // Before the batch is put back for the other devices, or for this one with smaller batches: without another device its
        // clients get the reason.
        if let Err(reason) = &result {
            self.lose(reason);
        }
        self.queue.put_back(batch, self.place);
        result
    }

    fn halve(
        &mut self,
        network: NetworkId,
        size: usize,
        error: &NetworkError,
    ) -> Result<(), String> {
        let (name, shortage) = self.queue.halve(network, self.place, size);
        match shortage {
            Shortage::Halved(largest) => (self.notes)(&format!(
                "device {}: out of memory with {size} rows of {name}; batches have at most {largest} rows from now on ({error})",
                self.device
            )),
            Shortage::Known => {}
            Shortage::Smallest if self.shortages < RETRIES => {
                std::thread::sleep(PAUSE * 2u32.pow(self.shortages));
                self.shortages += 1;
            }
            Shortage::Smallest => {
                return Err(format!(
                    "out of memory with {size} rows of {name}, the smallest batch: {error}"
                ));
            }
        }
        Ok(())
    }
}

/// Evaluates a batch into its parts' space.
fn run(forward: &mut dyn Forward, batch: &mut DeviceBatch) -> Result<(), NetworkError> {
    let mut first = 0;
    for part in &batch.parts {
        forward.load(first, part.packed())?;
        first += part.len();
    }
    forward.run(batch.size)?;
    let mut first = 0;
    for part in &mut batch.parts {
        forward.read(first, part.space())?;
        first += part.len();
    }
    Ok(())
}
