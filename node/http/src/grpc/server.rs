//! gRPC server, which accepts connections, performs the TLS handshake, and serves calls.

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

/// Pause after a failed accept. The most likely cause is a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Flow-control window of one call, in bytes.
///
/// The window of a connection has room for all of its calls, so that waiting calls do not block the others.
const WINDOW_BYTES: u32 = 64 << 10;
/// Upper bound of a frame. The protocol allows no smaller bound.
const FRAME_BYTES_MAX: u32 = 16 << 10;
/// Size of the send buffer. Replies are small.
const SEND_BUFFER_BYTES: usize = 64 << 10;
/// Interval of pings to a silent client.
const PING_EVERY: Duration = Duration::from_secs(30);
/// Time limit for the response to a ping.
const PONG_WITHIN: Duration = Duration::from_secs(20);
/// Time without a new call after which a connection is asked to end.
///
/// Exporters send every few seconds, and reconnect if necessary.
const IDLE_MAX: Duration = Duration::from_secs(600);
/// Time after which a connection without any call is asked to end.
const UNUSED_MAX: Duration = Duration::from_secs(60);
/// Number of bytes that every client sends first: the preface and the header of the next frame.
const PREFACE_BYTES: u64 = 24 + 9;
const ALPN: &[u8] = b"h2";

/// Limits of one listener.
#[derive(Clone, Copy, Debug)]
pub struct GrpcLimits {
    /// Upper bound of the concurrent calls of one connection.
    pub calls_at_once_max: u32,
    /// Upper bound of the bytes of a call's metadata.
    pub head_bytes_max: u32,
    pub handshake_within: Duration,
    /// Time limit for the first bytes of an HTTP/2 connection.
    pub preface_within: Duration,
}

/// Call whose message has not been read yet.
#[derive(Debug)]
pub struct GrpcCall {
    /// Path in the form `/package.Service/Method`.
    pub path: String,
    pub metadata: HeaderMap,
    pub message: GrpcMessage,
    pub connection: Arc<Connection>,
}

/// Handler of calls. Its future is dropped if the caller disconnects.
pub trait GrpcService: Send + Sync + 'static {
    fn call(self: Arc<Self>, call: GrpcCall) -> BoxFuture<'static, GrpcReply>;
}

/// gRPC server with bound sockets. [`GrpcServer::run`] serves their connections.
pub struct GrpcServer {
    sockets: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    shared: Arc<GrpcShared>,
    handle: GrpcHandle,
}

/// Handle that stops a server.
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
    /// Creates a server for connections to these sockets.
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

    /// Accepts connections until the server is stopped. Every connection is a task on the current Tokio runtime.
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
    /// Stops accepting connections, and returns when all connections have ended or the time limit has passed.
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
    /// Accepts connections until the server is stopped, and then closes the listener.
    async fn accept(self: Arc<GrpcShared>, listener: tokio::net::TcpListener) {
        let mut stopping = self.stopping.clone();
        let mut stopped = std::pin::pin!(until_stopped(&mut stopping));
        loop {
            // Closing connections still hold a permit. If they hold all, new connections wait.
            let place = Arc::clone(&self.connections).acquire_owned();
            let accepted = async { (place.await, listener.accept().await) };
            let (place, accepted) = tokio::select! {
                biased;
                () = &mut stopped => return,
                accepted = accepted => accepted,
            };
            // The semaphore is never closed.
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

    /// Serves one connection, and holds `_place` until it ends.
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

/// Waits until the server is stopped, or all of its handles are dropped.
async fn until_stopped(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

/// Waits until the time limit for the first bytes has passed without them. It never returns if they arrived.
async fn until_silent(heard: &HeardBytes, within: Duration) {
    sleep(within).await;
    if heard.get() >= PREFACE_BYTES {
        std::future::pending().await
    }
}

/// Waits until no call has begun for some time, which is shorter for a connection without any call.
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
