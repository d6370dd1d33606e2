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
use futures::future::{join_all, try_join_all};

use crate::App;
use crate::edge::{Edge, around};
use crate::routes;
use crate::tls::Certificates;

/// Threads a worker parses large bodies on; more would only take turns on the same cores.
const PARSE_THREADS_A_WORKER: usize = 2;
/// Metrics are read by one collector or two.
const METRICS_WORKERS: usize = 1;
/// How long a closing connection may take to say goodbye.
const DISCONNECT: Duration = Duration::from_secs(2);

/// A bound server. Connections wait from `bind` on and are served from `run` on.
pub struct Server {
    edge: Data<Edge>,
    workers: Vec<Workers>,
    addresses: Vec<SocketAddr>,
    metrics_addresses: Vec<SocketAddr>,
    certificates: Option<Arc<Certificates>>,
}

/// Stops a server from anywhere.
#[derive(Clone)]
pub struct Handle {
    edge: Data<Edge>,
    workers: Vec<ServerHandle>,
}

impl Server {
    /// Reads the certificates and takes the ports.
    pub fn bind(app: App) -> io::Result<Server> {
        app.config.check().map_err(|problem| io::Error::new(io::ErrorKind::InvalidInput, problem))?;
        let edge = Data::new(Edge::new(app));
        let config = &edge.config;
        let certificates = config.tls.as_ref().map(Certificates::read).transpose()?;
        let threads = if config.workers == 0 { available_parallelism()?.get() } else { config.workers };
        let (main, addresses) = bind(&edge, &config.listen, threads, routes::all, certificates.as_ref())?;
        let mut workers = vec![main];
        let mut metrics_addresses = Vec::new();
        if let Some(listen) = &config.metrics_listen {
            let (metrics, bound) = bind(&edge, listen, METRICS_WORKERS, routes::metrics_alone, None)?;
            workers.push(metrics);
            metrics_addresses = bound;
        }
        Ok(Server { edge, workers, addresses, metrics_addresses, certificates })
    }

    /// Where clients are served.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.addresses.clone()
    }

    /// Where metrics are served, if they have a port of their own.
    pub fn metrics_addresses(&self) -> Vec<SocketAddr> {
        self.metrics_addresses.clone()
    }

    pub fn handle(&self) -> Handle {
        Handle { edge: self.edge.clone(), workers: self.workers.iter().map(Workers::handle).collect() }
    }

    /// Serves until it is stopped. Needs a tokio runtime; the workers have threads of their own.
    pub async fn run(self) -> io::Result<()> {
        let looking = self.certificates.map(|certificates| tokio::spawn(certificates.keep_fresh()));
        let ended = try_join_all(self.workers).await.map(|_| ());
        if let Some(looking) = looking {
            looking.abort();
        }
        ended
    }
}

impl Handle {
    /// From now on `/readyz` answers 503, so that whoever routes to this node stops; requests are still served.
    pub fn drain(&self) {
        self.edge.drain();
    }

    /// Takes no more connections and returns when what is under way is answered, or the time for that is over.
    pub async fn stop(&self) {
        self.drain();
        join_all(self.workers.iter().map(|workers| workers.stop(true))).await;
    }
}

/// One socket, or as many as the name stands for, and the workers behind it.
fn bind(
    edge: &Data<Edge>,
    listen: &str,
    workers: usize,
    serves: fn(&mut ServiceConfig),
    certificates: Option<&Arc<Certificates>>,
) -> io::Result<(Workers, Vec<SocketAddr>)> {
    let (config, shared) = (&edge.config, edge.clone());
    let server =
        HttpServer::new(move || actix_web::App::new().app_data(shared.clone()).wrap(from_fn(around)).configure(serves));
    let server = server
        .workers(workers)
        .backlog(config.backlog)
        .max_connections((config.connections_max / workers).max(1))
        .worker_max_blocking_threads(PARSE_THREADS_A_WORKER)
        .keep_alive(Duration::from_secs(config.keep_alive_seconds))
        .client_request_timeout(Duration::from_secs(config.head_seconds_max))
        .client_disconnect_timeout(DISCONNECT)
        .tls_handshake_timeout(Duration::from_secs(config.tls_handshake_seconds_max))
        .tcp_nodelay(true)
        .shutdown_timeout(config.stop_seconds_max)
        .disable_signals();
    let named = |error: io::Error| io::Error::new(error.kind(), format!("cannot listen on {listen}: {error}"));
    let server = match certificates {
        Some(certificates) => server.bind_rustls_0_23(listen, certificates.server_config()?).map_err(named)?,
        None => server.bind(listen).map_err(named)?,
    };
    let addresses = server.addrs();
    Ok((server.run(), addresses))
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
