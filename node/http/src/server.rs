//! Sockets, workers, and the end of both. Everything that is served is in `routes`; what every request passes, in `edge`.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use actix_web::HttpServer;
use actix_web::dev::{Server as Workers, ServerHandle};
use actix_web::middleware::from_fn;
use actix_web::web::{Data, ServiceConfig};
use futures::future::{join, join_all, try_join, try_join_all};
use tokio::task::JoinHandle;

use crate::admin::Desk;
use crate::config::TlsFiles;
use crate::edge::{Edge, around};
use crate::farewell::{self, Doors};
use crate::rpc::Exports;
use crate::tls::Certificates;
use crate::{App, admin, routes};

/// Threads a worker parses large bodies on; more would only take turns on the same cores.
const PARSE_THREADS_A_WORKER: usize = 2;
/// Metrics are read by one collector or two.
const METRICS_WORKERS: usize = 1;
/// Exporters that send at once over gRPC; those beyond them wait.
const OTLP_CONNECTIONS_MAX: u32 = 512;
/// Calls of one connection. An exporter sends one batch at a time; a collector sends several.
const OTLP_CALLS_AT_ONCE_MAX: u32 = 32;
/// How long a closing connection may take to say goodbye.
const DISCONNECT: Duration = Duration::from_secs(2);

/// A bound server. Connections wait from `bind` on and are served from `run` on.
pub struct Server {
    edge: Data<Edge>,
    workers: Vec<Workers>,
    doors: Arc<Vec<Doors>>,
    addresses: Vec<SocketAddr>,
    metrics_addresses: Vec<SocketAddr>,
    admin_addresses: Vec<SocketAddr>,
    otlp: Option<assay_node_grpc::Server>,
    certificates: Vec<Arc<Certificates>>,
}

/// Stops a server from anywhere.
#[derive(Clone)]
pub struct Handle {
    edge: Data<Edge>,
    workers: Vec<ServerHandle>,
    otlp: Option<assay_node_grpc::Handle>,
    doors: Arc<Vec<Doors>>,
}

impl Server {
    /// Reads the certificates and takes the ports.
    pub fn bind(app: App) -> io::Result<Server> {
        app.config.check().map_err(|problem| io::Error::new(io::ErrorKind::InvalidInput, problem))?;
        let edge = Data::new(Edge::new(app));
        let config = &edge.config;
        let read = |files: &Option<TlsFiles>| files.as_ref().map(Certificates::read).transpose();
        let own = read(&config.tls)?;
        let threads = if config.workers == 0 { available_parallelism()?.get() } else { config.workers };
        let size = Size { workers: threads, connections: config.connections_max };
        let (main, door, addresses) = bind(&edge, &config.listen, size, routes::all, own.as_ref())?;
        let otlp = bind_otlp(&edge, own.as_ref())?;
        let (mut workers, mut doors, mut certificates) = (vec![main], vec![door], Vec::from_iter(own));
        let (mut metrics_addresses, mut admin_addresses) = (Vec::new(), Vec::new());
        if let Some(listen) = &config.metrics_listen {
            let size = Size { workers: METRICS_WORKERS, connections: config.connections_max };
            let (metrics, door, bound) = bind(&edge, listen, size, routes::metrics_alone, None)?;
            workers.push(metrics);
            doors.push(door);
            metrics_addresses = bound;
        }
        let admin = edge.admin.as_ref().map(Desk::config);
        if let Some((admin, listen)) = admin.and_then(|admin| Some((admin, admin.listen.as_ref()?))) {
            let refuse = |problem: String| io::Error::new(io::ErrorKind::InvalidInput, problem);
            admin.check().map_err(refuse)?;
            let size = Size { workers: admin::WORKERS, connections: admin::CONNECTIONS_MAX };
            let own = read(&admin.tls)?;
            let (desk, door, bound) = bind(&edge, listen, size, admin::routes, own.as_ref())?;
            admin.check_reach(&bound).map_err(|why| refuse(format!("admin.listen is `{listen}`, {why}")))?;
            workers.push(desk);
            doors.push(door);
            admin_addresses = bound;
            certificates.extend(own);
        }
        let doors = Arc::new(doors);
        Ok(Server { edge, workers, doors, addresses, metrics_addresses, admin_addresses, otlp, certificates })
    }

