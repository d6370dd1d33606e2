//! Streams to clients, which pass each event at once, send pings in pauses, and report a premature end.

use std::fmt;
use std::time::Duration;

use assay_node_dialects::Dialect;
use assay_node_dialects::form::ModelError;
use assay_node_egress::EgressBody;
use bytes::{Bytes, BytesMut};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::{Instant, timeout, timeout_at};

use super::codec::StreamCodec;
use crate::error::GatewayError;
use crate::gateway::now_ms;
use crate::outcome::CallRecorder;
use crate::translation::{error_status, write_stream_error};
use crate::upstream::{ActiveCall, KeyMask, ServerResponse};

/// Content type of streams.
pub(crate) const EVENT_STREAM: &str = "text/event-stream; charset=utf-8";
/// Pause of the server after which the client receives a ping (G-19).
const PING_AFTER: Duration = Duration::from_secs(15);
/// Time limit for holding back a response without content, during which another server can be tried.
const HOLD_MAX: Duration = Duration::from_secs(2);
/// Number of held-back bytes after which the response is passed on.
const HELD_BYTES_MAX: usize = 1 << 20;
/// Time limit for the bytes after the end of an answer. If they arrive, the connection can be reused.
const DRAIN_MAX: Duration = Duration::from_secs(1);

/// Response as a stream of bytes for the client. Dropping it cancels the call to the model server.
pub struct ReplyStream {
    active: Box<ActiveCall>,
    dialect: Dialect,
    codec: StreamCodec,
    mask: KeyMask,
    /// `None` after the end.
    body: Option<EgressBody>,
    /// Bytes that are ready for the client.
    ready: Bytes,
    /// Settlement of the price. The last bytes wait for it.
    settling: Option<BoxFuture<'static, ()>>,
    /// Whether the connection to the client must be cut, because the format cannot express the failure.
    is_cut: bool,
}

/// Failure of a stream in an unknown format. Only a cut connection informs the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the model server ended its answer early")]
pub struct StreamCut;

impl fmt::Debug for ReplyStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyStream")
            .field("active", &self.active)
            .field("is_open", &self.body.is_some())
            .finish_non_exhaustive()
    }
}

/// Stream that broke before its content began.
#[derive(Debug)]
pub(crate) struct BrokenStream {
    /// Status of the error event in the stream.
    pub status: Option<u16>,
    pub error: Option<ModelError>,
    pub active: Box<ActiveCall>,
}

/// Reads a stream until it has content.
pub(crate) async fn begin_stream(
    mut active: Box<ActiveCall>,
    response: ServerResponse,
) -> Result<ReplyStream, Box<BrokenStream>> {
    let (server, mask) = (response.plan.server, response.mask);
    let mut codec = StreamCodec::new(&response.plan.form);
    let (mut body, mut held) = (response.response.body, BytesMut::new());
    let hold_until = Instant::now() + HOLD_MAX;
    let (mut is_open, mut broken) = (true, false);
    while !codec.has_content() && !codec.is_ended() && held.len() <= HELD_BYTES_MAX {
        let Ok(read) = timeout_at(hold_until, body.next()).await else { break };
        let (bytes, pushed) = match read {
            Ok(Some(bytes)) => codec.push(&bytes),
            Ok(None) => {
                is_open = false;
                match codec.finish() {
                    Ok((bytes, is_complete)) => {
                        broken = !is_complete;
                        (bytes, Ok(()))
                    }
                    Err(error) => (Bytes::new(), Err(error)),
                }
            }
            Err(_) => {
                broken = true;
                break;
            }
        };
        held.extend_from_slice(&bytes);
        if let Err(error) = pushed {
            tracing::warn!(%error, "the stream of a model server cannot be read");
            broken = true;
        }
        if broken || !is_open {
            break;
        }
    }
    let has_content = codec.has_content();
    if !has_content && (broken || codec.error().is_some()) {
        let error = codec.error().cloned().map(|error| mask.error(error));
        let status = error.as_ref().map(|error| error_status(server, error));
        return Err(Box::new(BrokenStream { status, error, active }));
    }
    active.delivering();
    let dialect = active.call.endpoint.dialect();
    let mut stream = ReplyStream {
        active,
        dialect,
        codec,
        mask,
        body: Some(body),
        ready: Bytes::new(),
        settling: None,
        is_cut: false,
    };
    if has_content {
        stream.active.recorder.outcome.first_token_ms.get_or_insert_with(now_ms);
    }
    if broken {
        held.extend_from_slice(&stream.interrupt());
    } else if stream.codec.is_ended() || !is_open {
        stream.end(&held);
    } else if let Some(entry) = &mut stream.active.recorder.entry {
        entry.add(&held);
    }
    stream.ready = stream.masked(held.freeze());
    Ok(stream)
}

impl ReplyStream {
    pub(crate) fn recorder(&self) -> &CallRecorder {
        &self.active.recorder
    }

    pub(crate) fn request_id(&self) -> &str {
        &self.active.call.request_id
    }

    /// Returns whether the stream passes unread.
    pub(crate) fn is_opaque(&self) -> bool {
        matches!(self.codec, StreamCodec::Opaque(_))
    }

