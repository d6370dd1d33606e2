//! Pair of a public and a secret key, which clients send as the user and password of Basic authentication.
//!
//! The public key names a project and grants nothing. The secret key is an API key or a service token of this server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use uuid::Uuid;

/// Prefix of public keys.
pub const PUBLIC_KEY_PREFIX: &str = "pk-lf-";
/// Upper bound of the header. A pair has about a hundred bytes.
const HEADER_BYTES_MAX: usize = 1024;

/// Pair of keys from a request.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyPair {
    pub project: Uuid,
    pub secret: String,
}

impl std::fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyPair").field("project", &self.project).finish_non_exhaustive()
    }
}

/// Returns the public key of a project.
pub fn public_key(project: Uuid) -> String {
    format!("{PUBLIC_KEY_PREFIX}{project}")
}

impl KeyPair {
    /// Reads the value of an `Authorization` header. The error says what to send.
    pub fn of_header(value: Option<&[u8]>) -> Result<KeyPair, String> {
        let how = "send the public key as the user and the secret key as the password of Basic authentication, as \
                   Langfuse's SDKs do";
        let Some(value) = value else { return Err(format!("no credential was sent: {how}")) };
        let malformed = || format!("the credential has an unknown form: {how}");
        let text = str::from_utf8(value).ok().filter(|text| text.len() <= HEADER_BYTES_MAX).ok_or_else(malformed)?;
        let (scheme, encoded) = text.trim().split_once(' ').ok_or_else(malformed)?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return Err(malformed());
        }
        let decoded = STANDARD.decode(encoded.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let decoded = decoded.ok_or_else(malformed)?;
        let (public, secret) = decoded.split_once(':').ok_or_else(malformed)?;
        let project = public.strip_prefix(PUBLIC_KEY_PREFIX).and_then(|id| Uuid::parse_str(id).ok());
        let project = project.ok_or_else(|| {
            format!(
                "the public key names no project of this server: it is `{PUBLIC_KEY_PREFIX}` and the id of the project"
            )
        })?;
        if secret.is_empty() {
            return Err("the secret key is empty: it is an API key or a service token of this server".into());
        }
        Ok(KeyPair { project, secret: secret.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(text: &str) -> Vec<u8> {
        format!("Basic {}", STANDARD.encode(text)).into_bytes()
    }

    #[test]
    fn a_pair_is_read_from_basic_authentication() {
        let project = Uuid::from_u128(7);
        let pair = KeyPair::of_header(Some(&header(&format!("{}:sk-a:b", public_key(project))))).expect("a pair");
        assert_eq!(pair, KeyPair { project, secret: "sk-a:b".into() });
        assert!(!format!("{pair:?}").contains("sk-a"), "a secret is not printed");
    }

    #[test]
    fn other_credentials_are_refused_with_the_remedy() {
        for value in [
            header(":"),
            header("pk-lf-1:sk"),
            header(&public_key(Uuid::nil())),
            header(&format!("{}:", public_key(Uuid::nil()))),
            b"Bearer sk-1".to_vec(),
            b"Basic ???".to_vec(),
            b"Basic".to_vec(),
            vec![0xff; 9],
        ] {
            assert!(KeyPair::of_header(Some(&value)).is_err(), "{value:?}");
        }
        assert!(KeyPair::of_header(None).expect_err("nothing").contains("Basic authentication"));
    }
}
