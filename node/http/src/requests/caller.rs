//! Authenticated callers of both protocols: their principal, and the access that it grants.
//!
//! A [`Caller`] is authenticated by its credential and admitted by the rate limits. A [`Call`] is a caller with its
//! HTTP request. Every handler that is not public takes a call. Without one, a handler has no principal and no access
//! to data.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use actix_web::dev::Payload as RawPayload;
use actix_web::web::{Data, Payload, Query};
use actix_web::{FromRequest, HttpMessage, HttpRequest};
use assay_node_auth::{Asker, Principal, Secret, TemporaryGrant};
use assay_node_connections::{Connection, Owner};
use assay_node_identity::{InvocationGrant, ModelCaller};
use assay_node_objects::{Objects, Patience};
use assay_node_query::{Queries, QueryKind, Who};
use futures::future::LocalBoxFuture;
use tokio::time::Instant;
use tracing::Span;
use uuid::Uuid;

use crate::requests::admission::Applicant;
use crate::requests::body::{self, Body};
use crate::requests::console_session::session_value;
use crate::requests::function_access::{NOT_OPEN_TO_FUNCTIONS, is_open_to_functions};
use crate::requests::wait::Wait;
use crate::responses::refusal::{ErrorKind, Refusal};
use crate::server::edge::Edge;
use crate::wires::PHOENIX_KEY;

pub const AUTHORIZATION: &str = "authorization";
pub const FORWARDED_PROTO: &str = "x-forwarded-proto";
pub const ORG_NAME: &str = "x-bt-org-name";
pub const IMPERSONATE: &str = "x-bt-impersonate-user";
/// Headers in which the SDKs of Anthropic and Google send the key.
const MODEL_CLIENT_HEADERS: [&str; 2] = ["x-api-key", "x-goog-api-key"];

/// Authenticated caller, over HTTP or gRPC.
#[derive(Clone, Debug)]
pub struct Caller {
    pub edge: Data<Edge>,
    pub principal: Principal,
    /// Waiting time of the request: its deadline, and the time spent so far.
    pub wait: Wait,
    /// Terms of a temporary credential. Only a [`ModelClientCall`] has them; other handlers refuse such a credential.
    pub temporary: Option<TemporaryGrant>,
    /// Invocation of the function that calls, if it is one.
    pub invocation: Option<InvocationGrant>,
}

/// Kinds of credentials that a handler accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AcceptedCredentials {
    /// All credentials except temporary ones.
    Lasting,
    /// All credentials, for model calls.
    WithTemporary,
}

/// Headers of a request that identify its sender, as bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallerHeaders<'a> {
    pub authorization: Option<&'a [u8]>,
    /// Session of the console, which replaces the header.
    pub session: Option<&'a str>,
    pub org_name: Option<&'a [u8]>,
    pub impersonate: Option<&'a [u8]>,
}

impl Caller {
    pub async fn known(edge: Data<Edge>, said: CallerHeaders<'_>, wait: Wait) -> Result<Caller, Refusal> {
        Caller::with(edge, said, wait, AcceptedCredentials::Lasting).await
    }

    async fn with(
        edge: Data<Edge>,
        said: CallerHeaders<'_>,
        wait: Wait,
        accepted: AcceptedCredentials,
    ) -> Result<Caller, Refusal> {
        let org_name = header_text(ORG_NAME, said.org_name)?;
        let wanted = header_text(IMPERSONATE, said.impersonate)?;
        let named = (org_name.as_deref(), wanted.as_deref());
        let lasting = |principal| ModelCaller { principal, temporary: None };
        let mut invocation = None;
        let ModelCaller { principal, temporary } = match (said.session, accepted) {
            (Some(value), _) => lasting(edge.identity.authenticate_console_session(value, named.0, named.1).await?),
            (None, AcceptedCredentials::WithTemporary) => {
                let secret = bearer(said.authorization)?;
                invocation = edge.identity.invocation_of(secret.expose())?;
                edge.identity.authenticate_model_caller(secret.expose(), named.0, named.1).await?
            }
            (None, AcceptedCredentials::Lasting) => {
                let secret = bearer(said.authorization)?;
                invocation = edge.identity.invocation_of(secret.expose())?;
                lasting(edge.identity.authenticate_as(secret.expose(), named.0, named.1).await?)
            }
        };
        Span::current().record("principal", tracing::field::display(principal.user));
        Ok(Caller { edge, principal, wait, temporary, invocation })
    }

