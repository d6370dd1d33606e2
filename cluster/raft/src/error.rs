//! What a writer or reader is told. `NotWritten` is a promise: not now and not later. Anything that was handed to
//! consensus and did not succeed is `Unknown`: it may appear later, whole, or never (promise P5).

use assay_storage_model::ReplicaId;
use thiserror::Error;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProposeError {
    #[error("not written: {0}")]
    NotWritten(#[from] NotWritten),
    #[error("it is not known whether this was written, asking again with the same request id is safe: {why}")]
    Unknown { why: String },
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotWritten {
    /// Try again in a moment.
    #[error("busy: {0}")]
    Busy(&'static str),
    #[error("the disk has no room for writes: {0}")]
    NoSpace(String),
    #[error("no leader of the group could be reached in time; try again")]
    NotLeader { leader: Option<ReplicaId> },
    #[error("a command of {bytes} bytes, at most {limit} are taken")]
    TooLarge { bytes: usize, limit: usize },
    /// A large write has to be on a majority before its entry is proposed, and no majority took it.
    #[error("no majority of the group could be reached: {0}")]
    NoQuorum(String),
    #[error("a proposal without commands")]
    Empty,
    #[error("this node shuts down")]
    Closing,
    /// The disk failed; the node is about to stop.
    #[error("{0}")]
    Failed(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FenceError {
    #[error("no leader of the group could be reached in time; try again")]
    NotLeader { leader: Option<ReplicaId> },
    #[error("no majority of the group confirmed its leader: {0}")]
    NoQuorum(String),
    #[error("the group has not applied index {index} within {seconds} s")]
    Late { index: u64, seconds: u64 },
    #[error("the group has stopped: {0}")]
    Stopped(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SealError {
    /// Nothing has changed; tried again when there is room.
    #[error("not sealed, the disk has no room: {0}")]
    NoSpace(String),
    #[error("the group has stopped: {0}")]
    Stopped(String),
}
