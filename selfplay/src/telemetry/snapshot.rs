//! One moment's report, which every output is made from.

use super::counters::{Counters, Limits, State};
use super::window::{Change, Sample, Window, ratio};
use network::DeviceUse;
use serde::Serialize;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time left is estimated from this last while: long enough for some games to end in it, short enough to follow a change of
/// networks.
const ESTIMATE_WINDOW: Duration = Duration::from_secs(600);

/// When something is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// By a clock that never jumps.
    pub(super) since_start: Duration,
    /// By the clock on the wall.
    pub(super) time: SystemTime,
}

/// How a generator stands at one moment, and how fast it has become so. Keys of the JSON log, in this order.
///
/// Totals are of this start of the program. Shares lie in [0, 1]; what can't be known yet is null. `…_per_second`, `mean_batch`,
/// `batch_fill`, `devices` and `cache_hit_share` are of the last reporting interval, `…_since_start` of the whole time.
///
/// `mean_batch`, `largest_batch` and `batch_fill` are of the batches that workers ask for. The evaluation service makes others of
/// them: those stand in `devices`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Snapshot {
    /// RFC 3339, UTC.
    pub(crate) time: String,
    /// Seconds since the start.
    pub(crate) seconds: f64,
    /// `running`, `waiting_for_disk` or `stopping`.
    pub(crate) state: &'static str,
    /// Why it waits.
    pub(crate) waiting_reason: Option<String>,
    /// Finished games.
    pub(crate) games: u64,
    /// Games to finish in this start.
    pub(crate) target_games: Option<u64>,
    pub(crate) games_in_flight: u64,
    pub(crate) turns: u64,
    /// Those of the turns that were searched in full.
    pub(crate) full_turns: u64,
    /// For training.
    pub(crate) rows: u64,
    pub(crate) evaluations: u64,
    pub(crate) batches: u64,
    pub(crate) turns_per_second: f64,
    pub(crate) evaluations_per_second: f64,
    pub(crate) turns_per_second_since_start: f64,
    pub(crate) evaluations_per_second_since_start: f64,
    /// Turns of all finished games together.
    pub(crate) game_turns: u64,
    /// Turns a finished game.
    pub(crate) mean_game_turns: Option<f64>,
    pub(crate) gold_wins: u64,
    pub(crate) silver_wins: u64,
    /// Gold's share of the games that somebody won.
    pub(crate) gold_share: Option<f64>,
    /// Games that ended at the turn limit.
    pub(crate) unfinished: u64,
    /// Games that ended by resignation.
    pub(crate) resigned: u64,
    /// Played-out games in which a side would have resigned.
    pub(crate) resignation_checks: u64,
    /// Those of them that this side did not lose.
    pub(crate) resignation_errors: u64,
    /// Errors a check.
    pub(crate) resignation_error_rate: Option<f64>,
    /// Evaluations a batch.
    pub(crate) mean_batch: Option<f64>,
    /// Evaluations that the largest batch has room for.
    pub(crate) largest_batch: Option<u64>,
    /// The mean batch as a share of the largest.
    pub(crate) batch_fill: Option<f64>,
    /// The devices of the evaluation service, each with `device`, `busy`, `mean_batch` and `fill` ([`DeviceUse`]); empty where the
    /// workers evaluate by themselves.
    pub(crate) devices: Vec<DeviceUse>,
    /// Rows that wait for a device at this moment; null without devices.
    pub(crate) rows_waiting: Option<u64>,
    /// Null without a cache, like the next two.
    pub(crate) cache_queries: Option<u64>,
    pub(crate) cache_hits: Option<u64>,
    /// Hits a query.
    pub(crate) cache_hit_share: Option<f64>,
    /// The name of the network that plays.
    pub(crate) network: String,
    /// The identity of its weights.
    pub(crate) network_identity: Option<String>,
    pub(crate) networks_loaded: u64,
    /// Written since the start.
    pub(crate) shards: u64,
    /// Of all shards on the disk.
    pub(crate) shard_bytes: u64,
    /// By the whole run.
    pub(crate) disk_used_bytes: u64,
    pub(crate) disk_free_bytes: Option<u64>,
    /// Resident.
    pub(crate) memory_bytes: Option<u64>,
    /// Until the first limit is met: games, hours or disk.
    pub(crate) seconds_left: Option<f64>,
}