    /// Returns the caller of background work, which waits in queues until `until`.
    pub fn of_background(edge: Data<Edge>, principal: Principal, until: Instant) -> Caller {
        Caller { edge, principal, wait: Wait::new(until), temporary: None, invocation: None }
    }

    /// Returns the same caller with a new deadline for its waits in queues.
    pub fn waiting_until(&self, until: Instant) -> Caller {
        Caller { wait: Wait::new(until), ..self.clone() }
    }

    /// Returns the deadline for waiting writes, and the credential that they count against.
    pub fn patience(&self) -> Patience {
        Patience { until: self.wait.until(), credential: self.principal.credential.counted_as() }
    }

    /// Returns the caller as an applicant for budgets.
    pub fn applicant(&self) -> Applicant {
        Applicant::new(&self.principal, self.wait.clone())
    }

    /// Returns the holder that a query counts against, and the deadline of its wait.
    pub fn who(&self) -> Who {
        let Applicant { holder, wait } = self.applicant();
        Who { holder, user: self.principal.user, kind: QueryKind::Direct, until: wait.until() }
    }

    /// Assigns a connection to the caller.
    ///
    /// Refuses it if the caller's organization or credential holds its share of connections while others wait for one.
    pub fn on(&self, connection: &Connection) -> Result<(), Refusal> {
        let (organization, credential) = (self.principal.org.0, self.principal.credential.counted_as());
        match connection.known(Owner { organization, credential }) {
            true => Ok(()),
            false => Err(Refusal::new(
                ErrorKind::Busy,
                "this organization, or this credential, uses its whole share of this node's connections while others \
                 wait: use fewer connections, or close unused ones",
            )),
        }
    }

    /// Returns access to objects on the caller's behalf.
    pub fn objects(&self) -> Objects {
        self.edge.objects.on_behalf_of(&Asker::of(&self.principal))
    }

    /// Returns access to queries on the caller's behalf.
    pub fn queries(&self) -> Queries {
        self.edge.queries.on_behalf_of(Asker::of(&self.principal).to_bytes())
    }

    /// Admits or refuses the request by the rate limits, before its body is read.
    ///
    /// The path must be decoded as for routing, where `/logs%33` is `/logs3`.
    pub async fn admit(&self, method: &str, path: &str) -> Result<(), Refusal> {
        if !self.edge.rates.has_rules() {
            return Ok(());
        }
        let project = || {
            let (kind, id) = named(path)?;
            self.edge.records.project_at(self.principal.org, kind, id)
        };
        Ok(self.edge.rates.admit(method, path, &self.principal, project).await?)
    }
}

/// Returns the kind and the id in a path such as `/v1/dataset/<id>/insert`.
fn named(path: &str) -> Option<(&str, Uuid)> {
    let mut parts = path.strip_prefix("/v1/")?.split('/');
    let (kind, id) = (parts.next()?, parts.next()?);
    Some((kind, Uuid::parse_str(id).ok()?))
}

/// Returns the credential of an `Authorization` header.
pub fn bearer(said: Option<&[u8]>) -> Result<Secret, Refusal> {
    let refuse = |why: &str| Err(Refusal::new(ErrorKind::Unauthorized, why));
    let Some(value) = said else {
        return refuse("no credential was sent: send `Authorization: Bearer <API key or token>`");
    };
    // A value that is not UTF-8 becomes an empty text, which is refused below.
    let text = str::from_utf8(value).unwrap_or_default().trim();
    match text.split_once(' ') {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") && is_credential(key.trim()) => {
            Ok(Secret::new(key.trim().to_owned()))
        }
        _ => refuse("the credential has an unknown form: send `Authorization: Bearer <API key or token>`"),
    }
}

