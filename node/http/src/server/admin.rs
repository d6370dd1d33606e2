//! Administration listener: requests of operators to a running node, separate from the API.
//!
//! The listener has its own port and its own token. API keys are not valid here, and the token is not valid for the
//! API. Responses have no CORS headers. Plain HTTP is allowed only on loopback addresses; other addresses need TLS.
//!
//! ```text
//! GET  /cluster/status             one JSON object
//! POST /cluster/<operation>        its fields as a JSON object; one JSON object back
//!                                  what takes long says a line of JSON at a time, and its last line is the answer
//! ```
//! The listener does not know the operations. It passes each request to the program.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::header;
use actix_web::web::{Data, Payload, ServiceConfig, get, post, resource, to};
use assay_node_auth::AdminToken;
use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::config::TlsFiles;
use crate::requests::body;
use crate::requests::caller::{AUTHORIZATION, bearer};
use crate::responses::refusal::{ErrorKind, Refusal};
use crate::responses::{HandlerResult, json, json_builder};
use crate::server::edge::Edge;

/// Number of workers, which is small because administrators are few.
pub(crate) const WORKERS: usize = 1;
pub(crate) const CONNECTIONS_MAX: usize = 32;
/// Upper bound of concurrent requests. A request beyond it receives a 429.
const AT_ONCE_MAX: usize = 8;
/// Upper bound of a request body.
const BODY_BYTES_MAX: usize = 64 << 10;
/// Time limit for a whole body.
const BODY_MAX: Duration = Duration::from_secs(10);
/// Time limit of an operation, after which the response is a 503. The longest operation, a drain, ends after 30 s.
const ANSWER_MAX: Duration = Duration::from_secs(40);
const LOOK: &str = "status";
const LINES: &str = "application/x-ndjson";

/// Settings of the administration listener, read at startup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdminConfig {
    /// Address and port of the administration listener. Without it, there is no such listener.
    ///
    /// An address other than a loopback address needs `admin.tls`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
    /// File with the administrators' token, readable only by its owner.
    ///
    /// Without it, the node creates a token at its first start, in the file `admin.token` of its data directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsFiles>,
}

impl AdminConfig {
    /// Checks the settings. The error says what to change.
    pub fn check(&self) -> Result<(), String> {
        let Some(listen) = &self.listen else {
            return match self.tls.is_some() || self.token_file.is_some() {
                true => Err("admin.tls and admin.token_file have no effect without admin.listen; set it too".into()),
                false => Ok(()),
            };
        };
        let wrong = |why: String| format!("admin.listen is `{listen}`, {why}");
        let no_address = |_| wrong("which is not an address and a port; it should be like `127.0.0.1:8001`".into());
        let addresses: Vec<SocketAddr> = listen.to_socket_addrs().map_err(no_address)?.collect();
        self.check_reach(&addresses).map_err(wrong)
    }

    /// Checks that addresses other than loopback addresses have TLS.
    ///
    /// The check also applies to bound addresses, because a name may resolve differently by then.
    pub(crate) fn check_reach(&self, addresses: &[SocketAddr]) -> Result<(), String> {
        match addresses.iter().find(|address| !address.ip().to_canonical().is_loopback()) {
            Some(address) if self.tls.is_none() => Err(format!(
                "and {} can be reached from other machines: the token would travel in plain text. Listen on 127.0.0.1, \
                 or set admin.tls.certificates and admin.tls.private_key",
                address.ip()
            )),
            _ => Ok(()),
        }
    }
}

/// Request of an administrator, as received.
#[derive(Clone, Debug, PartialEq)]
pub struct AdminRequest {
    pub operation: String,
    pub fields: Map<String, Value>,
}

