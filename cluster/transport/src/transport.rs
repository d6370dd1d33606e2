//! The transport handle: start, calls, streams, and stop.

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

/// A call that waits on after a ping was answered makes the node ping again after this.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(500);
/// Between two pings to a peer whose direct path is down.
const PROBE_EVERY: Duration = Duration::from_millis(250);
/// A call that may not be sent again has no answer when the direct path was down for this long. With the time until
/// that is known this is as long as a silent connection is kept.
const GIVEN_UP_AFTER: Duration = Duration::from_millis(1500);
/// A timer that fires so late means that this process stood still, and then silence proves nothing.
const OVERSLEPT: Duration = Duration::from_millis(100);
/// Name of a ping for [`FaultInjector`].
const PING: &str = "ping";

/// Time that calls in flight may take to end when the node stops.
pub const SHUTDOWN_WITHIN: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub struct TransportConfig {
    pub cluster: ClusterId,
    pub node: NodeId,
    /// Port 0 takes a free one.
    pub listen: SocketAddr,
    pub identity: Identity,
    /// Fault injector, for tests.
    pub fault_injector: Option<Arc<dyn FaultInjector>>,
    pub patience: Patience,
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
    fault_injector: Option<Arc<dyn FaultInjector>>,
    patience: Patience,
    relay_budget: RelayBudget,
    /// Dropped with the last handle, which ends what listens.
    stage: watch::Sender<Stage>,
    calls: InFlightCounter,
}

impl Transport {
    /// Binds and serves. A call for a service that is not registered yet is refused.
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

    /// Adds to those who answer; a name that is there already is taken over.
    pub fn register(&self, handlers: Handlers) {
        self.inner.server.handlers.write().add(handlers);
    }

    /// Sets the addresses of all peers from now on, as `host:port`. A connection to a previous address is closed: its
    /// calls in flight end, and no new ones begin.
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

    /// Address at which a peer is called.
    pub fn address(&self, node: NodeId) -> Option<String> {
        self.inner.peers.read().get(&node).map(|peer| peer.address.clone())
    }

    /// Calls one peer at another address from now on, until `set_addresses` names one for it.
    pub fn set_address(&self, node: NodeId, address: &str) {
        let mut peers = self.inner.peers.write();
        let before = peers.get(&node);
        if before.is_none_or(|peer| peer.address != address) {
            let traffic = before.map(|peer| Arc::clone(&peer.traffic)).unwrap_or_default();
            peers.insert(node, Peer::new(&self.inner.dialer, node, address.to_owned(), traffic));
        }
    }

    /// Sets the identity that new connections show and trust.
    pub fn identity(&self) -> Identity {
        self.inner.dialer.credentials.read().identity.clone()
    }

    /// Sets the certificate and trust for new connections. Existing ones stay, except accepted ones whose certificates
    /// are no longer trusted.
    pub fn set_identity(&self, identity: &Identity) -> Result<(), TransportError> {
        let Dialer { cluster, node, credentials, .. } = &*self.inner.dialer;
        let new = Credentials::of(identity, *cluster, *node)?;
        let before = std::mem::replace(&mut *credentials.write(), new);
        if before.identity.authority_pem != identity.authority_pem {
            self.inner.server.trust_changed();
        }
        Ok(())
    }

    /// Over the peer's own connections; through another node where those are down or do not come about.
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

    /// Returns with the first chunk, which like every later one may take `call.within` to come; an empty stream returns
    /// at its end. A reader that does not read holds the sender back.
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

    /// Waits for an answer, and examines the path to the peer when none comes.
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
                    // An answer to another call since then says nothing about the path from here on.
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

    /// Counts of the peers whose addresses are known.
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

    /// Drops all handlers: they often hold the owner of this transport.
    pub fn forget_handlers(&self) {
        *self.inner.server.handlers.write() = Handlers::new();
    }

    /// Never back: two may stop the same node.
    fn reach(&self, wanted: Stage) {
        self.inner.stage.send_modify(|stage| *stage = wanted.max(*stage));
    }
}

/// The answer of the direct path. An error means that another way is to be tried: with the error of the direct path where
/// that is why, without one where the path is down. A call that was sent by then is repeatable.
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
