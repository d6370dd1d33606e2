//! `Idempotency-Key` header, which lets a repeated request take effect only once.

use actix_web::http::header::HeaderMap;
use assay_node_auth::Principal;
use assay_storage_model::ObjectKey;
use assay_storage_model::command::RequestId;

use crate::responses::refusal::Refusal;

pub const HEADER: &str = "idempotency-key";
/// Upper bound of a key. A UUID has 36 bytes.
const KEY_BYTES_MAX: usize = 255;

/// Key of a request, with a hash of its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    key: Vec<u8>,
    content: [u8; 16],
}

impl IdempotencyKey {
    /// Returns the key of a request, or `None` without the header. The content is the path and the body, byte for byte.
    pub fn of(headers: &HeaderMap, path: &str, body: &[u8]) -> Result<Option<IdempotencyKey>, Refusal> {
        let Some(key) = headers.get(HEADER).map(|value| value.as_bytes()).filter(|key| !key.is_empty()) else {
            return Ok(None);
        };
        if key.len() > KEY_BYTES_MAX {
            return Err(Refusal::bad(format!("`Idempotency-Key` is longer than {KEY_BYTES_MAX} bytes")));
        }
        let content = hash("assay request content 1", &[&(path.len() as u64).to_le_bytes(), path.as_bytes(), body]);
        Ok(Some(IdempotencyKey { key: key.to_vec(), content }))
    }

    /// Returns the key for the rows of an upload, which are written once.
    pub fn of_upload(key: &str) -> IdempotencyKey {
        let content = hash("assay request of an upload 1", &[key.as_bytes()]);
        IdempotencyKey { key: [b"overflow:", key.as_bytes()].concat(), content }
    }

    /// Returns the id of this request for one object. It depends on the user, the object and the key.
    pub fn at(&self, principal: &Principal, object: &ObjectKey) -> RequestId {
        let parts: [&[u8]; 3] = [principal.user.as_bytes(), &object.to_bytes(), &self.key];
        RequestId { key: hash("assay request key 1", &parts), content: self.content }
    }
}

/// Hashes a list of parts.
///
/// Every part except the last has a fixed length or follows its length, so different lists have different hashes.
fn hash(context: &str, parts: &[&[u8]]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    parts.iter().for_each(|part| {
        hasher.update(part);
    });
    let mut short = [0; 16];
    hasher.finalize_xof().fill(&mut short);
    short
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{HeaderName, HeaderValue};
    use assay_storage_model::{ObjectKind, OrgId};
    use uuid::Uuid;

    use super::*;

    fn repeat(key: &str, path: &str, body: &str) -> Option<IdempotencyKey> {
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::from_static(HEADER), HeaderValue::from_str(key).expect("a value"));
        IdempotencyKey::of(&headers, path, body.as_bytes()).expect("taken")
    }

    fn id(user: u128, object: u128, key: &str, body: &str) -> RequestId {
        let principal = Principal {
            org: OrgId(Uuid::from_u128(9)),
            org_name: "acme".into(),
            user: Uuid::from_u128(user),
            user_email: "a@example.com".into(),
            credential: assay_node_auth::Credential::ApiKey(Uuid::from_u128(8)),
            impersonator: None,
            rights: std::sync::Arc::default(),
        };
        let object = ObjectKey::new(principal.org, ObjectKind::Dataset, Uuid::from_u128(object));
        repeat(key, "/p", body).expect("a key").at(&principal, &object)
    }

    #[test]
    fn the_same_request_has_the_same_id_and_any_other_another() {
        let first = id(1, 2, "k", "{}");
        assert_eq!(id(1, 2, "k", "{}"), first);
        for other in [id(3, 2, "k", "{}"), id(1, 3, "k", "{}"), id(1, 2, "l", "{}")] {
            assert_ne!(other.key, first.key);
        }
        let reused = id(1, 2, "k", "{ }");
        assert!(reused.key == first.key && reused.content != first.content);
        assert_ne!(repeat("k", "/pa", "b"), repeat("k", "/p", "ab"));
    }

    #[test]
    fn without_a_key_nothing_is_remembered_and_a_long_one_is_refused() {
        assert_eq!(IdempotencyKey::of(&HeaderMap::new(), "/p", b"").expect("taken"), None);
        assert_eq!(repeat("", "/p", ""), None);
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::from_static(HEADER), HeaderValue::from_str(&"k".repeat(256)).expect("a value"));
        assert!(IdempotencyKey::of(&headers, "/p", b"").is_err());
    }
}