    /// Returns the next bytes for the client, or `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, StreamCut> {
        let bytes = self.next_bytes().await;
        if let Some(settling) = self.settling.take() {
            settling.await;
        }
        if bytes.is_none() && self.is_cut { Err(StreamCut) } else { Ok(bytes) }
    }

    async fn next_bytes(&mut self) -> Option<Bytes> {
        if !self.ready.is_empty() {
            return Some(std::mem::take(&mut self.ready));
        }
        let is_opaque = self.is_opaque();
        loop {
            let body = self.body.as_mut()?;
            let read = match timeout(PING_AFTER, body.next()).await {
                Ok(read) => read,
                // Additional bytes would corrupt binary content such as images or speech.
                Err(_) if is_opaque => continue,
                Err(_) => return Some(Bytes::from_static(ping(self.dialect))),
            };
            let bytes = match read {
                Ok(Some(bytes)) => self.push(&bytes),
                Ok(None) => self.end_of_input(),
                Err(error) => {
                    tracing::warn!(reason = error.operator_reason(), "the stream of a model server broke");
                    self.interrupt()
                }
            };
            if !bytes.is_empty() {
                return Some(bytes);
            }
        }
    }

    fn push(&mut self, bytes: &Bytes) -> Bytes {
        let (written, pushed) = self.codec.push(bytes);
        if self.active.recorder.outcome.first_token_ms.is_none() && self.codec.has_content() {
            self.active.recorder.outcome.first_token_ms = Some(now_ms());
        }
        let written = self.masked(written);
        if let Err(error) = pushed {
            tracing::warn!(%error, "the stream of a model server cannot be read");
            return [written, self.interrupt()].concat().into();
        }
        if self.codec.is_ended() {
            self.end(&written);
        } else if let Some(entry) = &mut self.active.recorder.entry {
            entry.add(&written);
        }
        written
    }

    fn end_of_input(&mut self) -> Bytes {
        match self.codec.finish() {
            Ok((bytes, true)) => {
                self.end(&bytes);
                bytes
            }
            Ok((bytes, false)) => [self.masked(bytes), self.interrupt()].concat().into(),
            Err(_) => self.interrupt(),
        }
    }

    /// Masks the key in the last bytes of a stream that ends with an error of the server.
    fn masked(&self, bytes: Bytes) -> Bytes {
        if self.codec.error().is_some() { self.mask.bytes(bytes) } else { bytes }
    }

    /// Ends a stream after its last event: the end of the answer, or an error of the server.
    fn end(&mut self, last: &[u8]) {
        match self.codec.error().cloned() {
            None => self.active.finished(&self.codec.answer()),
            Some(error) => {
                self.active.interrupted(Some(error.kind.status()));
                self.active.recorder.outcome.error = Some(self.mask.error(error).message);
            }
        }
        self.close(last);
    }

    /// Ends a broken stream. Returns the bytes of an error event, if the format has one.
    fn interrupt(&mut self) -> Bytes {
        let error = GatewayError::new(502, "upstream_error", StreamCut.to_string());
        self.active.interrupted(None);
        self.active.recorder.outcome.error = Some(error.error.message.clone());
        self.body = None;
        self.active.recorder.entry = None;
        self.close(&[]);
        self.is_cut = self.is_opaque();
        if self.is_cut { Bytes::new() } else { Bytes::from(write_stream_error(self.dialect, &error.error)) }
    }

    fn close(&mut self, last: &[u8]) {
        let is_complete = self.active.recorder.outcome.error.is_none();
        self.settling = Some(self.settle(is_complete).boxed());
        if let Some(mut entry) = self.active.recorder.entry.take() {
            entry.add(last);
            let (call, outcome) = (&self.active.call, self.active.recorder.outcome.clone());
            self.active.core.store(entry, call, EVENT_STREAM.to_owned(), outcome);
        }
        self.active.recorder.end(now_ms());
        if let Some(body) = self.body.take() {
            tokio::spawn(drain(body));
        }
    }

    /// Settles the price of the answer so far.
    fn settle(&mut self, is_complete: bool) -> impl Future<Output = ()> + Send + 'static + use<> {
        let attempts = self.active.attempts();
        let recorder = &mut self.active.recorder;
        recorder.outcome.answer = self.codec.answer();
        recorder.outcome.usage = self.codec.usage();
        recorder.outcome.attempts = attempts;
        if is_complete {
            recorder.reckon();
        } else {
            recorder.reckon_cut(self.codec.unreported_bytes());
        }
        self.active.settle()
    }
}

impl Drop for ReplyStream {
    fn drop(&mut self) {
        if self.body.is_some() {
            // The settlement continues without its future.
            drop(self.settle(false));
        }
    }
}

/// Reads the bytes after the end of an answer, so that the connection can be reused.
async fn drain(mut body: EgressBody) {
    let rest = async { while let Ok(Some(_)) = body.next().await {} };
    drop(timeout(DRAIN_MAX, rest).await);
}

/// Returns a ping that all clients of the format ignore.
fn ping(dialect: Dialect) -> &'static [u8] {
    match dialect {
        Dialect::Anthropic => b"event: ping\ndata: {\"type\": \"ping\"}\n\n",
        _ => b": ping\n\n",
    }
}
