//! One moment's report, which every output is made from.

use super::counters::{Counters, Limits};
use super::window::{Change, Sample, Window};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time left is estimated from this last while: long enough for some games to end in it, short enough to follow a change of
/// networks.
const ESTIMATE_WINDOW: Duration = Duration::from_secs(600);

/// A time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// By a monotonic clock.
    pub(super) since_start: Duration,
    /// By the system's clock.
    pub(super) time: SystemTime,
}

/// The counters of a generator at one time, and their changes. The table of [`super::figures`] reads it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Snapshot {
    /// RFC 3339, UTC.
    pub(super) time: String,
    /// The totals.
    pub(super) now: Counters,
    /// The whole time.
    pub(super) since_start: Change,
    /// The last reporting interval.
    pub(super) recent: Change,
    /// Games to finish in this start.
    pub(super) target_games: Option<u64>,
    /// Until the first limit is reached: games, hours or disk.
    pub(super) seconds_left: Option<f64>,
}

/// Makes snapshots of counters.
#[derive(Debug)]
pub(super) struct Reporter {
    limits: Limits,
    /// For rates.
    recent: Window,
    /// For the estimate of the time left.
    long: Window,
}

impl Reporter {
    /// Begins with the counters of the start. Rates are of one interval.
    pub(super) fn new(limits: Limits, interval: Duration, counters: &Counters) -> Self {
        let first = Sample {
            at: Duration::ZERO,
            counters: counters.clone(),
        };
        Self {
            limits,
            recent: Window::new(interval, first.clone()),
            long: Window::new(ESTIMATE_WINDOW, first),
        }
    }

    /// A snapshot of now.
    pub(super) fn report(&mut self, counters: &Counters, now: Moment) -> Snapshot {
        let sample = Sample {
            at: now.since_start,
            counters: counters.clone(),
        };
        // All totals begin at 0 with the start.
        let since_start = Change::between(&Sample::default(), &sample);
        let recent = self.recent.until(sample.clone());
        let long = self.long.until(sample);
        Snapshot {
            time: rfc3339(now.time),
            now: counters.clone(),
            since_start,
            recent,
            target_games: self.limits.games,
            seconds_left: self.seconds_left(counters, &long, now),
        }
    }

    /// Seconds until the first limit at the present rates. None without limits and without progress towards them.
    fn seconds_left(&self, counters: &Counters, long: &Change, now: Moment) -> Option<f64> {
        let until = |limit: u64, number: fn(&Counters) -> u64| {
            let rate = long.per_second(number);
            match limit.saturating_sub(number(counters)) {
                0 => Some(0.0),
                missing => (rate > 0.0).then(|| missing as f64 / rate),
            }
        };
        let by_games = self
            .limits
            .games
            .and_then(|limit| until(limit, Counters::games));
        let by_disk = self
            .limits
            .disk_bytes
            .and_then(|limit| until(limit, |now| now.disk_used));
        let by_hours = self
            .limits
            .duration()
            .map(|limit| limit.saturating_sub(now.since_start).as_secs_f64());
        [by_games, by_hours, by_disk]
            .into_iter()
            .flatten()
            .reduce(f64::min)
    }
}

