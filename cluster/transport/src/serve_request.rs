//! Handling of a request, from its headers to the response: receiver, caller, handler and deadline.
//!
//! The checks run in this order: cluster, receiver, caller, service. A caller without a certificate learns only of open
//! services. No byte of a body is read before all checks have passed.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use assay_storage_model::NodeId;
use bytes::Bytes;
use futures::{FutureExt, Stream, StreamExt, stream};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Request, Response};
use rustls::pki_types::CertificateDer;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};
use tonic::body::Body;

use crate::call_headers::{Form, Heading};
use crate::certificate_names::{bears, node_name};
use crate::frame::{Frame, MESSAGE_BYTES_MAX, answer_body, check_size, frames_of_request, stream_body};
use crate::handlers::{Handler, Received, StreamHandler};
use crate::refusal::{Refusal, RefusalCode};
use crate::server::Server;

/// Upper bound of the body of an open call by a caller without a certificate.
pub(crate) const OPEN_BODY_BYTES_MAX: usize = 64 << 10;
/// Upper bound of bodies that need no reservation, so that bulk transfers never block consensus.
const SMALL_BODY_BYTES: usize = 64 << 10;
/// Margin beyond the caller's time limit, for callers that cannot enforce it themselves.
const LATE: Duration = Duration::from_millis(50);
/// Unit in which space for bodies is counted.
pub(crate) const LARGE_BODY_UNIT_BYTES: usize = 1 << 10;

/// Other end of an accepted connection.
#[derive(Debug)]
pub(crate) struct Visitor {
    pub(crate) server: Arc<Server>,
    /// Certificate that the handshake verified against the authority.
    pub(crate) certificate: Option<CertificateDer<'static>>,
    /// Authenticated node. A certificate names one node, so it never changes.
    pub(crate) known_as: OnceLock<NodeId>,
}

/// Handler that answers.
enum Answerer {
    Call(Arc<dyn Handler>),
    Stream(Arc<dyn StreamHandler>),
    Greeting,
}

impl Visitor {
    pub(crate) async fn answer(self: Arc<Visitor>, request: Request<Incoming>) -> Response<Body> {
        let arrived = Instant::now();
        let (head, body) = request.into_parts();
        let under_way = self.server.under_way.begin();
        let checked = self.check(&head).and_then(|(answerer, heading)| {
            // The check comes after `begin`, so that a concurrent shutdown either waits for this call or is noticed
            // here.
            if self.server.is_stopping() {
                return Err(Refusal::new(RefusalCode::Unavailable, "the node is stopping"));
            }
            Ok((answerer, heading))
        });
        let (answerer, heading) = match checked {
            Ok(checked) => checked,
            Err(refusal) => return respond(answer_body(Frame::Refused(refusal))),
        };
        let ends = arrived + heading.within + LATE;
        let (body, reserved) = match self.take_in(body, heading.bytes, ends).await {
            Ok(taken) => taken,
            Err(refusal) => return respond(answer_body(Frame::Refused(refusal))),
        };
        let within = if let Answerer::Stream(_) = answerer { heading.within } else { left(arrived, heading.within) };
        let Heading { from, address, processes, .. } = heading;
        let received = Received { from, via: None, address, processes, body, within };
        match answerer {
            Answerer::Greeting => respond(answer_body(Frame::Body(Bytes::new()))),
            Answerer::Call(handler) => {
                let answer = called(handler, received, ends).await;
                drop(reserved);
                respond(answer_body(answer.map_or_else(Frame::Refused, Frame::Body)))
            }
            Answerer::Stream(handler) => respond(stream_body(streamed(handler, received, (under_way, reserved)))),
        }
    }

    fn check(&self, head: &Parts) -> Result<(Answerer, Heading), Refusal> {
        let heading = Heading::read(&head.headers)?;
        let server = &*self.server;
        if heading.cluster != server.cluster {
            let why = format!("this is cluster {}, the call is for {}", server.cluster, heading.cluster);
            return Err(Refusal::new(RefusalCode::WrongCluster, why));
        }
        if let Some(to) = heading.to.filter(|to| *to != server.node) {
            let why = format!("this is node {}, the call is for {to}", server.node);
            return Err(Refusal::new(RefusalCode::WrongReceiver, why));
        }
        let (form, service) = Form::read(head.uri.path()).ok_or_else(|| no_service(head.uri.path()))?;
        let answerer = server.find(form, service);
        if self.certificate.is_none() {
            return self.check_stranger(service, &heading, answerer).map(|answerer| (answerer, heading));
        }
        self.check_sender(heading.from)?;
        if heading.to.is_none() {
            return Err(Refusal::new(RefusalCode::WrongReceiver, "the call does not name its receiver"));
        }
        check_bytes(heading.bytes, MESSAGE_BYTES_MAX)?;
        let (answerer, _) = answerer.ok_or_else(|| no_service(service))?;
        Ok((answerer, heading))
    }

    /// Checks a caller without a certificate, which has no name and may only greet and use open calls.
    fn check_stranger(
        &self,
        service: &str,
        heading: &Heading,
        answerer: Option<(Answerer, bool)>,
    ) -> Result<Answerer, Refusal> {
        let refused = |why: String| Err(Refusal::new(RefusalCode::NotAuthenticated, why));
        if let Some(from) = heading.from {
            return refused(format!("a caller without a certificate claims to be node {from}"));
        }
        check_bytes(heading.bytes, OPEN_BODY_BYTES_MAX)?;
        match answerer {
            Some((answerer, true)) => Ok(answerer),
            _ => refused(format!("`{service}` is not open to callers without a certificate")),
        }
    }

