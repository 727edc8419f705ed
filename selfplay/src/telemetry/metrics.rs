//! A snapshot in the text format of Prometheus, version 0.0.4.
//!
//! | metric | type | labels |
//! | --- | --- | --- |
//! | `tusker_info` | gauge, 1 | `version` of the program; `network`, its name; `identity`, of its weights |
//! | `tusker_state` | gauge, 1 for the state that it is in | `state`: `running`, `waiting_for_disk`, `stopping` |
//! | `tusker_uptime_seconds` | gauge | |
//! | `tusker_time_left_seconds` | gauge, only where it is known | |
//! | `tusker_games_total` | counter | `winner`: `gold`, `silver`, `none` |
//! | `tusker_game_turns_total` | counter, turns of finished games | |
//! | `tusker_games_target` | gauge, only with a limit | |
//! | `tusker_games_in_flight` | gauge | |
//! | `tusker_resigned_games_total` | counter | |
//! | `tusker_resignation_checks_total`, `tusker_resignation_errors_total` | counters | |
//! | `tusker_turns_total` | counter | `kind`: `full`, `fast` |
//! | `tusker_rows_total`, `tusker_evaluations_total`, `tusker_batches_total` | counters | |
//! | `tusker_turns_per_second`, `tusker_evaluations_per_second` | gauges, over the last interval | |
//! | `tusker_largest_batch_evaluations` | gauge, only where it is known | |
//! | `tusker_batch_fill_ratio` | gauge, over the last interval, only where it is known | |
//! | `tusker_device_busy_ratio`, `tusker_device_mean_batch_rows`, `tusker_device_batch_fill_ratio` | gauges, over the last interval, only for devices of the evaluation service, the last two only with batches | `device` |
//! | `tusker_rows_waiting` | gauge, only with such devices | |
//! | `tusker_cache_queries_total`, `tusker_cache_hits_total` | counters, only with a cache | |
//! | `tusker_networks_loaded_total` | counter | |
//! | `tusker_shards_total` | counter | |
//! | `tusker_shards_bytes`, `tusker_disk_used_bytes` | gauges | |
//! | `tusker_disk_free_bytes`, `tusker_resident_memory_bytes` | gauges, only where they are known | |
//!
//! `tusker_batches_total`, `tusker_largest_batch_evaluations` and `tusker_batch_fill_ratio` are of the batches that workers ask for;
//! those of a device are what the service made of them, and their fill is the share that is no padding.
//!
//! Counters begin at 0 with each start of the program, as Prometheus expects. Means and shares (the length of games, Gold's share,
//! hits of the cache) are quotients of counters over whatever time the asker likes.

use super::counters::State;
use super::snapshot::Snapshot;
use network::DeviceUse;
use prometheus::{GaugeVec, IntCounterVec, Opts, Registry, Result, TextEncoder};

/// Of the answers to a scrape.
pub(super) const CONTENT_TYPE: &str = prometheus::TEXT_FORMAT;

/// The page that a scrape gets.
///
/// # Errors
/// The library says that names or labels are wrong, which does not depend on the snapshot.
pub(super) fn page(snapshot: &Snapshot) -> Result<String> {
    let page = Page::default();
    about(&page, snapshot)?;
    games(&page, snapshot)?;
    work(&page, snapshot)?;
    devices(&page, snapshot)?;
    resources(&page, snapshot)?;
    TextEncoder::new().encode_to_string(&page.registry.gather())
}

fn about(page: &Page, snapshot: &Snapshot) -> Result<()> {
    let info = page.gauges(
        "tusker_info",
        "What plays",
        &["version", "network", "identity"],
    )?;
    let identity = snapshot.network_identity.as_deref().unwrap_or_default();
    let labels = [env!("CARGO_PKG_VERSION"), &snapshot.network, identity];
    info.with_label_values(&labels).set(1.0);
    let states = page.gauges(
        "tusker_state",
        "Whether the generator plays: 1 for its state",
        &["state"],
    )?;
    for state in State::NAMES {
        let is_in_it = f64::from(u8::from(state == snapshot.state));
        states.with_label_values(&[state]).set(is_in_it);
    }
    page.gauge(
        "tusker_uptime_seconds",
        "Time since the start",
        Some(snapshot.seconds),
    )?;
    page.gauge(
        "tusker_time_left_seconds",
        "Estimated time until the first limit is met",
        snapshot.seconds_left,
    )
}

