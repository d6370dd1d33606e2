//! Server of gRPC: accepts connections, does the TLS handshake, and serves each connection until it or the node ends.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use assay_node_connections::{Connection, Gate, Heard, HeardBytes, Tracked};
use futures::future::{BoxFuture, join_all};
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::message::GrpcMessage;
use super::reply::{GRPC, GrpcBody, GrpcReply, no_grpc};

/// Pause after a failed accept, most likely because no descriptor is free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Bytes of a message that a call may send before they are asked for. The window of a connection has room for all of its
/// calls, so that waiting calls do not stop the others.
const WINDOW_BYTES: u32 = 64 << 10;
/// Largest frame; the smallest bound that the protocol allows.
const FRAME_BYTES_MAX: u32 = 16 << 10;
/// Size of the send buffer: a reply is a few bytes, or a failure.
const SEND_BUFFER_BYTES: usize = 64 << 10;
/// Interval of pings to a silent client, and the time for its answer.
const PING_EVERY: Duration = Duration::from_secs(30);
const PONG_WITHIN: Duration = Duration::from_secs(20);
/// A connection without a call for this long is asked to end: exporters send every few seconds, and make another if they must.
const IDLE_MAX: Duration = Duration::from_secs(600);
/// A connection that never had a call is asked to end this soon.
const UNUSED_MAX: Duration = Duration::from_secs(60);
/// Bytes that every client sends first, including the head of the frame behind them.
const PREFACE_BYTES: u64 = 24 + 9;
const ALPN: &[u8] = b"h2";

/// Limits of one listener.
#[derive(Clone, Copy, Debug)]
pub struct GrpcLimits {
    /// Upper bound of concurrent calls of one connection.
    pub calls_at_once_max: u32,
    /// Upper bound of the metadata of a call.
    pub head_bytes_max: u32,
    pub handshake_within: Duration,
    /// Time for the bytes that every client of HTTP/2 sends first.
    pub preface_within: Duration,
}

/// One call, of which only the metadata was read.
#[derive(Debug)]
pub struct GrpcCall {
    /// `/package.Service/Method`
    pub path: String,
    pub metadata: HeaderMap,
    pub message: GrpcMessage,
    pub connection: Arc<Connection>,
}

/// Handler of calls. Its future is dropped if the caller leaves.
pub trait GrpcService: Send + Sync + 'static {
    fn call(self: Arc<Self>, call: GrpcCall) -> BoxFuture<'static, GrpcReply>;
}

/// A listener. Connections are served from `run` on.
pub struct GrpcServer {
    sockets: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    shared: Arc<GrpcShared>,
    handle: GrpcHandle,
}

/// Handle that stops a server from anywhere.
#[derive(Clone)]
pub struct GrpcHandle {
    stopping: watch::Sender<bool>,
    shared: Arc<GrpcShared>,
}

/// State that all connections share.
struct GrpcShared {
    service: Arc<dyn GrpcService>,
    tls: Option<TlsAcceptor>,
    limits: GrpcLimits,
    stopping: watch::Receiver<bool>,
    gate: Arc<Gate>,
    connections: Arc<Semaphore>,
}

impl GrpcServer {
    /// Makes a server for connections that arrive on these sockets.
    pub fn new(
        sockets: Vec<TcpListener>,
        limits: GrpcLimits,
        gate: Arc<Gate>,
        tls: Option<ServerConfig>,
        service: Arc<dyn GrpcService>,
    ) -> io::Result<GrpcServer> {
        let addresses = sockets.iter().map(TcpListener::local_addr).collect::<io::Result<_>>()?;
        let tls = tls.map(|mut config| {
            config.alpn_protocols = vec![ALPN.to_vec()];
            TlsAcceptor::from(Arc::new(config))
        });
        let (stop, stopping) = watch::channel(false);
        let places = gate.limit();
        let connections = Arc::new(Semaphore::new(places));
        let shared = Arc::new(GrpcShared { service, tls, limits, gate, stopping, connections });
        let handle = GrpcHandle { stopping: stop, shared: Arc::clone(&shared) };
        Ok(GrpcServer { sockets, addresses, shared, handle })
    }

    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.addresses.clone()
    }

    pub fn handle(&self) -> GrpcHandle {
        self.handle.clone()
    }

    /// Accepts until it is stopped. Needs a tokio runtime, on which every connection is a task.
    pub async fn run(self) -> io::Result<()> {
        let mut accepting = Vec::new();
        for socket in self.sockets {
            socket.set_nonblocking(true)?;
            accepting.push(Arc::clone(&self.shared).accept(tokio::net::TcpListener::from_std(socket)?));
        }
        join_all(accepting).await;
        Ok(())
    }
}

impl GrpcHandle {
    /// Accepts no more connections, and returns when all calls are answered or the time is over.
    pub async fn stop(&self, within: Duration) {
        self.stopping.send_replace(true);
        let all = u32::try_from(self.shared.gate.limit()).unwrap_or(u32::MAX);
        let all = self.shared.connections.acquire_many(all);
        if timeout(within, all).await.is_err() {
            tracing::warn!("gRPC calls were still in progress when this node stopped");
        }
    }
}

