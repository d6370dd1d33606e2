//! Network of this node: sends and receives the messages of groups and services.
//!
//! On a node without an address there may be no transport: then no other node can be reached. It is set once the node
//! has its certificate.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use assay_cluster_directory::starts::{Consequence, Stop};
use assay_cluster_raft::{Chunks, FileWanted, Message, MessageKind, PeerError, Peers, ReceiveError, Way};
use assay_cluster_replicas::{Replicas, Suspects};
use assay_cluster_transport::{
    Address, ByteStream, Call, CallError, Handler, Handlers, Lane, RELAY_CALL, RELAY_DELIVER, Received, Refusal,
    RefusalCode, StreamHandler, Transport,
};
use assay_storage_model::{NodeId, ReplicaId};
use bytes::{BufMut, Bytes, BytesMut};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryFutureExt};
use parking_lot::{Mutex, RwLock};
use tokio::time::Instant;

use crate::delegated::{Guard, UNNAMED_ANSWERED_FOR};
use crate::node_records::{Membership, Removed};
use crate::start_histories::StartHistories;
use crate::unknown_nodes::UnknownNodes;

/// A piece of a snapshot that does not come within this time does not come.
const CHUNK_WAIT_MAX: Duration = Duration::from_secs(10);
const SNAPSHOT_FILE: &str = "raft.snapshot-file";
/// Detail of a refused snapshot that differs from what its sender once wrote. A replica, the alternative detail, has
/// eight bytes.
const DAMAGED: &[u8] = b"damaged";
/// The detail of a refusal by a node that has yet to compare its starts with the sender's.
const COMPARE_FIRST: &[u8] = b"compare starts";
/// Tries of one message: the second comes after the two nodes were introduced.
const SENT_TIMES_MAX: u32 = 2;

#[derive(Clone, Default)]
pub struct Network {
    transport: Arc<OnceLock<Transport>>,
    /// Removed nodes. Their certificates stay valid; their messages are refused.
    removed: Arc<RwLock<Removed>>,
    /// Nodes missing in this node's catalog.
    strangers: Arc<UnknownNodes>,
    /// Time since which every node names the principal; none while one does not.
    named_since: Arc<Mutex<Option<Instant>>>,
    guard: Arc<RwLock<Option<Arc<dyn Guard>>>>,
    suspects: Arc<Suspects>,
    /// None before the start has read them; then nothing is compared.
    start_histories: Arc<OnceLock<Arc<StartHistories>>>,
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Net").field("connected", &self.transport.get().is_some()).finish()
    }
}

fn no_transport() -> String {
    "this node has no address for other nodes".into()
}

impl Network {
    pub fn set_removed(&self, removed: Removed) {
        let mut since = self.named_since.lock();
        *since = removed.all_name_principals().then(|| since.unwrap_or_else(Instant::now));
        *self.removed.write() = removed;
    }

    /// Returns whether requests without a principal are answered.
    pub fn answers_unnamed(&self) -> bool {
        self.named_since.lock().is_none_or(|since| since.elapsed() < UNNAMED_ANSWERED_FOR)
    }

    /// Sets the guard. None releases it, since it holds a reference to the holder of this network.
    pub fn guard_with(&self, guard: Option<Arc<dyn Guard>>) {
        *self.guard.write() = guard;
    }

    pub fn guard(&self) -> Option<Arc<dyn Guard>> {
        self.guard.read().clone()
    }

    /// Refuses messages sent or relayed by a removed or unknown node.
    pub fn check(&self, received: &Received) -> Result<(), Refusal> {
        received.from.into_iter().chain(received.via).try_for_each(|node| self.check_member(node))
    }

    fn check_member(&self, from: NodeId) -> Result<(), Refusal> {
        let membership = self.removed.read().membership(from);
        match membership {
            Membership::Member => Ok(()),
            Membership::Removed => {
                Err(refuse(RefusalCode::NotAuthenticated, format!("node {from} was removed from this cluster")))
            }
            Membership::Unknown if self.strangers.is_vouched(from, Instant::now()) => Ok(()),
            Membership::Unknown => {
                Err(refuse(RefusalCode::NotAuthenticated, format!("node {from} is unknown to this node")))
            }
        }
    }

    /// Returns the nodes missing in this node's catalog.
    pub fn strangers(&self) -> &Arc<UnknownNodes> {
        &self.strangers
    }

    /// Groups whose replica here is to be looked at.
    pub fn suspects(&self) -> &Arc<Suspects> {
        &self.suspects
    }

    /// Messages of groups pass only between processes that were compared, from here on.
    pub fn compare(&self, start_histories: Arc<StartHistories>) {
        // Set once, by the start.
        let _ = self.start_histories.set(start_histories);
    }

