//! The HTTP server of metrics and of the page: a router of axum behind hyper's limits of time.
//!
//! The number of connections is bounded. Each connection carries one request, which must arrive within [`REQUEST_TIME`] and whose
//! answer must be taken within the server's limit. A stream of events may last longer, as long as its client takes what is sent.

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use futures_util::TryFutureExt;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{self, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{self, Runtime};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{Sleep, sleep, timeout};
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
    /// The time that a request and its answer may take, and that a stream of events may wait for its client to take more.
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
        .serve_connection(TimedConnection::new(stream, limits.answer_time), service);
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

/// A connection whose writes fail after they have waited too long for the client.
struct TimedConnection {
    stream: TokioIo<TcpStream>,
    limit: Duration,
    /// Ends a write that waits.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl TimedConnection {
    fn new(stream: TcpStream, limit: Duration) -> Self {
        Self {
            stream: TokioIo::new(stream),
            limit,
            waiting: None,
        }
    }

    fn timed(
        &mut self,
        context: &mut task::Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let limit = self.limit;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(limit)));
        let ended = waiting.as_mut().poll(context);
        ended.map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Read for TimedConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for TimedConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.timed(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.timed(context, written)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

fn is_of_events(response: &Response<Body>) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::response::sse::{Event, Sse};
    use axum::routing::get;
    use futures_util::stream::repeat_with;
    use std::convert::Infallible;
    use std::io::{Read, Write};
    use std::time::Instant;

    /// A stream of events without an end, and whether it was dropped.
    struct Dropped(Arc<AtomicBool>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.store(true, Relaxed);
        }
    }

    #[test]
    fn a_stream_ends_when_its_client_takes_nothing_and_not_before() {
        let is_dropped = Arc::new(AtomicBool::new(false));
        let to_drop = Arc::clone(&is_dropped);
        let stream = move || async move {
            let dropped = Dropped(Arc::clone(&to_drop));
            Sse::new(repeat_with(move || {
                let _held = &dropped;
                Ok::<_, Infallible>(Event::default().data("a".repeat(10_000)))
            }))
        };
        let answer_time = Duration::from_secs(1);
        let limits = HttpLimits {
            connections: 2,
            answer_time,
            stream_time: Duration::from_secs(600),
        };
        let router = |_| Router::new().route("/", get(stream));
        let server = HttpServer::start("test", "127.0.0.1:0", limits, router).unwrap();
        let mut client = std::net::TcpStream::connect(server.address()).unwrap();
        client
            .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            .unwrap();
        let begun = Instant::now();
        let mut bytes = vec![0; 100_000];
        while begun.elapsed() < 3 * answer_time {
            assert!(client.read(&mut bytes).unwrap() > 0);
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!is_dropped.load(Relaxed));
        let begun = Instant::now();
        while !is_dropped.load(Relaxed) {
            assert!(begun.elapsed() < Duration::from_secs(30));
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