/// Makes snapshots of counters.
#[derive(Debug)]
pub(super) struct Reporter {
    limits: Limits,
    /// What rates are computed from.
    recent: Window,
    /// What the time left is estimated from.
    long: Window,
}

impl Reporter {
    /// Begins with the counters as they are, and computes rates over one interval.
    pub(super) fn new(limits: Limits, interval: Duration, counters: &Counters) -> Self {
        let first = Sample::new(counters, Duration::ZERO);
        Self {
            limits,
            recent: Window::new(interval, first.clone()),
            long: Window::new(ESTIMATE_WINDOW, first),
        }
    }

    /// How everything stands now.
    pub(super) fn report(&mut self, counters: &Counters, now: Moment) -> Snapshot {
        let sample = Sample::new(counters, now.since_start);
        let recent = self.recent.until(sample.clone());
        let long = self.long.until(sample);
        let seconds = now.since_start.as_secs_f64();
        let share = |part: u64, whole: u64| ratio(part as f64, whole as f64).map(rounded);
        let since_start = |amount: u64| rounded(ratio(amount as f64, seconds).unwrap_or(0.0));
        let largest_batch = (counters.largest_batch > 0).then_some(counters.largest_batch);
        let mean_batch = ratio(recent.evaluations as f64, recent.batches as f64);
        let fill = |mean| ratio(mean, counters.largest_batch as f64);
        Snapshot {
            time: rfc3339(now.time),
            seconds: rounded(seconds),
            state: counters.state.name(),
            waiting_reason: match &counters.state {
                State::WaitingForDisk { reason } => Some(reason.clone()),
                State::Running | State::Stopping => None,
            },
            games: counters.games(),
            target_games: self.limits.games,
            games_in_flight: counters.games_in_flight,
            turns: counters.turns,
            full_turns: counters.full_turns,
            rows: counters.rows,
            evaluations: counters.evaluations,
            batches: counters.batches,
            turns_per_second: rounded(recent.per_second(recent.turns)),
            evaluations_per_second: rounded(recent.per_second(recent.evaluations)),
            turns_per_second_since_start: since_start(counters.turns),
            evaluations_per_second_since_start: since_start(counters.evaluations),
            game_turns: counters.game_turns,
            mean_game_turns: share(counters.game_turns, counters.games()),
            gold_wins: counters.gold_wins,
            silver_wins: counters.silver_wins,
            gold_share: share(
                counters.gold_wins,
                counters.gold_wins + counters.silver_wins,
            ),
            unfinished: counters.unfinished,
            resigned: counters.resigned,
            resignation_checks: counters.resignation_checks,
            resignation_errors: counters.resignation_errors,
            resignation_error_rate: share(counters.resignation_errors, counters.resignation_checks),
            mean_batch: mean_batch.map(rounded),
            largest_batch,
            batch_fill: mean_batch.and_then(fill).map(rounded),
            devices: devices(&recent),
            rows_waiting: counters.rows_waiting,
            cache_queries: counters.cache.map(|cache| cache.queries),
            cache_hits: counters.cache.map(|cache| cache.hits),
            cache_hit_share: share(recent.cache_hits, recent.cache_queries),
            network: counters.network.name.clone(),
            network_identity: counters.network.identity.clone(),
            networks_loaded: counters.networks_loaded,
            shards: counters.shards,
            shard_bytes: counters.shard_bytes,
            disk_used_bytes: counters.disk_used,
            disk_free_bytes: counters.disk_free,
            memory_bytes: counters.memory,
            seconds_left: self.seconds_left(counters, &long, now).map(rounded),
        }
    }

