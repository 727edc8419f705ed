//! Progress of a running generator for people, a log and Prometheus.
//!
//! ```text
//! Counters ──> Telemetry::tick ──> Snapshot ──> the progress line              (line)
//!                   │                 └──> table ──> JSON lines in a file      (figures, log)
//!              two windows                   ├─────> a file of the newest one, for `train info`
//!                                            └─────> /metrics over HTTP        (metrics, server)
//! ```
//! The supervisor of a generator passes [`Counters`] several times a second; nothing here reads the disk or the system. A tick costs
//! microseconds and never waits for a reader. Once a generator has begun, no failure of an output ends it.

mod counters;
mod figures;
mod line;
mod log;
mod metrics;
mod server;
mod snapshot;
#[cfg(test)]
mod testing;
mod window;

pub(crate) use counters::{About, Counters, Limits, NetworkInUse, State};

use crate::http::HttpServer;
use anyhow::Result;
use clap::Args;
use engine::progress::Progress;
use log::{Event, OutputFile, Status};
use server::Latest;
use snapshot::{Moment, Reporter, Snapshot, rfc3339};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

/// Interval between lines of the log, and between writes of the newest snapshot. Rates are of this interval too, so that each line's
/// are of the time since the last one.
const REPORT_INTERVAL: Duration = Duration::from_secs(15);

/// Ticks that come faster do nothing.
const TICK_INTERVAL: Duration = Duration::from_millis(100);

/// Outputs of a generator's progress beside the terminal.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TelemetryArguments {
    /// Append a line of JSON to this file at the start, every 15 seconds, and at the end
    #[arg(long, value_name = "FILE")]
    pub(crate) json_log: Option<PathBuf>,
    /// Serve metrics for Prometheus at http://ADDR/metrics, with ADDR like 127.0.0.1:9100; port 0 takes a free one
    #[arg(long, value_name = "ADDR")]
    pub(crate) metrics: Option<String>,
}

/// Shows the progress of a generator.
#[derive(Debug)]
pub(crate) struct Telemetry {
    begun: Instant,
    reporter: Reporter,
    progress: Progress,
    log: Option<OutputFile>,
    server: Option<HttpServer>,
    /// The snapshot that the server serves.
    latest: Latest,
    newest: Option<OutputFile>,
    about: About,
    /// Since the start; none before the first tick.
    last_tick: Option<Duration>,
    /// Since the start.
    next_line: Duration,
}

impl Telemetry {
    /// Begins: time counts from here. `counters` are those of the start, with the bytes on the disk.
    ///
    /// # Errors
    /// Metrics can't be served at the address that the user named.
    pub(crate) fn start(
        arguments: &TelemetryArguments,
        about: &About,
        counters: &Counters,
    ) -> Result<Self> {
        Self::start_at(arguments, about, counters, SystemTime::now())
    }

    fn start_at(
        arguments: &TelemetryArguments,
        about: &About,
        counters: &Counters,
        time: SystemTime,
    ) -> Result<Self> {
        let begin = Moment {
            since_start: Duration::ZERO,
            time,
        };
        let mut reporter = Reporter::new(about.limits, REPORT_INTERVAL, counters);
        let latest = Arc::new(Mutex::new(reporter.report(counters, begin)));
        let server = arguments
            .metrics
            .as_deref()
            .map(|address| server::start(address, Arc::clone(&latest)))
            .transpose()?;
        let mut telemetry = Self {
            begun: Instant::now(),
            reporter,
            progress: Progress::new("generate", about.limits.games).without_estimate(),
            log: arguments.json_log.clone().map(OutputFile::new),
            server,
            latest,
            newest: None,
            about: about.clone(),
            last_tick: None,
            next_line: REPORT_INTERVAL,
        };
        if let Some(server) = &telemetry.server {
            telemetry.say(&format!("metrics: http://{}/metrics", server.address()));
        }
        let time = &rfc3339(time);
        telemetry.write(&Event::Start { time, about });
        Ok(telemetry)
    }

    /// Writes the newest snapshot to a file now, with each line of the log, and at the end, for other programs.
    pub(crate) fn keep_newest_in(&mut self, path: PathBuf, counters: &Counters) {
        self.newest = Some(OutputFile::new(path));
        let snapshot = self.reporter.report(counters, self.now());
        self.write_newest(&snapshot);
    }

    /// Shows the progress. Call it several times a second, also while nothing happens.
    pub(crate) fn tick(&mut self, counters: &Counters) {
        self.tick_at(counters, self.now());
    }

    fn tick_at(&mut self, counters: &Counters, now: Moment) {
        let next_tick = self.last_tick.map(|last| last + TICK_INTERVAL);
        if next_tick.is_some_and(|next| now.since_start < next) {
            return;
        }
        self.last_tick = Some(now.since_start);
        let snapshot = self.reporter.report(counters, now);
        if now.since_start >= self.next_line {
            self.write(&Event::Progress(&snapshot));
            self.write_newest(&snapshot);
            // After a long pause, such as a suspended machine, one line is enough.
            while self.next_line <= now.since_start {
                self.next_line += REPORT_INTERVAL;
            }
        }
        self.progress
            .show(snapshot.now.games(), || line::message(&snapshot));
        if let Some(message) = self.check_server() {
            self.say(message);
        }
        server::publish(&self.latest, snapshot);
    }

    /// Drops a server that has ended, and returns the message for that.
    fn check_server(&mut self) -> Option<&'static str> {
        let ended = self.server.take_if(|server| server.has_ended());
        ended.map(|_| {
            "the thread that serves the metrics has ended: there are none until the next start; the games continue"
        })
    }

    /// Writes a line to standard error, above the progress line.
    pub(crate) fn say(&self, line: &str) {
        self.progress.say(line);
    }

    /// Shows the summary: a line on the terminal, one in the log. The metrics end.
    pub(crate) fn finish(self, counters: &Counters, reason: &str) -> Snapshot {
        let now = self.now();
        self.finish_at(counters, reason, now)
    }

    fn finish_at(mut self, counters: &Counters, reason: &str, now: Moment) -> Snapshot {
        let counters = &Counters {
            state: State::Ended,
            ..counters.clone()
        };
        let snapshot = self.reporter.report(counters, now);
        self.progress.finish(&line::summary(&snapshot));
        self.write(&Event::End {
            reason,
            snapshot: &snapshot,
        });
        self.write_newest(&snapshot);
        snapshot
    }

    fn now(&self) -> Moment {
        Moment {
            since_start: self.begun.elapsed(),
            time: SystemTime::now(),
        }
    }

    fn write(&mut self, event: &Event) {
        let failure = self.log.as_mut().and_then(|log| log.append(event));
        if let Some(failure) = failure {
            self.say(&failure);
        }
    }

    fn write_newest(&mut self, snapshot: &Snapshot) {
        let status = Status {
            about: &self.about,
            snapshot,
        };
        let newest = self.newest.as_mut();
        if let Some(failure) = newest.and_then(|newest| newest.replace(&status)) {
            self.say(&failure);
        }
    }
}

#[cfg(test)]
mod tests;
