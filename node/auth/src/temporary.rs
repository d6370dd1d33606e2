//! Temporary credentials of the AI gateway: short-lived JWTs for model calls only (G-24).
//!
//! A token does not suffice by itself: its id names a catalog record with its owner and its terms. The claims that
//! repeat the record are for clients, which decode tokens without verifying them. This module is pure.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::login::LoginKeySource;
use crate::signed_token::{TokenKey, TokenPurpose};

/// Random bytes of the secret in a token.
pub const TEMPORARY_SECRET_BYTES: usize = 32;
/// Issuer and audience of the tokens, which gateway clients expect.
const ISSUER: &str = "braintrust_proxy";
/// Prefix of the record id in `jti`.
const ID_PREFIX: &str = "bt_tmp:";
const PURPOSE: TokenPurpose = TokenPurpose {
    key_name: "gateway-",
    context: "assay 2026-11-27 temporary credentials of the gateway 1",
    media_type: "JWT",
};

/// Terms of a temporary credential in its record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TemporaryTerms {
    /// Only allowed model; `None` allows all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Logging of calls, which requests cannot change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logging: Option<TemporaryLogging>,
    /// Upper bound of the number of calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_requests: Option<u64>,
    /// Upper bound of the cost of all calls, in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<f64>,
}

/// Logging of the calls of a temporary credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemporaryLogging {
    #[serde(flatten)]
    pub target: LoggingTarget,
    /// Whether audio is logged as MP3.
    pub compress_audio: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoggingTarget {
    /// Logs of the project with this name.
    ProjectName(String),
    /// Parent in the format of `x-bt-parent`.
    Parent(String),
}

impl LoggingTarget {
    /// Returns the target in the format of `x-bt-parent`.
    pub fn parent(&self) -> String {
        match self {
            LoggingTarget::ProjectName(name) => format!("project_name:{name}"),
            LoggingTarget::Parent(parent) => parent.clone(),
        }
    }
}

/// Presented temporary credential, reduced to the fields that the gateway needs.
#[derive(Clone, Debug, PartialEq)]
pub struct TemporaryGrant {
    /// Id of its record, under which calls and costs are counted.
    pub id: Uuid,
    /// Expiry in seconds since the epoch.
    pub until: i64,
    pub terms: TemporaryTerms,
}

impl TemporaryGrant {
    /// Returns whether this model may be called.
    pub fn allows(&self, model: &str) -> bool {
        self.terms.model.as_deref().is_none_or(|only| only == model)
    }

    /// Returns the `jti` of the token.
    pub fn token_id(&self) -> String {
        token_id(self.id)
    }
}

/// Claims of a token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct TemporaryClaims {
    iss: String,
    aud: String,
    jti: String,
    iat: i64,
    exp: i64,
    bt: GatewayClaims,
}

/// Claims of a token that are specific to the gateway.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct GatewayClaims {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    org_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    secret: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    logging: Option<TemporaryLogging>,
}

/// Key that signs temporary credentials.
#[derive(Clone)]
pub struct TemporaryKey(TokenKey);

impl std::fmt::Debug for TemporaryKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TemporaryKey({})", self.0.master())
    }
}

impl TemporaryKey {
    pub fn of(master: &impl LoginKeySource) -> TemporaryKey {
        TemporaryKey(TokenKey::of(PURPOSE, master))
    }

    /// Signs the token of a credential, issued at `now`; `None` if it is too long. Every call needs new random bytes.
    pub fn sign(
        &self,
        grant: &TemporaryGrant,
        org_name: &str,
        now: i64,
        random: &[u8; TEMPORARY_SECRET_BYTES],
    ) -> Option<String> {
        self.0.sign(&TemporaryClaims {
            iss: ISSUER.to_owned(),
            aud: ISSUER.to_owned(),
            jti: grant.token_id(),
            iat: now,
            exp: grant.until,
            bt: GatewayClaims {
                org_name: Some(org_name.to_owned()),
                model: grant.terms.model.clone(),
                secret: URL_SAFE_NO_PAD.encode(random),
                logging: grant.terms.logging.clone(),
            },
        })
    }

    /// Returns the id of the record that a valid token names.
    pub fn verified(&self, token: &str, now: i64) -> Option<Uuid> {
        let claims: TemporaryClaims = self.0.verified(token)?;
        let is_ours = claims.iss == ISSUER && claims.aud == ISSUER && now < claims.exp;
        claims.jti.strip_prefix(ID_PREFIX).filter(|_| is_ours).and_then(|id| Uuid::try_parse(id).ok())
    }

    /// Returns the id of the master key that a token names, if it is a temporary credential of this cluster.
    pub fn of_token(token: &str) -> Option<String> {
        PURPOSE.master_of(token)
    }
}

