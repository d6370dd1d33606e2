//! Handlers by the name of their service, and the input of a handler.

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

/// A call after all checks.
#[derive(Clone, Debug)]
pub struct Received {
    /// Proven by the caller's certificate, or vouched for by the relay. None only for open calls.
    pub from: Option<NodeId>,
    /// The node that passed the call on, proven by its certificate; it vouches for `from`. None for direct calls.
    pub via: Option<NodeId>,
    pub address: Option<Address>,
    /// Sending process, and the intended process here; none from a program before 0.5.
    pub processes: Option<Processes>,
    pub body: Bytes,
    /// Rest of the caller's time; for a stream the time that it waits for each chunk.
    pub within: Duration,
}

/// Answers calls. The future is dropped when the caller's time is over or the caller is gone: work that must come to
/// its end belongs in a task of its own. A panic is answered as a failure.
pub trait Handler: Send + Sync {
    fn call(&self, received: Received) -> BoxFuture<'static, Result<Bytes, Refusal>>;
}

/// Handler of streams. It responds with chunks, each made when there is room for it on the way. The first error is the
/// last item.
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

/// Answerers by name. A name holds one of each kind at most; the later one takes the earlier one's place.
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

    /// The only kind that a caller without a certificate reaches: the handler decides alone whom it believes what.
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

/// A name is a part of a path.
fn checked(service: &'static str) -> &'static str {
    assert!(is_name(service), "`{service}` is not a valid name of a service");
    service
}

fn is_name(service: &str) -> bool {
    !service.is_empty() && service.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
}
