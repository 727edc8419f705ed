//! The table of all figures: the keys of the JSON log in their order, and the metrics of Prometheus.
//!
//! Totals are of this start of the program. Shares lie in [0, 1]. An unknown value is null in the log and left out of the metrics.
//! Rates, `mean_batch`, `batch_fill` and `devices` are of the last reporting interval, `…_since_start` of the whole time.
//!
//! `batches`, `mean_batch`, `largest_batch` and `batch_fill` are of the batches that workers request. `devices` is of the batches
//! that the evaluation service makes of them.
//!
//! A new figure is one row here.

use super::counters::rounded;
use super::snapshot::Snapshot;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// One row of the table.
pub(super) struct Figure {
    /// The key in the JSON log; none for a figure of Prometheus alone.
    pub(super) key: Option<&'static str>,
    pub(super) metric: Option<Metric>,
    /// The label that tells a metric's rows apart, and its value.
    pub(super) label: Option<(&'static str, &'static str)>,
    read: fn(&Snapshot) -> Value,
}

/// A metric of Prometheus.
#[derive(Clone, Copy)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A total that never falls. It begins at 0 with each start of the program.
    Counter,
    Gauge,
}

impl Figure {
    /// The value at a moment, with fractions rounded.
    pub(super) fn of(&self, snapshot: &Snapshot) -> Value {
        match (self.read)(snapshot) {
            Value::Number(number) if number.is_f64() => json!(number.as_f64().map(rounded)),
            value => value,
        }
    }

    const fn counter(self, name: &'static str, help: &'static str) -> Self {
        let kind = Kind::Counter;
        let metric = Some(Metric { name, help, kind });
        Self { metric, ..self }
    }

    const fn gauge(self, name: &'static str, help: &'static str) -> Self {
        let kind = Kind::Gauge;
        let metric = Some(Metric { name, help, kind });
        Self { metric, ..self }
    }

    /// One of several consecutive rows of the same metric.
    const fn part_of(self, metric: Metric, label: &'static str, value: &'static str) -> Self {
        Self {
            metric: Some(metric),
            label: Some((label, value)),
            ..self
        }
    }

    /// For Prometheus alone.
    const fn not_logged(self) -> Self {
        Self { key: None, ..self }
    }
}

/// A row of the log, until it gets a metric.
const fn figure(key: &'static str, read: fn(&Snapshot) -> Value) -> Figure {
    Figure {
        key: Some(key),
        metric: None,
        label: None,
        read,
    }
}

const GAMES: Metric = Metric {
    name: "tusker_games_total",
    help: "Finished games; without a winner where the turn limit ended them",
    kind: Kind::Counter,
};

const WORKER_SECONDS: Metric = Metric {
    name: "tusker_worker_seconds_total",
    help: "Time of the workers, by its use",
    kind: Kind::Counter,
};

const TURNS: Metric = Metric {
    name: "tusker_turns_total",
    help: "Turns played: searched, or drawn from the policy",
    kind: Kind::Counter,
};