pub enum AdminAnswer {
    Done(Value),
    /// Progress as a stream of values, of which the last is the result.
    Lines(BoxStream<'static, Value>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminRefusal {
    /// The request is invalid or unknown.
    Bad(String),
    /// The state of the cluster does not allow it.
    Refused(String),
    /// The operation may succeed later.
    Unavailable(String),
}

type Answers = dyn Fn(AdminRequest) -> BoxFuture<'static, Result<AdminAnswer, AdminRefusal>> + Send + Sync;

/// Dependencies and settings of the listener.
#[derive(Clone)]
pub struct Admin {
    pub config: AdminConfig,
    pub token: AdminToken,
    pub answers: Arc<Answers>,
}

/// Application data that marks requests to this listener, which is not for browsers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Apart;

/// State that the routes of the listener share.
pub(crate) struct AdminListener {
    admin: Admin,
    places: Arc<Semaphore>,
}

impl AdminListener {
    pub fn new(admin: Admin) -> AdminListener {
        AdminListener { admin, places: Arc::new(Semaphore::new(AT_ONCE_MAX)) }
    }

    pub fn config(&self) -> &AdminConfig {
        &self.admin.config
    }

    /// Admits a request by its token, before its body is read.
    fn admit(&self, request: &HttpRequest) -> Result<OwnedSemaphorePermit, Refusal> {
        let shown = bearer(request.headers().get(AUTHORIZATION).map(|value| value.as_bytes())).ok();
        if !shown.as_ref().is_some_and(|shown| self.admin.token.is(shown.expose())) {
            let peer = request.peer_addr().map(|address| address.ip().to_string()).unwrap_or_default();
            tracing::warn!(peer, shown = shown.is_some(), "a request without the administrators' token was refused");
            let why = match shown {
                Some(_) => "this is not the administrators' token of this node; API keys are not accepted here",
                None => "no token was sent",
            };
            return Err(Refusal::new(
                ErrorKind::Unauthorized,
                format!(
                    "{why}: send `Authorization: Bearer <token>` with the token from ASSAY_ADMIN_TOKEN or \
                     admin.token_file, or else from `admin.token` in the data directory of the node"
                ),
            ));
        }
        let full = || format!("{AT_ONCE_MAX} administrators' requests are in progress; try again in a moment");
        Arc::clone(&self.places).try_acquire_owned().map_err(|_| Refusal::new(ErrorKind::Busy, full()))
    }
}

/// Registers the routes of the listener.
pub(crate) fn routes(config: &mut ServiceConfig) {
    config.app_data(Apart);
    config.service(
        resource("/cluster/{operation}").route(get().to(look)).route(post().to(operate)).default_service(to(unrouted)),
    );
    config.default_service(to(unrouted));
}

fn listener_of(edge: &Edge) -> Result<&AdminListener, Refusal> {
    edge.admin.as_ref().ok_or_else(|| Refusal::internal("the administrators' route has no listener"))
}

/// Handles `GET /cluster/status`, the only read-only operation.
async fn look(edge: Data<Edge>, request: HttpRequest) -> HandlerResult {
    let listener = listener_of(&edge)?;
    let place = listener.admit(&request)?;
    let operation = operation_of(&request);
    if operation != LOOK {
        let mut refusal =
            Refusal::new(ErrorKind::MethodNotAllowed, format!("`{operation}` needs POST; only `{LOOK}` supports GET"));
        refusal.allow = Some("POST".into());
        return Err(refusal);
    }
    answered(listener, place, AdminRequest { operation, fields: Map::new() }).await
}

async fn operate(edge: Data<Edge>, request: HttpRequest, payload: Payload) -> HandlerResult {
    let listener = listener_of(&edge)?;
    let place = listener.admit(&request)?;
    body::refuse_encoded(&request)?;
    let fields = fields(&read(payload).await?)?;
    answered(listener, place, AdminRequest { operation: operation_of(&request), fields }).await
}

async fn unrouted(edge: Data<Edge>, request: HttpRequest) -> HandlerResult {
    let _place = listener_of(&edge)?.admit(&request)?;
    let why = "this port serves GET /cluster/status and POST /cluster/<operation>; the API has another port";
    Err(Refusal::new(ErrorKind::NotFound, why))
}

fn operation_of(request: &HttpRequest) -> String {
    request.match_info().get("operation").unwrap_or_default().to_owned()
}

/// Reads a body outside the budget of the API, so that administrators are served even if the budget is full.
async fn read(payload: Payload) -> Result<Bytes, Refusal> {
    let too_large = || Refusal::new(ErrorKind::TooLarge, format!("the body is larger than {BODY_BYTES_MAX} bytes"));
    match timeout(BODY_MAX, payload.to_bytes_limited(BODY_BYTES_MAX)).await {
        Ok(Ok(Ok(bytes))) => Ok(bytes),
        Ok(Ok(Err(error))) => Err(Refusal::bad(format!("the body is incomplete or has invalid HTTP framing: {error}"))),
        Ok(Err(_)) => Err(too_large()),
        Err(_) => {
            let why = format!("the body arrived too slowly: it must be complete within {} s", BODY_MAX.as_secs());
            Err(Refusal::new(ErrorKind::TooSlow, why))
        }
    }
}

/// Parses the fields of a body. An empty body has no fields.
fn fields(bytes: &[u8]) -> Result<Map<String, Value>, Refusal> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Map::new());
    }
    body::memory_of(bytes, body::RowsAt::Nowhere)?;
    body::object(body::parse(bytes)?)
}

