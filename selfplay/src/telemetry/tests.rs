//! All outputs together, with given counters and times.

use super::testing::{busy, devices, get, is_closed, moment, parse_page};
use super::*;
use engine::run::{GeneratorPaths, GeneratorStatus, RunDirectory};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::path::Path;

/// The line of the log after 15 seconds of [`busy`].
const EVERYTHING: &str = r#"{
    "event": "progress",
    "time": "2026-11-21T06:30:15Z",
    "seconds": 15.0,
    "state": "running",
    "waiting_reason": null,
    "games": 40,
    "target_games": 200,
    "games_in_flight": 64,
    "turns": 4120,
    "searched_turns": 1030,
    "rows": 3300,
    "evaluations": 263680,
    "batches": 1288,
    "turns_per_second": 274.6667,
    "evaluations_per_second": 17578.6667,
    "turns_per_second_since_start": 274.6667,
    "evaluations_per_second_since_start": 17578.6667,
    "game_turns": 3600,
    "mean_game_turns": 90.0,
    "gold_wins": 20,
    "silver_wins": 16,
    "gold_share": 0.5556,
    "unfinished": 4,
    "resigned": 12,
    "resignation_checks": 8,
    "resignation_errors": 1,
    "resignation_error_rate": 0.125,
    "mean_batch": 204.7205,
    "largest_batch": 256,
    "batch_fill": 0.7997,
    "search_seconds": 90.0,
    "records_seconds": 6.0,
    "encode_seconds": 0.0,
    "wait_seconds": 1.5,
    "device_seconds": 22.0,
    "devices": [
        {"device": "cuda:0", "busy": 0.62, "mean_batch": 582.0, "fill": 0.97},
        {"device": "cuda:1", "busy": 0.3333, "mean_batch": 230.375, "fill": 0.97}
    ],
    "rows_waiting": 1204,
    "network": "000012",
    "network_identity": "c0ffee",
    "networks_loaded": 2,
    "shards": 3,
    "shard_bytes": 1073741824,
    "disk_used_bytes": 1610612736,
    "disk_free_bytes": 7516192768,
    "memory_bytes": 1342177280,
    "seconds_left": 60.0
}"#;

fn about() -> About {
    About {
        program_version: "0.1.0".to_owned(),
        config_digest: "d1ce".to_owned(),
        seed: u64::MAX,
        generator: 3,
        worker: "812_3".to_owned(),
        host: "node-7".to_owned(),
        device: "cuda:0,cuda:1".to_owned(),
        limits: Limits {
            games: Some(200),
            hours: Some(2.5),
            disk_bytes: Some(1 << 40),
            memory_bytes: None,
        },
    }
}

fn begin(arguments: &TelemetryArguments) -> Telemetry {
    let counters = Counters::default();
    Telemetry::start_at(arguments, &about(), &counters, moment(0.0).time).unwrap()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn the_log_has_a_line_an_interval_a_first_and_a_last() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let mut telemetry = begin(&TelemetryArguments {
        json_log: Some(path.clone()),
        metrics: None,
    });
    let mut counters = busy();
    for fifth in 1..=200 {
        counters.turns = fifth * 20;
        telemetry.tick_at(&counters, moment(fifth as f64 / 5.0));
    }
    // The machine slept.
    telemetry.tick_at(&counters, moment(1_000.0));
    telemetry.tick_at(&counters, moment(1_000.2));
    let last = telemetry.finish_at(&counters, "all games are played", moment(1_000.3));
    let lines = lines(&path);
    let events: Vec<_> = lines
        .iter()
        .map(|line| line["event"].as_str().unwrap())
        .collect();
    let seconds: Vec<_> = lines.iter().map(|line| line["seconds"].as_f64()).collect();
    assert_eq!(events, ["start", "progress", "progress", "progress", "end"]);
    assert_eq!(
        seconds,
        [None, Some(15.0), Some(30.0), Some(1_000.0), Some(1_000.3)]
    );
    assert_eq!(
        lines[0],
        json!({
            "event": "start",
            "time": "2026-11-21T06:30:00Z",
            "program_version": "0.1.0",
            "config_digest": "d1ce",
            "seed": u64::MAX,
            "generator": 3,
            "worker": "812_3",
            "host": "node-7",
            "device": "cuda:0,cuda:1",
            "limits": {"games": 200, "hours": 2.5, "disk_bytes": 1_u64 << 40, "memory_bytes": null},
        })
    );
    assert_eq!(lines[2]["turns_per_second"], 100.0);
    assert_eq!(lines[4]["reason"], "all games are played");
    assert_eq!(last.now.turns, 4_000);
}

#[test]
fn every_key_that_is_read_of_a_status_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let paths = GeneratorPaths::from(&RunDirectory::new(folder.path()));
    std::fs::create_dir_all(paths.status(3).parent().unwrap()).unwrap();
    let mut telemetry = begin(&TelemetryArguments::default());
    telemetry.keep_newest_in(paths.status(3), &Counters::default());
    let counters = Counters {
        devices: devices(),
        rows_waiting: Some(1_204),
        ..busy()
    };
    telemetry.tick_at(&counters, moment(15.0));
    let written: Value = serde_json::from_slice(&std::fs::read(paths.status(3)).unwrap()).unwrap();
    let status = GeneratorStatus::read(&paths, 3).unwrap().unwrap();
    assert_eq!(status.times, counters.times.map(|time| time.as_secs_f64()));
    let read = serde_json::to_value(&status).unwrap();
    for (key, value) in read.as_object().unwrap() {
        assert_eq!(written.get(key), Some(value), "{key}");
    }
}