    /// Until the limit that is met first, as things go now. None without limits, and where nothing goes towards them.
    fn seconds_left(&self, counters: &Counters, long: &Change, now: Moment) -> Option<f64> {
        let until = |limit: u64, reached: u64, change: u64| match limit.saturating_sub(reached) {
            0 => Some(0.0),
            missing => ratio(missing as f64, long.per_second(change)),
        };
        let Limits {
            games, disk_bytes, ..
        } = self.limits;
        let by_games = games.and_then(|limit| until(limit, counters.games(), long.games));
        let by_disk = disk_bytes.and_then(|limit| until(limit, counters.disk_used, long.disk_used));
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

fn devices(change: &Change) -> Vec<DeviceUse> {
    let devices = change.devices.iter().map(|done| {
        let used = done.in_time(change.seconds);
        DeviceUse {
            busy: rounded(used.busy),
            mean_batch: used.mean_batch.map(rounded),
            fill: used.fill.map(rounded),
            ..used
        }
    });
    devices.collect()
}

/// To four digits behind the point: nobody reads more of them.
fn rounded(number: f64) -> f64 {
    (number * 1e4).round() / 1e4
}

/// As `2026-11-21T06:30:00Z`. A clock that is set to before 1970 or after 9999 is taken for the nearest of these.
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
    use crate::telemetry::counters::CacheUses;
    use crate::telemetry::testing::{busy, moment};
    use network::{Device, DeviceCounters};

    const INTERVAL: Duration = Duration::from_secs(15);

    #[test]
    fn rates_are_of_the_interval_and_of_the_whole_time() {
        let mut counters = Counters::default();
        let mut reporter = Reporter::new(Limits::default(), INTERVAL, &counters);
        let first = reporter.report(&counters, moment(0.0));
        assert_eq!(first.turns_per_second, 0.0);
        assert_eq!((first.mean_batch, first.cache_hit_share), (None, None));
        (counters.turns, counters.evaluations, counters.batches) = (300, 9_000, 100);
        counters.largest_batch = 128;
        counters.cache = Some(CacheUses {
            queries: 9_000,
            hits: 900,
        });
        reporter.report(&counters, moment(15.0));
        (counters.turns, counters.evaluations, counters.batches) = (375, 10_920, 120);
        counters.cache = Some(CacheUses {
            queries: 10_000,
            hits: 1_400,
        });
        let second = reporter.report(&counters, moment(30.0));
        assert_eq!(
            (
                second.turns_per_second,
                second.turns_per_second_since_start,
                second.evaluations_per_second,
                second.evaluations_per_second_since_start
            ),
            (5.0, 12.5, 128.0, 364.0)
        );
        assert_eq!(
            (second.mean_batch, second.batch_fill, second.cache_hit_share),
            (Some(96.0), Some(0.75), Some(0.5))
        );
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
        assert_eq!(reporter.report(&counters, moment(0.0)).devices, []);
        counters.devices = devices(100, 15);
        let all = reporter.report(&counters, moment(15.0)).devices;
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
        assert_eq!(snapshot.devices, [expected]);
        assert_eq!(snapshot.rows_waiting, Some(7));
    }

    #[test]
    fn shares_are_of_what_they_say() {
        let counters = busy();
        let mut reporter = Reporter::new(Limits::default(), INTERVAL, &Counters::default());
        let snapshot = reporter.report(&counters, moment(10.0));
        assert_eq!((snapshot.games, snapshot.gold_share), (40, Some(0.5556)));
        assert_eq!(snapshot.mean_game_turns, Some(90.0));
        assert_eq!(snapshot.resignation_error_rate, Some(0.125));
        let nothing = reporter.report(&Counters::default(), moment(10.0));
        assert_eq!((nothing.gold_share, nothing.mean_game_turns), (None, None));
        assert_eq!(nothing.resignation_error_rate, None);
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
    fn nothing_is_promised_while_nothing_moves() {
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
    fn times_are_written_whatever_the_clock_says() {
        let at = |seconds| rfc3339(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(1_795_242_600), "2026-11-21T06:30:00Z");
        assert_eq!(at(1 << 50), "9999-12-31T23:59:59Z");
        let before = UNIX_EPOCH - Duration::from_secs(5);
        assert_eq!(rfc3339(before), "1970-01-01T00:00:00Z");
    }
}
