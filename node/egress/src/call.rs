//! Requests and options of outbound calls, with their limits.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Uri};
use uuid::Uuid;

use crate::error::{EgressError, EgressFailure};
use crate::purpose::EgressPurpose;
use crate::tls::TlsOptions;
use crate::url::EgressUrl;

/// Upper bound of the headers of a request or a response.
pub(crate) const HEADERS_MAX: usize = 128;
/// Upper bound of the names and values of all headers of a request, in bytes.
pub const REQUEST_HEAD_BYTES_MAX: usize = 64 << 10;
/// Time limit to resolve, connect and establish TLS. A call may also wait this long for a permit.
pub const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Time limit until the head of a streamed response.
pub const FIRST_BYTE_STREAM: Duration = Duration::from_secs(120);
/// Time limit until the head of a response in one piece.
pub const FIRST_BYTE_WHOLE: Duration = Duration::from_secs(600);
pub const BETWEEN_CHUNKS: Duration = Duration::from_secs(120);
/// Time limit of a whole call.
pub const CALL_MAX: Duration = Duration::from_secs(30 * 60);
/// Upper bound of every time limit that a caller sets.
pub const TIME_LIMIT_MAX: Duration = Duration::from_secs(24 * 3600);
/// Default upper bound of a response body, in bytes.
pub const RESPONSE_BYTES_MAX: u64 = 64 << 20;

/// Headers that are specific to a connection or set by this client.
const OWN_HEADERS: [HeaderName; 10] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::HOST,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];
const OWN_HEADER_NAMES: [&str; 2] = ["keep-alive", "proxy-connection"];

/// Time limits of one call (G-18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EgressTimes {
    pub connect: Duration,
    /// Time limit from the request to the head of the response.
    pub first_byte: Duration,
    pub between_chunks: Duration,
    pub total: Duration,
}

impl EgressTimes {
    /// Limits for a streamed response.
    pub const STREAM: EgressTimes = EgressTimes {
        connect: CONNECT_MAX,
        first_byte: FIRST_BYTE_STREAM,
        between_chunks: BETWEEN_CHUNKS,
        total: CALL_MAX,
    };
    /// Limits for a response in one piece.
    pub const WHOLE: EgressTimes = EgressTimes { first_byte: FIRST_BYTE_WHOLE, ..EgressTimes::STREAM };

    /// Returns the limits, with [`TIME_LIMIT_MAX`] as their upper bound.
    pub(crate) fn bounded(self) -> EgressTimes {
        EgressTimes {
            connect: self.connect.min(TIME_LIMIT_MAX),
            first_byte: self.first_byte.min(TIME_LIMIT_MAX),
            between_chunks: self.between_chunks.min(TIME_LIMIT_MAX),
            total: self.total.min(TIME_LIMIT_MAX),
        }
    }
}

/// Options of one call.
#[derive(Clone, Debug)]
pub struct EgressOptions {
    pub purpose: EgressPurpose,
    /// Organization of the call. Connections are shared only within an organization.
    pub organization: Uuid,
    pub times: EgressTimes,
    pub response_bytes_max: u64,
    pub tls: Option<Arc<TlsOptions>>,
    pub departure: RequestDeparture,
}

/// Mark that a request is on its way to the server. Clones share the mark.
///
/// It remains readable after the future of the call is dropped, which itself does not say how far the call came.
#[derive(Clone, Debug, Default)]
pub struct RequestDeparture(Arc<AtomicBool>);

impl RequestDeparture {
    /// Returns whether a connection took the request, so that the server may execute it.
    pub fn is_marked(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    pub(crate) fn mark(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Removes the mark, because the connection sent nothing of the request.
    pub(crate) fn clear(&self) {
        self.0.store(false, Ordering::Release);
    }
}

impl EgressOptions {
    pub fn new(purpose: EgressPurpose, organization: Uuid) -> EgressOptions {
        let times = EgressTimes::STREAM;
        let (response_bytes_max, departure) = (RESPONSE_BYTES_MAX, RequestDeparture::default());
        EgressOptions { purpose, organization, times, response_bytes_max, tls: None, departure }
    }
}

/// Request of one call. The client sets `Host` and the headers of the connection.
#[derive(Clone)]
pub struct EgressRequest {
    pub method: Method,
    pub url: EgressUrl,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl EgressRequest {
    pub fn get(url: EgressUrl) -> EgressRequest {
        EgressRequest { method: Method::GET, url, headers: HeaderMap::new(), body: Bytes::new() }
    }

    pub fn post(url: EgressUrl, body: Bytes) -> EgressRequest {
        EgressRequest { method: Method::POST, url, headers: HeaderMap::new(), body }
    }

    /// Returns the request in the form in which it is sent.
    pub(crate) fn to_http(&self) -> Result<Request<WholeBody>, EgressError> {
        let refused = |why: &str| EgressError::nothing_sent(EgressFailure::Refused, why);
        if self.method == Method::CONNECT {
            return Err(refused("the method CONNECT opens tunnels"));
        }
        let mut headers = HeaderMap::with_capacity(self.headers.len() + 2);
        let own = |name: &HeaderName| OWN_HEADERS.contains(name) || OWN_HEADER_NAMES.contains(&name.as_str());
        for (name, value) in self.headers.iter().filter(|(name, _)| !own(name)) {
            headers.append(name, value.clone());
        }
        let host = HeaderValue::try_from(self.url.origin().authority());
        headers.insert(header::HOST, host.map_err(|_| refused("the host is no header value"))?);
        if !headers.contains_key(header::USER_AGENT) {
            headers.insert(header::USER_AGENT, HeaderValue::from_static("assay"));
        }
        let has_content = matches!(self.method, Method::POST | Method::PUT | Method::PATCH);
        if has_content && self.body.is_empty() {
            // Servers refuse a POST without a length.
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
        if headers.len() > HEADERS_MAX || bytes > REQUEST_HEAD_BYTES_MAX {
            return Err(refused("the head of the request exceeds 128 headers or 65536 bytes"));
        }
        let uri = Uri::try_from(self.url.path_and_query());
        let mut request = Request::new(WholeBody(Some(self.body.clone()).filter(|body| !body.is_empty())));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = uri.map_err(|_| refused("the path of the URL is invalid"))?;
        *request.headers_mut() = headers;
        Ok(request)
    }
}

/// Prints neither header values nor the body.
impl fmt::Debug for EgressRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EgressRequest")
            .field("method", &self.method)
            .field("url", &self.url)
            .field("headers", &self.headers.keys().map(HeaderName::as_str).collect::<Vec<_>>())
            .field("body_bytes", &self.body.len())
            .finish()
    }
}

/// Body of a request in a single chunk.
#[derive(Debug)]
pub(crate) struct WholeBody(Option<Bytes>);

impl Body for WholeBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}
