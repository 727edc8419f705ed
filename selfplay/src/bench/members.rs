//! The bench's worker threads: all do the same at the same time.

use super::worker::{Done, Task, Worker};
use crate::generate::worker::GenerationTask;
use anyhow::{Result, bail};
use engine::record::GameRecord;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Scope, ScopedJoinHandle};

/// The worker threads. They end when this is dropped.
pub(super) struct Workers<'a> {
    members: Vec<Member<'a>>,
}

impl<'a> Workers<'a> {
    /// So many workers, who hand over the games that they finish. They return early from a task once `stop` is set.
    pub(super) fn start<'e>(
        scope: &'a Scope<'a, 'e>,
        threads: usize,
        work: &'e GenerationTask,
        stop: &'e AtomicBool,
        finished: Sender<GameRecord>,
    ) -> Self {
        let start = |_| Member::start(scope, work, stop, finished.clone());
        Self {
            members: (0..threads).map(start).collect(),
        }
    }

    /// Has all workers do the same, and says what each has done.
    pub(super) fn perform(&self, task: Task) -> Result<Vec<Done>> {
        for member in &self.members {
            // One that is gone has left its reason.
            let _ = member.tasks.send(task);
        }
        let results: Vec<Result<Done>> = self
            .members
            .iter()
            .map(|member| {
                let result = member.results.recv();
                result.unwrap_or_else(|_| bail!("a worker thread panicked"))
            })
            .collect();
        results.into_iter().collect()
    }
}

struct Member<'a> {
    tasks: Sender<Task>,
    results: Receiver<Result<Done>>,
    _thread: ScopedJoinHandle<'a, ()>,
}

impl<'a> Member<'a> {
    fn start<'e>(
        scope: &'a Scope<'a, 'e>,
        work: &'e GenerationTask,
        stop: &'e AtomicBool,
        finished: Sender<GameRecord>,
    ) -> Self {
        let (tasks, orders) = channel();
        let (outbox, results) = channel();
        let thread = scope.spawn(move || {
            let mut worker = match Worker::new(work, finished) {
                Ok(worker) => worker,
                Err(error) => {
                    let _ = outbox.send(Err(error));
                    return;
                }
            };
            while let Ok(task) = orders.recv() {
                if outbox.send(worker.perform(task, stop)).is_err() {
                    return;
                }
            }
        });
        Self {
            tasks,
            results,
            _thread: thread,
        }
    }
}