/// As `2026-11-21T06:30:00Z`. A clock before 1970 or after 9999 is clamped.
pub(super) fn rfc3339(time: SystemTime) -> String {
    const LAST_SECOND: u64 = 253_402_300_799;
    let seconds = time
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
        .min(LAST_SECOND);
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(seconds)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::testing::{busy, moment};
    use engine::run::DeviceUse;
    use network::{Device, DeviceCounters};
    use serde_json::Value;

    const INTERVAL: Duration = Duration::from_secs(15);

    /// The log's keys.
    fn logged(snapshot: &Snapshot) -> Value {
        serde_json::to_value(snapshot).unwrap()
    }

    #[test]
    fn rates_are_of_the_interval_and_of_the_whole_time() {
        let mut counters = Counters::default();
        let mut reporter = Reporter::new(Limits::default(), INTERVAL, &counters);
        let first = logged(&reporter.report(&counters, moment(0.0)));
        assert_eq!(first["turns_per_second"], 0.0);
        assert_eq!(first["mean_batch"], Value::Null);
        (counters.turns, counters.evaluations, counters.batches) = (300, 9_000, 100);
        counters.largest_batch = 128;
        reporter.report(&counters, moment(15.0));
        (counters.turns, counters.evaluations, counters.batches) = (375, 10_920, 120);
        let second = logged(&reporter.report(&counters, moment(30.0)));
        assert_eq!(second["turns_per_second"], 5.0);
        assert_eq!(second["turns_per_second_since_start"], 12.5);
        assert_eq!(second["evaluations_per_second"], 128.0);
        assert_eq!(second["evaluations_per_second_since_start"], 364.0);
        assert_eq!(second["mean_batch"], 96.0);
        assert_eq!(second["batch_fill"], 0.75);
    }

    #[test]
    fn devices_are_shown_as_they_were_in_the_interval() {
        let devices = |batches, seconds| {
            vec![DeviceCounters {
                batches,
                rows: 60 * batches,
                padded_rows: 64 * batches,
                busy: Duration::from_secs(seconds),
                ..DeviceCounters::new(Device::CpuService)
            }]
        };
        // A generator that begins without a network has no devices yet.
        let mut counters = Counters::default();
        let mut reporter = Reporter::new(Limits::default(), INTERVAL, &counters);
        assert_eq!(reporter.report(&counters, moment(0.0)).recent.devices(), []);
        counters.devices = devices(100, 15);
        let all = reporter.report(&counters, moment(15.0)).recent.devices();
        assert_eq!((all[0].busy, all[0].mean_batch), (1.0, Some(60.0)));
        counters.devices = devices(110, 18);
        counters.rows_waiting = Some(7);
        let snapshot = reporter.report(&counters, moment(30.0));
        let expected = DeviceUse {
            device: "cpu:service".into(),
            busy: 0.2,
            mean_batch: Some(60.0),
            fill: Some(0.9375),
        };
        assert_eq!(snapshot.recent.devices(), [expected]);
        assert_eq!(snapshot.now.rows_waiting, Some(7));
    }

    #[test]
    fn shares_are_of_their_totals() {
        let counters = busy();
        let mut reporter = Reporter::new(Limits::default(), INTERVAL, &Counters::default());
        let snapshot = logged(&reporter.report(&counters, moment(10.0)));
        assert_eq!(snapshot["games"], 40);
        assert_eq!(snapshot["gold_share"], 0.5556);
        assert_eq!(snapshot["mean_game_turns"], 90.0);
        assert_eq!(snapshot["resignation_error_rate"], 0.125);
        let nothing = logged(&reporter.report(&Counters::default(), moment(10.0)));
        for share in ["gold_share", "mean_game_turns", "resignation_error_rate"] {
            assert_eq!(nothing[share], Value::Null, "{share}");
        }
    }

    #[test]
    fn the_time_left_is_that_of_the_first_limit() {
        let left = |limits: Limits| {
            let begin = Counters {
                disk_used: 1_000,
                ..Counters::default()
            };
            let mut reporter = Reporter::new(limits, INTERVAL, &begin);
            let counters = Counters {
                gold_wins: 10,
                unfinished: 10,
                disk_used: 3_000,
                ..Counters::default()
            };
            reporter.report(&counters, moment(100.0)).seconds_left
        };
        let games = |games| Limits {
            games: Some(games),
            ..Limits::default()
        };
        assert_eq!(left(Limits::default()), None);
        assert_eq!(left(games(100)), Some(400.0));
        assert_eq!(left(games(20)), Some(0.0));
        let hours = Limits {
            hours: Some(0.1),
            ..games(100)
        };
        assert_eq!(left(hours), Some(260.0));
        let disk = Limits {
            disk_bytes: Some(5_000),
            ..hours
        };
        assert_eq!(left(disk), Some(100.0));
        let endless = Limits {
            hours: Some(f64::INFINITY),
            memory_bytes: Some(1),
            ..Limits::default()
        };
        assert_eq!(left(endless), None);
    }

    #[test]
    fn without_progress_the_time_left_is_unknown() {
        let limits = Limits {
            games: Some(100),
            disk_bytes: Some(5_000),
            ..Limits::default()
        };
        let counters = busy();
        let mut reporter = Reporter::new(limits, INTERVAL, &counters);
        let snapshot = reporter.report(&counters, moment(100.0));
        assert_eq!(snapshot.seconds_left, Some(0.0), "the disk is full");
        let mut reporter = Reporter::new(
            Limits {
                disk_bytes: None,
                ..limits
            },
            INTERVAL,
            &counters,
        );
        let snapshot = reporter.report(&counters, moment(100.0));
        assert_eq!(snapshot.seconds_left, None);
    }

    #[test]
    fn times_are_written_for_every_clock() {
        let at = |seconds| rfc3339(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(1_795_242_600), "2026-11-21T06:30:00Z");
        assert_eq!(at(1 << 50), "9999-12-31T23:59:59Z");
        let before = UNIX_EPOCH - Duration::from_secs(5);
        assert_eq!(rfc3339(before), "1970-01-01T00:00:00Z");
    }
}
