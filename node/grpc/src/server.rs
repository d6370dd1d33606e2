//! The listening side: accepts, shakes hands where there is TLS, and serves each connection until it ends or the node does.

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

use crate::answer::{GRPC, Outbound, Reply, no_grpc};
use crate::inbound::Inbound;

/// After an accept that failed: no descriptor is free, most likely.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// What a call may have sent of its message before that is asked for. The window of a connection has room for all of its
/// calls, so that calls that wait do not stop the others.
const WINDOW_BYTES: u32 = 64 << 10;
/// What the protocol calls a frame; the smallest it allows.
const FRAME_BYTES_MAX: u32 = 16 << 10;
/// An answer is a few bytes, or a failure.
const SEND_BUFFER_BYTES: usize = 64 << 10;
/// A client that is silent is asked whether it is still there, and let go if it does not say so.
const PING_EVERY: Duration = Duration::from_secs(30);
const PONG_WITHIN: Duration = Duration::from_secs(20);
/// A connection without a call for this long is asked to end: exporters send every few seconds, and make another if they must.
const IDLE_MAX: Duration = Duration::from_secs(600);
/// A connection that never had a call is asked to end this soon.
const UNUSED_MAX: Duration = Duration::from_secs(60);
/// What every client sends first, with the head of the frame behind it.
const PREFACE_BYTES: u64 = 24 + 9;
const ALPN: &[u8] = b"h2";

/// How much one listener takes on.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Of one connection.
    pub calls_at_once_max: u32,
    /// Of the metadata of a call.
    pub head_bytes_max: u32,
    pub handshake_within: Duration,
    /// What every client of HTTP/2 sends first has to be here by then.
    pub preface_within: Duration,
}

/// One call, of which nothing but the metadata is taken in.
#[derive(Debug)]
pub struct Call {
    /// `/package.Service/Method`
    pub path: String,
    pub metadata: HeaderMap,
    pub message: Inbound,
    pub connection: Arc<Connection>,
}

/// Who answers. A future that is dropped is a call whose caller has gone.
pub trait Service: Send + Sync + 'static {
    fn call(self: Arc<Self>, call: Call) -> BoxFuture<'static, Reply>;
}

/// A listener. Connections are served from `run` on.
pub struct Server {
    sockets: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
    handle: Handle,
}

/// Stops a server from anywhere.
#[derive(Clone)]
pub struct Handle {
    stopping: watch::Sender<bool>,
    shared: Arc<Shared>,
}

/// What all connections share.
struct Shared {
    service: Arc<dyn Service>,
    tls: Option<TlsAcceptor>,
    limits: Limits,
    stopping: watch::Receiver<bool>,
    gate: Arc<Gate>,
    connections: Arc<Semaphore>,
}

impl Server {
    /// Serves connections that come in by these sockets.
    pub fn new(
        sockets: Vec<TcpListener>,
        limits: Limits,
        gate: Arc<Gate>,
        tls: Option<ServerConfig>,
        service: Arc<dyn Service>,
    ) -> io::Result<Server> {
        let addresses = sockets.iter().map(TcpListener::local_addr).collect::<io::Result<_>>()?;
        let tls = tls.map(|mut config| {
            config.alpn_protocols = vec![ALPN.to_vec()];
            TlsAcceptor::from(Arc::new(config))
        });
        let (stop, stopping) = watch::channel(false);
        let places = gate.limit();
        let connections = Arc::new(Semaphore::new(places));
        let shared = Arc::new(Shared { service, tls, limits, gate, stopping, connections });
        let handle = Handle { stopping: stop, shared: Arc::clone(&shared) };
        Ok(Server { sockets, addresses, shared, handle })
    }

    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.addresses.clone()
    }

    pub fn handle(&self) -> Handle {
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

impl Handle {
    /// Takes no more connections, and returns when what is under way is answered, or the time for that is over.
    pub async fn stop(&self, within: Duration) {
        self.stopping.send_replace(true);
        let all = u32::try_from(self.shared.gate.limit()).unwrap_or(u32::MAX);
        let all = self.shared.connections.acquire_many(all);
        if timeout(within, all).await.is_err() {
            tracing::warn!("calls over gRPC were still under way when this node stopped");
        }
    }
}

impl Shared {
    /// The listener is closed when it returns.
    async fn accept(self: Arc<Shared>, listener: tokio::net::TcpListener) {
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
    async fn serve(self: Arc<Shared>, _place: OwnedSemaphorePermit, socket: TcpStream, connection: Arc<Connection>) {
        let from = socket.peer_addr();
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(?from, %error, "a connection ended before it began");
            return;
        }
        let socket = Tracked::new(socket, Arc::clone(&connection));
        let Some(tls) = &self.tls else { return self.serve_on(socket, connection).await };
        match timeout(self.limits.handshake_within, tls.accept(socket)).await {
            Ok(Ok(secured)) => self.serve_on(secured, connection).await,
            Ok(Err(error)) => tracing::debug!(?from, %error, "a connection was refused"),
            Err(_) => tracing::debug!(?from, "a connection was refused: no handshake in time"),
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
                tracing::debug!("a connection of gRPC said nothing in time");
                return;
            }
            () = over => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection of gRPC ended");
        }
    }
}

async fn answered(
    service: Arc<dyn Service>,
    connection: Arc<Connection>,
    request: Request<hyper::body::Incoming>,
) -> Response<Outbound> {
    let (head, body) = request.into_parts();
    let is_grpc = head.headers.get(CONTENT_TYPE).is_some_and(|said| said.as_bytes().starts_with(GRPC.as_bytes()));
    if head.method != Method::POST || !is_grpc {
        return no_grpc();
    }
    let (path, message) = (head.uri.path().to_owned(), Inbound::new(body));
    let call = Call { path, metadata: head.headers, message, connection };
    service.call(call).await.response()
}

/// Until it is stopped, or nobody is left to stop it.
async fn until_stopped(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

/// Until the client has had its time and did not send what begins HTTP/2; forever where it did.
async fn until_silent(heard: &HeardBytes, within: Duration) {
    sleep(within).await;
    if heard.get() >= PREFACE_BYTES {
        std::future::pending().await
    }
}

/// Until no call has begun for a while, which is shorter for a connection that never had one.
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

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("limits", &self.shared.limits).finish_non_exhaustive()
    }
}