fn token_id(id: Uuid) -> String {
    format!("{ID_PREFIX}{id}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::jwt::{decoded, looks_like_jwt};
    use crate::login::LoginKey;
    use crate::samples::{SampleKey, id};

    const NOW: i64 = 1_800_000_000;

    fn key(byte: u8) -> TemporaryKey {
        TemporaryKey::of(&SampleKey([byte; 32]))
    }

    fn grant(model: Option<&str>) -> TemporaryGrant {
        let logging = TemporaryLogging { target: LoggingTarget::ProjectName("support".into()), compress_audio: true };
        let model = model.map(str::to_owned);
        let terms = TemporaryTerms { model, logging: Some(logging), ..TemporaryTerms::default() };
        TemporaryGrant { id: id(7), until: NOW + 600, terms }
    }

    fn token() -> String {
        key(1).sign(&grant(Some("gpt-4o")), "acme", NOW, &[9; TEMPORARY_SECRET_BYTES]).expect("is short")
    }

    #[test]
    fn a_token_has_the_claims_that_clients_decode() {
        let token = token();
        assert!(looks_like_jwt(&token), "{token}");
        let parts: Vec<Value> = token
            .split('.')
            .take(2)
            .map(|part| serde_json::from_slice(&decoded(part).expect("base64url")).expect("JSON"))
            .collect();
        assert_eq!(parts[0], json!({"alg": "HS256", "typ": "JWT", "kid": "gateway-0101"}));
        let secret = parts[1]["bt"]["secret"].clone();
        assert_eq!(secret.as_str().map(str::len), Some(43));
        let expected = json!({
            "iss": "braintrust_proxy", "aud": "braintrust_proxy", "jti": format!("bt_tmp:{}", id(7)),
            "iat": NOW, "exp": NOW + 600,
            "bt": {
                "org_name": "acme", "model": "gpt-4o", "secret": secret,
                "logging": {"project_name": "support", "compress_audio": true},
            },
        });
        assert_eq!(parts[1], expected);
    }

    #[test]
    fn a_token_is_valid_in_time_under_its_own_key() {
        let token = token();
        assert_eq!(TemporaryKey::of_token(&token).as_deref(), Some("0101"));
        assert_eq!(LoginKey::of_token(&token), None, "it is no access token");
        assert_eq!(key(1).verified(&token, NOW + 599), Some(id(7)));
        assert_eq!(key(1).verified(&token, NOW + 600), None, "too late");
        assert_eq!(key(2).verified(&token, NOW), None, "another key");
    }

    #[test]
    fn a_changed_token_is_invalid() {
        let token = token();
        for at in 0..token.len() {
            let mut other = token.clone().into_bytes();
            other[at] = if other[at] == b'A' { b'B' } else { b'A' };
            let other = String::from_utf8(other).expect("text");
            assert_eq!(key(1).verified(&other, NOW), None, "{at}");
        }
        for other in ["", "a.b.c", &token[1..], &token[..token.len() - 1], &format!("{token}.x")] {
            assert_eq!(key(1).verified(other, NOW), None, "{other}");
        }
    }

    #[test]
    fn a_token_that_is_too_long_is_not_signed() {
        let long = "x".repeat(crate::jwt::JWT_BYTES_MAX);
        assert_eq!(key(1).sign(&grant(Some(&long)), "acme", NOW, &[9; TEMPORARY_SECRET_BYTES]), None);
    }

    #[test]
    fn a_grant_allows_its_model_or_all() {
        assert!(grant(Some("gpt-4o")).allows("gpt-4o") && !grant(Some("gpt-4o")).allows("gpt-4o-mini"));
        assert!(grant(None).allows("anything"));
    }

    #[test]
    fn terms_are_written_without_what_is_absent() {
        let parent = LoggingTarget::Parent("project_id:1".into());
        for (terms, expected) in [
            (TemporaryTerms::default(), json!({})),
            (
                TemporaryTerms {
                    logging: Some(TemporaryLogging { target: parent, compress_audio: false }),
                    max_requests: Some(3),
                    max_cost: Some(0.5),
                    ..TemporaryTerms::default()
                },
                json!({
                    "logging": {"parent": "project_id:1", "compress_audio": false}, "max_requests": 3, "max_cost": 0.5,
                }),
            ),
        ] {
            assert_eq!(serde_json::to_value(&terms).expect("JSON"), expected);
            assert_eq!(serde_json::from_value::<TemporaryTerms>(expected).expect("terms"), terms);
        }
    }

    #[test]
    fn a_target_is_a_parent_of_spans() {
        assert_eq!(LoggingTarget::ProjectName("a b".into()).parent(), "project_name:a b");
        assert_eq!(LoggingTarget::Parent("experiment_id:1".into()).parent(), "experiment_id:1");
    }
}
