//! The HTTP server of metrics and of the page: a router of axum behind hyper's limits of time.
//!
//! The number of connections is bounded. Each connection carries one request, which must arrive within [`REQUEST_TIME`] and whose
//! answer must be taken within the server's limit. A stream of events may last longer.

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use futures_util::TryFutureExt;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{self, Runtime};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tower::ServiceExt;

/// The time that a client has to send the head of its request.
const REQUEST_TIME: Duration = Duration::from_secs(2);

/// Pause after connections could not be accepted, for example because file descriptors ran out.
const RETRY_TIME: Duration = Duration::from_secs(1);

/// The time that the end of a server waits for answers.
const END_TIME: Duration = Duration::from_secs(1);

/// The limits of a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HttpLimits {
    /// Connections that are served at once; more of them wait until the system refuses them.
    pub(crate) connections: usize,
    /// The time that a request and its answer may take.
    pub(crate) answer_time: Duration,
    /// The time that a stream of events may last; its client connects again.
    pub(crate) stream_time: Duration,
}

/// A running server. It stops when this is dropped, and all connections end with it.
#[derive(Debug)]
pub(crate) struct HttpServer {
    address: SocketAddr,
    accepting: JoinHandle<()>,
    /// Some until it is dropped.
    runtime: Option<Runtime>,
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        // An answer may wait for a disk that never answers.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(END_TIME);
        }
    }
}

impl HttpServer {
    /// Serves a router at an address `HOST:PORT`; with port 0, at a port of the system's choice. `what` names it in errors and threads.
    ///
    /// # Errors
    /// The address is none, it is in use, or it isn't this machine's.
    pub(crate) fn start(
        what: &'static str,
        address: &str,
        limits: HttpLimits,
        router: impl FnOnce(SocketAddr) -> Router,
    ) -> Result<Self> {
        Self::serve(what, address, |listener, address| {
            accept(listener, router(address), limits)
        })
    }

    /// As [`start`](Self::start), given what accepts connections; the server has ended when that has.
    pub(crate) fn serve<F: Future<Output = ()> + Send + 'static>(
        what: &'static str,
        address: &str,
        accept: impl FnOnce(TcpListener, SocketAddr) -> F,
    ) -> Result<Self> {
        let failed = || format!("can't serve {what} at {address}");
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name(what)
            .enable_io()
            .enable_time()
            .build()
            .with_context(failed)?;
        let listener = runtime.block_on(TcpListener::bind(address));
        let listener = listener.with_context(failed)?;
        let address = listener.local_addr().with_context(failed)?;
        Ok(Self {
            address,
            accepting: runtime.spawn(accept(listener, address)),
            runtime: Some(runtime),
        })
    }

    /// Where it serves.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether it has ended for an unexpected reason.
    pub(crate) fn has_ended(&self) -> bool {
        self.accepting.is_finished()
    }
}

async fn accept(listener: TcpListener, router: Router, limits: HttpLimits) {
    let places = Arc::new(Semaphore::new(limits.connections));
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let router = router.clone();
                tokio::spawn(async move {
                    serve(stream, router, limits).await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(RETRY_TIME).await,
        }
    }
}

async fn serve(stream: TcpStream, router: Router, limits: HttpLimits) {
    let is_stream = Arc::new(AtomicBool::new(false));
    let service = service_fn(|request| {
        let is_stream = Arc::clone(&is_stream);
        let answer = router.clone().oneshot(request);
        answer.inspect_ok(move |response| is_stream.store(is_of_events(response), Relaxed))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIME)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    // A client that disconnects, sends nonsense or is too slow fails alone.
    if timeout(limits.answer_time, connection.as_mut())
        .await
        .is_err()
        && is_stream.load(Relaxed)
    {
        let _ = timeout(limits.stream_time, connection).await;
    }
}

fn is_of_events(response: &Response<Body>) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}