impl GrpcShared {
    /// The listener is closed when it returns.
    async fn accept(self: Arc<GrpcShared>, listener: tokio::net::TcpListener) {
        let mut stopping = self.stopping.clone();
        let mut stopped = std::pin::pin!(until_stopped(&mut stopping));
        loop {
            // While so many connections are on their way out that the gate could not decide, newcomers wait.
            let place = Arc::clone(&self.connections).acquire_owned();
            let accepted = async { (place.await, listener.accept().await) };
            let (place, accepted) = tokio::select! {
                biased;
                () = &mut stopped => return,
                accepted = accepted => accepted,
            };
            // Nothing closes the semaphore.
            let Ok(place) = place else { return };
            match accepted {
                Ok((socket, from)) => {
                    if let Some(connection) = self.gate.open(from.ip()) {
                        tokio::spawn(Arc::clone(&self).serve(place, socket, connection));
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// One connection. `_place` is held until it ends.
    async fn serve(
        self: Arc<GrpcShared>,
        _place: OwnedSemaphorePermit,
        socket: TcpStream,
        connection: Arc<Connection>,
    ) {
        let from = socket.peer_addr();
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(?from, %error, "a connection was closed before its handshake");
            return;
        }
        let socket = Tracked::new(socket, Arc::clone(&connection));
        let Some(tls) = &self.tls else { return self.serve_on(socket, connection).await };
        match timeout(self.limits.handshake_within, tls.accept(socket)).await {
            Ok(Ok(secured)) => self.serve_on(secured, connection).await,
            Ok(Err(error)) => tracing::debug!(?from, %error, "a connection was refused"),
            Err(_) => tracing::debug!(?from, "a connection was refused: its handshake timed out"),
        }
    }

    async fn serve_on(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        connection: Arc<Connection>,
    ) {
        let begun = Arc::new(AtomicU64::new(0));
        let (service, counted) = (Arc::clone(&self.service), Arc::clone(&begun));
        let answer = move |request| {
            counted.fetch_add(1, Ordering::Relaxed);
            let (service, connection) = (Arc::clone(&service), Arc::clone(&connection));
            async move {
                let _in_use = connection.begin();
                Ok::<_, Infallible>(answered(service, connection, request).await)
            }
        };
        let (stream, heard) = Heard::new(stream);
        let calls = self.limits.calls_at_once_max;
        let connection = Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES.saturating_mul(calls))
            .max_frame_size(FRAME_BYTES_MAX)
            .max_send_buf_size(SEND_BUFFER_BYTES)
            .max_header_list_size(self.limits.head_bytes_max)
            .max_concurrent_streams(calls)
            .max_pending_accept_reset_streams(calls as usize)
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PONG_WITHIN)
            .auto_date_header(false)
            .serve_connection(TokioIo::new(stream), service_fn(answer));
        let mut connection = std::pin::pin!(connection);
        let mut stopping = self.stopping.clone();
        let over = async {
            tokio::select! {
                () = until_stopped(&mut stopping) => {}
                () = until_idle(&begun) => {}
            }
        };
        let ended = tokio::select! {
            ended = &mut connection => ended,
            () = until_silent(&heard, self.limits.preface_within) => {
                tracing::debug!("an idle gRPC connection was closed");
                return;
            }
            () = over => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a gRPC connection ended");
        }
    }
}

async fn answered(
    service: Arc<dyn GrpcService>,
    connection: Arc<Connection>,
    request: Request<hyper::body::Incoming>,
) -> Response<GrpcBody> {
    let (head, body) = request.into_parts();
    let is_grpc = head.headers.get(CONTENT_TYPE).is_some_and(|said| said.as_bytes().starts_with(GRPC.as_bytes()));
    if head.method != Method::POST || !is_grpc {
        return no_grpc();
    }
    let (path, message) = (head.uri.path().to_owned(), GrpcMessage::new(body));
    let call = GrpcCall { path, metadata: head.headers, message, connection };
    service.call(call).await.response()
}

/// Waits until the server is stopped, or nobody is left to stop it.
async fn until_stopped(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

/// Waits until the time for the first bytes is over without them; forever if they came.
async fn until_silent(heard: &HeardBytes, within: Duration) {
    sleep(within).await;
    if heard.get() >= PREFACE_BYTES {
        std::future::pending().await
    }
}

/// Waits until no call has begun for a while, which is shorter for a connection that never had one.
async fn until_idle(begun: &AtomicU64) {
    sleep(UNUSED_MAX).await;
    let mut seen = 0;
    loop {
        let now = begun.load(Ordering::Relaxed);
        if seen == now {
            return;
        }
        seen = now;
        sleep(IDLE_MAX).await;
    }
}

impl fmt::Debug for GrpcServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrpcServer").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

impl fmt::Debug for GrpcHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrpcHandle").field("limits", &self.shared.limits).finish_non_exhaustive()
    }
}
