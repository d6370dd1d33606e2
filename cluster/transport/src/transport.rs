//! Handle of the transport: start, calls, streams, and shutdown.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use assay_storage_model::{ClusterId, NodeId};
use bytes::Bytes;
use parking_lot::RwLock;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::call::{ByteStream, Call, CallError};
use crate::error::TransportError;
use crate::fault_injection::{FaultInjector, send_with_faults};
use crate::handlers::{Handler, Handlers, StreamHandler};
use crate::identity::{Credentials, Identity};
use crate::in_flight::InFlightCounter;
use crate::lane::Dialer;
use crate::peer::Peer;
use crate::peer_counters::PeerCounts;
use crate::reachability::Patience;
use crate::relay::RelayBudget;
use crate::server::{Server, Stage};

/// Interval at which a waiting call makes the node ping the peer again after an answered ping.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(500);
/// Interval between pings to a peer whose direct path is down.
const PROBE_EVERY: Duration = Duration::from_millis(250);
/// Time after which a non-repeatable call is given up because the direct path is down.
///
/// Together with the time of the detection, this is as long as a silent connection is kept.
const GIVEN_UP_AFTER: Duration = Duration::from_millis(1500);
/// Delay of a timer that means that this process was paused, so that silence proves nothing.
const OVERSLEPT: Duration = Duration::from_millis(100);
/// Name under which [`FaultInjector`] sees pings.
const PING: &str = "ping";

/// Time limit for calls in flight at shutdown.
pub const SHUTDOWN_WITHIN: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub struct TransportConfig {
    pub cluster: ClusterId,
    pub node: NodeId,
    /// Address to listen on. Port 0 takes a free port.
    pub listen: SocketAddr,
    pub identity: Identity,
    /// Fault injector, for tests.
    pub fault_injector: Option<Arc<dyn FaultInjector>>,
    pub patience: Patience,
    /// Runtime that drives all connections and runs all handlers. Callers may be on any tokio runtime.
    pub runtime: Handle,
}

/// Transport of one node to its peers.
///
/// All clones share one transport. Without [`Transport::shutdown`] it ends when the last clone is dropped.
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
    fault_injector: Option<Arc<dyn FaultInjector>>,
    patience: Patience,
    relay_budget: RelayBudget,
    /// Stage of the server. The last handle drops it, which ends the server.
    stage: watch::Sender<Stage>,
    calls: InFlightCounter,
}

