//! What waits to be evaluated, and who takes it.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::super::packed::ROW_WORDS;
use super::BatchSize;

/// While another batch of the device computes, an incomplete one is sent no earlier than after this share of that one's time:
/// early enough to be there when the device is free, and late enough for more rows to join.
const PATIENCE: f64 = 0.5;

/// The answers to some rows of a request, from `first` on, or why there are none.
pub(super) type Reply = Result<(usize, Vec<f32>), String>;

/// Some rows of a request. However it ends, its client gets a reply.
#[derive(Debug)]
pub(super) struct Part {
    /// The whole request: `[rows, ROW_WORDS]`.
    packed: Arc<Vec<i64>>,
    /// Which rows of the request these are.
    rows: Range<usize>,
    /// For the answers; what it holds does not matter.
    space: Vec<f32>,
    /// None when it has been answered.
    reply: Option<Sender<Reply>>,
}

impl Part {
    /// A whole request of `rows` rows.
    pub(super) fn new(
        packed: Arc<Vec<i64>>,
        rows: usize,
        space: Vec<f32>,
        reply: Sender<Reply>,
    ) -> Self {
        Self {
            packed,
            rows: 0..rows,
            space,
            reply: Some(reply),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Its packed rows.
    pub(super) fn words(&self) -> &[i64] {
        &self.packed[self.rows.start * ROW_WORDS..self.rows.end * ROW_WORDS]
    }

    /// Room for `floats` numbers.
    pub(super) fn space(&mut self, floats: usize) -> &mut [f32] {
        self.space.resize(floats, 0.0);
        &mut self.space
    }

    /// Cuts off the first `count` rows.
    fn split(&mut self, count: usize) -> Self {
        let middle = self.rows.start + count;
        let first = Self {
            packed: self.packed.clone(),
            rows: self.rows.start..middle,
            space: Vec::new(),
            reply: self.reply.clone(),
        };
        self.rows.start = middle;
        first
    }

    /// Sends what stands in the space.
    pub(super) fn answer(mut self) {
        let (first, space) = (self.rows.start, std::mem::take(&mut self.space));
        self.send(Ok((first, space)));
    }

    pub(super) fn fail(mut self, reason: &str) {
        self.send(Err(reason.to_owned()));
    }

    fn send(&mut self, reply: Reply) {
        // Given back first, so that the client finds its buffer free.
        self.packed = Arc::default();
        if let Some(sender) = self.reply.take() {
            // A client that is gone wants no answer.
            let _ = sender.send(reply);
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.reply.is_some() {
            self.send(Err("the evaluation was given up".into()));
        }
    }
}

/// The rows of one batch.
#[derive(Debug)]
pub(super) struct Batch {
    /// In the order in which they stand in the batch.
    pub(super) parts: Vec<Part>,
    /// Together.
    pub(super) rows: usize,
    /// With the padding.
    pub(super) size: usize,
}

/// What a device's threads know of each other.
#[derive(Debug, Clone, Copy, Default)]
struct Flights {
    count: usize,
    /// Until when an incomplete batch waits while another computes.
    patience: Option<Instant>,
}

#[derive(Debug, Default)]
struct State {
    parts: VecDeque<Part>,
    /// Of all parts.
    rows: usize,
    flights: Vec<Flights>,
    /// Why nothing more is evaluated.
    ended: Option<String>,
}

/// What waits, first come, first served; shared by the clients and all threads of all devices.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

impl Queue {
    pub(super) fn new(devices: usize) -> Self {
        let state = State {
            flights: vec![Flights::default(); devices],
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

    /// Adds a request at the end.
    pub(super) fn push(&self, part: Part) {
        let mut state = self.lock();
        if let Some(reason) = &state.ended {
            let reason = reason.clone();
            drop(state);
            return part.fail(&reason);
        }
        state.rows += part.len();
        state.parts.push_back(part);
        drop(state);
        self.changed.notify_all();
    }

    /// Puts back a batch that could not be evaluated, before all others.
    pub(super) fn put_back(&self, batch: Batch, device: usize) {
        let mut state = self.lock();
        state.flights[device].count -= 1;
        if let Some(reason) = &state.ended {
            let reason = reason.clone();
            drop(state);
            batch.parts.into_iter().for_each(|part| part.fail(&reason));
            return;
        }
        state.rows += batch.rows;
        for part in batch.parts.into_iter().rev() {
            state.parts.push_front(part);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Ends everything: what waits and what comes later gets this reason.
    pub(super) fn end(&self, reason: &str) {
        let mut state = self.lock();
        let reason = state.ended.get_or_insert_with(|| reason.to_owned()).clone();
        let waiting = std::mem::take(&mut state.parts);
        state.rows = 0;
        drop(state);
        self.changed.notify_all();
        waiting.into_iter().for_each(|part| part.fail(&reason));
    }

    /// Waits for work for a device, whose sizes these are, ascending. None when everything has ended.
    ///
    /// A device that computes nothing gets what there is. While one of its batches computes, the next is filled, or at least
    /// not sent before half of that one's time is over.
    pub(super) fn take(&self, device: usize, sizes: &[BatchSize]) -> Option<Batch> {
        let largest = sizes.last()?.rows;
        let mut state = self.lock();
        loop {
            if state.ended.is_some() {
                return None;
            }
            let flights = state.flights[device];
            let patience = flights
                .patience
                .filter(|_| flights.count > 0 && state.rows < largest)
                .map_or(Duration::ZERO, |until| {
                    until.saturating_duration_since(Instant::now())
                });
            if state.rows == 0 {
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            } else if patience > Duration::ZERO {
                let woken = self.changed.wait_timeout(state, patience);
                state = woken.unwrap_or_else(PoisonError::into_inner).0;
            } else {
                let size = choose(sizes, state.rows)?;
                state.flights[device] = Flights {
                    count: flights.count + 1,
                    patience: Some(
                        Instant::now() + Duration::from_secs_f64(size.seconds * PATIENCE),
                    ),
                };
                return Some(state.cut(size.rows));
            }
        }
    }

    #[cfg(test)]
    pub(super) fn rows_waiting(&self) -> usize {
        self.lock().rows
    }

    /// Notes that a batch of a device is done.
    pub(super) fn done(&self, device: usize) {
        self.lock().flights[device].count -= 1;
        self.changed.notify_all();
    }
}

impl State {
    /// The first rows, as many as there are and fit.
    fn cut(&mut self, size: usize) -> Batch {
        let mut batch = Batch {
            parts: Vec::new(),
            rows: 0,
            size,
        };
        while let Some(mut part) = self.parts.pop_front() {
            let room = size - batch.rows;
            if part.len() > room {
                let first = (room > 0).then(|| part.split(room));
                batch.rows += first.as_ref().map_or(0, Part::len);
                batch.parts.extend(first);
                self.parts.push_front(part);
                break;
            }
            batch.rows += part.len();
            batch.parts.push(part);
        }
        self.rows -= batch.rows;
        batch
    }
}

/// The size that evaluates most rows a second when so many wait; of equals the largest.
fn choose(sizes: &[BatchSize], waiting: usize) -> Option<BatchSize> {
    let rate = |size: &BatchSize| size.rows.min(waiting) as f64 / size.seconds.max(1e-9);
    sizes
        .iter()
        .copied()
        .max_by(|a, b| rate(a).total_cmp(&rate(b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn sizes(pairs: &[(usize, f64)]) -> Vec<BatchSize> {
        let sizes = pairs
            .iter()
            .map(|&(rows, seconds)| BatchSize { rows, seconds });
        sizes.collect()
    }

    #[test]
    fn the_size_is_what_evaluates_most_rows_a_second() {
        // A processor: the time grows with the rows, and padding costs as much as rows do.
        let processor = sizes(&[(1, 0.01), (8, 0.08), (32, 0.32)]);
        // A GPU: small batches cost as much as middling ones.
        let gpu = sizes(&[(32, 1e-3), (128, 1.1e-3), (512, 3e-3)]);
        for (sizes, waiting, size) in [
            (&processor, 1, 1),
            (&processor, 7, 1),
            (&processor, 9, 8),
            (&processor, 500, 32),
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

    #[test]
    fn an_incomplete_batch_waits_while_another_computes() {
        let queue = Queue::new(2);
        let (sender, _replies) = channel();
        let push = |rows| {
            let packed = Arc::new(vec![0; rows * ROW_WORDS]);
            queue.push(Part::new(packed, rows, Vec::new(), sender.clone()));
        };
        let sizes = sizes(&[(4, 1e5)]);
        let rows = |device| queue.take(device, &sizes).unwrap().rows;
        push(1);
        assert_eq!(rows(0), 1, "an idle device takes what there is");
        std::thread::scope(|scope| {
            push(2);
            let next = scope.spawn(|| rows(0));
            std::thread::sleep(Duration::from_millis(20));
            push(2);
            assert_eq!(next.join().unwrap(), 4, "filled while it waited");
            queue.done(0);
            push(1);
            let next = scope.spawn(|| rows(0));
            std::thread::sleep(Duration::from_millis(20));
            let waiting = queue.rows_waiting();
            queue.done(0);
            assert_eq!(waiting, 1);
            assert_eq!(next.join().unwrap(), 1, "sent when the device is idle");
            push(3);
            assert_eq!(rows(1), 3, "another device is idle");
        });
    }

    #[test]
    fn requests_are_served_in_order_and_cut_to_size() {
        let queue = Queue::new(1);
        let (sender, replies) = channel();
        for (rows, mark) in [(3, 10), (6, 20), (1, 30)] {
            let words = (0..rows).flat_map(|row| [mark + row as i64; ROW_WORDS]);
            let packed = Arc::new(words.collect());
            queue.push(Part::new(packed, rows, Vec::new(), sender.clone()));
        }
        let four = sizes(&[(4, 1e-3)]);
        let marks = |batch: &Batch| -> Vec<i64> {
            let words = batch.parts.iter().flat_map(Part::words);
            words.copied().step_by(ROW_WORDS).collect()
        };
        let first = queue.take(0, &four).unwrap();
        assert_eq!((first.rows, first.size), (4, 4));
        assert_eq!(marks(&first), [10, 11, 12, 20]);
        queue.put_back(first, 0);
        let first = queue.take(0, &four).unwrap();
        assert_eq!(marks(&first), [10, 11, 12, 20]);
        let second = queue.take(0, &four).unwrap();
        assert_eq!(marks(&second), [21, 22, 23, 24]);
        let third = queue.take(0, &four).unwrap();
        assert_eq!(marks(&third), [25, 30]);
        assert_eq!(third.size, 4);

        second.parts.into_iter().for_each(Part::answer);
        assert_eq!(replies.recv().unwrap(), Ok((1, vec![])));
        drop(third);
        assert!(replies.recv().unwrap().is_err() && replies.recv().unwrap().is_err());
        queue.end("it is over");
        assert!(queue.take(0, &four).is_none());
    }
}