    fn check_sender(&self, from: Option<NodeId>) -> Result<(), Refusal> {
        let refused = |why: String| Err(Refusal::new(RefusalCode::NotAuthenticated, why));
        let Some(from) = from else {
            return refused("the call does not name its sender".into());
        };
        if self.known_as.get() == Some(&from) {
            return Ok(());
        }
        let name = node_name(self.server.cluster, from);
        if !self.certificate.as_ref().is_some_and(|certificate| bears(certificate, &name)) {
            return refused(format!("the caller's certificate is not that of node {from}"));
        }
        // Concurrent calls set the same value.
        let _ = self.known_as.set(from);
        Ok(())
    }

    /// Reads the body, and returns it with its reservation if it is large.
    async fn take_in(
        &self,
        body: Incoming,
        bytes: usize,
        ends: Instant,
    ) -> Result<(Bytes, Option<OwnedSemaphorePermit>), Refusal> {
        let busy = |why: &str| Refusal::new(RefusalCode::Busy, why);
        let reserved = match bytes {
            0..=SMALL_BODY_BYTES => None,
            _ => Some(self.server.reserve_large_body(bytes).ok_or_else(|| busy("too many large bodies at once"))?),
        };
        let mut frames = frames_of_request(body, bytes);
        let taken = timeout_at(ends, async { (frames.message().await, frames.message().await) });
        let bad = |why: String| Err(Refusal::new(RefusalCode::BadRequest, why));
        match taken.await {
            Ok((Ok(Some(Frame::Body(body))), Ok(None))) if body.len() == bytes => Ok((body, reserved)),
            Ok((Ok(Some(Frame::Body(body))), Ok(None))) => {
                bad(format!("the body has {} bytes, but {bytes} were announced", body.len()))
            }
            Ok((Err(status), _) | (_, Err(status))) => bad(status.message().to_owned()),
            Ok(_) => bad("a request is one body".into()),
            Err(_) => Err(busy("the request was not received within its time limit")),
        }
    }
}

impl Server {
    /// Finds the handler, and whether it is open to callers without a certificate.
    fn find(&self, form: Form, service: &str) -> Option<(Answerer, bool)> {
        let handlers = self.handlers.read();
        match form {
            Form::Greeting => Some((Answerer::Greeting, true)),
            Form::Call => handlers.find_call(service).map(|found| (Answerer::Call(found.handler), found.open)),
            Form::Stream => handlers.find_stream(service).map(|handler| (Answerer::Stream(handler), false)),
        }
    }
}

async fn called(handler: Arc<dyn Handler>, received: Received, ends: Instant) -> Result<Bytes, Refusal> {
    // The guard also covers the code of the handler before it returns its future.
    let answer = AssertUnwindSafe(async move { handler.call(received).await }).catch_unwind();
    let answer = match timeout_at(ends, answer).await {
        Ok(answer) => answer.unwrap_or_else(|panic| Err(panicked(&*panic)))?,
        Err(_) => return Err(Refusal::new(RefusalCode::Unknown, "the caller's time limit passed before it was done")),
    };
    check_size(&answer)
        .map_err(|why| Refusal::new(RefusalCode::Failed, format!("the response is too large: {why}")))?;
    Ok(answer)
}

/// Returns the chunks, then the end or a refusal. `held` lives as long as the stream.
fn streamed<Held: Send + 'static>(
    handler: Arc<dyn StreamHandler>,
    received: Received,
    held: Held,
) -> impl Stream<Item = Frame> + Send + 'static {
    let within = received.within;
    let opened = std::panic::catch_unwind(AssertUnwindSafe(|| handler.stream(received)));
    let chunks = opened.unwrap_or_else(|panic| stream::iter([Err(panicked(&*panic))]).boxed());
    stream::unfold(Some((chunks, held)), move |open| async move {
        let (mut chunks, held) = open?;
        let next = AssertUnwindSafe(chunks.next()).catch_unwind();
        let frame = match timeout_at(Instant::now() + within + LATE, next).await {
            Ok(Ok(Some(Ok(chunk)))) => match check_size(&chunk) {
                Ok(()) => return Some((Frame::Body(chunk), Some((chunks, held)))),
                Err(why) => Frame::Refused(Refusal::new(RefusalCode::Failed, format!("a chunk is too large: {why}"))),
            },
            Ok(Ok(Some(Err(refusal)))) => Frame::Refused(refusal),
            Ok(Ok(None)) => Frame::End,
            Ok(Err(panic)) => Frame::Refused(panicked(&*panic)),
            Err(_) => Frame::Refused(Refusal::new(RefusalCode::Unknown, "the next chunk was not ready in time")),
        };
        Some((frame, None))
    })
}

fn panicked(panic: &(dyn Any + Send)) -> Refusal {
    let said = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let said = said.unwrap_or("no message");
    tracing::error!(said, "a handler panicked");
    Refusal::new(RefusalCode::Failed, format!("the handler panicked: {said}"))
}

fn respond(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}

fn no_service(service: &str) -> Refusal {
    Refusal::new(RefusalCode::NoService, format!("there is no service `{service}` here"))
}

fn check_bytes(bytes: usize, bytes_max: usize) -> Result<(), Refusal> {
    if bytes > bytes_max {
        let why = format!("the body has {bytes} bytes, the limit of this caller is {bytes_max}");
        return Err(Refusal::new(RefusalCode::BadRequest, why));
    }
    Ok(())
}

fn left(arrived: Instant, within: Duration) -> Duration {
    within.saturating_sub(arrived.elapsed())
}