impl Transport {
    /// Binds the address and starts to serve. A call to a service that is not registered yet is refused.
    pub fn start(config: TransportConfig, handlers: Handlers) -> Result<Transport, TransportError> {
        let TransportConfig { cluster, node, listen, identity, fault_injector, patience, runtime } = config;
        let credentials = Credentials::of(&identity, cluster, node)?;
        let entered = runtime.enter();
        let bound = std::net::TcpListener::bind(listen).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, tokio::net::TcpListener::from_std(listener)?))
        });
        let (local_addr, listener) = bound.map_err(|source| TransportError::Listen { address: listen, source })?;
        drop(entered);
        let credentials = RwLock::new(credentials);
        let dialer = Arc::new(Dialer {
            cluster,
            node,
            credentials,
            connect_within: patience.connect_within,
            runtime: runtime.clone(),
        });
        let (stage, watched) = watch::channel(Stage::Running);
        let server = Server::new(Arc::clone(&dialer), handlers, watched);
        runtime.spawn(Arc::clone(&server).accept(listener));
        let (peers, calls) = (RwLock::default(), InFlightCounter::new());
        let relay_budget = RelayBudget::default();
        let inner = Inner { dialer, server, local_addr, peers, fault_injector, patience, relay_budget, stage, calls };
        Ok(Transport { inner: Arc::new(inner) })
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.inner.local_addr
    }

    pub fn node(&self) -> NodeId {
        self.inner.dialer.node
    }

    /// Registers handlers. A handler replaces an earlier one with the same name.
    pub fn register(&self, handlers: Handlers) {
        self.inner.server.handlers.write().add(handlers);
    }

    /// Sets the addresses of all peers, as `host:port`.
    ///
    /// A connection to a previous address is closed: its calls in flight end, and no new ones begin.
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

    /// Returns the address at which a peer is called.
    pub fn address(&self, node: NodeId) -> Option<String> {
        self.inner.peers.read().get(&node).map(|peer| peer.address.clone())
    }

    /// Sets the address of one peer until the next `set_addresses`.
    pub fn set_address(&self, node: NodeId, address: &str) {
        let mut peers = self.inner.peers.write();
        let before = peers.get(&node);
        if before.is_none_or(|peer| peer.address != address) {
            let traffic = before.map(|peer| Arc::clone(&peer.traffic)).unwrap_or_default();
            peers.insert(node, Peer::new(&self.inner.dialer, node, address.to_owned(), traffic));
        }
    }

    /// Returns the identity that new connections use.
    pub fn identity(&self) -> Identity {
        self.inner.dialer.credentials.read().identity.clone()
    }

    /// Sets the certificate and the trusted authorities of new connections.
    ///
    /// Existing connections stay, except accepted ones whose certificates are no longer trusted.
    pub fn set_identity(&self, identity: &Identity) -> Result<(), TransportError> {
        let Dialer { cluster, node, credentials, .. } = &*self.inner.dialer;
        let new = Credentials::of(identity, *cluster, *node)?;
        let before = std::mem::replace(&mut *credentials.write(), new);
        if before.identity.authority_pem != identity.authority_pem {
            self.inner.server.trust_changed();
        }
        Ok(())
    }

    /// Sends a call over the peer's own connections, or through another node if those are down or cannot be made.
    pub async fn call(&self, to: NodeId, call: Call) -> Result<Bytes, CallError> {
        let peer = self.peer(to)?;
        let _under_way = self.inner.calls.begin();
        peer.traffic.called();
        let ends = Instant::now() + call.within();
        let direct = self.call_directly(to, &peer, &call, ends);
        let answer = match first(&peer, call.repeatable, direct).await {
            Ok(answer) => answer,
            Err(unreached) => match self.call_through(to, &peer, &call, ends).await {
                Err(CallError::NotReached(_)) => match unreached {
                    Some(error) => Err(error),
                    None => self.call_directly(to, &peer, &call, ends).await,
                },
                answer => answer,
            },
        };
        answer.inspect_err(|_| peer.traffic.failed())
    }

    /// Opens a stream and returns with the first chunk, or at the end of an empty stream.
    ///
    /// `call.within` limits the time of each chunk. The sender waits while the caller does not read.
    pub async fn stream(&self, to: NodeId, call: Call) -> Result<ByteStream, CallError> {
        let peer = self.peer(to)?;
        let _under_way = self.inner.calls.begin();
        peer.traffic.called();
        let ends = Instant::now() + call.within();
        let opened = match first(&peer, true, self.stream_directly(to, &peer, &call, ends)).await {
            Ok(opened) => opened,
            Err(unreached) => match (self.stream_through(to, &peer, &call, ends).await, unreached) {
                (Err(CallError::NotReached(_)), Some(error)) => Err(error),
                (Err(CallError::NotReached(_)), None) => self.stream_directly(to, &peer, &call, ends).await,
                (opened, _) => opened,
            },
        };
        opened.inspect_err(|_| peer.traffic.failed())
    }

    pub(crate) async fn call_directly(
        &self,
        to: NodeId,
        peer: &Arc<Peer>,
        call: &Call,
        ends: Instant,
    ) -> Result<Bytes, CallError> {
        let sent = async {
            match self.fault_injector(to, call.service) {
                None => peer.call(call, ends).await,
                Some(faults) => {
                    let send = async {
                        if faults.duplicate {
                            let (peer, call) = (Arc::clone(peer), call.clone());
                            self.inner.dialer.runtime.spawn(async move { peer.call(&call, ends).await });
                        }
                        peer.call(call, ends).await
                    };
                    send_with_faults(faults, ends, send).await
                }
            }
        };
        self.watched(to, peer, sent).await
    }

    pub(crate) async fn stream_directly(
        &self,
        to: NodeId,
        peer: &Arc<Peer>,
        call: &Call,
        ends: Instant,
    ) -> Result<ByteStream, CallError> {
        let opened = async {
            match self.fault_injector(to, call.service) {
                None => peer.stream(call, ends).await,
                Some(faults) => send_with_faults(faults, ends, peer.stream(call, ends)).await,
            }
        };
        self.watched(to, peer, opened).await
    }

    /// Waits for a response, and examines the path to the peer while none comes.
    async fn watched<Answer>(
        &self,
        to: NodeId,
        peer: &Arc<Peer>,
        sent: impl Future<Output = Result<Answer, CallError>>,
    ) -> Result<Answer, CallError> {
        peer.path.asked(Instant::now());
        let mut sent = std::pin::pin!(sent);
        let mut look_after = self.inner.patience.ping_after;
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut sent => break answer,
                () = sleep(look_after) => {
                    // A response to another call in the meantime proves nothing about the path from now on.
                    peer.path.asked(Instant::now());
                    self.examine(to, peer);
                }
            }
            look_after = LOOK_AGAIN_AFTER;
        };
        if let Ok(_) | Err(CallError::Refused(_)) = &answer {
            peer.path.answered();
        }
        answer
    }

    /// Starts a task that probes the peer until its state is known, and then until it responds.
    fn examine(&self, to: NodeId, peer: &Arc<Peer>) {
        if peer.path.begin_examination(Instant::now(), self.inner.patience.ping_after) {
            let examination = examination(Arc::downgrade(&self.inner), to, Arc::downgrade(peer));
            self.inner.dialer.runtime.spawn(examination);
        }
    }

    pub(crate) fn relay_budget(&self) -> &RelayBudget {
        &self.inner.relay_budget
    }

    pub(crate) fn peers_where(&self, wanted: impl Fn(NodeId, &Peer) -> bool) -> Vec<(NodeId, Arc<Peer>)> {
        let peers = self.inner.peers.read();
        let found = peers.iter().filter(|(node, peer)| wanted(**node, peer));
        found.map(|(node, peer)| (*node, Arc::clone(peer))).collect()
    }

    pub(crate) fn call_handler(&self, service: &str) -> Option<Arc<dyn Handler>> {
        self.inner.server.handlers.read().find_call(service).map(|found| found.handler)
    }

    pub(crate) fn stream_handler(&self, service: &str) -> Option<Arc<dyn StreamHandler>> {
        self.inner.server.handlers.read().find_stream(service)
    }

    /// Returns whether the peer answers a greeting over its own connections now.
    pub async fn is_reached(&self, node: NodeId, within: Duration) -> bool {
        let Ok(peer) = self.peer(node) else { return false };
        let ends = Instant::now() + within;
        match self.fault_injector(node, PING) {
            None => peer.ping(ends).await.is_ok(),
            Some(faults) => send_with_faults(faults, ends, peer.ping(ends)).await.is_ok(),
        }
    }

    /// Returns whether the peer responds over its own connections, according to the calls to it.
    pub fn answers_directly(&self, node: NodeId) -> bool {
        self.inner.peers.read().get(&node).is_some_and(|peer| !peer.path.is_down())
    }

    pub(crate) fn peer(&self, to: NodeId) -> Result<Arc<Peer>, CallError> {
        if self.inner.server.is_stopping() {
            return Err(CallError::NotReached("this node is stopping".into()));
        }
        let peer = self.inner.peers.read().get(&to).cloned();
        peer.ok_or_else(|| CallError::NotReached(format!("node {to} has no known address")))
    }

    fn fault_injector(&self, to: NodeId, service: &str) -> Option<crate::fault_injection::CallFaults> {
        self.inner.fault_injector.as_ref().map(|fault_injector| fault_injector.faults(self.node(), to, service))
    }

    /// Returns the counters of the peers with known addresses.
    pub fn counts(&self) -> BTreeMap<NodeId, PeerCounts> {
        self.inner.peers.read().iter().map(|(node, peer)| (*node, peer.counts())).collect()
    }

    /// Stops accepting and making calls, waits up to [`SHUTDOWN_WITHIN`] for calls in flight, and frees the port.
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

    /// Drops all handlers, because they often hold the owner of this transport.
    pub fn forget_handlers(&self) {
        *self.inner.server.handlers.write() = Handlers::new();
    }

    /// Advances to a stage, never backwards, because two callers may stop the same node.
    fn reach(&self, wanted: Stage) {
        self.inner.stage.send_modify(|stage| *stage = wanted.max(*stage));
    }
}

