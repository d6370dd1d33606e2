//! User: a person or a program that keys speak for. In any number of organizations, so it stands above them.

use assay_storage_model::catalog::{Expect, PutRecord, RecordKind, UniqueKey};
use serde_json::json;
use uuid::Uuid;

use crate::error::RecordsError;

/// What mail itself allows.
const EMAIL_BYTES_MAX: usize = 320;

/// Addresses that differ only in case are one user's.
pub(crate) fn email_key(email: &str) -> UniqueKey {
    UniqueKey::new("user.email", email.to_lowercase())
}

pub(crate) fn check_email(email: &str) -> Result<(), RecordsError> {
    let (local, domain) = email.split_once('@').unwrap_or_default();
    let odd = email.chars().any(|letter| letter.is_whitespace() || letter.is_control());
    if local.is_empty() || domain.is_empty() || odd || email.len() > EMAIL_BYTES_MAX {
        let said = format!("`{}` is no e-mail address", email.chars().take(80).collect::<String>());
        return Err(RecordsError::BadRequest(said));
    }
    Ok(())
}

pub(crate) fn put(id: Uuid, email: &str, at: i64) -> PutRecord {
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