    fn start_histories(&self) -> Option<&Arc<StartHistories>> {
        self.start_histories.get()
    }

    /// Adds the ids of the sending and the receiving process, and sends. A receiver without this process's introduction
    /// has done nothing.
    async fn call_replica(&self, way: Way, call: Call) -> Result<Bytes, CallError> {
        let Some(start_histories) = self.start_histories() else { return self.call(way.node, call).await };
        for _ in 0..SENT_TIMES_MAX {
            let processes = start_histories.way_out(way, call.within).await.map_err(CallError::NotReached)?;
            let answer = self.call(way.node, Call { processes: Some(processes), ..call.clone() }).await;
            match answer {
                Err(CallError::Refused(refusal)) if refusal.detail == COMPARE_FIRST => start_histories.forget(way.node),
                answer => return answer,
            }
        }
        Err(CallError::NotReached(Stop::Introduce.to_string()))
    }

    pub fn transport(&self) -> Option<&Transport> {
        self.transport.get()
    }

    /// Groups of this node can be reached from here on.
    pub fn open(&self, transport: Transport, replicas: &Replicas) {
        let mut handlers = Handlers::new()
            .stream(SNAPSHOT_FILE, Arc::new(SnapshotFileService { replicas: replicas.clone(), net: self.clone() }));
        for kind in MessageKind::ALL {
            handlers = handlers.call(
                kind.name(),
                Arc::new(GroupMessageService { replicas: replicas.clone(), net: self.clone(), kind }),
            );
        }
        let relay = |deliver| Arc::new(RelayService { net: self.clone(), transport: transport.clone(), deliver });
        let handlers = handlers.call(RELAY_CALL, relay(false)).call(RELAY_DELIVER, relay(true));
        let handlers = handlers.stream(RELAY_CALL, relay(false)).stream(RELAY_DELIVER, relay(true));
        transport.register(handlers);
        // Set once, by the start.
        let _ = self.transport.set(transport);
    }

    /// Returns every node that has an address, whatever its groups.
    pub fn peers(&self) -> Vec<NodeId> {
        self.transport.get().map(|transport| transport.counts().into_keys().collect()).unwrap_or_default()
    }

    pub async fn call(&self, to: NodeId, call: Call) -> Result<Bytes, CallError> {
        match self.transport.get() {
            Some(transport) => transport.clone().call(to, call).await,
            None => Err(CallError::NotReached(no_transport())),
        }
    }
}

fn peer_error(error: CallError) -> PeerError {
    match error {
        CallError::NotReached(why) => PeerError::Unreachable(why),
        CallError::Refused(refusal) if refusal.code == RefusalCode::NoService => PeerError::Unsupported(refusal.why),
        CallError::Refused(refusal) if refusal.code.may_have_been_done() => PeerError::Lost(refusal.why),
        CallError::Refused(refusal) => PeerError::Refused { leader: replica_in(&refusal.detail), why: refusal.why },
        CallError::Lost(why) => PeerError::Lost(why),
    }
}

fn replica_in(detail: &[u8]) -> Option<ReplicaId> {
    detail.try_into().ok().map(u64::from_le_bytes).map(ReplicaId)
}

fn address_of(way: Way) -> Option<Address> {
    Some(Address { group: way.group, from: way.from, to: way.to })
}

impl Peers for Network {
    fn send(&self, message: Message) -> BoxFuture<'static, Result<Bytes, PeerError>> {
        let net = self.clone();
        let Message { way, kind, body, within } = message;
        // A heartbeat must not wait behind two megabytes of entries.
        let lane = if kind == MessageKind::Append && body.len() > 4096 { Lane::Bulk } else { Lane::Control };
        // Consensus copes with messages that come twice; these two start work that takes long.
        let repeatable = !matches!(kind, MessageKind::Snapshot | MessageKind::TakeOver);
        let call =
            Call { service: kind.name(), address: address_of(way), processes: None, body, within, lane, repeatable };
        let sent = async move {
            let answer = net.call_replica(way, call).await;
            if let Err(CallError::Refused(refusal)) = &answer
                && kind == MessageKind::Snapshot
                && refusal.detail == DAMAGED
            {
                tracing::error!(group = %way.group, to = %way.node, why = refusal.why, "a snapshot of this replica was refused");
                net.suspects.add(way.group);
            }
            answer.map_err(peer_error)
        };
        sent.boxed()
    }

    fn fetch(&self, way: Way, wanted: FileWanted) -> BoxFuture<'static, Result<Chunks, PeerError>> {
        let net = self.clone();
        let mut body = BytesMut::with_capacity(20);
        body.put_u64_le(wanted.export);
        body.put_u32_le(wanted.file);
        body.put_u64_le(wanted.offset);
        let call = Call {
            service: SNAPSHOT_FILE,
            address: address_of(way),
            processes: None,
            body: body.freeze(),
            within: CHUNK_WAIT_MAX,
            lane: Lane::Bulk,
            repeatable: true,
        };
        let fetch = async move {
            let processes = match net.start_histories() {
                Some(start_histories) => {
                    Some(start_histories.way_out(way, CHUNK_WAIT_MAX).await.map_err(PeerError::Unreachable)?)
                }
                None => None,
            };
            let call = Call { processes, ..call };
            let transport = net.transport.get().ok_or_else(|| PeerError::Unreachable(no_transport()))?.clone();
            let stream: ByteStream = transport.stream(way.node, call).await.map_err(peer_error)?;
            Ok(stream.map(|chunk| chunk.map_err(peer_error)).boxed())
        };
        fetch.boxed()
    }
}

