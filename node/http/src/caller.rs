//! Who calls, whatever the request came by: known by its credential and by whom it says that it acts for, and let in by the
//! limits. Whatever is asked of the rooms below is asked in a caller's name.

use std::borrow::Cow;

use actix_web::web::Data;
use assay_node_auth::{Asker, Principal, Secret};
use assay_node_connections::{Connection, Owner};
use assay_node_objects::{Objects, Patience};
use assay_node_query::{Queries, Who};
use tracing::Span;
use uuid::Uuid;

use crate::admission::Applicant;
use crate::edge::Edge;
use crate::refusal::{Kind, Refusal};
use crate::wait::Wait;

pub const AUTHORIZATION: &str = "authorization";
pub const ORG_NAME: &str = "x-bt-org-name";
pub const IMPERSONATE: &str = "x-bt-impersonate-user";

#[derive(Debug)]
pub struct Caller {
    pub edge: Data<Edge>,
    pub principal: Principal,
    /// How long the request may wait in queues, and how long it did.
    pub wait: Wait,
}

/// What a request says of who sends it, as bytes: each of its headers, where it has it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Said<'a> {
    pub authorization: Option<&'a [u8]>,
    pub org_name: Option<&'a [u8]>,
    pub impersonate: Option<&'a [u8]>,
}

impl Caller {
    pub async fn known(edge: Data<Edge>, said: Said<'_>, wait: Wait) -> Result<Caller, Refusal> {
        let secret = bearer(said.authorization)?;
        let org_name = header_text(ORG_NAME, said.org_name)?;
        let wanted = header_text(IMPERSONATE, said.impersonate)?;
        let named = (org_name.as_deref(), wanted.as_deref());
        let principal = edge.identity.authenticate_as(secret.expose(), named.0, named.1).await?;
        Span::current().record("principal", tracing::field::display(principal.user));
        Ok(Caller { edge, principal, wait })
    }

    /// Returns until when the writes of this request wait for their places, and as whose they count.
    pub fn patience(&self) -> Patience {
        Patience { until: self.wait.until(), credential: self.principal.credential.record() }
    }

    /// Returns who asks for a part of a budget.
    pub fn applicant(&self) -> Applicant {
        Applicant::new(&self.principal, self.wait.clone())
    }

    /// Returns in whose name a query is asked, and until when it waits for its turn.
    pub fn who(&self) -> Who {
        let Applicant { holder, wait } = self.applicant();
        Who { holder, until: wait.until() }
    }

    /// Says whose connection it is. Refused where the caller's organization, or its credential, holds its share of
    /// connections while others wait for one.
    pub fn on(&self, connection: &Connection) -> Result<(), Refusal> {
        let (organization, credential) = (self.principal.org.0, self.principal.credential.record());
        match connection.known(Owner { organization, credential }) {
            true => Ok(()),
            false => Err(Refusal::new(
                Kind::Busy,
                "this organization, or this credential, holds its share of this node's connections, and others wait: use \
                 fewer connections at once, or close those that are not needed",
            )),
        }
    }

    /// Objects, asked on the caller's behalf.
    pub fn objects(&self) -> Objects {
        self.edge.objects.on_behalf_of(&Asker::of(&self.principal))
    }

    /// Queries, asked on the caller's behalf.
    pub fn queries(&self) -> Queries {
        self.edge.queries.on_behalf_of(Asker::of(&self.principal).to_bytes())
    }

    /// Whether the limits let it in: whoever is not known counts for nobody, and of a request that is too much no body is
    /// read. The path is the one that routes see: `/logs%33` is `/logs3`.
    pub async fn admit(&self, method: &str, path: &str) -> Result<(), Refusal> {
        if !self.edge.rates.has_rules() {
            return Ok(());
        }
        let project = || {
            let (kind, id) = named(path)?;
            self.edge.records.project_at(self.principal.org, kind, id)
        };
        self.edge.rates.admit(method, path, &self.principal, project).await
    }
}

/// What a path is about: `/v1/dataset/<id>/insert`.
fn named(path: &str) -> Option<(&str, Uuid)> {
    let mut parts = path.strip_prefix("/v1/")?.split('/');
    let (kind, id) = (parts.next()?, parts.next()?);
    Some((kind, Uuid::parse_str(id).ok()?))
}

pub fn bearer(said: Option<&[u8]>) -> Result<Secret, Refusal> {
    let refuse = |why: &str| Err(Refusal::new(Kind::Unauthorized, why));
    let Some(value) = said else {
        return refuse("no credential was sent: send `Authorization: Bearer <API key or token>`");
    };
    // Visible ASCII, as keys and tokens are.
    let text = str::from_utf8(value).unwrap_or_default().trim();
    match text.split_once(' ') {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") && is_credential(key.trim()) => {
            Ok(Secret::new(key.trim().to_owned()))
        }
        _ => refuse("the credential is not understood: send `Authorization: Bearer <API key or token>`"),
    }
}

fn is_credential(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// None if it is not there or is empty. What is there is never left out: the caller would be served as somebody else, or
/// in another organization, and not know it. Clients send UTF-8 or, as Python's `requests` does, Latin-1.
fn header_text<'a>(name: &str, value: Option<&'a [u8]>) -> Result<Option<Cow<'a, str>>, Refusal> {
    let Some(value) = value else { return Ok(None) };
    let bytes = value.trim_ascii();
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
        assert_eq!(bearer(None).expect_err("none").kind, Kind::Unauthorized);
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
            assert_eq!(refusal.kind, Kind::BadRequest);
            assert!(refusal.message.contains("`x-bt-org-name` is no text"), "{}", refusal.message);
        }
    }
}
