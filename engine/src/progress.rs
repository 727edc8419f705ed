//! What a person sees while a program works: a bar on a terminal, plain lines anywhere else.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Between two plain lines.
const LINE_INTERVAL: Duration = Duration::from_secs(15);

/// Between two looks of the bar.
const BAR_INTERVAL: Duration = Duration::from_millis(100);

/// The progress of one job, shown on standard error.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    label: String,
    total: u64,
    begun: Instant,
    /// Whether the bar is drawn; if not, plain lines are written.
    terminal: bool,
    last_shown: Instant,
}

impl Progress {
    /// The progress of a job of `total` parts.
    pub fn new(label: &str, total: u64) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        if terminal {
            bar.set_draw_target(ProgressDrawTarget::stderr());
            if let Ok(style) =
                ProgressStyle::with_template("{prefix} {bar:24} {pos}/{len} {msg} eta {eta}")
            {
                bar.set_style(style);
            }
            bar.set_prefix(label.to_owned());
        }
        let begun = Instant::now();
        Self {
            bar,
            label: label.to_owned(),
            total,
            begun,
            terminal,
            last_shown: begun,
        }
    }

    /// Shows how many parts are done, and what else there is to say: on a terminal ten times a second at most, elsewhere a line
    /// every fifteen seconds. Costs nothing in between.
    pub fn show(&mut self, done: u64, message: impl FnOnce() -> String) {
        let interval = if self.terminal {
            BAR_INTERVAL
        } else {
            LINE_INTERVAL
        };
        if self.last_shown.elapsed() < interval {
            return;
        }
        self.last_shown = Instant::now();
        if self.terminal {
            self.bar.set_position(done);
            self.bar.set_message(message());
        } else {
            say(&format!(
                "{} {done}/{} {}{}",
                self.label,
                self.total,
                message(),
                self.time_left(done)
            ));
        }
    }

    /// Takes the bar away and leaves one last line.
    pub fn finish(&self, message: &str) {
        self.bar.finish_and_clear();
        say(&format!(
            "{} {message} in {}",
            self.label,
            in_words(self.begun.elapsed())
        ));
    }

    fn time_left(&self, done: u64) -> String {
        if done == 0 || done >= self.total {
            return String::new();
        }
        let left = self
            .begun
            .elapsed()
            .mul_f64((self.total - done) as f64 / done as f64);
        format!(" eta {}", in_words(left))
    }
}

/// Writes a line to standard error. That nobody reads it any more is no reason to stop working.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// A duration as `42s`, `3m12s` or `5h03m`.
pub fn in_words(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().round() as u64;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_readable() {
        for (seconds, text) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m00s"),
            (3_599, "59m59s"),
            (11_040, "3h04m"),
        ] {
            assert_eq!(in_words(Duration::from_secs(seconds)), text);
        }
    }
}