/// Returns the response of the direct path, or an error if another path should be tried.
///
/// The error is that of the direct path, or `None` if the path is down. A call that was already sent by then is
/// repeatable.
async fn first<Answer>(
    peer: &Peer,
    repeatable: bool,
    direct: impl Future<Output = Result<Answer, CallError>>,
) -> Result<Result<Answer, CallError>, Option<CallError>> {
    if peer.path.is_down() {
        return Err(None);
    }
    let answer = tokio::select! {
        biased;
        answer = direct => answer,
        () = peer.path.until_down(), if repeatable => return Err(None),
        () = peer.path.until_down_for(GIVEN_UP_AFTER) => {
            Err(CallError::Lost("the node stopped responding directly before the response came".into()))
        }
    };
    match answer {
        Err(error @ CallError::NotReached(_)) => Err(Some(error)),
        answer => Ok(answer),
    }
}

async fn examination(inner: Weak<Inner>, to: NodeId, peer: Weak<Peer>) {
    let ping = async |within: Duration| {
        let (inner, peer) = (inner.upgrade()?, peer.upgrade()?);
        if inner.server.is_stopping() {
            return None;
        }
        let ends = Instant::now() + within;
        let faults =
            inner.fault_injector.as_ref().map(|fault_injector| fault_injector.faults(inner.dialer.node, to, PING));
        drop(inner);
        Some(match faults {
            None => peer.ping(ends).await,
            Some(faults) => send_with_faults(faults, ends, peer.ping(ends)).await,
        })
    };
    let Some(Patience { silent_after, connect_within, .. }) = inner.upgrade().map(|inner| inner.patience) else {
        return;
    };
    loop {
        let began = Instant::now();
        let Some(answer) = ping(silent_after).await else { return };
        let Some(peer) = peer.upgrade() else { return };
        if answer.is_ok() || !peer.path.is_unanswered_since(began) {
            peer.path.answered();
            peer.path.end_examination();
            return;
        }
        if began.elapsed() > silent_after + OVERSLEPT {
            continue;
        }
        let why = answer.err().map(|error| error.to_string()).unwrap_or_default();
        if peer.path.set_down(true) {
            tracing::warn!(node = %to, why, "a node does not respond directly; calls to it are relayed through other nodes");
        }
        break;
    }
    loop {
        sleep(PROBE_EVERY).await;
        match ping(connect_within).await {
            None => return,
            Some(Err(_)) => {}
            Some(Ok(())) => break,
        }
    }
    let Some(peer) = peer.upgrade() else { return };
    peer.path.answered();
    peer.path.end_examination();
    if peer.path.set_down(false) {
        tracing::info!(node = %to, "a node responds directly again");
    }
}
