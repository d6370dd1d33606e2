//! Calls as a caller sees them: whom they concern, and how they can fail.

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
    /// Which replica asks which, where replicas speak; the transport carries it and looks at none of it.
    pub address: Option<Address>,
    /// Which process speaks to which; carried like the address.
    pub processes: Option<Processes>,
    pub body: Bytes,
    /// For the answer; in a stream for each chunk.
    pub within: Duration,
    pub lane: Lane,
    /// Whether the receiver may hear it twice: it is sent again through another node when the direct path goes down
    /// while it waits for its answer.
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

    /// May be heard twice by its receiver.
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
/// A node keeps its name over restarts, so the certificate alone does not tell one process of it from the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processes {
    pub from: u128,
    /// None where the sender does not know who runs there.
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
    #[error("not reached: {0}")]
    NotReached(String),
    /// The other side answered no; the code says whether something may have been done.
    #[error("refused: {0}")]
    Refused(Refusal),
    /// Sent, and no answer came: nobody here knows whether it was done.
    #[error("lost: {0}")]
    Lost(String),
}

impl CallError {
    /// Whether the outcome is unknown, rather than surely "not done".
    pub fn may_have_been_done(&self) -> bool {
        match self {
            CallError::NotReached(_) => false,
            CallError::Refused(refusal) => refusal.code.may_have_been_done(),
            CallError::Lost(_) => true,
        }
    }
}