async fn answered(listener: &AdminListener, place: OwnedSemaphorePermit, request: AdminRequest) -> HandlerResult {
    let late = |_| {
        let seconds = ANSWER_MAX.as_secs();
        Refusal::new(
            ErrorKind::Unavailable,
            format!("the operation did not end within {seconds} s and may still complete: check the status"),
        )
    };
    match timeout(ANSWER_MAX, (listener.admin.answers)(request)).await.map_err(late)? {
        Ok(AdminAnswer::Done(value)) => json(&value),
        Ok(AdminAnswer::Lines(lines)) => {
            let line = move |value: Value| {
                let _held = &place;
                Ok::<Bytes, actix_web::Error>(Bytes::from(format!("{value}\n")))
            };
            let mut answer = json_builder();
            Ok(answer.insert_header((header::CONTENT_TYPE, LINES)).streaming(lines.map(line)))
        }
        Err(AdminRefusal::Bad(why)) => Err(Refusal::bad(why)),
        Err(AdminRefusal::Refused(why)) => Err(Refusal::new(ErrorKind::Conflict, why)),
        Err(AdminRefusal::Unavailable(why)) => Err(Refusal::new(ErrorKind::Unavailable, why)),
    }
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin").field("config", &self.config).finish_non_exhaustive()
    }
}

impl fmt::Debug for AdminAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AdminAnswer::Done(value) => f.debug_tuple("Done").field(value).finish(),
            AdminAnswer::Lines(_) => f.write_str("Lines(..)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(listen: Option<&str>, tls: bool) -> Result<(), String> {
        let files = || TlsFiles { certificates: "a.crt".into(), private_key: "a.key".into() };
        AdminConfig { listen: listen.map(str::to_owned), token_file: None, tls: tls.then(files) }.check()
    }

    #[test]
    fn what_other_machines_reach_needs_tls() {
        for listen in ["127.0.0.1:8001", "127.8.9.1:0", "[::1]:8001", "localhost:8001", "[::ffff:127.0.0.1]:1"] {
            assert_eq!(check(Some(listen), false), Ok(()), "{listen}");
        }
        for listen in ["0.0.0.0:8001", "[::]:8001", "10.0.0.1:8001"] {
            let why = check(Some(listen), false).expect_err(listen);
            assert!(why.contains(listen) && why.contains("plain text") && why.contains("admin.tls"), "{why}");
            assert_eq!(check(Some(listen), true), Ok(()), "{listen}");
        }
    }

    #[test]
    fn what_does_not_belong_together_is_refused() {
        assert_eq!(check(None, false), Ok(()));
        assert!(check(None, true).expect_err("no listener").contains("admin.listen"));
        for listen in ["8001", "127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", ""] {
            assert!(check(Some(listen), false).expect_err(listen).contains("not an address and a port"), "{listen}");
        }
    }

    #[test]
    fn nothing_is_no_fields_and_what_is_no_object_is_refused() {
        assert_eq!(fields(b" \n").expect("nothing"), Map::new());
        assert_eq!(fields(b"{\"node\": 2}").expect("fields")["node"], 2);
        for wrong in ["[1]", "2", "{", "\"node\""] {
            assert_eq!(fields(wrong.as_bytes()).expect_err(wrong).kind, ErrorKind::BadRequest);
        }
    }
}
