//! Waiting for games that others make.

use crate::trainer::stop::Stop;
use engine::progress::{in_words, say};
use std::time::{Duration, Instant};

/// Between two looks at the folder of shards.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// Between two looks at whether the user wants to stop.
const STOP_INTERVAL: Duration = Duration::from_millis(50);

/// How often it is said anew that the trainer waits.
const REMINDER_INTERVAL: Duration = Duration::from_mins(10);

/// A wait: it is said when it begins, and now and then while it lasts.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    begun: Option<Instant>,
    said: Option<Instant>,
}

impl Waiting {
    /// Waits until it is time for the next look. `missing` says what for. False if the user asked to stop.
    pub(crate) fn wait(&mut self, missing: &str, stop: &Stop) -> bool {
        let now = Instant::now();
        let begun = *self.begun.get_or_insert(now);
        if self.said.is_none_or(|said| now - said >= REMINDER_INTERVAL) {
            self.said = Some(now);
            match now - begun {
                Duration::ZERO => say(&format!("waiting for games: {missing}")),
                so_far => say(&format!(
                    "waiting for games for {}: {missing}",
                    in_words(so_far)
                )),
            }
        }
        while now.elapsed() < LOOK_INTERVAL {
            if stop.asked() {
                return false;
            }
            std::thread::sleep(STOP_INTERVAL);
        }
        !stop.asked()
    }

    /// How long it has been waited.
    pub(crate) fn time(&self) -> Duration {
        self.begun.map_or(Duration::ZERO, |begun| begun.elapsed())
    }
}
