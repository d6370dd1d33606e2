//! Connection to another node, from the dial to the exchange of requests and responses.
//!
//! A connection counts as made once the other side has answered a greeting. Under TLS 1.3 a caller learns only then
//! that its certificate was accepted. A call that fails before was therefore certainly not executed.
//!
//! HTTP/2 uses hyper directly. The channel of tonic does not distinguish a request that was never written from one with
//! a lost response.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::{HeaderMap, Method, Request, Uri, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tonic::Streaming;
use tonic::body::Body;

use crate::call::{Address, CallError, Processes};
use crate::call_headers::{self, Form};
use crate::certificate_names::server_name;
use crate::frame::{Frame, MESSAGE_BYTES_MAX, frames_of_answer, request_body};
use crate::peer_counters::Traffic;
use crate::refusal::{Refusal, RefusalCode};
use crate::socket::{PING_EVERY, Wire};

/// Window of one call or stream. An append of a mebibyte fits without a wait.
pub(crate) const STREAM_WINDOW_BYTES: u32 = 2 << 20;
/// Window of a whole connection.
pub(crate) const CONNECTION_WINDOW_BYTES: u32 = 256 << 20;
/// Maximum HTTP/2 frame size. Larger frames cost less but delay the frames behind them.
pub(crate) const HTTP_FRAME_BYTES_MAX: u32 = 64 << 10;
/// Upper bound of the bytes per stream that HTTP/2 buffers ahead of the socket.
pub(crate) const SEND_BUFFER_BYTES: usize = 1 << 20;
/// Upper bound of the headers of one request or response.
pub(crate) const HEADER_BYTES_MAX: u32 = 16 << 10;
/// Number of concurrent requests that a server accepts on one connection.
///
/// It also limits the number of cancelled requests that are remembered until their pending frames have come. Both sides
/// are nodes of one cluster, so many cancelled calls are no attack.
pub(crate) const REQUESTS_MAX: u32 = 1024;
/// Limit on pongs, which must never come first, because the socket itself watches for silence.
pub(crate) const PONG_WITHIN: Duration = Duration::from_secs(24 * 3600);
/// Number of concurrent calls on one connection, below the limit of the other side. Further calls wait.
const CALLS_MAX: usize = 448;
/// Number of concurrent streams on one connection. Further streams wait.
const STREAMS_MAX: usize = 64;
/// Budget of the request bodies in flight on one connection, in units. Further bodies wait before any byte is sent.
const BODIES_BYTES_MAX: usize = 96 << 20;
const BODY_UNIT_BYTES: usize = 1 << 10;

// The windows of unread streams must leave room for the responses of calls.
const _: () = assert!(STREAMS_MAX * STREAM_WINDOW_BYTES as usize <= CONNECTION_WINDOW_BYTES as usize / 2);
const _: () = assert!(MESSAGE_BYTES_MAX < BODIES_BYTES_MAX);
const _: () = assert!(CALLS_MAX + STREAMS_MAX <= REQUESTS_MAX as usize / 2);

/// Error of a connection attempt.
#[derive(Clone, Debug)]
pub(crate) enum NoConnection {
    NotReached(String),
    /// The other side refused the greeting.
    Refused(Refusal),
}

impl From<NoConnection> for CallError {
    fn from(why: NoConnection) -> CallError {
        match why {
            NoConnection::NotReached(why) => CallError::NotReached(why),
            NoConnection::Refused(refusal) => CallError::Refused(refusal),
        }
    }
}

/// Error of an exchange.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// The connection was closed before anything was written.
    NotSent(String),
    Lost(String),
}

/// Target of a dial, and the identity used for it.
#[derive(Debug)]
pub(crate) struct DialTarget<'a> {
    /// `host:port`.
    pub(crate) address: &'a str,
    /// Name that the other side's certificate must contain.
    pub(crate) name: &'a str,
    pub(crate) tls: Arc<ClientConfig>,
    /// Time limit for TCP, TLS and the greeting together.
    pub(crate) within: Duration,
    /// Headers that all requests of the connection share.
    pub(crate) headers: HeaderMap,
    pub(crate) traffic: Arc<Traffic>,
}

#[derive(Clone)]
pub(crate) struct Connection {
    requests: SendRequest<Body>,
    shared: Arc<ConnectionState>,
}

struct ConnectionState {
    headers: HeaderMap,
    /// URI of the other side: `https://` and its name.
    origin: String,
    calls: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    bodies: Arc<Semaphore>,
}

/// Permit of one exchange on a connection, held until the response is complete.
#[derive(Debug)]
pub(crate) struct ExchangePermit {
    _under_way: OwnedSemaphorePermit,
    _body: OwnedSemaphorePermit,
}

impl Connection {
    /// Dials and greets. Must be called within the runtime that drives the connection.
    pub(crate) async fn make(goal: DialTarget<'_>) -> Result<Connection, NoConnection> {
        let within = goal.within;
        let ends = Instant::now() + within;
        let address = goal.address.to_owned();
        let not_reached = |why: String| NoConnection::NotReached(format!("{address}: {why}"));
        let made = timeout_at(ends, async {
            let connection = dial(goal).await.map_err(not_reached)?;
            connection.greet(ends).await.map_err(|why| match why {
                NoConnection::NotReached(why) => not_reached(why),
                refused => refused,
            })?;
            Ok(connection)
        });
        made.await.unwrap_or_else(|_| Err(not_reached(format!("no connection in {} ms", within.as_millis()))))
    }