fn is_credential(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// Returns the text of a header, or `None` if it is missing or empty.
///
/// Refuses an unreadable header, because ignoring it would serve the caller as somebody else. Clients send UTF-8 or,
/// like Python's `requests`, Latin-1.
fn header_text<'a>(name: &str, value: Option<&'a [u8]>) -> Result<Option<Cow<'a, str>>, Refusal> {
    let Some(value) = value else { return Ok(None) };
    let bytes = value.trim_ascii();
    let text = match str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().map(|byte| char::from(*byte)).collect()),
    };
    if text.contains(char::is_control) {
        return Err(Refusal::bad(format!(
            "`{name}` is not valid text: send it as UTF-8 or Latin-1, without control characters"
        )));
    }
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// Caller with its HTTP request.
#[derive(Debug)]
pub struct Call {
    pub caller: Caller,
    pub request: HttpRequest,
}

impl Deref for Call {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        &self.caller
    }
}

impl FromRequest for Call {
    type Error = Refusal;
    type Future = LocalBoxFuture<'static, Result<Call, Refusal>>;

    fn from_request(request: &HttpRequest, _: &mut RawPayload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move { Call::of(request).await })
    }
}

/// Call of a client that may be the SDK of a model provider.
///
/// Such SDKs send the credential in their own headers or in a query parameter (G-04). The credential may be temporary,
/// with terms that the handler must enforce (G-24).
#[derive(Debug)]
pub struct ModelClientCall(pub Call);

impl FromRequest for ModelClientCall {
    type Error = Refusal;
    type Future = LocalBoxFuture<'static, Result<ModelClientCall, Refusal>>;

    fn from_request(request: &HttpRequest, _: &mut RawPayload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move { ModelClientCall::of(request, None).await })
    }
}

impl ModelClientCall {
    /// Authenticates the caller of a request. Its path may name the organization.
    pub async fn of(request: HttpRequest, org_in_path: Option<&str>) -> Result<ModelClientCall, Refusal> {
        let credential = model_client_credential(&request)?;
        let accepted = AcceptedCredentials::WithTemporary;
        Call::with_credential(request, credential.as_deref(), (accepted, org_in_path)).await.map(ModelClientCall)
    }
}

/// Call of an exporter, which may be a client of Phoenix with the key in a header of its own.
#[derive(Debug)]
pub struct PhoenixCall(pub Call);

impl FromRequest for PhoenixCall {
    type Error = Refusal;
    type Future = LocalBoxFuture<'static, Result<PhoenixCall, Refusal>>;

    fn from_request(request: &HttpRequest, _: &mut RawPayload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let header = |name: &str| request.headers().get(name).map(|value| value.as_bytes().to_vec());
            let edge = request.app_data::<Data<Edge>>().ok_or_else(|| Refusal::internal("the route has no edge"))?;
            let (authorization, key) = (header(AUTHORIZATION), header(PHOENIX_KEY));
            let credential = edge.phoenix_credential(authorization.as_deref(), key.as_deref());
            let accepted = (AcceptedCredentials::Lasting, None);
            Call::with_credential(request.clone(), credential.as_deref(), accepted).await.map(PhoenixCall)
        })
    }
}

/// Returns the credential of a model client as a value of `Authorization`. That header takes precedence over the
/// others.
fn model_client_credential(request: &HttpRequest) -> Result<Option<Vec<u8>>, Refusal> {
    let header = |name: &str| request.headers().get(name).map(|value| value.as_bytes().to_vec());
    if let Some(authorization) = header(AUTHORIZATION) {
        return Ok(Some(authorization));
    }
    let in_query = || -> Result<Option<Vec<u8>>, Refusal> {
        let pairs = query_of(request)?;
        Ok(pairs.into_iter().find(|(name, _)| name == "key").map(|(_, key)| key.into_bytes()))
    };
    let key = match MODEL_CLIENT_HEADERS.into_iter().find_map(header) {
        Some(key) => Some(key),
        None => in_query()?,
    };
    Ok(key.map(|key| [b"Bearer ".as_slice(), &key].concat()))
}

/// Returns the decoded query parameters in their original order.
fn query_of(request: &HttpRequest) -> Result<Vec<(String, String)>, Refusal> {
    let pairs = Query::<Vec<(String, String)>>::from_query(request.query_string());
    pairs.map(Query::into_inner).map_err(|error| Refusal::bad(format!("the query is malformed: {error}")))
}

