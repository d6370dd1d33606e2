//! Groups of one member speak to nobody. The transport takes this place when there are peers; until then a group
//! that has any answers that it cannot reach them, and so elects nobody and commits nothing.

use openraft::error::{Fatal, RPCError, RaftError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse};
use openraft::{OptionalSend, Vote};
use thiserror::Error;

use crate::types::{Consensus, Home, Replica, SnapshotOf};

#[derive(Debug, Error)]
#[error("replica {0} is on another node, and this program has no transport to it")]
struct NoTransport(Replica);

#[derive(Debug)]
pub(crate) struct NoPeers;

#[derive(Debug)]
pub(crate) struct NoPeer(Replica);

impl NoPeer {
    fn unreachable(&self) -> Unreachable {
        Unreachable::new(&NoTransport(self.0))
    }
}

impl RaftNetworkFactory<Consensus> for NoPeers {
    type Network = NoPeer;

    async fn new_client(&mut self, target: Replica, _home: &Home) -> NoPeer {
        NoPeer(target)
    }
}

type RpcError = RPCError<Replica, Home, RaftError<Replica>>;

impl RaftNetwork<Consensus> for NoPeer {
    async fn append_entries(
        &mut self,
        _request: AppendEntriesRequest<Consensus>,
        _option: RPCOption,
    ) -> Result<AppendEntriesResponse<Replica>, RpcError> {
        Err(self.unreachable().into())
    }

    async fn vote(
        &mut self,
        _request: VoteRequest<Replica>,
        _option: RPCOption,
    ) -> Result<VoteResponse<Replica>, RpcError> {
        Err(self.unreachable().into())
    }

    async fn full_snapshot(
        &mut self,
        _vote: Vote<Replica>,
        _snapshot: SnapshotOf,
        _cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<Replica>, StreamingError<Consensus, Fatal<Replica>>> {
        Err(self.unreachable().into())
    }
}
