//! Responses of outbound calls, with bodies in chunks that have limits of size and time.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::Stream;
use futures::future::poll_fn;
use hyper::body::{Body, Incoming};
use hyper::header::HeaderMap;
use hyper::{Response, StatusCode};
use tokio::time::{Instant, timeout_at};

use crate::dial::HttpConnection;
use crate::error::{EgressError, EgressFailure};
use crate::pool::CallPermit;

/// Head of a response, with its pending body. Redirects are ordinary responses.
pub struct EgressResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: EgressBody,
}

/// Limits of a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyLimits {
    pub(crate) bytes_max: u64,
    pub(crate) between_chunks: Duration,
    pub(crate) until: Instant,
}

/// Body of a response. Dropping it before its end closes the connection.
pub struct EgressBody {
    /// Open body, or `None` after its end or an error.
    open: Option<OpenBody>,
    limits: BodyLimits,
    taken: u64,
    /// Deadline of the next chunk while the caller waits for it.
    chunk_until: Option<Instant>,
}

struct OpenBody {
    incoming: Incoming,
    connection: HttpConnection,
    permit: CallPermit,
}

impl EgressResponse {
    pub(crate) fn new(
        response: Response<Incoming>,
        connection: HttpConnection,
        permit: CallPermit,
        limits: BodyLimits,
    ) -> EgressResponse {
        let (head, incoming) = response.into_parts();
        let mut body =
            EgressBody { open: Some(OpenBody { incoming, connection, permit }), limits, taken: 0, chunk_until: None };
        body.finish_at_end();
        EgressResponse { status: head.status, headers: head.headers, body }
    }
}

impl EgressBody {
    /// Returns the next chunk, or `None` after the last one or an error.
    ///
    /// The future may be dropped and created again, for example to send something during a pause. No byte is lost, and
    /// the limit of the pause counts from the first call.
    pub async fn next(&mut self) -> Result<Option<Bytes>, EgressError> {
        let next = self.next_chunk().await;
        self.chunk_until = None;
        if next.is_err() {
            self.open = None;
        }
        next
    }

    async fn next_chunk(&mut self) -> Result<Option<Bytes>, EgressError> {
        let Some(open) = &mut self.open else { return Ok(None) };
        let limit = self.limits.bytes_max;
        let large = || EgressError::cut(EgressFailure::BodyLarge, format!("the body has more than {limit} bytes"));
        if self.taken.saturating_add(open.incoming.size_hint().lower()) > limit {
            return Err(large());
        }
        let pause_ends = *self.chunk_until.get_or_insert_with(|| Instant::now() + self.limits.between_chunks);
        let until = self.limits.until.min(pause_ends);
        loop {
            let frame = poll_fn(|cx| Pin::new(&mut open.incoming).poll_frame(cx));
            let frame = timeout_at(until, frame).await.map_err(|_| {
                EgressError::cut(EgressFailure::BodyLate, format!("the body paused after {} bytes", self.taken))
            })?;
            let Some(frame) = frame else {
                self.finish();
                return Ok(None);
            };
            let frame = frame.map_err(|error| EgressError::cut(EgressFailure::BodyCut, with_causes(&error)))?;
            // Trailers are skipped. There is at most one block of them.
            let Ok(chunk) = frame.into_data() else { continue };
            self.taken = self.taken.saturating_add(chunk.len() as u64);
            if self.taken > limit {
                return Err(large());
            }
            self.finish_at_end();
            return Ok(Some(chunk));
        }
    }

    /// Returns the rest of the body in one piece.
    pub async fn collect(mut self) -> Result<Bytes, EgressError> {
        let Some(first) = self.next().await? else { return Ok(Bytes::new()) };
        let Some(second) = self.next().await? else { return Ok(first) };
        let mut whole = BytesMut::from(&first[..]);
        whole.extend_from_slice(&second);
        while let Some(chunk) = self.next().await? {
            whole.extend_from_slice(&chunk);
        }
        Ok(whole.freeze())
    }

    /// Returns the chunks as a stream, which ends after an error.
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes, EgressError>> + Send {
        futures::stream::unfold(self, async |mut body| {
            let chunk = body.next().await.transpose()?;
            Some((chunk, body))
        })
    }

    /// Returns the connection to the pool once the last byte is taken, before the caller asks for more.
    fn finish_at_end(&mut self) {
        if self.open.as_ref().is_some_and(|open| open.incoming.is_end_stream()) {
            self.finish();
        }
    }

    fn finish(&mut self) {
        if let Some(open) = self.open.take() {
            open.permit.keep(open.connection);
        }
    }
}

impl fmt::Debug for EgressBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EgressBody {{ taken: {}, ended: {} }}", self.taken, self.open.is_none())
    }
}

/// Prints no header values, because some are secret, such as cookies.
impl fmt::Debug for EgressResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EgressResponse {{ status: {}, headers: {}, {:?} }}", self.status, self.headers.len(), self.body)
    }
}

/// Returns the text of an error with its causes.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    const CAUSES_MAX: usize = 8;
    let causes = std::iter::successors(Some(error), |error| error.source()).take(CAUSES_MAX);
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