#[test]
fn a_line_of_the_log_holds_everything() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let mut telemetry = begin(&TelemetryArguments {
        json_log: Some(path.clone()),
        metrics: None,
    });
    let newest = folder.path().join("status.json");
    telemetry.keep_newest_in(newest.clone(), &Counters::default());
    let read = || -> Value { serde_json::from_slice(&std::fs::read(&newest).unwrap()).unwrap() };
    assert_eq!(
        (&read()["games"], &read()["devices"]),
        (&json!(0), &json!([]))
    );
    let counters = Counters {
        devices: devices(),
        rows_waiting: Some(1_204),
        ..busy()
    };
    telemetry.tick_at(&counters, moment(15.0));
    let line = lines(&path).pop().unwrap();
    let mut expected: Value = serde_json::from_str(EVERYTHING).unwrap();
    assert_eq!(line, expected);
    // The newest snapshot is the same, in a file of its own, with what is known from the start.
    let facts = serde_json::to_value(about()).unwrap();
    let expected = expected.as_object_mut().unwrap();
    expected.remove("event");
    expected.extend(facts.as_object().unwrap().clone());
    assert_eq!(read().as_object().unwrap(), expected);
    telemetry.finish_at(&counters, "the end", moment(20.0));
    let last = read();
    assert_eq!(
        (&last["state"], &last["seconds"]),
        (&json!("ended"), &json!(20.0))
    );
}

#[test]
fn a_log_that_cannot_be_written_does_not_end_the_generator() {
    let folder = tempfile::tempdir().unwrap();
    let mut telemetry = begin(&TelemetryArguments {
        json_log: Some(folder.path().to_owned()),
        metrics: None,
    });
    for second in 1..100 {
        telemetry.tick_at(&busy(), moment(f64::from(second)));
    }
    let snapshot = telemetry.finish_at(&busy(), "Ctrl-C", moment(100.0));
    assert_eq!(snapshot.now.games(), 40);
}

#[test]
fn a_file_that_cannot_be_written_is_reported_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut newest = OutputFile::new(folder.path().join("nowhere").join("status.json"));
    let complaint = newest.replace(&Snapshot::default()).unwrap();
    assert!(
        complaint.contains("nowhere/status.json: No such file"),
        "{complaint}"
    );
    assert_eq!(newest.replace(&Snapshot::default()), None);
}

#[test]
fn a_metrics_server_that_ends_is_reported_once() {
    let mut telemetry = begin(&TelemetryArguments::default());
    let panics = |_, _| async { panic!("a test's panic") };
    let server = HttpServer::serve("metrics", "127.0.0.1:0", panics).unwrap();
    while !server.has_ended() {
        std::thread::yield_now();
    }
    telemetry.server = Some(server);
    let complaint = telemetry.check_server().unwrap();
    assert!(complaint.contains("serves the metrics has ended"));
    assert_eq!(telemetry.check_server(), None);
    telemetry.tick_at(&busy(), moment(1.0));
    assert!(telemetry.server.is_none());
}

#[test]
fn metrics_follow_the_ticks() {
    let mut telemetry = begin(&TelemetryArguments {
        json_log: None,
        metrics: Some("127.0.0.1:0".to_owned()),
    });
    let address = telemetry.server.as_ref().unwrap().address();
    let gold_wins = || {
        let (_, page) = get(address, "/metrics");
        parse_page(&page)["tusker_games_total{winner=\"gold\"}"].1
    };
    assert_eq!(gold_wins(), 0.0);
    telemetry.tick_at(&Counters::default(), moment(1.0));
    telemetry.tick_at(&busy(), moment(1.05));
    assert_eq!(gold_wins(), 0.0, "too early for another tick");
    telemetry.tick_at(&busy(), moment(1.1));
    assert_eq!(gold_wins(), 20.0);
    let open = TcpStream::connect(address).unwrap();
    telemetry.finish_at(&busy(), "the end", moment(2.0));
    assert!(is_closed(open));
}

#[test]
fn an_address_that_cannot_be_used_is_an_error() {
    let arguments = TelemetryArguments {
        json_log: None,
        metrics: Some("127.0.0.1:http?".to_owned()),
    };
    let error = Telemetry::start(&arguments, &about(), &Counters::default()).unwrap_err();
    assert!(
        format!("{error:#}").starts_with("can't serve metrics at 127.0.0.1:http?: "),
        "{error:#}"
    );
}

#[test]
fn the_systems_clocks_are_used() {
    let mut telemetry = Telemetry::start(
        &TelemetryArguments::default(),
        &about(),
        &Counters::default(),
    )
    .unwrap();
    telemetry.tick(&busy());
    let snapshot = telemetry.finish(&busy(), "the end");
    assert!(
        snapshot.since_start.seconds() < 60.0 && snapshot.time.starts_with("20"),
        "{snapshot:?}"
    );
}