fn games(page: &Page, snapshot: &Snapshot) -> Result<()> {
    page.counters(
        "tusker_games_total",
        "Finished games; without a winner where the turn limit ended them",
        "winner",
        &[
            ("gold", snapshot.gold_wins),
            ("silver", snapshot.silver_wins),
            ("none", snapshot.unfinished),
        ],
    )?;
    page.counter(
        "tusker_game_turns_total",
        "Turns of the finished games",
        Some(snapshot.game_turns),
    )?;
    page.whole_gauge(
        "tusker_games_target",
        "Games to finish",
        snapshot.target_games,
    )?;
    page.whole_gauge(
        "tusker_games_in_flight",
        "Games that are being played",
        Some(snapshot.games_in_flight),
    )?;
    page.counter(
        "tusker_resigned_games_total",
        "Finished games that were resigned",
        Some(snapshot.resigned),
    )?;
    page.counter(
        "tusker_resignation_checks_total",
        "Played-out games in which a side would have resigned",
        Some(snapshot.resignation_checks),
    )?;
    page.counter(
        "tusker_resignation_errors_total",
        "Those of the checks that the side which would have resigned won",
        Some(snapshot.resignation_errors),
    )
}

fn work(page: &Page, snapshot: &Snapshot) -> Result<()> {
    let fast_turns = snapshot.turns.saturating_sub(snapshot.full_turns);
    page.counters(
        "tusker_turns_total",
        "Turns played, by the search that chose them",
        "kind",
        &[("full", snapshot.full_turns), ("fast", fast_turns)],
    )?;
    page.counter(
        "tusker_rows_total",
        "Rows recorded for training",
        Some(snapshot.rows),
    )?;
    page.counter(
        "tusker_evaluations_total",
        "Evaluations taken, those from the cache too",
        Some(snapshot.evaluations),
    )?;
    page.counter(
        "tusker_batches_total",
        "Batches of evaluations",
        Some(snapshot.batches),
    )?;
    page.gauge(
        "tusker_turns_per_second",
        "Turns a second over the last interval",
        Some(snapshot.turns_per_second),
    )?;
    page.gauge(
        "tusker_evaluations_per_second",
        "Evaluations a second over the last interval",
        Some(snapshot.evaluations_per_second),
    )?;
    page.whole_gauge(
        "tusker_largest_batch_evaluations",
        "Evaluations that the largest batch has room for",
        snapshot.largest_batch,
    )?;
    page.gauge(
        "tusker_batch_fill_ratio",
        "Mean evaluations a batch over the last interval, as a share of the largest batch",
        snapshot.batch_fill,
    )?;
    page.counter(
        "tusker_cache_queries_total",
        "Answers that the cache was asked for",
        snapshot.cache_queries,
    )?;
    page.counter(
        "tusker_cache_hits_total",
        "Answers that the cache had",
        snapshot.cache_hits,
    )?;
    page.counter(
        "tusker_networks_loaded_total",
        "Networks taken since the start",
        Some(snapshot.networks_loaded),
    )
}

fn devices(page: &Page, snapshot: &Snapshot) -> Result<()> {
    let of_each = |name: &str, help: &str, value: fn(&DeviceUse) -> Option<f64>| -> Result<()> {
        let values = snapshot
            .devices
            .iter()
            .filter_map(|device| Some((device.device.as_str(), value(device)?)));
        let values: Vec<(&str, f64)> = values.collect();
        if values.is_empty() {
            return Ok(());
        }
        let gauges = page.gauges(name, help, &["device"])?;
        for (device, value) in values {
            gauges.with_label_values(&[device]).set(value);
        }
        Ok(())
    };
    of_each(
        "tusker_device_busy_ratio",
        "Share of the last interval with a batch in hand",
        |device| Some(device.busy),
    )?;
    of_each(
        "tusker_device_mean_batch_rows",
        "Mean rows a batch over the last interval, without padding",
        |device| device.mean_batch,
    )?;
    of_each(
        "tusker_device_batch_fill_ratio",
        "Share of the rows computed in the last interval that were asked for",
        |device| device.fill,
    )?;
    page.whole_gauge(
        "tusker_rows_waiting",
        "Rows that wait for a device",
        snapshot.rows_waiting,
    )
}

