//! Errors of fences and seals. Failures of writes are in the model, because they are sent to other nodes.

use assay_storage_model::ReplicaId;
use thiserror::Error;

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
    /// Nothing has changed. The seal is retried when there is space.
    #[error("not sealed, the disk has no space: {0}")]
    NoSpace(String),
    #[error("the group has stopped: {0}")]
    Stopped(String),
}
