//! Calls from the caller's side: their target, and their errors.

use std::time::Duration;

use assay_storage_model::{GroupId, ReplicaId};
use bytes::Bytes;
use futures::stream::BoxStream;
use thiserror::Error;

use crate::call_headers::WITHIN_MAX;
use crate::refusal::Refusal;

/// One question to one node.
#[derive(Clone, Debug)]
pub struct Call {
    pub service: &'static str,
    /// Sending and receiving replica, for calls between replicas; opaque to the transport.
    pub address: Option<Address>,
    /// Sending and receiving process; carried like the address.
    pub processes: Option<Processes>,
    pub body: Bytes,
    /// Time limit of the response; in a stream, of each chunk.
    pub within: Duration,
    pub lane: Lane,
    /// Whether the receiver may get it twice: it is sent again through another node if the direct path goes down while
    /// it waits for its response.
    pub repeatable: bool,
}

impl Call {
    pub fn new(service: &'static str, body: Bytes, within: Duration) -> Call {
        Call { service, address: None, processes: None, body, within, lane: Lane::Control, repeatable: false }
    }

    pub fn to_replica(self, address: Address) -> Call {
        Call { address: Some(address), ..self }
    }

    pub fn in_bulk(self) -> Call {
        Call { lane: Lane::Bulk, ..self }
    }

    /// Marks the call as repeatable: its receiver may get it twice.
    pub fn repeatable(self) -> Call {
        Call { repeatable: true, ..self }
    }

    pub(crate) fn within(&self) -> Duration {
        self.within.min(WITHIN_MAX)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    pub group: GroupId,
    pub from: ReplicaId,
    pub to: ReplicaId,
}

/// The process that sends a call, and the process that it is meant for, by numbers that are drawn at each start.
///
/// A node keeps its name over restarts, so the certificate alone does not distinguish its successive processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processes {
    pub from: u128,
    /// Receiving process; none if the sender does not have its id.
    pub to: Option<u128>,
}

/// Each lane is a connection of its own: a heartbeat never waits behind a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Small and urgent.
    Control,
    /// Large, or many.
    Bulk,
}

/// Chunks as they come. One error is the last item; a stream that ends without one is whole.
pub type ByteStream = BoxStream<'static, Result<Bytes, CallError>>;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CallError {
    /// Surely never handed to a handler: no address, no connection, no time left before it was sent.
    #[error("could not be reached: {0}")]
    NotReached(String),
    /// The receiver refused the call; the code tells whether it may have taken effect.
    #[error("refused: {0}")]
    Refused(Refusal),
    /// Sent without a response: it may have taken effect.
    #[error("lost: {0}")]
    Lost(String),
}

impl CallError {
    /// Returns whether the outcome is unknown, rather than surely "not done".
    pub fn may_have_been_done(&self) -> bool {
        match self {
            CallError::NotReached(_) => false,
            CallError::Refused(refusal) => refusal.code.may_have_been_done(),
            CallError::Lost(_) => true,
        }
    }
}
