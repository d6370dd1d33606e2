//! A call by someone who is known: what every handler but the public ones begins with. A handler that does not name
//! it has no principal, and so no way to ask for anything.

use std::borrow::Cow;

use actix_web::dev::Payload as RawPayload;
use actix_web::http::header::{self, HeaderMap};
use actix_web::web::{Data, Payload, Query};
use actix_web::{FromRequest, HttpRequest};
use assay_node_auth::{Principal, Secret};
use futures::future::LocalBoxFuture;
use tracing::Span;
use uuid::Uuid;

use crate::body::{self, Body};
use crate::edge::Edge;
use crate::refusal::{Kind, Refusal};

const ORG_NAME: &str = "x-bt-org-name";
const IMPERSONATE: &str = "x-bt-impersonate-user";

#[derive(Debug)]
pub struct Call {
    pub edge: Data<Edge>,
    pub request: HttpRequest,
    pub principal: Principal,
}

impl FromRequest for Call {
    type Error = Refusal;
    type Future = LocalBoxFuture<'static, Result<Call, Refusal>>;

    fn from_request(request: &HttpRequest, _: &mut RawPayload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move { Call::of(request).await })
    }
}

impl Call {
    pub async fn of(request: HttpRequest) -> Result<Call, Refusal> {
        let edge = request.app_data::<Data<Edge>>().cloned();
        let edge = edge.ok_or_else(|| Refusal::internal("a route without its edge"))?;
        let secret = bearer(request.headers())?;
        let org_name = header_text(request.headers(), ORG_NAME)?;
        let wanted = header_text(request.headers(), IMPERSONATE)?;
        let named = (org_name.as_deref(), wanted.as_deref());
        let principal = edge.records.authenticate_as(secret.expose(), named.0, named.1).await?;
        Span::current().record("principal", tracing::field::display(principal.user));
        let call = Call { edge, request, principal };
        call.admit().await?;
        Ok(call)
    }

    /// Whether the limits let it in: whoever is not known counts for nobody, and of a request that is too much no body is read.
    async fn admit(&self) -> Result<(), Refusal> {
        if !self.edge.rates.has_rules() {
            return Ok(());
        }
        // As routes see it: `/logs%33` is `/logs3`.
        let path = self.request.match_info().as_str();
        let project = || {
            let (kind, id) = named(path)?;
            self.edge.records.project_at(self.principal.org, kind, id)
        };
        self.edge.rates.admit(self.request.method().as_str(), path, &self.principal, project).await
    }

    /// The `{id}` of the path.
    pub fn id(&self) -> Result<Uuid, Refusal> {
        let text = self.request.match_info().get("id").unwrap_or_default();
        let refuse = |_| Refusal::bad(format!("`{}` is not an id; ids are UUIDs", crate::shapes::shortened(text)));
        Uuid::parse_str(text).map_err(refuse)
    }

    /// Query parameters in their order, decoded. A name may come more than once.
    pub fn query(&self) -> Result<Vec<(String, String)>, Refusal> {
        let pairs = Query::<Vec<(String, String)>>::from_query(self.request.query_string());
        pairs.map(Query::into_inner).map_err(|error| Refusal::bad(format!("the query is malformed: {error}")))
    }

    pub async fn body_of_rows(&self, payload: Payload) -> Result<Body, Refusal> {
        body::read(&self.edge, &self.request, payload, self.edge.config.body_bytes_max).await
    }

    /// A body of rows that may be packed, unpacked.
    pub async fn packed_body(&self, payload: Payload) -> Result<Body, Refusal> {
        body::read_packed(&self.edge, &self.request, payload, self.edge.config.body_bytes_max).await
    }

    pub async fn small_body(&self, payload: Payload) -> Result<Body, Refusal> {
        body::read(&self.edge, &self.request, payload, self.edge.config.small_body_bytes_max).await
    }
}

/// What a path is about: `/v1/dataset/<id>/insert`.
fn named(path: &str) -> Option<(&str, Uuid)> {
    let mut parts = path.strip_prefix("/v1/")?.split('/');
    let (kind, id) = (parts.next()?, parts.next()?);
    Some((kind, Uuid::parse_str(id).ok()?))
}

pub(crate) fn bearer(headers: &HeaderMap) -> Result<Secret, Refusal> {
    let refuse = |why: &str| Err(Refusal::new(Kind::Unauthorized, why));
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        return refuse("no credential was sent: send `Authorization: Bearer <API key or token>`");
    };
    let text = value.to_str().unwrap_or_default().trim();
    match text.split_once(' ') {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") && !key.trim().is_empty() => {
            Ok(Secret::new(key.trim().to_owned()))
        }
        _ => refuse("the credential is not understood: send `Authorization: Bearer <API key or token>`"),
    }
}

/// None if it is not there or is empty. What is there is never left out: the caller would be served as somebody else, or
/// in another organization, and not know it. Clients send UTF-8 or, as Python's `requests` does, Latin-1.
fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<Cow<'a, str>>, Refusal> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let bytes = value.as_bytes().trim_ascii();
    let text = match str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().map(|byte| char::from(*byte)).collect()),
    };
    if text.contains(char::is_control) {
        return Err(Refusal::bad(format!(
            "`{name}` is no text: send it as UTF-8 or Latin-1, without control characters"
        )));
    }
    Ok(Some(text).filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    fn bearer_of(value: &'static str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static(value));
        bearer(&headers).ok().map(|secret| secret.expose().to_owned())
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
        for other in ["", "sk-1", "Bearer", "Bearer ", "Basic sk-1"] {
            assert_eq!(bearer_of(other), None, "{other}");
        }
        assert_eq!(bearer(&HeaderMap::new()).expect_err("none").kind, Kind::Unauthorized);
    }

    #[test]
    fn a_header_is_read_as_utf_8_or_latin_1_and_never_left_out() {
        let read = |bytes: &[u8]| {
            let mut headers = HeaderMap::new();
            let name = header::HeaderName::from_static(ORG_NAME);
            headers.insert(name, HeaderValue::from_bytes(bytes).expect("what comes over the wire"));
            header_text(&headers, ORG_NAME).map(|text| text.map(Cow::into_owned))
        };
        for bytes in ["Société".as_bytes(), b"Soci\xe9t\xe9", b" Soci\xe9t\xe9 "] {
            assert_eq!(read(bytes).expect("text").as_deref(), Some("Société"), "{bytes:?}");
        }
        assert_eq!(read(" acme\t".as_bytes()).expect("text").as_deref(), Some("acme"));
        assert_eq!(read("協会".as_bytes()).expect("text").as_deref(), Some("協会"));
        assert_eq!(read(b"  ").expect("nothing"), None);
        assert_eq!(header_text(&HeaderMap::new(), ORG_NAME).expect("nothing"), None);
        for bytes in [&b"acme\x93"[..], b"a\tb", "a\u{85}".as_bytes()] {
            let refusal = read(bytes).expect_err("no text");
            assert_eq!(refusal.kind, Kind::BadRequest);
            assert!(refusal.message.contains("`x-bt-org-name` is no text"), "{}", refusal.message);
        }
    }
}