impl Call {
    pub async fn of(request: HttpRequest) -> Result<Call, Refusal> {
        let authorization = request.headers().get(AUTHORIZATION).map(|value| value.as_bytes().to_vec());
        Call::with_credential(request, authorization.as_deref(), (AcceptedCredentials::Lasting, None)).await
    }

    /// Authenticates a caller whose credential is not in the form of this API, such as a password.
    pub async fn of_secret(request: HttpRequest, secret: &Secret) -> Result<Call, Refusal> {
        let value = [b"Bearer ".as_slice(), secret.expose().as_bytes()].concat();
        Call::with_credential(request, Some(&value), (AcceptedCredentials::Lasting, None)).await
    }

    async fn with_credential(
        request: HttpRequest,
        authorization: Option<&[u8]>,
        (accepted, org_in_path): (AcceptedCredentials, Option<&str>),
    ) -> Result<Call, Refusal> {
        let edge = request.app_data::<Data<Edge>>().cloned();
        let edge = edge.ok_or_else(|| Refusal::internal("the route has no edge"))?;
        let header = |name| request.headers().get(name).map(|value| value.as_bytes());
        let org_name = match (org_in_path, header(ORG_NAME).filter(|name| !name.trim_ascii().is_empty())) {
            (Some(named), Some(sent)) if named.as_bytes() != sent.trim_ascii() => {
                return Err(Refusal::bad("Conflicting organization selectors"));
            }
            (Some(named), _) => Some(named.as_bytes()),
            (None, sent) => sent,
        };
        let session = match authorization {
            Some(_) => None,
            None => session_value(&request, &edge)?,
        };
        let session = session.as_ref().map(Secret::expose);
        let said = CallerHeaders { authorization, session, org_name, impersonate: header(IMPERSONATE) };
        let caller = Caller::with(edge, said, wait_of(&request), accepted).await?;
        Call::admitted(caller, request).await
    }

    /// Returns the call of a caller that a ticket in the path authenticated.
    pub async fn by_ticket(caller: Caller, request: HttpRequest) -> Result<Call, Refusal> {
        Span::current().record("principal", tracing::field::display(caller.principal.user));
        Call::admitted(caller, request).await
    }

    /// Admits a call by its share of connections and by the rate limits.
    async fn admitted(caller: Caller, request: HttpRequest) -> Result<Call, Refusal> {
        if let Some(connection) = request.conn_data::<Arc<Connection>>() {
            caller.on(connection)?;
        }
        let (method, path) = (request.method().as_str(), request.match_info().as_str());
        if caller.invocation.is_some() && !is_open_to_functions(method, path) {
            return Err(Refusal::new(ErrorKind::Forbidden, NOT_OPEN_TO_FUNCTIONS));
        }
        caller.admit(method, path).await?;
        Ok(Call { caller, request })
    }

    /// Returns the `{id}` of the path.
    pub fn id(&self) -> Result<Uuid, Refusal> {
        let text = self.request.match_info().get("id").unwrap_or_default();
        let refuse = |_| {
            Refusal::bad(format!("`{}` is not an id; ids are UUIDs", crate::requests::error_texts::shortened(text)))
        };
        Uuid::parse_str(text).map_err(refuse)
    }

    /// Returns the decoded query parameters in their original order. A name may occur more than once.
    pub fn query(&self) -> Result<Vec<(String, String)>, Refusal> {
        query_of(&self.request)
    }

    pub async fn body_of_rows(&self, payload: Payload) -> Result<Body, Refusal> {
        body::read(&self.edge, &self.applicant(), &self.request, payload, self.edge.config.body_bytes_max).await
    }

    /// Reads a body of rows, which may be compressed.
    pub async fn packed_body(&self, payload: Payload) -> Result<Body, Refusal> {
        body::read_packed(&self.edge, &self.applicant(), &self.request, payload, self.edge.config.body_bytes_max).await
    }

    /// Reads a body of at most `bytes_max` bytes, which may be compressed.
    pub async fn packed_body_within(&self, payload: Payload, bytes_max: usize) -> Result<Body, Refusal> {
        body::read_packed(&self.edge, &self.applicant(), &self.request, payload, bytes_max).await
    }

