//! Calls from the caller's side: targets and errors.

use std::time::Duration;

use assay_storage_model::{GroupId, ReplicaId};
use bytes::Bytes;
use futures::stream::BoxStream;
use thiserror::Error;

use crate::call_headers::WITHIN_MAX;
use crate::refusal::Refusal;

/// Request to one node.
#[derive(Clone, Debug)]
pub struct Call {
    pub service: &'static str,
    /// Sending and receiving replica, for calls between replicas. Opaque to the transport.
    pub address: Option<Address>,
    /// Sending and receiving process, opaque like the address.
    pub processes: Option<Processes>,
    pub body: Bytes,
    /// Time limit of the response. In a stream, it applies to each chunk.
    pub within: Duration,
    pub lane: Lane,
    /// Whether the receiver may get the call twice.
    ///
    /// Such a call is sent again through another node if the direct path goes down while it waits for the response.
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

    /// Marks the call as repeatable, so that its receiver may get it twice.
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

/// Processes that send and receive a call, by random numbers drawn at each start.
///
/// A node keeps its name over restarts, so the certificate does not distinguish its successive processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processes {
    pub from: u128,
    /// Receiving process, or `None` if the sender does not know its id.
    pub to: Option<u128>,
}

/// Class of calls. Each lane has its own connection, so that a heartbeat never waits behind a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Small and urgent calls.
    Control,
    /// Large or numerous calls.
    Bulk,
}

/// Stream of chunks. An error is the last item, and a stream that ends without one is complete.
pub type ByteStream = BoxStream<'static, Result<Bytes, CallError>>;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CallError {
    /// The call certainly never reached a handler: no address, no connection, or no time left before it was sent.
    #[error("could not be reached: {0}")]
    NotReached(String),
    /// The receiver refused the call. The code tells whether it may have taken effect.
    #[error("refused: {0}")]
    Refused(Refusal),
    /// The call was sent but got no response, so it may have taken effect.
    #[error("lost: {0}")]
    Lost(String),
}

impl CallError {
    /// Returns whether the call may have taken effect.
    pub fn may_have_been_done(&self) -> bool {
        match self {
            CallError::NotReached(_) => false,
            CallError::Refused(refusal) => refusal.code.may_have_been_done(),
            CallError::Lost(_) => true,
        }
    }
}
