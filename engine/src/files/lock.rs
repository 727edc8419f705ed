//! Locks between programs, also on other machines if the file system has locks.

use super::uninterrupted;
use crate::stop::Stop;
use rustix::io::Errno;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The file system does not keep two programs from holding a lock.
#[derive(Debug, thiserror::Error)]
#[error(
    "locks do not work in this folder, and two programs could do the same work: use a file system with locks, such as NFS 4"
)]
struct NoLocks;

/// A locked file: no other program has its lock until this is dropped or the program ends, however it ends. The file stays, for a
/// lock whose file is removed can be held twice.
#[derive(Debug)]
pub struct FileLock {
    file: File,
}

impl FileLock {
    /// How long [`take`](Self::take) usually waits: a shared file system may keep the lock of a program that has ended for a while,
    /// as NFS 4 does for 90 seconds.
    pub const TIMEOUT: Duration = Duration::from_mins(3);

    /// One that looks at a lock holds it for an instant: a lock that is not free is tried so often again, with this pause.
    const TRIES: u32 = 30;
    const PAUSE: Duration = Duration::from_millis(10);

    /// Takes the lock of a file, which is made if it is missing; none if another program holds it.
    ///
    /// # Errors
    /// What the system says. Locks don't work there.
    pub fn try_take(path: &Path) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).open(path)?;
        if !is_locked_by(|| file.try_lock())? {
            return Ok(None);
        }
        // Another try fails where locks work.
        let again = File::open(path)?;
        if is_locked_by(|| again.try_lock_shared())? {
            Err(io::Error::new(io::ErrorKind::Unsupported, NoLocks))
        } else {
            Ok(Some(Self { file }))
        }
    }

    /// As [`try_take`](Self::try_take), and tries again for a moment: one that looks whether it is held holds it for an instant.
    pub fn take_soon(path: &Path) -> io::Result<Option<Self>> {
        for _ in 0..Self::TRIES {
            if let Some(taken) = Self::try_take(path)? {
                return Ok(Some(taken));
            }
            sleep(Self::PAUSE);
        }
        Self::try_take(path)
    }

    /// As [`try_take`](Self::try_take), and waits while another program holds it; none if it still does after this time, or a stop is
    /// requested. Before it waits, it calls `waits`.
    pub fn take(
        path: &Path,
        timeout: Duration,
        stop: &Stop,
        waits: impl FnOnce(),
    ) -> io::Result<Option<Self>> {
        const RETRY: Duration = Duration::from_millis(500);
        if let Some(taken) = Self::take_soon(path)? {
            return Ok(Some(taken));
        }
        waits();
        let begun = Instant::now();
        while begun.elapsed() < timeout && stop.sleep(RETRY.min(timeout)) {
            if let Some(taken) = Self::try_take(path)? {
                return Ok(Some(taken));
            }
        }
        Ok(None)
    }

    /// Whether a program holds the lock of a file. To see it, the lock is held for an instant.
    ///
    /// # Errors
    /// What the system says.
    pub fn is_held(path: &Path) -> io::Result<bool> {
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            file => file?,
        };
        Ok(!is_locked_by(|| file.try_lock_shared())?)
    }

    /// The file.
    pub fn as_file(&self) -> &File {
        &self.file
    }
}

/// Whether a call has taken a lock; it has not if another holder has it.
fn is_locked_by(lock: impl Fn() -> Result<(), TryLockError>) -> io::Result<bool> {
    let taken = uninterrupted(|| match lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    });
    taken.map_err(without_locks)
}

/// Says in words that a file system has no locks.
fn without_locks(error: io::Error) -> io::Error {
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    let none = [Errno::NOLCK, Errno::NOSYS, Errno::OPNOTSUPP];
    if code.is_some_and(|code| none.contains(&code)) {
        io::Error::new(io::ErrorKind::Unsupported, NoLocks)
    } else {
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    #[test]
    fn one_program_has_a_lock_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        assert!(!FileLock::is_held(&path).unwrap());
        let taken = FileLock::try_take(&path).unwrap().unwrap();
        assert!(FileLock::is_held(&path).unwrap());
        assert!(FileLock::take_soon(&path).unwrap().is_none());
        drop(taken);
        assert!(!FileLock::is_held(&path).unwrap());
        let missing = folder.path().join("missing/x.lock");
        assert!(!FileLock::is_held(&missing).unwrap());
        let error = FileLock::try_take(&missing).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_held_lock_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        let stop = Stop::default();
        let waits = AtomicU32::new(0);
        let take = |timeout| {
            let count = || {
                waits.fetch_add(1, Relaxed);
            };
            FileLock::take(&path, timeout, &stop, count).unwrap()
        };
        let taken = take(FileLock::TIMEOUT).unwrap();
        assert_eq!(waits.load(Relaxed), 0);
        assert!(take(Duration::from_millis(1)).is_none());
        assert_eq!(waits.load(Relaxed), 1);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| take(FileLock::TIMEOUT));
            while waits.load(Relaxed) < 2 {
                sleep(Duration::from_millis(1));
            }
            drop(taken);
            let _taken = waiting.join().unwrap().unwrap();
            let waiting = scope.spawn(|| take(FileLock::TIMEOUT));
            while waits.load(Relaxed) < 3 {
                sleep(Duration::from_millis(1));
            }
            stop.request();
            assert!(waiting.join().unwrap().is_none());
        });
    }
}
