//! A snapshot in the text format of Prometheus, version 0.0.4.
//!
//! The table of [`super::figures`] lists the metrics without labels, and the parts of `tusker_games_total` and `tusker_turns_total`.
//! The others stand here: `tusker_info`, `tusker_state`, and `tusker_device_…` of each device of the evaluation service.
//!
//! `tusker_batches_total`, `tusker_largest_batch_evaluations` and `tusker_batch_fill_ratio` are of the batches that workers request;
//! those of a device are what the service made of them, and their fill is the share that is no padding.
//!
//! Means and shares of the whole time are quotients of counters.

use super::counters::State;
use super::figures::{FIGURES, Kind, Metric};
use super::snapshot::Snapshot;
use engine::run::DeviceUse;
use prometheus::proto::{self, LabelPair, MetricFamily, MetricType};
use prometheus::{Result, TextEncoder};

/// Content type of a scrape's answer.
pub(super) const CONTENT_TYPE: &str = prometheus::TEXT_FORMAT;

/// A metric of one device.
type DeviceMetric = (&'static str, &'static str, fn(&DeviceUse) -> Option<f64>);

const DEVICE_METRICS: [DeviceMetric; 3] = [
    (
        "tusker_device_busy_ratio",
        "Share of the last interval spent on a batch",
        |device| Some(device.busy),
    ),
    (
        "tusker_device_mean_batch_rows",
        "Mean rows a batch over the last interval, without padding",
        |device| device.mean_batch,
    ),
    (
        "tusker_device_batch_fill_ratio",
        "Share of the rows computed in the last interval that were requested",
        |device| device.fill,
    ),
];

/// The page for a scrape. An unknown value is left out.
///
/// # Errors
/// The library refuses a name or a label, which does not depend on the snapshot.
pub(super) fn page(snapshot: &Snapshot) -> Result<String> {
    let mut page = Page::default();
    let now = &snapshot.now;
    let identity = now.network.identity.as_deref().unwrap_or_default();
    let info = [
        ("identity", identity),
        ("network", &now.network.name),
        ("version", env!("CARGO_PKG_VERSION")),
    ];
    page.add(gauge("tusker_info", "Version and network"), &info, 1.0);
    let state = gauge(
        "tusker_state",
        "Whether the generator plays: 1 for its state",
    );
    for name in State::NAMES {
        let is_in_it = f64::from(u8::from(name == now.state.name()));
        page.add(state, &[("state", name)], is_in_it);
    }
    for figure in FIGURES {
        // Whole numbers are exact up to 2^53.
        if let (Some(metric), Some(value)) = (figure.metric, figure.of(snapshot).as_f64()) {
            page.add(metric, figure.label.as_slice(), value);
        }
    }
    let devices = snapshot.recent.devices();
    for (name, help, read) in DEVICE_METRICS {
        for device in &devices {
            if let Some(value) = read(device) {
                page.add(gauge(name, help), &[("device", &device.device)], value);
            }
        }
    }
    TextEncoder::new().encode_to_string(&page.families)
}

/// The metrics of a page: a family has one name, and a value for each of its labels.
#[derive(Default)]
struct Page {
    families: Vec<MetricFamily>,
}

impl Page {
    /// Adds a value. The values of one metric come one after the other.
    fn add(&mut self, metric: Metric, labels: &[(&str, &str)], value: f64) {
        let labels = labels.iter().map(|&(name, value)| {
            let mut pair = LabelPair::default();
            pair.set_name(name.to_owned());
            pair.set_value(value.to_owned());
            pair
        });
        let mut sample = proto::Metric::from_label(labels.collect());
        let kind = match metric.kind {
            Kind::Counter => {
                let mut counter = proto::Counter::default();
                counter.set_value(value);
                sample.set_counter(counter);
                MetricType::COUNTER
            }
            Kind::Gauge => {
                let mut gauge = proto::Gauge::default();
                gauge.set_value(value);
                sample.set_gauge(gauge);
                MetricType::GAUGE
            }
        };
        if let Some(family) = self
            .families
            .last_mut()
            .filter(|it| it.name() == metric.name)
        {
            family.mut_metric().push(sample);
            return;
        }
        let mut family = MetricFamily::default();
        family.set_name(metric.name.to_owned());
        family.set_help(metric.help.to_owned());
        family.set_field_type(kind);
        family.set_metric(vec![sample]);
        self.families.push(family);
    }
}

fn gauge(name: &'static str, help: &'static str) -> Metric {
    let kind = Kind::Gauge;
    Metric { name, help, kind }
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
            ("tusker_state{state=\"ended\"}", "gauge", 0.0),
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
            ("tusker_turns_total{kind=\"searched\"}", "counter", 1_030.0),
            ("tusker_turns_total{kind=\"drawn\"}", "counter", 3_090.0),
            ("tusker_rows_total", "counter", 3_300.0),
            ("tusker_evaluations_total", "counter", 263_680.0),
            ("tusker_batches_total", "counter", 1_288.0),
            ("tusker_turns_per_second", "gauge", 412.0),
            ("tusker_evaluations_per_second", "gauge", 26_368.0),
            ("tusker_largest_batch_evaluations", "gauge", 256.0),
            ("tusker_batch_fill_ratio", "gauge", 0.7997),
            (
                "tusker_worker_seconds_total{use=\"search\"}",
                "counter",
                90.0,
            ),
            (
                "tusker_worker_seconds_total{use=\"records\"}",
                "counter",
                6.0,
            ),
            (
                "tusker_worker_seconds_total{use=\"encode\"}",
                "counter",
                0.0,
            ),
            ("tusker_worker_seconds_total{use=\"wait\"}", "counter", 1.5),
            (
                "tusker_worker_seconds_total{use=\"device\"}",
                "counter",
                22.0,
            ),
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
