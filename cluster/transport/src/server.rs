//! Server side of the transport: accepts connections, performs handshakes, and serves requests until the node stops.

use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use assay_storage_model::{ClusterId, NodeId};
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::RwLock;
use rustls::pki_types::CertificateDer;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::connection::{
    CONNECTION_WINDOW_BYTES, HEADER_BYTES_MAX, HTTP_FRAME_BYTES_MAX, PONG_WITHIN, REQUESTS_MAX, SEND_BUFFER_BYTES,
    STREAM_WINDOW_BYTES, with_causes,
};
use crate::handlers::Handlers;
use crate::in_flight::InFlightCounter;
use crate::lane::Dialer;
use crate::peer_counters::Traffic;
use crate::serve_request::{LARGE_BODY_UNIT_BYTES, Visitor};
use crate::socket::{PING_EVERY, Wire};

/// Upper bound of accepted connections. A peer has two, and briefly also some that are about to end.
const CONNECTIONS_MAX: usize = 1024;
/// Upper bound of connections of callers without a certificate, such as joining nodes.
const STRANGERS_MAX: usize = 32;
/// Time limit of such a connection, which suffices for a call and its response.
const STRANGER_STAYS: Duration = Duration::from_secs(30);
/// Upper bound of concurrent requests on such a connection.
const REQUESTS_OF_STRANGER_MAX: u32 = 4;
/// Time limit of the TLS handshake.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(2);
/// Budget of the large request bodies that the node handles concurrently. One peer sends up to 96 MiB in each lane.
const BODIES_BYTES_MAX: usize = 512 << 20;
/// Pause after a failed accept, whose usual cause is a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Time limit for sending the last responses once no call is in flight.
const CLOSE_WITHIN: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Running,
    /// No new connections and no new calls.
    Draining,
    /// All connections end.
    Closing,
}

/// State that all connections share.
pub(crate) struct Server {
    pub(crate) cluster: ClusterId,
    pub(crate) node: NodeId,
    pub(crate) handlers: RwLock<Handlers>,
    pub(crate) under_way: InFlightCounter,
    dialer: Arc<Dialer>,
    stage: watch::Receiver<Stage>,
    /// Notified when the trusted authorities change.
    trust: watch::Sender<()>,
    connections: Arc<Semaphore>,
    strangers: Arc<Semaphore>,
    large_bodies: Arc<Semaphore>,
}

impl Server {
    pub(crate) fn new(dialer: Arc<Dialer>, handlers: Handlers, stage: watch::Receiver<Stage>) -> Arc<Server> {
        Arc::new(Server {
            cluster: dialer.cluster,
            node: dialer.node,
            handlers: RwLock::new(handlers),
            under_way: InFlightCounter::new(),
            dialer,
            stage,
            trust: watch::Sender::new(()),
            connections: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
            strangers: Arc::new(Semaphore::new(STRANGERS_MAX)),
            large_bodies: Arc::new(Semaphore::new(BODIES_BYTES_MAX / LARGE_BODY_UNIT_BYTES)),
        })
    }

    /// Ends the accepted connections whose certificates are no longer trusted.
    pub(crate) fn trust_changed(&self) {
        self.trust.send_replace(());
    }

    /// Returns when the certificate of a connection is no longer trusted.
    async fn distrusted(&self, certificate: Option<CertificateDer<'static>>) {
        let mut trust = self.trust.subscribe();
        while trust.changed().await.is_ok() {
            if certificate.as_ref().is_some_and(|shown| !self.dialer.credentials.read().trusts(shown)) {
                return;
            }
        }
        std::future::pending().await // the server is gone, so trust cannot change any more
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.stage.borrow() != Stage::Running
    }

    /// Reserves space for a body, or returns `None` at once. Waiting would leave unread bytes on the connection and
    /// block other calls.
    pub(crate) fn reserve_large_body(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let units = u32::try_from(bytes.div_ceil(LARGE_BODY_UNIT_BYTES)).expect("checked against the largest message");
        Arc::clone(&self.large_bodies).try_acquire_many_owned(units).ok()
    }

