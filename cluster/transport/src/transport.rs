//! The handle: starts, calls, streams, and stops.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use assay_storage_model::{ClusterId, NodeId};
use bytes::Bytes;
use parking_lot::RwLock;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::call::{ByteStream, Call, CallError};
use crate::error::TransportError;
use crate::handlers::Handlers;
use crate::identity::{Credentials, Identity};
use crate::lane::Dialer;
use crate::peer::Peer;
use crate::server::{Server, Stage};
use crate::traffic::PeerCounts;
use crate::under_way::Counter;
use crate::weather::{Weather, send_under};

/// What is under way may take so long to end when the node stops.
pub const SHUTDOWN_WITHIN: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub struct TransportConfig {
    pub cluster: ClusterId,
    pub node: NodeId,
    /// Port 0 takes a free one.
    pub listen: SocketAddr,
    pub identity: Identity,
    /// For tests and storms.
    pub weather: Option<Arc<dyn Weather>>,
    /// Drives all connections and runs all handlers. Callers may be on any tokio runtime.
    pub runtime: Handle,
}

/// One node's ear and mouth among its peers. Clones are the same one; without [`Transport::shutdown`] it ends when the
/// last is dropped.
#[derive(Clone, Debug)]
pub struct Transport {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    dialer: Arc<Dialer>,
    server: Arc<Server>,
    local_addr: SocketAddr,
    peers: RwLock<BTreeMap<NodeId, Arc<Peer>>>,
    weather: Option<Arc<dyn Weather>>,
    /// Dropped with the last handle, which ends what listens.
    stage: watch::Sender<Stage>,
    calls: Counter,
}

impl Transport {
    /// Binds and serves. A call for a service that nobody has registered yet is refused.
    pub fn start(config: TransportConfig, handlers: Handlers) -> Result<Transport, TransportError> {
        let TransportConfig { cluster, node, listen, identity, weather, runtime } = config;
        let credentials = Credentials::of(&identity, cluster, node)?;
        let entered = runtime.enter();
        let bound = std::net::TcpListener::bind(listen).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, tokio::net::TcpListener::from_std(listener)?))
        });
        let (local_addr, listener) = bound.map_err(|source| TransportError::Listen { address: listen, source })?;
        drop(entered);
        let credentials = RwLock::new(credentials);
        let dialer = Arc::new(Dialer { cluster, node, credentials, runtime: runtime.clone() });
        let (stage, watched) = watch::channel(Stage::Running);
        let server = Server::new(Arc::clone(&dialer), handlers, watched);
        runtime.spawn(Arc::clone(&server).accept(listener));
        let (peers, calls) = (RwLock::default(), Counter::new());
        Ok(Transport { inner: Arc::new(Inner { dialer, server, local_addr, peers, weather, stage, calls }) })
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.inner.local_addr
    }

    pub fn node(&self) -> NodeId {
        self.inner.dialer.node
    }

    /// Adds to those who answer; a name that is there already is taken over.
    pub fn register(&self, handlers: Handlers) {
        self.inner.server.handlers.write().add(handlers);
    }

    /// Where the peers are from now on, all of them, as `host:port`. A connection to another address than before is let
    /// go: what is under way on it ends there, and nothing new begins.
    pub fn set_addresses(&self, addresses: BTreeMap<NodeId, String>) {
        let mut peers = self.inner.peers.write();
        let mut before = std::mem::take(&mut *peers);
        *peers = addresses
            .into_iter()
            .map(|(node, address)| match before.remove(&node) {
                Some(peer) if peer.address == address => (node, peer),
                moved => {
                    let traffic = moved.map(|peer| Arc::clone(&peer.traffic)).unwrap_or_default();
                    (node, Peer::new(&self.inner.dialer, node, address, traffic))
                }
            })
            .collect();
    }

    /// What new connections show and trust.
    pub fn identity(&self) -> Identity {
        self.inner.dialer.credentials.read().identity.clone()
    }

    /// New connections show and trust this. Those that stand stay, but for accepted ones whose certificates are not
    /// trusted any more.
    pub fn set_identity(&self, identity: &Identity) -> Result<(), TransportError> {
        let Dialer { cluster, node, credentials, .. } = &*self.inner.dialer;
        let new = Credentials::of(identity, *cluster, *node)?;
        let before = std::mem::replace(&mut *credentials.write(), new);
        if before.identity.authority_pem != identity.authority_pem {
            self.inner.server.trust_changed();
        }
        Ok(())
    }

    pub async fn call(&self, to: NodeId, call: Call) -> Result<Bytes, CallError> {
        let peer = self.peer(to)?;
        let _under_way = self.inner.calls.begin();
        peer.traffic.called();
        let ends = Instant::now() + call.within();
        let answer = match self.weather(to, call.service) {
            None => peer.call(&call, ends).await,
            Some(fate) => {
                let send = async {
                    if fate.duplicate {
                        let (peer, call) = (Arc::clone(&peer), call.clone());
                        self.inner.dialer.runtime.spawn(async move { peer.call(&call, ends).await });
                    }
                    peer.call(&call, ends).await
                };
                send_under(fate, ends, send).await
            }
        };
        answer.inspect_err(|_| peer.traffic.failed())
    }

    /// Returns with the first chunk, which like every later one may take `call.within` to come; an empty stream returns
    /// at its end. A reader that does not read holds the sender back.
    pub async fn stream(&self, to: NodeId, call: Call) -> Result<ByteStream, CallError> {
        let peer = self.peer(to)?;
        let _under_way = self.inner.calls.begin();
        peer.traffic.called();
        let ends = Instant::now() + call.within();
        let opened = match self.weather(to, call.service) {
            None => peer.stream(&call, ends).await,
            Some(fate) => send_under(fate, ends, peer.stream(&call, ends)).await,
        };
        opened.inspect_err(|_| peer.traffic.failed())
    }

    fn peer(&self, to: NodeId) -> Result<Arc<Peer>, CallError> {
        if self.inner.server.is_stopping() {
            return Err(CallError::NotReached("this node is stopping".into()));
        }
        let peer = self.inner.peers.read().get(&to).cloned();
        peer.ok_or_else(|| CallError::NotReached(format!("no address of node {to} is known")))
    }

    fn weather(&self, to: NodeId, service: &str) -> Option<crate::weather::Fate> {
        self.inner.weather.as_ref().map(|weather| weather.fate(self.node(), to, service))
    }

    /// Of the peers whose addresses are known.
    pub fn counts(&self) -> BTreeMap<NodeId, PeerCounts> {
        self.inner.peers.read().iter().map(|(node, peer)| (*node, peer.counts())).collect()
    }

    /// Takes no more calls and makes none; what is under way may end, for [`SHUTDOWN_WITHIN`]. Then the port is free.
    pub async fn shutdown(&self) {
        self.reach(Stage::Draining);
        let ended = async { tokio::join!(self.inner.server.under_way.until_none(), self.inner.calls.until_none()) };
        if timeout(SHUTDOWN_WITHIN, ended).await.is_err() {
            tracing::warn!("calls to or from peers are cut off: they did not end in time");
        }
        self.reach(Stage::Closing);
        self.inner.peers.write().clear();
        self.forget_handlers();
        self.inner.server.until_closed().await;
    }

    /// Lets go of everything that answers here: handlers often hold what holds this.
    pub fn forget_handlers(&self) {
        *self.inner.server.handlers.write() = Handlers::new();
    }

    /// Never back: two may stop the same node.
    fn reach(&self, wanted: Stage) {
        self.inner.stage.send_modify(|stage| *stage = wanted.max(*stage));
    }
}