/// The table, in the order of the log's keys.
pub(super) const FIGURES: &[Figure] = &[
    // RFC 3339, UTC.
    figure("time", |it| json!(it.time)),
    figure("seconds", |it| json!(it.since_start.seconds()))
        .gauge("tusker_uptime_seconds", "Time since the start"),
    // `running`, `waiting_for_disk`, `stopping` or `ended`.
    figure("state", |it| json!(it.now.state.name())),
    figure("waiting_reason", |it| json!(it.now.state.waiting_reason())),
    figure("games", |it| json!(it.now.games())),
    figure("target_games", |it| json!(it.target_games))
        .gauge("tusker_games_target", "Games to finish in this start"),
    figure("games_in_flight", |it| json!(it.now.games_in_flight))
        .gauge("tusker_games_in_flight", "Games in flight"),
    figure("turns", |it| json!(it.now.turns)),
    figure("searched_turns", |it| json!(it.now.searched_turns)).part_of(TURNS, "kind", "searched"),
    figure("drawn_turns", |it| json!(it.now.drawn_turns()))
        .part_of(TURNS, "kind", "drawn")
        .not_logged(),
    figure("rows", |it| json!(it.now.rows))
        .counter("tusker_rows_total", "Rows recorded for training"),
    figure("evaluations", |it| json!(it.now.evaluations))
        .counter("tusker_evaluations_total", "Evaluations taken"),
    figure("batches", |it| json!(it.now.batches))
        .counter("tusker_batches_total", "Batches of evaluations"),
    figure("turns_per_second", |it| {
        json!(it.recent.per_second(|now| now.turns))
    })
    .gauge(
        "tusker_turns_per_second",
        "Turns a second over the last interval",
    ),
    figure("evaluations_per_second", |it| {
        json!(it.recent.per_second(|now| now.evaluations))
    })
    .gauge(
        "tusker_evaluations_per_second",
        "Evaluations a second over the last interval",
    ),
    figure("turns_per_second_since_start", |it| {
        json!(it.since_start.per_second(|now| now.turns))
    }),
    figure("evaluations_per_second_since_start", |it| {
        json!(it.since_start.per_second(|now| now.evaluations))
    }),
    figure("game_turns", |it| json!(it.now.game_turns))
        .counter("tusker_game_turns_total", "Turns of the finished games"),
    figure("mean_game_turns", |it| json!(it.now.mean_game_turns())),
    figure("gold_wins", |it| json!(it.now.gold_wins)).part_of(GAMES, "winner", "gold"),
    figure("silver_wins", |it| json!(it.now.silver_wins)).part_of(GAMES, "winner", "silver"),
    figure("unfinished", |it| json!(it.now.unfinished)).part_of(GAMES, "winner", "none"),
    // Of the games with a winner.
    figure("gold_share", |it| json!(it.now.gold_share())),
    figure("resigned", |it| json!(it.now.resigned)).counter(
        "tusker_resigned_games_total",
        "Finished games that were resigned",
    ),
    figure("resignation_checks", |it| json!(it.now.resignation_checks)).counter(
        "tusker_resignation_checks_total",
        "Played-out games in which a side would have resigned",
    ),
    figure("resignation_errors", |it| json!(it.now.resignation_errors)).counter(
        "tusker_resignation_errors_total",
        "Checks that the resigning side won",
    ),
    // Errors a check.
    figure("resignation_error_rate", |it| {
        json!(it.now.resignation_error_rate())
    }),
    // Evaluations a batch.
    figure("mean_batch", |it| json!(it.recent.mean_batch())),
    figure("largest_batch", |it| json!(it.now.known_largest_batch())).gauge(
        "tusker_largest_batch_evaluations",
        "Evaluations in the largest batch so far",
    ),
    figure("batch_fill", |it| {
        json!(it.now.batch_fill(it.recent.mean_batch()))
    })
    .gauge(
        "tusker_batch_fill_ratio",
        "Mean evaluations a batch over the last interval, as a share of the largest batch",
    ),
    // Of all workers together, by its use.
    figure("search_seconds", |it| {
        json!(it.now.times.search.as_secs_f64())
    })
    .part_of(WORKER_SECONDS, "use", "search"),
    figure("records_seconds", |it| {
        json!(it.now.times.records.as_secs_f64())
    })
    .part_of(WORKER_SECONDS, "use", "records"),
    figure("encode_seconds", |it| {
        json!(it.now.times.encode.as_secs_f64())
    })
    .part_of(WORKER_SECONDS, "use", "encode"),
    figure("wait_seconds", |it| json!(it.now.times.wait.as_secs_f64())).part_of(
        WORKER_SECONDS,
        "use",
        "wait",
    ),
    figure("device_seconds", |it| {
        json!(it.now.times.device.as_secs_f64())
    })
    .part_of(WORKER_SECONDS, "use", "device"),
    // Each with `device`, `busy`, `mean_batch` and `fill` ([`DeviceUse`]); empty where the workers evaluate by themselves.
    figure("devices", |it| json!(it.recent.devices())),
    figure("rows_waiting", |it| json!(it.now.rows_waiting))
        .gauge("tusker_rows_waiting", "Rows that wait for a device"),
    figure("network", |it| json!(it.now.network.name)),
    // Of its weights.
    figure("network_identity", |it| json!(it.now.network.identity)),
    figure("networks_loaded", |it| json!(it.now.networks_loaded)).counter(
        "tusker_networks_loaded_total",
        "Networks loaded since the start",
    ),
    figure("shards", |it| json!(it.now.shards)).counter("tusker_shards_total", "Shards written"),
    figure("shard_bytes", |it| json!(it.now.shard_bytes))
        .gauge("tusker_shards_bytes", "Shards on the disk"),
    figure("disk_used_bytes", |it| json!(it.now.disk_used))
        .gauge("tusker_disk_used_bytes", "Disk used by the run"),
    figure("disk_free_bytes", |it| json!(it.now.disk_free))
        .gauge("tusker_disk_free_bytes", "Room left on the disk"),
    figure("memory_bytes", |it| json!(it.now.memory))
        .gauge("tusker_resident_memory_bytes", "Resident memory"),
    figure("seconds_left", |it| json!(it.seconds_left)).gauge(
        "tusker_time_left_seconds",
        "Estimated time until the first limit is reached",
    ),
];

impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let keys = FIGURES
            .iter()
            .filter_map(|figure| Some((figure.key?, figure.of(self))));
        serializer.collect_map(keys)
    }
}
