//! Handlers by the names of their services, and the calls that they receive.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use assay_storage_model::NodeId;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

use crate::call::{Address, Processes};
use crate::refusal::Refusal;

/// Call that passed all checks.
#[derive(Clone, Debug)]
pub struct Received {
    /// Caller, proven by its certificate or vouched for by the relay. `None` only for open calls.
    pub from: Option<NodeId>,
    /// Relay of the call, proven by its certificate, which vouches for `from`. `None` for direct calls.
    pub via: Option<NodeId>,
    pub address: Option<Address>,
    /// Sending process and intended receiving process. `None` for calls of programs before 0.5.
    pub processes: Option<Processes>,
    pub body: Bytes,
    /// Remaining time of the caller. For a stream, it is the time limit of each chunk.
    pub within: Duration,
}

/// Handler of calls.
///
/// The future is dropped when the caller's time is over or the caller is gone. Work that must finish belongs in its own
/// task. A panic is answered as a failure.
pub trait Handler: Send + Sync {
    fn call(&self, received: Received) -> BoxFuture<'static, Result<Bytes, Refusal>>;
}

/// Handler of streams.
///
/// Each chunk of its response is made when there is room for it. The first error is the last item.
pub trait StreamHandler: Send + Sync {
    fn stream(&self, received: Received) -> BoxStream<'static, Result<Bytes, Refusal>>;
}

impl<F, Answer> Handler for F
where
    F: Fn(Received) -> Answer + Send + Sync,
    Answer: Future<Output = Result<Bytes, Refusal>> + Send + 'static,
{
    fn call(&self, received: Received) -> BoxFuture<'static, Result<Bytes, Refusal>> {
        Box::pin(self(received))
    }
}

impl<F, Chunks> StreamHandler for F
where
    F: Fn(Received) -> Chunks + Send + Sync,
    Chunks: futures::Stream<Item = Result<Bytes, Refusal>> + Send + 'static,
{
    fn stream(&self, received: Received) -> BoxStream<'static, Result<Bytes, Refusal>> {
        Box::pin(self(received))
    }
}

/// Handlers by name. Each name has at most one of each kind, and a later handler replaces an earlier one.
#[derive(Clone, Default)]
pub struct Handlers {
    calls: BTreeMap<&'static str, Registered>,
    streams: BTreeMap<&'static str, Arc<dyn StreamHandler>>,
}

#[derive(Clone)]
pub(crate) struct Registered {
    pub(crate) handler: Arc<dyn Handler>,
    /// Whether callers without a certificate are accepted.
    pub(crate) open: bool,
}

impl Handlers {
    pub fn new() -> Handlers {
        Handlers::default()
    }

    #[must_use]
    pub fn call(mut self, service: &'static str, handler: Arc<dyn Handler>) -> Handlers {
        self.calls.insert(checked(service), Registered { handler, open: false });
        self
    }

    /// Registers the only kind of handler that callers without a certificate can reach. It must authenticate them
    /// itself.
    #[must_use]
    pub fn open_call(mut self, service: &'static str, handler: Arc<dyn Handler>) -> Handlers {
        self.calls.insert(checked(service), Registered { handler, open: true });
        self
    }

    #[must_use]
    pub fn stream(mut self, service: &'static str, handler: Arc<dyn StreamHandler>) -> Handlers {
        self.streams.insert(checked(service), handler);
        self
    }

    pub(crate) fn add(&mut self, more: Handlers) {
        self.calls.extend(more.calls);
        self.streams.extend(more.streams);
    }

    pub(crate) fn find_call(&self, service: &str) -> Option<Registered> {
        self.calls.get(service).cloned()
    }

    pub(crate) fn find_stream(&self, service: &str) -> Option<Arc<dyn StreamHandler>> {
        self.streams.get(service).cloned()
    }
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.calls.keys()).entries(self.streams.keys()).finish()
    }
}

/// Checks that a name can be part of a path.
fn checked(service: &'static str) -> &'static str {
    assert!(is_name(service), "`{service}` is not a valid name of a service");
    service
}

fn is_name(service: &str) -> bool {
    !service.is_empty() && service.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
}
