//! User: the owner of keys and tokens. A person can be a member of several organizations; a service account belongs to
//! one.

use assay_storage_model::OrgId;
use assay_storage_model::catalog::{Expect, PutRecord, Record, RecordKind, UniqueKey};
use serde_json::json;
use uuid::Uuid;

use crate::error::RecordsError;

/// Upper bound of the length of an address, which e-mail itself has.
const EMAIL_BYTES_MAX: usize = 320;

/// Fields of a user in responses.
pub const FIELDS: [&str; 4] = ["given_name", "family_name", "email", "avatar_url"];

/// Returns the unique key of an address, which ignores case.
pub fn email_key(email: &str) -> UniqueKey {
    UniqueKey::new("user.email", email.to_lowercase())
}

pub fn check_email(email: &str) -> Result<(), RecordsError> {
    let (local, domain) = email.split_once('@').unwrap_or_default();
    let odd = email.chars().any(|letter| letter.is_whitespace() || letter.is_control());
    if local.is_empty() || domain.is_empty() || odd || email.len() > EMAIL_BYTES_MAX {
        let said = format!("`{}` is not a valid email address", email.chars().take(80).collect::<String>());
        return Err(RecordsError::BadRequest(said));
    }
    Ok(())
}

pub fn put(id: Uuid, email: &str, at: i64) -> PutRecord {
    PutRecord {
        kind: RecordKind::USER,
        id,
        org: None,
        expect: Expect::Absent,
        keys: vec![email_key(email)],
        body: json!({ "email": email }).to_string().into_bytes(),
        at,
    }
}

pub fn is_service_account(user: &Record) -> bool {
    user.org.is_some()
}

pub fn put_account(id: Uuid, org: OrgId, name: &str, email: &str, at: i64) -> PutRecord {
    let body = json!({ "given_name": name, "email": email });
    PutRecord { org: Some(org), body: body.to_string().into_bytes(), ..put(id, email, at) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked_and_compared_without_case() {
        assert_eq!(email_key("Ann@Example.com"), email_key("ann@example.com"));
        for (email, fine) in [
            ("ann@example.com", true),
            ("owner@localhost", true),
            ("ann", false),
            ("@x", false),
            ("ann@", false),
            ("a nn@x", false),
            ("", false),
        ] {
            assert_eq!(check_email(email).is_ok(), fine, "{email}");
        }
    }
}
