//! Waiting for games until a stop is requested.

use engine::progress::{in_words, say};
use engine::stop::Stop;
use std::time::{Duration, Instant};

/// The time between two looks at the folder of shards.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// The time between two messages of a wait.
const REMINDER_INTERVAL: Duration = Duration::from_mins(10);

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
