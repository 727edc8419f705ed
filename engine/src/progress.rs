//! The progress of a job for the user: a bar on a terminal, plain lines anywhere else.

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
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
    total: Option<u64>,
    /// Whether the time left is reckoned from the parts that are done.
    estimates: bool,
    begun: Instant,
    /// Whether the bar is drawn; if not, plain lines are written.
    terminal: bool,
    last_shown: Instant,
}

impl Progress {
    /// The progress of a job of `total` parts; with `None`, of one without a known end.
    pub fn new(label: &str, total: impl Into<Option<u64>>) -> Self {
        let total = total.into();
        let terminal = std::io::stderr().is_terminal();
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        let begun = Instant::now();
        let progress = Self {
            bar,
            label: label.to_owned(),
            total,
            estimates: total.is_some(),
            begun,
            terminal,
            last_shown: begun,
        };
        if terminal {
            progress.bar.set_draw_target(ProgressDrawTarget::stderr());
            progress.bar.set_prefix(label.to_owned());
        }
        progress.styled()
    }

    /// Shows no estimate of the time left: the messages have one.
    pub fn without_estimate(mut self) -> Self {
        self.estimates = false;
        self.styled()
    }

    fn styled(self) -> Self {
        let template = match (self.total, self.estimates) {
            (Some(_), true) => "{prefix} {bar:24} {pos}/{len} {msg} eta {eta}",
            (Some(_), false) => "{prefix} {bar:24} {pos}/{len} {msg}",
            (None, _) => "{prefix} {spinner} {pos} {msg}",
        };
        // Without a style the bar looks like indicatif's own.
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style);
        }
        self
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
            self.bar.tick();
        } else {
            say(&self.line(done, &message(), self.begun.elapsed()));
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

    /// Writes a line to standard error, above the bar where there is one.
    pub fn say(&self, line: &str) {
        self.bar.suspend(|| say(line));
    }

    fn line(&self, done: u64, message: &str, elapsed: Duration) -> String {
        let of_total = self
            .total
            .map_or(String::new(), |total| format!("/{total}"));
        let time_left = self.time_left(done, elapsed);
        format!("{} {done}{of_total} {message}{time_left}", self.label)
    }

    fn time_left(&self, done: u64, elapsed: Duration) -> String {
        match self.total {
            Some(total) if self.estimates && done > 0 && done < total => {
                let left = elapsed.mul_f64((total - done) as f64 / done as f64);
                format!(" eta {}", in_words(left))
            }
            _ => String::new(),
        }
    }
}

/// Writes a line to standard error. A closed standard error doesn't stop the work.
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

/// A number with commas between groups of three digits.
pub fn grouped(number: u64) -> String {
    HumanCount(number).to_string()
}

/// A number of bytes as `512 B` or `1.40 GiB`.
pub fn bytes_in_words(bytes: u64) -> String {
    HumanBytes(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_is_known_of_the_end() {
        let line = |progress: Progress, done| progress.line(done, "quick", Duration::from_secs(60));
        let counted = || Progress::new("play", 30);
        assert_eq!(line(counted(), 10), "play 10/30 quick eta 2m00s");
        assert_eq!(line(counted(), 0), "play 0/30 quick");
        assert_eq!(line(counted(), 30), "play 30/30 quick");
        assert_eq!(line(counted().without_estimate(), 10), "play 10/30 quick");
        assert_eq!(line(Progress::new("play", None), 10), "play 10 quick");
    }

    #[test]
    fn digits_are_grouped_from_the_right() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (12_345_678, "12,345,678"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn bytes_are_readable() {
        assert_eq!(bytes_in_words(512), "512 B");
        assert_eq!(bytes_in_words(3 << 29), "1.50 GiB");
    }

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