    /// Accepts connections until the node stops, and then closes the listener.
    pub(crate) async fn accept(self: Arc<Server>, listener: TcpListener) {
        let mut stage = self.stage.clone();
        let stopping = reached(&mut stage, Stage::Draining);
        let mut stopping = std::pin::pin!(stopping);
        loop {
            let place = Arc::clone(&self.connections).acquire_owned();
            let accepted = async { (place.await, listener.accept().await) };
            let (place, accepted) = tokio::select! {
                biased;
                () = &mut stopping => return,
                accepted = accepted => accepted,
            };
            match accepted {
                Ok((socket, _)) => drop(tokio::spawn(Arc::clone(&self).serve(socket, place))),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Serves one connection. `_place` is held until it ends.
    async fn serve<ExchangePermit>(self: Arc<Server>, socket: TcpStream, _place: ExchangePermit) {
        let from = socket.peer_addr();
        let secured = match timeout(HANDSHAKE_WITHIN, self.shake_hands(socket)).await {
            Ok(Ok(secured)) => secured,
            Ok(Err(error)) => return tracing::debug!(?from, %error, "a connection was refused"),
            Err(_) => return tracing::debug!(?from, "a connection was refused: no handshake in time"),
        };
        let certificate = secured.get_ref().1.peer_certificates().and_then(|chain| chain.first()).cloned();
        if certificate.is_some() {
            return self.serve_until(secured, Visitor::new(&self, certificate), REQUESTS_MAX, None).await;
        }
        let Ok(_stranger) = Arc::clone(&self.strangers).try_acquire_owned() else {
            return tracing::debug!(?from, "a connection was refused: too many without a certificate");
        };
        let leaves = Instant::now() + STRANGER_STAYS;
        self.serve_until(secured, Visitor::new(&self, None), REQUESTS_OF_STRANGER_MAX, Some(leaves)).await;
    }

    async fn shake_hands(&self, socket: TcpStream) -> std::io::Result<TlsStream<Wire>> {
        // Traffic is counted only on connections that this node makes, because these carry its own calls.
        let wire = Wire::new(socket, Arc::new(Traffic::default()))?;
        let config = Arc::clone(&self.dialer.credentials.read().server);
        TlsAcceptor::from(config).accept(wire).await
    }

    async fn serve_until(
        &self,
        secured: TlsStream<Wire>,
        visitor: Arc<Visitor>,
        requests_max: u32,
        leaves: Option<Instant>,
    ) {
        // For peers, the limit on pending cancelled requests suffices. A stranger has one on resets for its whole stay.
        let resets_max = visitor.certificate.is_none().then_some(requests_max as usize);
        let distrusted = self.distrusted(visitor.certificate.clone());
        let answer = move |request| {
            let visitor = Arc::clone(&visitor);
            async move { Ok::<_, Infallible>(visitor.answer(request).await) }
        };
        let connection = Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_frame_size(HTTP_FRAME_BYTES_MAX)
            .max_send_buf_size(SEND_BUFFER_BYTES)
            .max_header_list_size(HEADER_BYTES_MAX)
            .max_concurrent_streams(requests_max)
            .max_pending_accept_reset_streams(requests_max as usize)
            .max_local_error_reset_streams(resets_max)
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PONG_WITHIN)
            .auto_date_header(false)
            .serve_connection(TokioIo::new(secured), service_fn(answer));
        let mut connection = std::pin::pin!(connection);
        let mut stage = self.stage.clone();
        let over = async {
            match leaves {
                Some(leaves) => sleep_until(leaves).await,
                None => std::future::pending().await,
            }
        };
        let ended = tokio::select! {
            ended = &mut connection => Some(ended),
            () = reached(&mut stage, Stage::Closing) => None,
            () = over => None,
            () = distrusted => None,
        };
        let ended = match ended {
            Some(ended) => ended,
            None => {
                connection.as_mut().graceful_shutdown();
                timeout(CLOSE_WITHIN, connection).await.unwrap_or(Ok(()))
            }
        };
        if let Err(error) = ended {
            tracing::debug!(error = with_causes(&error), "an accepted connection ended");
        }
    }

    /// Waits until every accepted connection has ended.
    pub(crate) async fn until_closed(&self) {
        let all = u32::try_from(CONNECTIONS_MAX).expect("a small number");
        drop(timeout(CLOSE_WITHIN * 2, self.connections.acquire_many(all)).await);
    }
}

impl Visitor {
    fn new(server: &Arc<Server>, certificate: Option<CertificateDer<'static>>) -> Arc<Visitor> {
        Arc::new(Visitor { server: Arc::clone(server), certificate, known_as: OnceLock::new() })
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("cluster", &self.cluster).field("node", &self.node).finish_non_exhaustive()
    }
}

/// Waits until the stage is at least this, or its sender is dropped.
async fn reached(stage: &mut watch::Receiver<Stage>, wanted: Stage) {
    let _ = stage.wait_for(|stage| *stage >= wanted).await;
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Handle;
    use uuid::Uuid;

    use super::*;
    use crate::certificate_authority::{Authority, new_request};
    use crate::frame::MESSAGE_BYTES_MAX;
    use crate::identity::{Credentials, Identity};

    fn server() -> Arc<Server> {
        let (cluster, node) = (ClusterId(Uuid::new_v4()), NodeId(1));
        let authority = Authority::new(cluster).expect("an authority");
        let (key_pem, request) = new_request().expect("a request");
        let certificate_pem = authority.issue(node, &request, Duration::from_secs(3600)).expect("a certificate");
        let identity = Identity { authority_pem: authority.certificate_pem().to_owned(), certificate_pem, key_pem };
        let credentials = RwLock::new(Credentials::of(&identity, cluster, node).expect("a good identity"));
        let connect_within = Duration::from_secs(1);
        let dialer = Arc::new(Dialer { cluster, node, credentials, connect_within, runtime: Handle::current() });
        let (_, stage) = watch::channel(Stage::Running);
        Server::new(dialer, Handlers::new(), stage)
    }

    #[tokio::test]
    async fn reservations_for_large_bodies_run_out_and_come_back() {
        let server = server();
        let mut held = Vec::new();
        while let Some(reserved) = server.reserve_large_body(MESSAGE_BYTES_MAX) {
            held.push(reserved);
        }
        assert_eq!(held.len(), BODIES_BYTES_MAX / MESSAGE_BYTES_MAX);
        assert!(server.reserve_large_body(MESSAGE_BYTES_MAX / 4).is_some(), "a smaller one fits in beside them");
        held.pop();
        assert!(server.reserve_large_body(MESSAGE_BYTES_MAX).is_some());
    }
}
