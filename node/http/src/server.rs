//! HTTP server: listening sockets, workers, and the shutdown of both.
//!
//! The middleware is in [`edge`]. The handlers come from the [`Services`] that the server receives.

pub(crate) mod admin;
pub mod edge;
pub(crate) mod expect_continue;
mod graceful_shutdown;
mod listener;
pub mod metrics;
pub mod service_state;
pub(crate) mod sockets;
mod tls;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use actix_server::{Server as Workers, ServerHandle};
use actix_web::web::Data;
use futures::future::{BoxFuture, join, join_all, try_join, try_join_all};
use tokio::task::JoinHandle;

use crate::config::TlsFiles;
use crate::grpc::{GrpcHandle, GrpcLimits, GrpcServer};
use crate::server::admin::AdminListener;
use crate::server::edge::Edge;
use crate::server::graceful_shutdown::ListeningSockets;
use crate::server::listener::Listener;
use crate::server::sockets::{Reserved, Sockets};
use crate::server::tls::Certificates;
use crate::{App, Services};

/// Number of workers of the metrics listener. Only a collector or two read metrics.
const METRICS_WORKERS: usize = 1;
pub(crate) const METRICS_CONNECTIONS_MAX: usize = 32;
/// Number of workers of the listener for functions.
const FUNCTIONS_WORKERS: usize = 1;
/// Upper bound of the connections of functions to this node.
const FUNCTIONS_CONNECTIONS_MAX: usize = 1_024;
/// Upper bound of the concurrent calls of one connection. A collector sends several batches at a time.
const OTLP_CALLS_AT_ONCE_MAX: u32 = 32;

/// Server with bound sockets. Connections queue after [`Server::bind`]; [`Server::run`] drives the server.
pub struct Server {
    edge: Data<Edge>,
    background: fn(Data<Edge>) -> BoxFuture<'static, ()>,
    workers: Vec<Workers>,
    doors: Arc<Vec<ListeningSockets>>,
    addresses: Vec<SocketAddr>,
    metrics_addresses: Vec<SocketAddr>,
    admin_addresses: Vec<SocketAddr>,
    function_addresses: Vec<SocketAddr>,
    otlp: Option<GrpcServer>,
    certificates: Vec<Arc<Certificates>>,
}

/// Handle that drains and stops a server.
#[derive(Clone)]
pub struct Handle {
    edge: Data<Edge>,
    workers: Vec<ServerHandle>,
    otlp: Option<GrpcHandle>,
    doors: Arc<Vec<ListeningSockets>>,
}

impl Server {
    /// Reads the certificates and opens the ports.
    pub fn bind(app: App, sockets: Sockets) -> io::Result<Server> {
        app.config.check().map_err(|problem| io::Error::new(io::ErrorKind::InvalidInput, problem))?;
        let services = app.services;
        let edge = Data::new(Edge::new(app));
        let config = &edge.config;
        let read = |files: &Option<TlsFiles>| files.as_ref().map(Certificates::read).transpose();
        let own = read(&config.tls)?;
        let threads = if config.workers == 0 { available_parallelism()?.get() } else { config.workers };
        let main = Listener { workers: threads, connections: config.connections_max, serves: services.api };
        let (main, door, addresses) = main.open(&edge, sockets.main, own.as_ref())?;
        let otlp = bind_otlp(&edge, services, sockets.otlp, own.as_ref())?;
        let (mut workers, mut doors, mut certificates) = (vec![main], vec![door], Vec::from_iter(own));
        let (mut metrics_addresses, mut admin_addresses) = (Vec::new(), Vec::new());
        let functions =
            Listener { workers: FUNCTIONS_WORKERS, connections: FUNCTIONS_CONNECTIONS_MAX, serves: services.api };
        let (functions, door, function_addresses) = functions.open(&edge, sockets.functions, None)?;
        workers.push(functions);
        doors.push(door);
        if let Some(reserved) = sockets.metrics {
            let listener =
                Listener { workers: METRICS_WORKERS, connections: METRICS_CONNECTIONS_MAX, serves: services.metrics };
            let (metrics, door, bound) = listener.open(&edge, reserved, None)?;
            workers.push(metrics);
            doors.push(door);
            metrics_addresses = bound;
        }
        let admin = edge.admin.as_ref().map(AdminListener::config);
        if let Some((admin, reserved)) = admin.zip(sockets.admin) {
            let refuse = |problem: String| io::Error::new(io::ErrorKind::InvalidInput, problem);
            admin.check().map_err(refuse)?;
            let listener =
                Listener { workers: admin::WORKERS, connections: admin::CONNECTIONS_MAX, serves: admin::routes };
            let own = read(&admin.tls)?;
            let (admin_workers, door, bound) = listener.open(&edge, reserved, own.as_ref())?;
            let listen = admin.listen.as_deref().unwrap_or_default();
            admin.check_reach(&bound).map_err(|why| refuse(format!("admin.listen is `{listen}`, {why}")))?;
            workers.push(admin_workers);
            doors.push(door);
            admin_addresses = bound;
            certificates.extend(own);
        }
        let doors = Arc::new(doors);
        Ok(Server {
            edge,
            background: services.background,
            workers,
            doors,
            addresses,
            metrics_addresses,
            admin_addresses,
            function_addresses,
            otlp,
            certificates,
        })
    }

