//! Counters and a clock for the tests.

use super::snapshot::Moment;
use super::{Counters, NetworkInUse, State};
use engine::run::WorkerTimes;
use network::{Device, DeviceCounters};
use std::collections::{HashMap, HashSet};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, UNIX_EPOCH};

/// A running generator with all figures known.
pub(super) fn busy() -> Counters {
    Counters {
        gold_wins: 20,
        silver_wins: 16,
        unfinished: 4,
        resigned: 12,
        game_turns: 3_600,
        resignation_checks: 8,
        resignation_errors: 1,
        truncated_checks: 0,
        games_in_flight: 64,
        turns: 4_120,
        searched_turns: 1_030,
        rows: 3_300,
        evaluations: 263_680,
        batches: 1_288,
        largest_batch: 256,
        times: WorkerTimes {
            search: Duration::from_secs(90),
            records: Duration::from_secs(6),
            encode: Duration::ZERO,
            wait: Duration::from_millis(1_500),
            device: Duration::from_secs(22),
        },
        devices: Vec::new(),
        rows_waiting: None,
        network: NetworkInUse {
            name: "000012".to_owned(),
            identity: Some("c0ffee".to_owned()),
        },
        networks_loaded: 2,
        shards: 3,
        shard_bytes: 1 << 30,
        disk_used: 3 << 29,
        disk_free: Some(7 << 30),
        memory: Some(5 << 28),
        state: State::Running,
    }
}

/// Two GPUs after ten seconds.
pub(super) fn devices() -> Vec<DeviceCounters> {
    let device = |number: u16, batches: u64, rows: u64, milliseconds: u64| DeviceCounters {
        batches,
        rows,
        padded_rows: rows * 100 / 97,
        busy: Duration::from_millis(milliseconds),
        ..DeviceCounters::new(Device::Cuda(number))
    };
    vec![device(0, 100, 58_200, 9_300), device(1, 200, 46_075, 5_000)]
}

/// So many seconds after the start, which was at 2026-11-21T06:30:00Z.
pub(super) fn moment(seconds: f64) -> Moment {
    let since_start = Duration::from_secs_f64(seconds);
    Moment {
        since_start,
        time: UNIX_EPOCH + Duration::from_secs(1_795_242_600) + since_start,
    }
}

/// The samples of a page in the text format of Prometheus: name and labels, type, value. Panics at what the format forbids.
pub(super) fn parse_page(text: &str) -> HashMap<String, (String, f64)> {
    let mut types = HashMap::new();
    let mut helped = HashSet::new();
    let mut samples = HashMap::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(!help.is_empty() && helped.insert(name), "{line}");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge"].contains(&kind), "{line}");
            assert!(types.insert(name, kind).is_none(), "{line}");
        } else {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            let name = sample.split('{').next().unwrap();
            let kind = types[name];
            assert!(helped.contains(name), "{line}");
            assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
            let sample = (kind.to_owned(), value.parse().unwrap());
            let former = samples.insert(line[..line.len() - value.len() - 1].to_owned(), sample);
            assert!(former.is_none(), "{line}");
        }
    }
    assert!(text.ends_with('\n'));
    samples
}

/// An HTTP server's answer to a request.
pub(super) fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    // The answer to a request that is too long may come before its end.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

/// Whether the other side has closed a connection.
pub(super) fn is_closed(mut stream: TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    match stream.read(&mut [0]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

/// The status line and the body of the answer for a path.
pub(super) fn get(address: SocketAddr, path: &str) -> (String, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let answer = ask(address, &request);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.lines().next().unwrap();
    (status.to_owned(), body.to_owned())
}
