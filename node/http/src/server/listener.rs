//! HTTP listener: sockets, workers, and the layers of a connection below HTTP.
//!
//! ```text
//! accept -> gate (a place, or none) -> TLS, if there is any -> HTTP -> edge
//! ```
//! The gate knows every connection from its start. It can therefore replace a connection that sends nothing, or never
//! ends its TLS handshake.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_http::{Extensions, HttpService, Protocol};
use actix_rt::net::{ActixStream, Ready, TcpStream};
use actix_server::{Server as Workers, ServerBuilder};
use actix_service::{IntoServiceFactory, ServiceFactory, ServiceFactoryExt, fn_service, map_config};
use actix_tls::accept::max_concurrent_tls_connect;
use actix_tls::accept::rustls_0_23::{Acceptor, TlsStream};
use actix_web::dev::AppConfig;
use actix_web::middleware::from_fn;
use actix_web::web::{Data, ServiceConfig};
use assay_node_connections::{Connection, Gate, Tracked};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::config::HttpConfig;
use crate::server::edge::{Edge, around};
use crate::server::expect_continue::Interim;
use crate::server::graceful_shutdown::ListeningSockets;
use crate::server::sockets::Reserved;
use crate::server::tls::Certificates;

/// Number of background threads of a worker. More threads would only compete for the same processors.
const BACKGROUND_THREADS_A_WORKER: usize = 2;
/// Time limit for closing a connection.
const DISCONNECT: Duration = Duration::from_secs(2);
/// Protocol offered over TLS.
const PROTOCOL: &[u8] = b"http/1.1";

/// Capacity of one listener, and the routes that it serves.
#[derive(Clone, Copy)]
pub(crate) struct Listener {
    pub workers: usize,
    /// Upper bound of the connections of all workers together.
    pub connections: usize,
    pub serves: fn(&mut ServiceConfig),
}

impl Listener {
    /// Opens the sockets and starts their workers.
    pub fn open(
        self,
        edge: &Data<Edge>,
        reserved: Reserved,
        certificates: Option<&Arc<Certificates>>,
    ) -> io::Result<(Workers, ListeningSockets, Vec<SocketAddr>)> {
        let config = &edge.config;
        let gate = config.gate(reserved.setting(), self.connections);
        // The gate admits connections. If closing connections fill even its limit, new ones wait in the accept queue.
        let at_worker = (gate.limit() / self.workers).max(1);
        let mut builder = Workers::build()
            .workers(self.workers)
            .max_concurrent_connections(at_worker)
            .worker_max_blocking_threads(BACKGROUND_THREADS_A_WORKER)
            .shutdown_timeout(config.stop_seconds_max)
            .disable_signals();
        // A low limit would let silent handshakes block others. It is global, so all listeners set the same value.
        max_concurrent_tls_connect(config.connection_files());
        let doors = ListeningSockets::open(reserved, config, certificates.is_none())?;
        let mut addresses = Vec::new();
        for socket in doors.sockets()? {
            let address = socket.local_addr()?;
            addresses.push(address);
            let serving = Serving { edge: edge.clone(), gate: Arc::clone(&gate), serves: self.serves, address };
            builder = match certificates {
                Some(certificates) => serving.secured(builder, socket, certificates.server_config()?)?,
                None => serving.plain(builder, socket)?,
            };
        }
        Ok((builder.run(), doors, addresses))
    }
}

/// State from which every worker creates its service.
#[derive(Clone)]
struct Serving {
    edge: Data<Edge>,
    gate: Arc<Gate>,
    serves: fn(&mut ServiceConfig),
    address: SocketAddr,
}

impl Serving {
    fn plain(self, builder: ServerBuilder, socket: std::net::TcpListener) -> io::Result<ServerBuilder> {
        let signal = builder.graceful_shutdown_signal();
        builder.listen(format!("http {}", self.address), socket, move || {
            let (serving, signal) = (self.clone(), signal.clone());
            let gate = Arc::clone(&serving.gate);
            fn_service(move |stream: TcpStream| {
                let admitted = admitted(&gate, stream);
                async move {
                    let stream = admitted?;
                    let from = stream.peer();
                    Ok::<_, actix_http::error::DispatchError>((stream, Protocol::Http1, from))
                }
            })
            .and_then(serving.http(signal, |stream: &Stream| stream.0.connection()))
        })
    }

