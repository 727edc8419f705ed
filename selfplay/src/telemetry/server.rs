//! The HTTP server that metrics are read from: `GET /metrics`, and nothing else.
//!
//! One thread serves all connections. A client can delay others for some seconds at most. The games are not delayed: they only publish
//! their newest snapshot.

use super::metrics::{CONTENT_TYPE, page};
use super::snapshot::Snapshot;
use crate::http::{HttpLimits, HttpServer};
use anyhow::Result;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const CONNECTIONS: usize = 64;

/// The time that a connection may last.
const CONNECTION_TIME: Duration = Duration::from_secs(5);

/// The newest snapshot.
pub(super) type Latest = Arc<Mutex<Snapshot>>;

/// Serves at an address `HOST:PORT`; with port 0, at a port of the system's choice.
///
/// # Errors
/// The address is none, it is in use, or it isn't this machine's.
pub(super) fn start(address: &str, latest: Latest) -> Result<HttpServer> {
    let limits = HttpLimits {
        connections: CONNECTIONS,
        answer_time: CONNECTION_TIME,
        stream_time: Duration::ZERO,
    };
    HttpServer::start("metrics", address, limits, |_| router(latest))
}

/// Replaces the snapshot that is served.
pub(super) fn publish(latest: &Latest, snapshot: Snapshot) {
    *latest.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
}

fn router(latest: Latest) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .fallback(|| async { (StatusCode::NOT_FOUND, "Nothing is here: see /metrics\n") })
        .with_state(latest)
}

async fn metrics(State(latest): State<Latest>) -> Response {
    let snapshot = latest
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    match page(&snapshot) {
        Ok(body) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], body).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutation::{Mutations, cases};
    use crate::telemetry::counters::Counters;
    use crate::telemetry::testing::{ask, get, is_closed, parse_page};
    use std::io::{Read, Write};
    use std::net::{Shutdown, SocketAddr, TcpStream};

    fn server() -> HttpServer {
        start("127.0.0.1:0", Arc::new(Mutex::new(won_by_gold(7)))).unwrap()
    }

    fn won_by_gold(gold_wins: u64) -> Snapshot {
        Snapshot {
            now: Counters {
                gold_wins,
                ..Counters::default()
            },
            ..Snapshot::default()
        }
    }

    fn gold_wins(address: SocketAddr) -> f64 {
        let (status, body) = get(address, "/metrics");
        assert_eq!(status, "HTTP/1.1 200 OK");
        parse_page(&body)["tusker_games_total{winner=\"gold\"}"].1
    }

    #[test]
    fn the_newest_snapshot_is_served_as_prometheus_text() {
        let latest = Arc::new(Mutex::new(won_by_gold(7)));
        let server = start("127.0.0.1:0", Arc::clone(&latest)).unwrap();
        assert_eq!(gold_wins(server.address()), 7.0);
        publish(&latest, won_by_gold(8));
        assert_eq!(gold_wins(server.address()), 8.0);
        let whole = ask(
            server.address(),
            "GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\n\r\n",
        );
        assert!(
            whole.contains("content-type: text/plain; version=0.0.4\r\n"),
            "{whole}"
        );
    }

    #[test]
    fn other_requests_are_refused() {
        let server = server();
        for path in ["/", "/metrics/", "/../../etc/passwd", "/metric"] {
            let (status, _) = get(server.address(), path);
            assert_eq!(status, "HTTP/1.1 404 Not Found", "{path}");
        }
        let status = |request: &str| {
            let answer = ask(server.address(), request);
            answer.lines().next().unwrap_or_default().to_owned()
        };
        assert_eq!(
            status("DELETE /metrics HTTP/1.1\r\nHost: x\r\n\r\n"),
            "HTTP/1.1 405 Method Not Allowed"
        );
        assert_eq!(status("nonsense\r\n\r\n"), "HTTP/1.1 400 Bad Request");
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(1 << 17));
        // The refusal may be lost where the connection ends before the request does.
        let refusal = status(&long);
        assert!(
            ["HTTP/1.1 414 URI Too Long", ""].contains(&refusal.as_str()),
            "{refusal}"
        );
        assert_eq!(gold_wins(server.address()), 7.0);
    }

    #[test]
    fn no_request_stops_the_server() {
        const REQUESTS: [&str; 4] = [
            "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
            "HEAD /metrics?a=b HTTP/1.0\r\nAccept: */*\r\nConnection: keep-alive\r\n\r\n",
            "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
            "PUT http://x/metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        ];
        let server = server();
        let mut requests = Mutations::new(&REQUESTS, 32);
        for number in 0..cases(1_000) {
            let mut stream = TcpStream::connect(server.address()).unwrap();
            // The server may close the connection before it has read everything.
            let _ = stream.write_all(&requests.next());
            let _ = stream.shutdown(Shutdown::Write);
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            assert!(answer.is_empty() || answer.starts_with(b"HTTP/1."));
            if number % 100 == 0 {
                assert_eq!(gold_wins(server.address()), 7.0);
            }
        }
        assert!(!server.has_ended());
    }

    #[test]
    fn silent_clients_do_not_block_others() {
        let server = server();
        let mut silent: Vec<TcpStream> = (0..CONNECTIONS - 8)
            .map(|_| TcpStream::connect(server.address()).unwrap())
            .collect();
        for stream in silent.iter_mut().step_by(2) {
            stream.write_all(b"GET /metrics HT").unwrap();
        }
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| assert_eq!(gold_wins(server.address()), 7.0));
            }
        });
        drop(silent);
    }

    #[test]
    fn too_many_silent_clients_time_out() {
        let server = server();
        let silent: Vec<TcpStream> = (0..CONNECTIONS + 8)
            .map(|_| TcpStream::connect(server.address()).unwrap())
            .collect();
        assert_eq!(gold_wins(server.address()), 7.0);
        let mut answer = Vec::new();
        (&silent[0]).read_to_end(&mut answer).unwrap();
        assert!(!answer.starts_with(b"HTTP/1.1 200"));
    }

    #[test]
    fn an_address_in_use_is_named() {
        let server = server();
        let address = server.address().to_string();
        let error = start(&address, Latest::default()).unwrap_err();
        let error = format!("{error:#}");
        assert!(
            error.starts_with(&format!("can't serve metrics at {address}: Address")),
            "{error}"
        );
        let error = start("nowhere", Latest::default()).unwrap_err();
        assert!(format!("{error:#}").contains("at nowhere: "), "{error:#}");
    }

    #[test]
    fn dropping_the_server_closes_all_connections() {
        let server = server();
        let open = TcpStream::connect(server.address()).unwrap();
        let waiting = open.try_clone().unwrap();
        assert!(!is_closed(waiting));
        drop(server);
        assert!(is_closed(open));
    }
}