    /// Where clients are served.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.addresses.clone()
    }

    /// Where metrics are served, if they have a port of their own.
    pub fn metrics_addresses(&self) -> Vec<SocketAddr> {
        self.metrics_addresses.clone()
    }

    /// Where administrators are answered, if they have a port.
    pub fn admin_addresses(&self) -> Vec<SocketAddr> {
        self.admin_addresses.clone()
    }

    /// Where exporters are served over gRPC, if they are.
    pub fn otlp_addresses(&self) -> Vec<SocketAddr> {
        self.otlp.as_ref().map(assay_node_grpc::Server::addresses).unwrap_or_default()
    }

    pub fn handle(&self) -> Handle {
        let workers = self.workers.iter().map(Workers::handle).collect();
        let otlp = self.otlp.as_ref().map(assay_node_grpc::Server::handle);
        Handle { edge: self.edge.clone(), workers, otlp, doors: Arc::clone(&self.doors) }
    }

    /// Serves until it is stopped. Needs a tokio runtime; the workers have threads of their own.
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
    /// From now on `/readyz` answers 503, so that whoever routes to this node stops; requests are still served.
    pub fn drain(&self) {
        self.edge.drain();
    }

    /// Takes no more connections and returns when what is under way is answered, or the time for that is over. Clients
    /// that send all the while lose no request by it.
    pub async fn stop(&self) {
        self.drain();
        farewell::quiet(&self.edge).await;
        join_all(self.workers.iter().map(ServerHandle::pause)).await;
        let within = Duration::from_secs(self.edge.config.stop_seconds_max);
        let otlp = async {
            if let Some(otlp) = &self.otlp {
                otlp.stop(within).await;
            }
        };
        // A worker is told when its future is made, which is not to be before those who just came are served.
        let stopping = async {
            let workers = join_all(self.workers.iter().map(|workers| workers.stop(true)));
            drop(join(workers, otlp).await);
        };
        farewell::turn_away_while(&self.doors, stopping).await;
    }
}

/// The listener of gRPC, if there is one. It has the certificate of the other.
fn bind_otlp(
    edge: &Data<Edge>,
    certificates: Option<&Arc<Certificates>>,
) -> io::Result<Option<assay_node_grpc::Server>> {
    let Some(listen) = edge.config.otlp_address() else { return Ok(None) };
    let limits = assay_node_grpc::Limits {
        connections_max: OTLP_CONNECTIONS_MAX,
        calls_at_once_max: OTLP_CALLS_AT_ONCE_MAX,
        head_bytes_max: u32::try_from(edge.config.head_bytes_max).unwrap_or(u32::MAX),
        handshake_within: Duration::from_secs(edge.config.tls_handshake_seconds_max),
    };
    let tls = certificates.map(|certificates| certificates.server_config()).transpose()?;
    let bound = assay_node_grpc::Server::bind(&listen, limits, tls, Arc::new(Exports::new(edge.clone())));
    bound.map(Some).map_err(|error| {
        let why =
            format!("exports of OpenTelemetry over gRPC: {error}; set http.otlp_listen to another address, or to off");
        io::Error::new(error.kind(), why)
    })
}

/// How much one listener takes on.
#[derive(Clone, Copy)]
struct Size {
    workers: usize,
    /// Of all its workers together.
    connections: usize,
}

/// One socket, or as many as the name stands for, and the workers behind it.
fn bind(
    edge: &Data<Edge>,
    listen: &str,
    size: Size,
    serves: fn(&mut ServiceConfig),
    certificates: Option<&Arc<Certificates>>,
) -> io::Result<(Workers, Doors, Vec<SocketAddr>)> {
    let (config, shared) = (&edge.config, edge.clone());
    let server =
        HttpServer::new(move || actix_web::App::new().app_data(shared.clone()).wrap(from_fn(around)).configure(serves));
    let mut server = server
        .workers(size.workers)
        .max_connections((size.connections / size.workers).max(1))
        .worker_max_blocking_threads(PARSE_THREADS_A_WORKER)
        .keep_alive(Duration::from_secs(config.keep_alive_seconds))
        .client_request_timeout(Duration::from_secs(config.head_seconds_max))
        .client_disconnect_timeout(DISCONNECT)
        .tls_handshake_timeout(Duration::from_secs(config.tls_handshake_seconds_max))
        .tcp_nodelay(true)
        // A client that left is noticed while its request waits, which then gives up its place.
        .h1_allow_half_closed(false)
        .shutdown_timeout(config.stop_seconds_max)
        .disable_signals();
    let named = |error: io::Error| io::Error::new(error.kind(), format!("cannot listen on {listen}: {error}"));
    let doors = Doors::open(listen, config, certificates.is_none()).map_err(named)?;
    for socket in doors.sockets().map_err(named)? {
        server = match certificates {
            Some(certificates) => server.listen_rustls_0_23(socket, certificates.server_config()?).map_err(named)?,
            None => server.listen(socket).map_err(named)?,
        };
    }
    let addresses = server.addrs();
    Ok((server.run(), doors, addresses))
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