    pub(crate) async fn greet(&self, ends: Instant) -> Result<(), NoConnection> {
        let within = ends.duration_since(Instant::now());
        let hello = Frame::Body(Bytes::new());
        let request = self.request(Form::Greeting, "", (None, None), within, hello).map_err(NoConnection::Refused)?;
        let answered = async { only_frame(self.send(request).await?, ends).await };
        match answered.await {
            Ok(Frame::Body(_)) => Ok(()),
            Ok(Frame::Refused(refusal)) => Err(NoConnection::Refused(refusal)),
            Ok(frame) => Err(NoConnection::NotReached(format!("the response to a greeting was {frame:?}"))),
            Err(NoAnswer::NotSent(why) | NoAnswer::Lost(why)) => Err(NoConnection::NotReached(why)),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.requests.is_closed()
    }

    /// Waits for space in the budget of large bodies.
    pub(crate) async fn place(&self, form: Form, body_bytes: usize) -> ExchangePermit {
        const NEVER_CLOSED: &str = "the semaphore is never closed";
        let under_way = if form == Form::Stream { &self.shared.streams } else { &self.shared.calls };
        let under_way = Arc::clone(under_way).acquire_owned().await.expect(NEVER_CLOSED);
        let units = u32::try_from(body_bytes / BODY_UNIT_BYTES).expect("checked against the largest message");
        let body = Arc::clone(&self.shared.bodies).acquire_many_owned(units).await.expect(NEVER_CLOSED);
        ExchangePermit { _under_way: under_way, _body: body }
    }

    pub(crate) fn request(
        &self,
        form: Form,
        service: &str,
        (address, processes): (Option<Address>, Option<Processes>),
        within: Duration,
        frame: Frame,
    ) -> Result<Request<Body>, Refusal> {
        let bytes = if let Frame::Body(body) = &frame { body.len() } else { 0 };
        let uri = Uri::try_from(format!("{}{}", self.shared.origin, form.path(service)));
        let uri = uri.map_err(|error| Refusal::new(RefusalCode::BadRequest, format!("`{service}`: {error}")))?;
        let mut request = Request::new(request_body(frame));
        *request.method_mut() = Method::POST;
        *request.version_mut() = Version::HTTP_2;
        *request.uri_mut() = uri;
        *request.headers_mut() = self.shared.headers.clone();
        call_headers::add(request.headers_mut(), address, processes, within, bytes);
        Ok(request)
    }

    /// Sends a request, and returns when the response begins.
    pub(crate) async fn send(&self, request: Request<Body>) -> Result<Streaming<Frame>, NoAnswer> {
        let sent = self.requests.clone().try_send_request(request).await;
        let answer = sent.map_err(|mut error| {
            // hyper returns the request only if not a single byte of it was written.
            let never_written = error.take_message().is_some();
            let why = with_causes(&error.into_error());
            if never_written { NoAnswer::NotSent(why) } else { NoAnswer::Lost(why) }
        })?;
        if !answer.status().is_success() {
            return Err(NoAnswer::Lost(format!("answered with status {}", answer.status())));
        }
        Ok(frames_of_answer(answer))
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("origin", &self.shared.origin)
            .field("open", &self.is_open())
            .finish_non_exhaustive()
    }
}

/// Returns the single frame of a response that is no stream.
///
/// Reads to the end, because dropping a response earlier would reset it.
pub(crate) async fn only_frame(mut frames: Streaming<Frame>, ends: Instant) -> Result<Frame, NoAnswer> {
    let frame = timeout_at(ends, next_frame(&mut frames)).await;
    let frame = frame.map_err(|_| NoAnswer::Lost("no response in time".into()))??;
    // The frame is complete, so a later failure changes nothing.
    drop(timeout_at(ends, frames.message()).await);
    Ok(frame)
}

pub(crate) async fn next_frame(frames: &mut Streaming<Frame>) -> Result<Frame, NoAnswer> {
    match frames.message().await {
        Ok(Some(frame)) => Ok(frame),
        Ok(None) => Err(NoAnswer::Lost("the response ended early".into())),
        Err(status) => Err(NoAnswer::Lost(with_causes(&status))),
    }
}

async fn dial(goal: DialTarget<'_>) -> Result<Connection, String> {
    let socket = TcpStream::connect(goal.address).await.map_err(|error| error.to_string())?;
    let wire = Wire::new(socket, goal.traffic).map_err(|error| error.to_string())?;
    let secured = TlsConnector::from(goal.tls).connect(server_name(goal.name), wire).await;
    let secured = secured.map_err(|error| format!("TLS with {}: {error}", goal.name))?;
    let (requests, driver) = Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(HTTP_FRAME_BYTES_MAX)
        .max_send_buf_size(SEND_BUFFER_BYTES)
        .max_header_list_size(HEADER_BYTES_MAX)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PONG_WITHIN)
        .keep_alive_while_idle(true)
        .max_concurrent_reset_streams(REQUESTS_MAX as usize)
        .max_local_error_reset_streams(None)
        .handshake(TokioIo::new(secured))
        .await
        .map_err(|error| with_causes(&error))?;
    // The task ends with the connection: after the last handle and exchange, or when the connection breaks.
    tokio::spawn(async move {
        if let Err(error) = driver.await {
            tracing::debug!(error = with_causes(&error), "a connection ended");
        }
    });
    let places = |places| Arc::new(Semaphore::new(places));
    let shared = ConnectionState {
        headers: goal.headers,
        origin: format!("https://{}", goal.name),
        calls: places(CALLS_MAX),
        streams: places(STREAMS_MAX),
        bodies: places(BODIES_BYTES_MAX / BODY_UNIT_BYTES),
    };
    Ok(Connection { requests, shared: Arc::new(shared) })
}

/// Formats an error with its causes, because the outermost message alone rarely explains it.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