    fn secured(
        self,
        builder: ServerBuilder,
        socket: std::net::TcpListener,
        mut tls: ServerConfig,
    ) -> io::Result<ServerBuilder> {
        let signal = builder.graceful_shutdown_signal();
        tls.alpn_protocols = vec![PROTOCOL.to_vec()];
        let within = Duration::from_secs(self.edge.config.tls_handshake_seconds_max);
        builder.listen(format!("https {}", self.address), socket, move || {
            let (serving, signal) = (self.clone(), signal.clone());
            let gate = Arc::clone(&serving.gate);
            let mut acceptor = Acceptor::new(tls.clone());
            acceptor.set_handshake_timeout(within);
            fn_service(move |stream: TcpStream| {
                let admitted = admitted(&gate, stream);
                async move { admitted.map_err(drop) }
            })
            .and_then(acceptor.map_err(drop).map_init_err(drop))
            .and_then(fn_service(|stream: TlsStream<Stream>| async move {
                let from = stream.get_ref().0.peer();
                Ok::<_, ()>((stream, Protocol::Http1, from))
            }))
            .and_then(
                serving.http(signal, |stream: &TlsStream<Stream>| stream.get_ref().0.0.connection()).map_err(drop),
            )
        })
    }

    /// Returns the HTTP service for a kind of stream. `connection` returns the connection of a stream.
    fn http<S: AsyncRead + AsyncWrite + Unpin + 'static>(
        self,
        signal: actix_server::GracefulShutdownSignal,
        connection: fn(&S) -> &Arc<Connection>,
    ) -> impl ServiceFactory<
        (S, Protocol, Option<SocketAddr>),
        Config = (),
        Response = (),
        Error = actix_http::error::DispatchError,
        InitError = (),
    > {
        let Serving { edge, serves, address, .. } = self;
        let config: &HttpConfig = &edge.config;
        let service = HttpService::build()
            .graceful_shutdown_signal(move || {
                let signal = signal.clone();
                async move { signal.notified().await }
            })
            .keep_alive(Duration::from_secs(config.keep_alive_seconds))
            .client_request_timeout(Duration::from_secs(config.head_seconds_max))
            .client_disconnect_timeout(DISCONNECT)
            // A disconnected client is noticed while its request waits, so that the request gives up its place.
            .h1_allow_half_closed(false)
            .local_addr(address)
            .on_connect_ext(move |stream: &Interim<S>, data: &mut Extensions| {
                data.insert(Arc::clone(connection(stream.inner())));
                data.insert(stream.interim().clone());
            });
        let app = actix_web::App::new().app_data(edge.clone()).wrap(from_fn(around)).configure(serves);
        let app = app.into_factory().map_err(|error: actix_web::Error| error.error_response());
        let wrap = fn_service(|(stream, protocol, from): (S, Protocol, Option<SocketAddr>)| async move {
            Ok::<_, actix_http::error::DispatchError>((Interim::new(stream), protocol, from))
        });
        wrap.and_then(service.finish(map_config(app, |_| AppConfig::default())))
    }
}

/// Stream of a connection that the gate tracks.
struct Stream(Tracked<TcpStream>);

impl Stream {
    fn peer(&self) -> Option<SocketAddr> {
        self.0.stream().peer_addr().ok()
    }
}

/// Returns the tracked stream of a connection, or an error if the gate refuses it.
fn admitted(gate: &Arc<Gate>, stream: TcpStream) -> io::Result<Stream> {
    let from = stream.peer_addr()?;
    stream.set_nodelay(true)?;
    let connection = gate.open(from.ip()).ok_or(io::ErrorKind::ConnectionRefused)?;
    Ok(Stream(Tracked::new(stream, connection)))
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

impl ActixStream for Stream {
    fn poll_read_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<Ready>> {
        self.0.stream().poll_read_ready(context).map_ok(|()| Ready::READABLE)
    }

    fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<Ready>> {
        self.0.stream().poll_write_ready(context).map_ok(|()| Ready::WRITABLE)
    }
}