fn resources(page: &Page, snapshot: &Snapshot) -> Result<()> {
    page.counter(
        "tusker_shards_total",
        "Shards written",
        Some(snapshot.shards),
    )?;
    page.whole_gauge(
        "tusker_shards_bytes",
        "Shards on the disk",
        Some(snapshot.shard_bytes),
    )?;
    page.whole_gauge(
        "tusker_disk_used_bytes",
        "Disk used by the run",
        Some(snapshot.disk_used_bytes),
    )?;
    page.whole_gauge(
        "tusker_disk_free_bytes",
        "Room left on the disk",
        snapshot.disk_free_bytes,
    )?;
    page.whole_gauge(
        "tusker_resident_memory_bytes",
        "Resident memory",
        snapshot.memory_bytes,
    )
}

/// Metrics that are being gathered. What has no value is left out: Prometheus takes that for unknown.
#[derive(Default)]
struct Page {
    registry: Registry,
}

impl Page {
    fn counter(&self, name: &str, help: &str, value: Option<u64>) -> Result<()> {
        if let Some(value) = value {
            let counters = IntCounterVec::new(Opts::new(name, help), &[])?;
            counters.with_label_values::<&str>(&[]).inc_by(value);
            self.registry.register(Box::new(counters))?;
        }
        Ok(())
    }

    fn counters(&self, name: &str, help: &str, label: &str, values: &[(&str, u64)]) -> Result<()> {
        let counters = IntCounterVec::new(Opts::new(name, help), &[label])?;
        for &(of, value) in values {
            counters.with_label_values(&[of]).inc_by(value);
        }
        self.registry.register(Box::new(counters))
    }

    fn gauge(&self, name: &str, help: &str, value: Option<f64>) -> Result<()> {
        if let Some(value) = value {
            self.gauges(name, help, &[])?
                .with_label_values::<&str>(&[])
                .set(value);
        }
        Ok(())
    }

    /// Exact up to 2^53.
    fn whole_gauge(&self, name: &str, help: &str, value: Option<u64>) -> Result<()> {
        self.gauge(name, help, value.map(|value| value as f64))
    }

    fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> Result<GaugeVec> {
        let gauges = GaugeVec::new(Opts::new(name, help), labels)?;
        self.registry.register(Box::new(gauges.clone()))?;
        Ok(gauges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::counters::{Counters, Limits, NetworkInUse};
    use crate::telemetry::snapshot::Reporter;
    use crate::telemetry::testing::{busy, devices, moment, parse_page};
    use network::{Device, DeviceCounters};
    use std::time::Duration;

    fn page_of(counters: &Counters, games: Option<u64>) -> String {
        let limits = Limits {
            games,
            ..Limits::default()
        };
        let mut reporter = Reporter::new(limits, Duration::from_secs(15), &Counters::default());
        page(&reporter.report(counters, moment(10.0))).unwrap()
    }

    #[test]
    fn every_metric_has_its_type_and_value() {
        let text = page_of(&busy(), Some(200));
        let metrics = parse_page(&text);
        let version = env!("CARGO_PKG_VERSION");
        let info =
            format!("tusker_info{{identity=\"c0ffee\",network=\"000012\",version=\"{version}\"}}");
        let expected = [
            (info.as_str(), "gauge", 1.0),
            ("tusker_state{state=\"running\"}", "gauge", 1.0),
            ("tusker_state{state=\"waiting_for_disk\"}", "gauge", 0.0),
            ("tusker_state{state=\"stopping\"}", "gauge", 0.0),
            ("tusker_uptime_seconds", "gauge", 10.0),
            ("tusker_time_left_seconds", "gauge", 40.0),
            ("tusker_games_total{winner=\"gold\"}", "counter", 20.0),
            ("tusker_games_total{winner=\"silver\"}", "counter", 16.0),
            ("tusker_games_total{winner=\"none\"}", "counter", 4.0),
            ("tusker_game_turns_total", "counter", 3_600.0),
            ("tusker_games_target", "gauge", 200.0),
            ("tusker_games_in_flight", "gauge", 64.0),
            ("tusker_resigned_games_total", "counter", 12.0),
            ("tusker_resignation_checks_total", "counter", 8.0),
            ("tusker_resignation_errors_total", "counter", 1.0),
            ("tusker_turns_total{kind=\"full\"}", "counter", 1_030.0),
            ("tusker_turns_total{kind=\"fast\"}", "counter", 3_090.0),
            ("tusker_rows_total", "counter", 3_300.0),
            ("tusker_evaluations_total", "counter", 263_680.0),
            ("tusker_batches_total", "counter", 1_288.0),
            ("tusker_turns_per_second", "gauge", 412.0),
            ("tusker_evaluations_per_second", "gauge", 26_368.0),
            ("tusker_largest_batch_evaluations", "gauge", 256.0),
            ("tusker_batch_fill_ratio", "gauge", 0.7997),
            ("tusker_cache_queries_total", "counter", 1_000.0),
            ("tusker_cache_hits_total", "counter", 250.0),
            ("tusker_networks_loaded_total", "counter", 2.0),
            ("tusker_shards_total", "counter", 3.0),
            ("tusker_shards_bytes", "gauge", 1_073_741_824.0),
            ("tusker_disk_used_bytes", "gauge", 1_610_612_736.0),
            ("tusker_disk_free_bytes", "gauge", 7_516_192_768.0),
            ("tusker_resident_memory_bytes", "gauge", 1_342_177_280.0),
        ];
        for (name, kind, value) in expected {
            let (found_kind, found) = metrics
                .get(name)
                .unwrap_or_else(|| panic!("{name} is missing in\n{text}"));
            assert_eq!((found_kind.as_str(), *found), (kind, value), "{name}");
        }
        assert_eq!(metrics.len(), expected.len(), "{text}");
    }

    #[test]
    fn devices_have_their_metrics() {
        let mut devices = devices();
        devices.push(DeviceCounters::new(Device::Cuda(2)));
        let counters = Counters {
            devices,
            rows_waiting: Some(1_204),
            ..busy()
        };
        let text = page_of(&counters, None);
        let metrics = parse_page(&text);
        let of = |name: &str, device: u16| {
            let key = format!("tusker_device_{name}{{device=\"cuda:{device}\"}}");
            metrics.get(&key).map(|(_, value)| *value)
        };
        assert_eq!(of("busy_ratio", 0), Some(0.93));
        assert_eq!(of("mean_batch_rows", 0), Some(582.0));
        assert_eq!(of("batch_fill_ratio", 0), Some(0.97));
        assert_eq!(of("busy_ratio", 1), Some(0.5));
        assert_eq!(of("busy_ratio", 2), Some(0.0));
        assert_eq!(of("mean_batch_rows", 2), None);
        assert_eq!(metrics["tusker_rows_waiting"].1, 1_204.0);
    }

    #[test]
    fn what_is_unknown_is_left_out() {
        let text = page_of(&Counters::default(), None);
        let metrics = parse_page(&text);
        for name in [
            "tusker_time_left_seconds",
            "tusker_games_target",
            "tusker_largest_batch_evaluations",
            "tusker_batch_fill_ratio",
            "tusker_device",
            "tusker_rows_waiting",
            "tusker_cache_queries_total",
            "tusker_cache_hits_total",
            "tusker_disk_free_bytes",
            "tusker_resident_memory_bytes",
        ] {
            assert!(!text.contains(name), "{name} in\n{text}");
        }
        assert_eq!(metrics["tusker_games_total{winner=\"gold\"}"].1, 0.0);
    }

    #[test]
    fn labels_are_escaped() {
        let counters = Counters {
            network: NetworkInUse {
                name: "a \"strange\\name\"\n".to_owned(),
                identity: None,
            },
            ..Counters::default()
        };
        let text = page_of(&counters, None);
        assert!(
            text.contains(r#"network="a \"strange\\name\"\n""#),
            "{text}"
        );
    }
}
