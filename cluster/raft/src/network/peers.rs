//! Interface of a group to the network: messages to the other replicas of the group, and the files of a snapshot.
//!
//! An implementation of [`Peers`] knows the addresses of nodes. Consensus only maps replicas to nodes.
//!
//! P1: a message reaches the intended replica of the intended group, or is refused.
//! P2: [`PeerError::Unreachable`] means that the message was not received. After any other error it may have taken
//!     effect.

use std::fmt;
use std::time::Duration;

use assay_storage_model::{GroupId, NodeId, ReplicaId};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use thiserror::Error;

/// Route from one replica of a group to another, which runs on `node`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    pub group: GroupId,
    pub from: ReplicaId,
    pub to: ReplicaId,
    pub node: NodeId,
}

/// Kind of a message. The names are part of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageKind {
    Append,
    Vote,
    /// Offer of a snapshot, whose files the receiver fetches before it responds.
    Snapshot,
    /// Request to a leader for the index that a read must have applied.
    ReadIndex,
    /// Request to lead next.
    TakeOver,
    /// Request for a pre-vote: whether the receiver has no contact with a leader, so that the sender may stand for
    /// election.
    PreVote,
}

impl MessageKind {
    pub const ALL: [MessageKind; 6] = [
        MessageKind::Append,
        MessageKind::Vote,
        MessageKind::Snapshot,
        MessageKind::ReadIndex,
        MessageKind::TakeOver,
        MessageKind::PreVote,
    ];

    pub fn name(self) -> &'static str {
        match self {
            MessageKind::Append => "raft.append",
            MessageKind::Vote => "raft.vote",
            MessageKind::Snapshot => "raft.snapshot",
            MessageKind::ReadIndex => "raft.read-index",
            MessageKind::TakeOver => "raft.take-over",
            MessageKind::PreVote => "raft.pre-vote",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Message {
    pub way: Way,
    pub kind: MessageKind,
    pub body: Bytes,
    /// Time limit, after which a response is useless.
    pub within: Duration,
}

/// Bytes of one file of an export, from `offset` to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileWanted {
    pub export: u64,
    pub file: u32,
    pub offset: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PeerError {
    /// The message was certainly not received.
    #[error("could not be reached: {0}")]
    Unreachable(String),
    /// The receiver refused the message. The refusal names another replica that leads, if there is one.
    #[error("refused: {why}")]
    Refused { why: String, leader: Option<ReplicaId> },
    /// The receiver's version does not support this kind of message.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// The message was sent, but no response came.
    #[error("no response: {0}")]
    Lost(String),
}

pub type Chunks = BoxStream<'static, Result<Bytes, PeerError>>;

pub trait Peers: Send + Sync + fmt::Debug + 'static {
    fn send(&self, message: Message) -> BoxFuture<'static, Result<Bytes, PeerError>>;
    fn fetch(&self, way: Way, wanted: FileWanted) -> BoxFuture<'static, Result<Chunks, PeerError>>;
}

/// Network of a node without peers, in which every message is unreachable.
#[derive(Debug)]
pub struct NoPeers;

fn nobody() -> PeerError {
    PeerError::Unreachable("this node has no transport to other nodes".into())
}

impl Peers for NoPeers {
    fn send(&self, _message: Message) -> BoxFuture<'static, Result<Bytes, PeerError>> {
        Box::pin(async { Err(nobody()) })
    }

    fn fetch(&self, _way: Way, _wanted: FileWanted) -> BoxFuture<'static, Result<Chunks, PeerError>> {
        Box::pin(async { Err(nobody()) })
    }
}
