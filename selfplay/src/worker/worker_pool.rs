//! The worker threads of a program. They end when the work is done, after a failure, or when the user stops the program.

use crate::worker::devices::DeviceArguments;
use anyhow::{Result, anyhow, bail};
use clap::Args;
use engine::stop::{Stop, StopArguments};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// The devices and the number of worker threads, and how they stop.
#[derive(Debug, Clone, Args)]
pub(crate) struct WorkerArguments {
    #[command(flatten)]
    pub(crate) device: DeviceArguments,
    /// Worker threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    #[command(flatten)]
    pub(crate) stop: StopArguments,
}

impl WorkerArguments {
    /// The number of worker threads.
    pub(crate) fn threads(&self) -> usize {
        match self.threads {
            Some(threads) => threads.into(),
            None => cores(),
        }
    }

    /// The games that each worker plays at once: its share of `games`, `limit` at most.
    pub(crate) fn games_in_flight(&self, games: u64, limit: u32) -> usize {
        games.div_ceil(self.threads() as u64).min(limit.into()) as usize
    }
}

/// The number of threads that the machine runs at once.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs `work` on several threads and passes each item that they send to `take`; `None` every 200 ms without an item. Returns the
/// workers' results.
///
/// `stop` is set for the workers when a stop of the program is `requested`, when a worker fails, and when `take` fails.
pub(crate) fn run<T: Send, W: Send>(
    threads: usize,
    stop: &AtomicBool,
    requested: &Stop,
    work: impl Fn(&Sender<T>) -> Result<W> + Sync,
    mut take: impl FnMut(Option<T>) -> Result<()>,
) -> Result<Vec<W>> {
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        let start = |sender: Sender<T>| {
            let work = &work;
            std::thread::Builder::new().spawn_scoped(scope, move || {
                let guard = StopOnDrop(stop);
                let result = work(&sender);
                if result.is_ok() {
                    std::mem::forget(guard);
                }
                result
            })
        };
        let started = (0..threads).map(|_| start(sender.clone()));
        let workers: Vec<_> = started.collect::<io::Result<_>>().map_err(|error| {
            // The others are waited for.
            stop.store(true, Relaxed);
            anyhow!("can't start {threads} worker threads: {error}; set --threads lower")
        })?;
        drop(sender);
        let mut taken = Ok(());
        while taken.is_ok() {
            taken = match receiver.recv_timeout(Duration::from_millis(200)) {
                Ok(item) => take(Some(item)),
                Err(RecvTimeoutError::Timeout) => take(None),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if requested.is_requested() {
                stop.store(true, Relaxed);
            }
        }
        stop.store(true, Relaxed);
        drop(receiver);
        let results: Vec<Result<W>> = workers
            .into_iter()
            .map(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|_| bail!("a worker thread panicked, with the message above"))
            })
            .collect();
        taken?;
        results.into_iter().collect()
    })
}

/// Stops all workers when a worker fails or panics.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_sent_items_are_taken() {
        let stop = AtomicBool::new(false);
        let mut sum = 0;
        let results = run(
            3,
            &stop,
            &Stop::default(),
            |sender| {
                (1..=100).for_each(|number| sender.send(number).unwrap());
                Ok(7)
            },
            |item| {
                sum += item.unwrap_or(0);
                Ok(())
            },
        );
        assert_eq!(results.unwrap(), [7, 7, 7]);
        assert_eq!(sum, 3 * 5_050);
    }

    #[test]
    fn a_failure_on_either_side_stops_all_workers() {
        let wait = |stop: &AtomicBool| {
            while !stop.load(Relaxed) {
                std::thread::yield_now();
            }
        };
        let first = AtomicBool::new(true);
        let stop = AtomicBool::new(false);
        let work = |_: &Sender<u8>| {
            if first.swap(false, Relaxed) {
                bail!("the first worker failed");
            }
            wait(&stop);
            Ok(())
        };
        assert_eq!(
            run(2, &stop, &Stop::default(), work, |_| Ok(()))
                .unwrap_err()
                .to_string(),
            "the first worker failed"
        );
        let stop = AtomicBool::new(false);
        let work = |sender: &Sender<u8>| {
            // The other worker's item may have ended the run already.
            let _ = sender.send(1);
            wait(&stop);
            Ok(())
        };
        let take = |item: Option<u8>| {
            if item.is_some() {
                bail!("can't take it")
            } else {
                Ok(())
            }
        };
        assert_eq!(
            run(2, &stop, &Stop::default(), work, take)
                .unwrap_err()
                .to_string(),
            "can't take it"
        );
    }
}
