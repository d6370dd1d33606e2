//! User: whom keys and tokens speak for. A person is in any number of organizations and stands above them; a service account,
//! which is a program's, belongs to one and never is in another.

use assay_storage_model::OrgId;
use assay_storage_model::catalog::{Expect, PutRecord, Record, RecordKind, UniqueKey};
use serde_json::json;
use uuid::Uuid;

use crate::error::RecordsError;

/// Upper bound that mail itself has.
const EMAIL_BYTES_MAX: usize = 320;
/// Letters of an account's name that are in its address.
const SLUG_LETTERS_MAX: usize = 40;

/// Fields of a user as the API shows them.
pub const FIELDS: [&str; 4] = ["given_name", "family_name", "email", "avatar_url"];

/// Addresses that differ only in case are one user's.
pub fn email_key(email: &str) -> UniqueKey {
    UniqueKey::new("user.email", email.to_lowercase())
}

pub fn check_email(email: &str) -> Result<(), RecordsError> {
    let (local, domain) = email.split_once('@').unwrap_or_default();
    let odd = email.chars().any(|letter| letter.is_whitespace() || letter.is_control());
    if local.is_empty() || domain.is_empty() || odd || email.len() > EMAIL_BYTES_MAX {
        let said = format!("`{}` is no e-mail address", email.chars().take(80).collect::<String>());
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

/// An address where no mail ever arrives: `.invalid` is nobody's.
pub fn account_email(name: &str, org: OrgId, random: [u8; 4]) -> String {
    let mut slug = String::new();
    for letter in name.chars().take(SLUG_LETTERS_MAX) {
        match letter.to_ascii_lowercase() {
            letter if letter.is_ascii_alphanumeric() => slug.push(letter),
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    let slug = Some(slug.trim_end_matches('-')).filter(|slug| !slug.is_empty()).unwrap_or("account");
    format!("{slug}-{:08x}@service.{org}.invalid", u32::from_be_bytes(random))
}

pub fn put_account(id: Uuid, org: OrgId, name: &str, email: &str, at: i64) -> PutRecord {
    let body = json!({ "given_name": name, "email": email });
    PutRecord { org: Some(org), body: body.to_string().into_bytes(), ..put(id, email, at) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_an_account_says_its_name_and_is_one() {
        let org = OrgId(Uuid::from_u128(7));
        for (name, slug) in [
            ("Nightly CI (eu)", "nightly-ci-eu"),
            ("評価", "account"),
            ("", "account"),
            (&"x".repeat(500), &"x".repeat(40)),
        ] {
            let email = account_email(name, org, [0, 1, 2, 255]);
            assert_eq!(email, format!("{slug}-000102ff@service.{org}.invalid"));
            assert_eq!(check_email(&email), Ok(()));
        }
    }

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
