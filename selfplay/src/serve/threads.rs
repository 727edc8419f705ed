//! The threads of searches and analyses.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

/// Threads that are waited for when this is dropped. The program may end only then: libtorch frees its tables at the end, and a thread
/// that still evaluates a network would crash.
pub(super) struct Threads(Mutex<Option<Vec<JoinHandle<()>>>>);

impl Default for Threads {
    fn default() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }
}

impl Threads {
    /// Starts a thread.
    ///
    /// # Errors
    /// The system has no thread, or [`end`](Self::end) was called: a request that hung may come after the end.
    pub(super) fn start(
        &self,
        name: String,
        work: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let mut threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(threads) = &mut *threads else {
            return Err(io::Error::other("the server ends"));
        };
        threads.retain(|thread| !thread.is_finished());
        threads.push(Builder::new().name(name).spawn(work)?);
        Ok(())
    }

    /// Lets no other start from now on, tells those that run to stop, and waits for them.
    pub(super) fn end(&self, stop: impl FnOnce()) {
        let threads = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        stop();
        for thread in threads.into_iter().flatten() {
            // A panic has been printed, and has ended its search.
            let _ = thread.join();
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.end(|| ());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    use std::time::Duration;

    #[test]
    fn all_threads_have_ended_when_it_is_dropped() {
        let (threads, ended) = (Threads::default(), Arc::new(AtomicU32::new(0)));
        for number in 0..3 {
            let ended = Arc::clone(&ended);
            let work = move || {
                std::thread::sleep(Duration::from_millis(50));
                ended.fetch_add(1, Relaxed);
            };
            threads.start(format!("test-{number}"), work).unwrap();
        }
        threads.end(|| ());
        assert_eq!(ended.load(Relaxed), 3);
        threads.start("late".into(), || ()).unwrap_err();
    }
}
