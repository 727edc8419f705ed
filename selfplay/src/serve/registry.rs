//! Work in the background that requests start, watch, stop and resume: searches and analyses of games.

use super::error::{ApiError, ApiResult};
use super::threads::Threads;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Work without a listener or a request is stopped after this time: its page is closed.
pub(super) const ABANDONED_TIME: Duration = Duration::from_secs(60);

/// Where work stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum WorkState {
    Running,
    Done,
    Stopped,
    Failed,
}

/// Work that a registry holds. It stays for a while after its end.
pub(super) trait Work: Send + Sync + 'static {
    /// The limits of this kind of work, and its words.
    const KIND: Kind;

    fn is_running(&self) -> bool;

    /// Stops the work when it is set.
    fn stop(&self) -> &AtomicBool;

    /// Ends the work for a reason.
    fn fail(&self, reason: String);

    /// Whether it ended so long ago that it is removed before the most are kept.
    fn is_outdated(&self) -> bool {
        false
    }
}

/// A kind of work.
pub(super) struct Kind {
    /// The most that run at once.
    pub(super) most_running: usize,
    /// The most that are kept, those that run included.
    pub(super) most_kept: usize,
    /// One of them, in words.
    pub(super) name: &'static str,
    /// Several of them.
    pub(super) plural: &'static str,
    /// Another one.
    pub(super) another: &'static str,
    /// What they work on.
    pub(super) subject: &'static str,
}

/// All work of a kind. What runs is stopped and waited for when this is dropped.
pub(super) struct Registry<T: Work> {
    /// A thread of work may hold them, but not the registry, which waits for it.
    pub(super) entries: Arc<Mutex<Entries<T>>>,
    next: AtomicU64,
    threads: Threads,
}

/// The work by number.
pub(super) struct Entries<T>(BTreeMap<u64, Arc<T>>);

pub(super) fn lock<T>(entries: &Mutex<Entries<T>>) -> MutexGuard<'_, Entries<T>> {
    entries.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Work> Registry<T> {
    pub(super) fn new() -> Self {
        Self {
            entries: Arc::new(Mutex::new(Entries(BTreeMap::new()))),
            // Random, so that a page takes no other work for its own after the server was started again.
            next: AtomicU64::new(rand::random::<u32>().into()),
            threads: Threads::default(),
        }
    }

    /// A number for new work.
    pub(super) fn next_number(&self) -> u64 {
        self.next.fetch_add(1, Relaxed)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Entries<T>> {
        lock(&self.entries)
    }

    pub(super) fn find(&self, id: &str) -> ApiResult<Arc<T>> {
        self.lock().find(id)
    }

    /// Stops work.
    pub(super) fn stop(&self, id: &str) -> ApiResult<()> {
        self.find(id)?.stop().store(true, Relaxed);
        Ok(())
    }

    /// Stops all work, and waits for it.
    pub(super) fn end(&self) {
        self.threads.end(|| {
            for entry in self.lock().0.values() {
                entry.stop().store(true, Relaxed);
            }
        });
    }

    /// Works on a thread of its own.
    pub(super) fn run(
        &self,
        entry: &Arc<T>,
        work: impl FnOnce(&T) + Send + 'static,
    ) -> ApiResult<()> {
        let of_thread = Arc::clone(entry);
        let started = self.threads.start(T::KIND.name.into(), move || {
            let guard = PanicGuard(&*of_thread);
            work(guard.0);
        });
        started.map_err(|error| {
            let message = format!("can't start the {}'s thread: {error}", T::KIND.name);
            entry.fail(message.clone());
            ApiError::failed(message)
        })
    }
}

impl<T: Work> Drop for Registry<T> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<T: Work> Entries<T> {
    /// All work.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<T>> {
        self.0.values()
    }

    pub(super) fn find(&self, id: &str) -> ApiResult<Arc<T>> {
        let number = id.parse().ok();
        let found = number.and_then(|number: u64| self.0.get(&number).cloned());
        let Kind { name, another, .. } = T::KIND;
        found.ok_or_else(|| {
            ApiError::missing(format!(
                "there is no {name} {id}, or it ended long ago: start {another}"
            ))
        })
    }

    /// Refuses more work than may run at once.
    pub(super) fn check_room(&self) -> ApiResult<()> {
        let (most, plural) = (T::KIND.most_running, T::KIND.plural);
        if self.all().filter(|entry| entry.is_running()).count() < most {
            return Ok(());
        }
        Err(ApiError::busy(format!(
            "{most} {plural} run already, the most at once: stop one, or wait for its end"
        )))
    }

    /// Adds work, unless too much runs. The oldest that has ended makes room.
    pub(super) fn admit(&mut self, number: u64, entry: Arc<T>) -> ApiResult<()> {
        self.check_room()?;
        self.0.retain(|_, old| !old.is_outdated());
        while self.0.len() >= T::KIND.most_kept
            && let Some((&oldest, _)) = self.0.iter().find(|(_, old)| !old.is_running())
        {
            self.0.remove(&oldest);
        }
        self.0.insert(number, entry);
        Ok(())
    }
}

/// Ends the work of a thread that panics.
struct PanicGuard<'a, T: Work>(&'a T);

impl<T: Work> Drop for PanicGuard<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Kind { name, subject, .. } = T::KIND;
            self.0
                .fail(format!("the {name} panicked: please report the {subject}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Test {
        stop: AtomicBool,
        failure: Mutex<Option<String>>,
    }

    impl Work for Test {
        const KIND: Kind = Kind {
            most_running: 2,
            most_kept: 3,
            name: "test",
            plural: "tests",
            another: "another",
            subject: "test",
        };

        fn is_running(&self) -> bool {
            self.failure.lock().unwrap().is_none()
        }

        fn stop(&self) -> &AtomicBool {
            &self.stop
        }

        fn fail(&self, reason: String) {
            *self.failure.lock().unwrap() = Some(reason);
        }
    }

    #[test]
    fn work_is_bounded_and_the_oldest_that_has_ended_makes_room() {
        let registry = Registry::<Test>::new();
        let begin = || {
            let (number, entry) = (registry.next_number(), Arc::new(Test::default()));
            registry.lock().admit(number, Arc::clone(&entry))?;
            Ok::<_, ApiError>((number.to_string(), entry))
        };
        let (first, of_first) = begin().unwrap();
        for _ in 0..3 {
            begin().unwrap().1.fail("ended".into());
        }
        assert_eq!(registry.lock().all().count(), 3);
        registry.find(&first).unwrap();
        let (second, of_second) = begin().unwrap();
        assert!(begin().is_err_and(|error| error.message().starts_with("2 tests run already")));
        registry.stop(&second).unwrap();
        assert!(of_second.stop.load(Relaxed) && !of_first.stop.load(Relaxed));
        assert!(
            registry
                .find("x")
                .is_err_and(|error| error.message().contains("no test x"))
        );
        drop(registry);
        assert!(of_first.stop.load(Relaxed));
    }

    #[test]
    fn work_that_panics_has_failed() {
        let (registry, entry) = (Registry::<Test>::new(), Arc::new(Test::default()));
        registry.run(&entry, |_| panic!("on purpose")).unwrap();
        drop(registry);
        let failure = entry.failure.lock().unwrap();
        assert_eq!(
            failure.as_deref(),
            Some("the test panicked: please report the test")
        );
    }
}