/// Service that receives calls passed on by another node, and calls that this node is to pass on.
#[derive(Debug)]
struct RelayService {
    net: Network,
    transport: Transport,
    /// The call is for this node.
    deliver: bool,
}

impl Handler for RelayService {
    fn call(&self, received: Received) -> BoxFuture<'static, Result<Bytes, Refusal>> {
        match self.net.check(&received) {
            Err(refusal) => async move { Err(refusal) }.boxed(),
            Ok(()) if self.deliver => self.transport.deliver(received),
            Ok(()) => self.transport.pass_on(received),
        }
    }
}

impl StreamHandler for RelayService {
    fn stream(&self, received: Received) -> ChunkStream {
        match self.net.check(&received) {
            Err(refusal) => futures::stream::iter([Err(refusal)]).boxed(),
            Ok(()) if self.deliver => self.transport.deliver_stream(received),
            Ok(()) => self.transport.pass_stream_on(received),
        }
    }
}

/// Service that receives messages for the groups of this node.
#[derive(Debug)]
struct GroupMessageService {
    replicas: Replicas,
    net: Network,
    kind: MessageKind,
}

fn refuse(code: RefusalCode, why: impl Into<String>) -> Refusal {
    Refusal { code, why: why.into(), detail: Bytes::new() }
}

/// The way back to the sender, if the replica that is meant is here.
fn arrived(
    replicas: &Replicas,
    net: &Network,
    received: &Received,
) -> Result<(assay_cluster_raft::Group, Way), Refusal> {
    net.check(received)?;
    let bad = || refuse(RefusalCode::BadRequest, "a message to a group names sender and receiver");
    let (Some(address), Some(node)) = (received.address, received.from) else { return Err(bad()) };
    let Address { group, from, to } = address;
    let not_here = || refuse(RefusalCode::NotHere, format!("replica {to} of group {group} is not on this node"));
    let found = replicas.replica(group, to).ok_or_else(not_here)?;
    let way = Way { group, from: to, to: from, node };
    if let Some(start_histories) = net.start_histories() {
        start_histories.way_in(way, received.processes).map_err(|stop| {
            let detail = if stop == Stop::Introduce { COMPARE_FIRST } else { &[] };
            refuse(RefusalCode::Unavailable, stop.to_string()).with_detail(Bytes::from_static(detail))
        })?;
    }
    Ok((found, way))
}

impl Handler for GroupMessageService {
    fn call(&self, received: Received) -> BoxFuture<'static, Result<Bytes, Refusal>> {
        let arrived = arrived(&self.replicas, &self.net, &received);
        let (kind, net) = (self.kind, self.net.clone());
        async move {
            let (group, way) = arrived?;
            group.receive(way, kind, received.body).await.map_err(|error| {
                net.look_at(way, &error);
                refusal_of(error)
            })
        }
        .boxed()
    }
}

impl Network {
    /// A replica whose group went on without what it has committed must not go on.
    fn look_at(&self, way: Way, error: &ReceiveError) {
        if let (ReceiveError::OtherHistory(why), Some(start_histories)) = (error, self.start_histories()) {
            let Way { group, from: replica, node: by, .. } = way;
            start_histories.add(Consequence::Close { by, group, replica, why: why.clone(), diverged: true });
        }
    }
}

