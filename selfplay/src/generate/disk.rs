//! Disk space, and waiting while nothing can be written.

use anyhow::Result;
use engine::progress::say;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Interval between attempts to write.
pub(super) const RETRY: Duration = Duration::from_secs(1);

/// Interval between checks of the user's stop.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The bytes that can still be written where a folder is; none where the system doesn't say.
pub(super) fn bytes_free(folder: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// A turn was not journalled: the disk was full, and the user asked to stop. The resumed game plays it again.
#[derive(Debug, thiserror::Error)]
#[error("stopped while the disk had no space")]
pub(crate) struct StoppedWhileWaiting;

/// Threads that wait until they can write: a full disk neither loses a turn nor ends the generator.
#[derive(Debug)]
pub(crate) struct WriteQueue {
    stop: Arc<AtomicBool>,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Threads that wait now.
    count: usize,
    /// The error of the first of them.
    reason: Option<String>,
}

impl WriteQueue {
    /// The message when writing works again.
    pub(super) const RESUMED: &str = "resumed: it could be written";

    /// The message when a thread begins to wait.
    pub(super) fn pause_message(reason: &str) -> String {
        format!("paused, nothing is lost: {reason}; resumes as soon as it can be written")
    }

    /// Threads stop waiting when `stop` is set.
    pub(crate) fn new(stop: Arc<AtomicBool>) -> Self {
        Self {
            stop,
            waiting: Mutex::default(),
        }
    }

    /// Why a thread waits, if one does.
    pub(crate) fn reason(&self) -> Option<String> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.reason.clone()
    }

    /// Writes, and repeats that while its error is temporary.
    ///
    /// # Errors
    /// An error that is not temporary; [`StoppedWhileWaiting`] where the user asked to stop.
    pub(crate) fn write<T, E: std::error::Error + Send + Sync + 'static>(
        &self,
        mut write: impl FnMut() -> Result<T, E>,
        is_temporary: impl Fn(&E) -> bool,
    ) -> Result<T> {
        let error = match write() {
            Ok(written) => return Ok(written),
            Err(error) if is_temporary(&error) => error,
            Err(error) => return Err(error.into()),
        };
        let _place = self.enter(&error.to_string());
        loop {
            let begun = Instant::now();
            while begun.elapsed() < RETRY {
                if self.stop.load(Relaxed) {
                    return Err(StoppedWhileWaiting.into());
                }
                std::thread::sleep(CHECK_INTERVAL);
            }
            match write() {
                Ok(written) => return Ok(written),
                Err(error) if is_temporary(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The thread waits until the result is dropped. The first one prints its reason.
    fn enter(&self, reason: &str) -> QueuePlace<'_> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.count == 0 {
            say(&Self::pause_message(reason).to_string());
            waiting.reason = Some(reason.to_owned());
        }
        waiting.count += 1;
        QueuePlace(self)
    }
}

/// A thread's place in the queue.
struct QueuePlace<'a>(&'a WriteQueue);

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        let queue = self.0;
        let mut waiting = queue.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.count -= 1;
        if waiting.count == 0 {
            waiting.reason = None;
            if !queue.stop.load(Relaxed) {
                say(WriteQueue::RESUMED);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::files::is_temporary;
    use std::io;

    #[test]
    fn temporary_errors_are_retried_and_others_are_not() {
        let queue = WriteQueue::new(Arc::default());
        let mut attempts = 0;
        let result = queue.write(
            || {
                attempts += 1;
                assert_eq!(queue.reason().is_some(), attempts > 1);
                match attempts {
                    1 => Err(io::Error::from(io::ErrorKind::StorageFull)),
                    _ => Ok(attempts),
                }
            },
            is_temporary,
        );
        assert_eq!(result.unwrap(), 2);
        assert_eq!(queue.reason(), None);
        let fatal = || Err::<(), _>(io::Error::from(io::ErrorKind::InvalidInput));
        assert!(queue.write(fatal, is_temporary).is_err());
    }

    #[test]
    fn a_stop_ends_the_wait() {
        let stop = Arc::new(AtomicBool::new(true));
        let queue = WriteQueue::new(stop);
        let full = || Err::<(), _>(io::Error::from(io::ErrorKind::StorageFull));
        let error = queue.write(full, is_temporary).unwrap_err();
        assert!(error.is::<StoppedWhileWaiting>());
        assert_eq!(queue.reason(), None);
    }
}