    /// Returns the addresses of the API.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.addresses.clone()
    }

    /// Returns the addresses of the separate metrics listener, if there is one.
    pub fn metrics_addresses(&self) -> Vec<SocketAddr> {
        self.metrics_addresses.clone()
    }

    /// Returns the addresses of the administration listener, if there is one.
    pub fn admin_addresses(&self) -> Vec<SocketAddr> {
        self.admin_addresses.clone()
    }

    /// Returns the addresses of the listener for functions of this node.
    pub fn function_addresses(&self) -> Vec<SocketAddr> {
        self.function_addresses.clone()
    }

    /// Returns the addresses of the listener for OTLP over gRPC, if there is one.
    pub fn otlp_addresses(&self) -> Vec<SocketAddr> {
        self.otlp.as_ref().map(GrpcServer::addresses).unwrap_or_default()
    }

    /// Returns the background work of the API, which runs until it is dropped.
    pub fn background(&self) -> BoxFuture<'static, ()> {
        (self.background)(self.edge.clone())
    }

    pub fn handle(&self) -> Handle {
        let workers = self.workers.iter().map(Workers::handle).collect();
        let otlp = self.otlp.as_ref().map(GrpcServer::handle);
        Handle { edge: self.edge.clone(), workers, otlp, doors: Arc::clone(&self.doors) }
    }

    /// Serves until the server is stopped. It needs a Tokio runtime, although the workers have their own threads.
    pub async fn run(self) -> io::Result<()> {
        let looking: Vec<_> =
            self.certificates.into_iter().map(|certificates| tokio::spawn(certificates.keep_fresh())).collect();
        let otlp = async {
            match self.otlp {
                Some(otlp) => otlp.run().await,
                None => Ok(()),
            }
        };
        let ended = try_join(try_join_all(self.workers), otlp).await.map(|_| ());
        looking.iter().for_each(JoinHandle::abort);
        ended
    }
}

impl Handle {
    /// Makes `/readyz` return 503, so that load balancers stop routing to this node. The server still accepts requests.
    pub fn drain(&self) {
        self.edge.drain();
    }

    /// Stops accepting connections, and returns when active requests have ended or the time limit has passed.
    ///
    /// Clients that keep sending requests during the shutdown lose none of them.
    pub async fn stop(&self) {
        self.drain();
        graceful_shutdown::quiet(&self.edge).await;
        join_all(self.workers.iter().map(ServerHandle::pause)).await;
        let within = Duration::from_secs(self.edge.config.stop_seconds_max);
        let otlp = async {
            if let Some(otlp) = &self.otlp {
                otlp.stop(within).await;
            }
        };
        // Creating the future signals the worker, so it must not happen before recent connections are served.
        let stopping = async {
            let workers = join_all(self.workers.iter().map(|workers| workers.stop(true)));
            drop(join(workers, otlp).await);
        };
        graceful_shutdown::turn_away_while(&self.doors, stopping).await;
    }
}

/// Binds the gRPC listener, if there is one. It shares the certificate of the main listener.
fn bind_otlp(
    edge: &Data<Edge>,
    services: Services,
    reserved: Option<Reserved>,
    certificates: Option<&Arc<Certificates>>,
) -> io::Result<Option<GrpcServer>> {
    let Some(reserved) = reserved else { return Ok(None) };
    let config = &edge.config;
    let limits = GrpcLimits {
        calls_at_once_max: OTLP_CALLS_AT_ONCE_MAX,
        head_bytes_max: u32::try_from(config.head_bytes_max).unwrap_or(u32::MAX),
        handshake_within: Duration::from_secs(config.tls_handshake_seconds_max),
        preface_within: Duration::from_secs(config.head_seconds_max),
    };
    let tls = certificates.map(|certificates| certificates.server_config()).transpose()?;
    let gate = config.gate("http.otlp_listen", config.otlp_connections_max);
    let service = (services.exports)(edge.clone());
    GrpcServer::new(reserved.open(config.backlog)?, limits, gate, tls, service).map(Some)
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("edge", &self.edge).finish_non_exhaustive()
    }
}
