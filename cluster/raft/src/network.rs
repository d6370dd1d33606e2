//! The other replicas of a group, as openraft wants them: each message becomes bytes, goes through [`Peers`], and its
//! answer becomes what openraft expects. Nothing is tried again here: openraft does that, after the pause it is told.

use std::sync::Arc;
use std::time::Duration;

use assay_storage_model::{GroupId, NodeId, ReplicaId};
use bytes::Bytes;
use openraft::error::{Fatal, NetworkError, RPCError, RaftError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{Backoff, RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse};
use openraft::{OptionalSend, Vote};

use crate::encoding::BadRecord;
use crate::exports::Exports;
use crate::peers::{Message, MessageKind, PeerError, Peers, Way};
use crate::types::{Consensus, Home, Replica, SnapshotFiles, SnapshotOf};
use crate::wire;

/// Between two tries to reach a replica that was not reached: a node that comes back is found soon.
const BACKOFF: Duration = Duration::from_millis(100);

#[derive(Clone, Debug)]
pub(crate) struct Network {
    pub group: GroupId,
    pub replica: ReplicaId,
    pub peers: Arc<dyn Peers>,
    pub exports: Exports,
}

#[derive(Clone, Debug)]
pub(crate) struct Peer {
    network: Network,
    way: Way,
}

impl RaftNetworkFactory<Consensus> for Network {
    type Network = Peer;

    async fn new_client(&mut self, target: Replica, home: &Home) -> Peer {
        let Network { group, replica, .. } = *self;
        let way = Way { group, from: replica, to: ReplicaId(target), node: NodeId(home.node) };
        Peer { network: self.clone(), way }
    }
}

type RpcError = RPCError<Replica, Home, RaftError<Replica>>;

impl Peer {
    async fn send(&self, kind: MessageKind, body: Bytes, within: Duration) -> Result<Bytes, PeerError> {
        self.network.peers.send(Message { way: self.way, kind, body, within }).await
    }
}

fn failed(error: PeerError) -> RpcError {
    match &error {
        // A refusal is one of a node that does not have the replica yet, or no longer: it will not change at once.
        PeerError::Unreachable(_) | PeerError::Refused { .. } => Unreachable::new(&error).into(),
        PeerError::Lost(_) => NetworkError::new(&error).into(),
    }
}

fn unreadable(error: BadRecord) -> RpcError {
    Unreachable::new(&error).into()
}

impl RaftNetwork<Consensus> for Peer {
    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<Consensus>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<Replica>, RpcError> {
        let answer = self.send(MessageKind::Append, wire::encode_append(&request), option.hard_ttl()).await;
        wire::decode_appended(&answer.map_err(failed)?).map_err(unreadable)
    }

    async fn vote(
        &mut self,
        request: VoteRequest<Replica>,
        option: RPCOption,
    ) -> Result<VoteResponse<Replica>, RpcError> {
        let answer = self.send(MessageKind::Vote, wire::encode_vote_request(&request), option.hard_ttl()).await;
        wire::decode_voted(&answer.map_err(failed)?).map_err(unreadable)
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote<Replica>,
        snapshot: SnapshotOf,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse<Replica>, StreamingError<Consensus, Fatal<Replica>>> {
        let SnapshotFiles::Exported(export) = *snapshot.snapshot else {
            let nothing = PeerError::Unreachable("there is nothing of this snapshot to send".into());
            return Err(Unreachable::new(&nothing).into());
        };
        let held = self.network.exports.hold(export);
        let body = wire::encode_offer(&held.offer(vote));
        let answer = tokio::select! {
            biased;
            closed = cancel => return Err(closed.into()),
            answer = self.send(MessageKind::Snapshot, body, option.hard_ttl()) => answer,
        };
        let streaming = |error: &PeerError| match error {
            PeerError::Unreachable(_) | PeerError::Refused { .. } => Unreachable::new(error).into(),
            PeerError::Lost(_) => StreamingError::Network(NetworkError::new(error)),
        };
        let vote = wire::decode_installed(&answer.map_err(|error| streaming(&error))?);
        vote.map(SnapshotResponse::new).map_err(|error| Unreachable::new(&error).into())
    }

    fn backoff(&self) -> Backoff {
        Backoff::new(std::iter::repeat(BACKOFF))
    }
}
