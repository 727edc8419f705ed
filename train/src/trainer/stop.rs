//! The request to stop, from the user or from a part of the program that failed; and waiting for games until it comes.

use engine::progress::{in_words, say};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The time between two looks at the folder of shards.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// The time between two looks at whether a stop is requested.
const STOP_INTERVAL: Duration = Duration::from_millis(50);

/// The time between two messages of a wait.
const REMINDER_INTERVAL: Duration = Duration::from_mins(10);

/// Whether a stop is requested.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop {
    by_user: Arc<AtomicBool>,
    /// Apart from the user's, whose second request ends the program at once.
    by_program: Arc<AtomicBool>,
}

impl Stop {
    /// Listens for Ctrl-C, SIGTERM and a closed terminal: the first one requests a stop, a second one ends the program at once.
    pub(crate) fn listen() -> std::io::Result<Self> {
        let stop = Self::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // The order matters: only the second signal finds the flag set.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop.by_user))?;
            flag::register(signal, Arc::clone(&stop.by_user))?;
        }
        Ok(stop)
    }

    /// Requests that all parts of the program stop.
    pub(crate) fn request(&self) {
        self.by_program.store(true, Relaxed);
    }

    /// Whether a stop is requested.
    pub(crate) fn is_requested(&self) -> bool {
        self.by_user.load(Relaxed) || self.by_program.load(Relaxed)
    }

    /// Sleeps; false, and earlier, if a stop is requested.
    pub(crate) fn sleep(&self, time: Duration) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < time && !self.is_requested() {
            std::thread::sleep(STOP_INTERVAL);
        }
        !self.is_requested()
    }
}

/// A wait for games, with a message when it begins and now and then while it lasts.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    begun: Option<Instant>,
    last_message: Option<Instant>,
}

impl Waiting {
    /// Waits until it is time for the next look; `missing` is what for, in words. False if a stop is requested.
    pub(crate) fn wait(&mut self, missing: &str, stop: &Stop) -> bool {
        let now = Instant::now();
        let begun = *self.begun.get_or_insert(now);
        if self
            .last_message
            .is_none_or(|last| now - last >= REMINDER_INTERVAL)
        {
            self.last_message = Some(now);
            let so_far = match now - begun {
                Duration::ZERO => String::new(),
                so_far => format!(" for {}", in_words(so_far)),
            };
            say(&format!("waiting for games{so_far}: {missing}"));
        }
        stop.sleep(LOOK_INTERVAL)
    }

    /// The time since the wait began.
    pub(crate) fn time(&self) -> Duration {
        self.begun.map_or(Duration::ZERO, |begun| begun.elapsed())
    }
}