    pub async fn small_body(&self, payload: Payload) -> Result<Body, Refusal> {
        body::read(&self.edge, &self.applicant(), &self.request, payload, self.edge.config.small_body_bytes_max).await
    }
}

/// Returns the wait that the edge assigned to a request.
pub fn wait_of(request: &HttpRequest) -> Wait {
    let given = request.extensions().get::<Wait>().cloned();
    given.unwrap_or_else(|| Wait::of_request(Instant::now(), request.path(), None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bearer_of(value: &str) -> Option<String> {
        bearer(Some(value.as_bytes())).ok().map(|secret| secret.expose().to_owned())
    }

    #[test]
    fn a_path_names_a_kind_and_an_id() {
        let id = Uuid::from_u128(7);
        assert_eq!(named(&format!("/v1/dataset/{id}")), Some(("dataset", id)));
        assert_eq!(named(&format!("/v1/project_logs/{id}/insert")), Some(("project_logs", id)));
        for other in ["/v1/dataset", "/v1/dataset/7", "/btql", "/v2/dataset/00000000-0000-0000-0000-000000000007"] {
            assert_eq!(named(other), None, "{other}");
        }
    }

    #[test]
    fn a_bearer_is_read_however_its_scheme_is_written() {
        assert_eq!(bearer_of("Bearer sk-1").as_deref(), Some("sk-1"));
        assert_eq!(bearer_of("bearer  sk-1 ").as_deref(), Some("sk-1"));
        for other in ["", "sk-1", "Bearer", "Bearer ", "Basic sk-1", "Bearer sk-\u{e9}", "Bearer a\u{1}"] {
            assert_eq!(bearer_of(other), None, "{other}");
        }
        assert_eq!(bearer(None).expect_err("none").kind, ErrorKind::Unauthorized);
    }

    #[test]
    fn clients_of_models_send_their_key_in_one_of_four_ways() {
        let credential = |headers: &[(&str, &str)], uri: &str| {
            let mut request = actix_web::test::TestRequest::post().uri(uri);
            for (name, value) in headers {
                request = request.insert_header((*name, *value));
            }
            let found = model_client_credential(&request.to_http_request()).expect("a readable request");
            found.map(|found| String::from_utf8(found).expect("text"))
        };
        assert_eq!(
            credential(&[("authorization", "Bearer a"), ("x-api-key", "b")], "/?key=c").as_deref(),
            Some("Bearer a")
        );
        assert_eq!(credential(&[("x-api-key", "b"), ("x-goog-api-key", "g")], "/?key=c").as_deref(), Some("Bearer b"));
        assert_eq!(credential(&[("x-goog-api-key", "g")], "/").as_deref(), Some("Bearer g"));
        assert_eq!(credential(&[], "/?alt=sse&key=c%20").as_deref(), Some("Bearer c "));
        assert_eq!(credential(&[], "/?alt=sse"), None);
    }

    #[test]
    fn a_header_is_read_as_utf_8_or_latin_1_and_never_left_out() {
        let read = |bytes: &[u8]| header_text(ORG_NAME, Some(bytes)).map(|text| text.map(Cow::into_owned));
        for bytes in ["Société".as_bytes(), b"Soci\xe9t\xe9", b" Soci\xe9t\xe9 "] {
            assert_eq!(read(bytes).expect("text").as_deref(), Some("Société"), "{bytes:?}");
        }
        assert_eq!(read(" acme\t".as_bytes()).expect("text").as_deref(), Some("acme"));
        assert_eq!(read("協会".as_bytes()).expect("text").as_deref(), Some("協会"));
        assert_eq!(read(b"  ").expect("nothing"), None);
        assert_eq!(header_text(ORG_NAME, None).expect("nothing"), None);
        for bytes in [&b"acme\x93"[..], b"a\tb", "a\u{85}".as_bytes()] {
            let refusal = read(bytes).expect_err("no text");
            assert_eq!(refusal.kind, ErrorKind::BadRequest);
            assert!(refusal.message.contains("`x-bt-org-name` is not valid text"), "{}", refusal.message);
        }
    }
}