fn refusal_of(error: ReceiveError) -> Refusal {
    let why = error.to_string();
    match error {
        ReceiveError::Malformed(_) => refuse(RefusalCode::BadRequest, why),
        ReceiveError::Busy(_) => refuse(RefusalCode::Busy, why),
        ReceiveError::NotLeader { leader } => {
            let detail = leader.map(|leader| Bytes::copy_from_slice(&leader.0.to_le_bytes()));
            Refusal { code: RefusalCode::NotLeader, why, detail: detail.unwrap_or_default() }
        }
        ReceiveError::Damaged(_) => refuse(RefusalCode::Unavailable, why).with_detail(Bytes::from_static(DAMAGED)),
        ReceiveError::OtherHistory(_) | ReceiveError::Failed(_) | ReceiveError::Stopped(_) => {
            refuse(RefusalCode::Unavailable, why)
        }
    }
}

#[derive(Debug)]
struct SnapshotFileService {
    replicas: Replicas,
    net: Network,
}

fn file_wanted(body: &[u8]) -> Option<FileWanted> {
    let (export, rest) = body.split_first_chunk::<8>()?;
    let (file, rest) = rest.split_first_chunk::<4>()?;
    let offset = u64::from_le_bytes(rest.try_into().ok()?);
    Some(FileWanted { export: u64::from_le_bytes(*export), file: u32::from_le_bytes(*file), offset })
}

type ChunkStream = BoxStream<'static, Result<Bytes, Refusal>>;

impl StreamHandler for SnapshotFileService {
    fn stream(&self, received: Received) -> ChunkStream {
        let arrived = arrived(&self.replicas, &self.net, &received);
        let opened = async move {
            let (group, _) = arrived?;
            let bad = || refuse(RefusalCode::BadRequest, "the request for a file cannot be decoded");
            let wanted = file_wanted(&received.body).ok_or_else(bad)?;
            let failed = |error: PeerError| refuse(RefusalCode::Unavailable, error.to_string());
            let chunks = group.read_export(wanted).await.map_err(failed)?;
            Ok(chunks.map(move |chunk| chunk.map_err(failed)))
        };
        opened.try_flatten_stream().boxed()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;
    use std::net::SocketAddr;

    use assay_cluster_transport::{Authority, Identity, Patience, TransportConfig, new_request};
    use assay_storage_model::{ClusterId, GroupId};
    use tokio::runtime::Handle;
    use uuid::Uuid;

    use super::*;

    pub const OTHER: NodeId = NodeId(2);

    /// A node that reaches one other, which answers to this.
    pub fn with_other(answers: Handlers) -> (Network, Transport) {
        let cluster = ClusterId(Uuid::from_u128(7));
        let authority = Authority::new(cluster).expect("an authority");
        let start = |node, handlers| {
            let (key_pem, request) = new_request().expect("a request");
            let certificate_pem = authority.issue(node, &request, Duration::from_secs(3600)).expect("a certificate");
            let identity = Identity { authority_pem: authority.certificate_pem().to_owned(), certificate_pem, key_pem };
            let listen = SocketAddr::from(([127, 0, 0, 1], 0));
            let (patience, runtime) = (Patience::default(), Handle::current());
            let config = TransportConfig { cluster, node, listen, identity, fault_injector: None, patience, runtime };
            Transport::start(config, handlers).expect("a transport")
        };
        let (own, other) = (start(NodeId(1), Handlers::new()), start(OTHER, answers));
        own.set_addresses(BTreeMap::from([(OTHER, other.local_addr().to_string())]));
        let net = Network::default();
        net.open(own, &Replicas::default());
        (net, other)
    }

    /// Answer of a replica at the other node to a snapshot.
    async fn send_snapshot(group: GroupId, answer: ReceiveError) -> (Network, Result<Bytes, PeerError>) {
        let refuse = move |_: Received| {
            let refusal = refusal_of(answer.clone());
            async move { Err::<Bytes, _>(refusal) }
        };
        let (net, _other) = with_other(Handlers::new().call(MessageKind::Snapshot.name(), Arc::new(refuse)));
        let way = Way { group, from: ReplicaId(1), to: ReplicaId(2), node: OTHER };
        let within = Duration::from_secs(20);
        let sent = net.send(Message { way, kind: MessageKind::Snapshot, body: Bytes::new(), within }).await;
        (net, sent)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn whoever_sent_a_damaged_snapshot_looks_at_what_it_has() {
        let group = GroupId(16);
        let (net, sent) = send_snapshot(group, ReceiveError::Damaged("a block".into())).await;
        let Err(PeerError::Refused { why, leader: None }) = sent else { panic!("{sent:?}") };
        assert!(why.contains("a block"), "{why}");
        assert_eq!(net.suspects().waiting(), [group]);

        let (net, sent) = send_snapshot(group, ReceiveError::Failed("no room".into())).await;
        assert!(matches!(sent, Err(PeerError::Refused { .. })), "{sent:?}");
        assert!(net.suspects().waiting().is_empty(), "the error tells nothing about its data");
    }
}
