//! A thread that evaluates batches on a device.

use super::super::error::{NetworkError, catch_panics};
use super::super::playing::ANSWER_FLOATS;
use super::queue::{DeviceBatch, NetworkId, Networks, Queue, Task};
use super::{Device, Forward, Notes};
use std::sync::Arc;
use std::time::Duration;

/// A thread of the service, before it runs.
pub(super) struct Thread {
    /// Its place among all threads.
    pub(super) number: usize,
    /// The place of its device among the devices.
    pub(super) place: usize,
    pub(super) device: Device,
    pub(super) queue: Arc<Queue>,
    pub(super) notes: Notes,
    pub(super) networks: Networks,
    /// How many times in a row memory did not hold the smallest batch.
    pub(super) shortages: u32,
}

/// How many times the smallest batch is tried again, and how long the first pause is; each is twice the one before. A network that
/// is being loaded, or another program, may have taken the memory for a moment.
const RETRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(100);

/// Gives a device up, and says what is left.
pub(super) fn lose(queue: &Queue, notes: &Notes, place: usize, device: Device, reason: &str) {
    let reason = format!("device {device} failed: {reason}");
    if let Some(note) = queue.lose(place, &reason) {
        notes(&note);
    }
}

impl Thread {
    /// Evaluates batches until the service ends, or the device fails.
    pub(super) fn run(mut self) {
        super::super::device::apply_thread_count();
        if let Err(reason) = self.serve() {
            self.lose(&reason);
        }
        if self.queue.is_lost(self.place) {
            // libtorch can't be trusted to free memory of a device that failed.
            std::mem::forget(self.networks);
        }
    }

    fn lose(&self, reason: &str) {
        lose(&self.queue, &self.notes, self.place, self.device, reason);
    }

    fn serve(&mut self) -> Result<(), String> {
        loop {
            match self.queue.take(self.number, self.place) {
                None => return Ok(()),
                Some(Task::Job(job)) => job(&mut self.networks)?,
                Some(Task::Evaluate(batch)) => self.evaluate(batch)?,
            }
        }
    }

    fn evaluate(&mut self, mut batch: DeviceBatch) -> Result<(), String> {
        let Some(forward) = self.networks.get_mut(&batch.network) else {
            self.queue.put_back(batch, self.place);
            return Err("a batch came for a network that is not loaded".into());
        };
        match catch_panics(|| run(forward.as_mut(), &mut batch)) {
            Ok(()) => {
                self.shortages = 0;
                self.queue.done(&batch, self.place);
                batch.parts.into_iter().for_each(|part| part.answer());
                Ok(())
            }
            Err(error) => {
                let (network, size) = (batch.network, batch.size);
                let result = match error.is_out_of_memory() {
                    true => self.halve(network, size, &error),
                    false => Err(error.to_string()),
                };
                // For the other devices, or for this one with smaller batches; or to be told why there are no answers.
                if let Err(reason) = &result {
                    self.lose(reason);
                }
                self.queue.put_back(batch, self.place);
                result
            }
        }
    }

    fn halve(
        &mut self,
        network: NetworkId,
        size: usize,
        error: &NetworkError,
    ) -> Result<(), String> {
        let device = self.device;
        match self.queue.halve(network, self.place, size) {
            Some((name, largest, true)) => (self.notes)(&format!(
                "device {device}: out of memory with {size} rows of {name}; batches have at most {largest} rows from now on ({error})"
            )),
            Some((_, _, false)) => {}
            None if self.shortages < RETRIES => {
                std::thread::sleep(PAUSE * 2u32.pow(self.shortages));
                self.shortages += 1;
            }
            None => {
                let name = self.queue.name(network);
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
        let rows = part.len();
        forward.read(first, part.space(rows * ANSWER_FLOATS))?;
        first += rows;
    }
    Ok(())
}
