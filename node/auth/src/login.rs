//! Tickets and tokens of logins by OAuth 2.1 with PKCE.
//!
//! ```text
//! login key = derived from the master key of secrets: the same on every node, never stored
//! ticket    = <id of the master key>.<base64url of nonce, cipher, tag>       the state, the code, the refresh token
//! access    = JWT, HS256, `kid` = login-<id of the master key>               a bearer token
//! ```
//! A ticket can be decrypted only for its own purpose. Neither a ticket nor an access token suffices by itself: the
//! record that it names must still exist in the catalog. This module is pure: callers provide the time and the
//! randomness.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::digest;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::jwt::decoded;
use crate::secret_text::Secret;
use crate::signed_token::{TokenKey, TokenPurpose};

/// Random bytes of a code verifier or a nonce.
pub const LOGIN_SECRET_BYTES: usize = 32;
/// Random bytes of the encryption of a ticket.
pub const TICKET_NONCE_BYTES: usize = 24;
/// Upper bound of the length of a ticket.
const TICKET_BYTES_MAX: usize = 8 << 10;
/// Accepted lengths of a code verifier and of a challenge (RFC 7636).
const PKCE_LETTERS: std::ops::RangeInclusive<usize> = 43..=128;
/// Context of the derived cipher key. Frozen, because tickets stay valid after a restart.
const SEAL_CONTEXT: &str = "assay 2026-11-28 tickets of logins 1";
/// Prefix of the associated data of a ticket.
const BOUND_TO: &[u8] = b"assay ticket 1\0";
const ACCESS_TOKENS: TokenPurpose =
    TokenPurpose { key_name: "login-", context: "assay 2026-11-28 access tokens of logins 1", media_type: "at+jwt" };

/// Encrypted value that a client stores and returns.
pub trait Ticket: Serialize + DeserializeOwned {
    /// Number that distinguishes this type of ticket from all others. Frozen.
    const USE: u8;
    /// Returns the expiry in seconds since the epoch; `None` if a record decides.
    fn until(&self) -> Option<i64>;
}

/// Parameters of a client's authorization request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginAsked {
    pub client_id: String,
    pub redirect_uri: String,
    /// `state` of the client, returned unchanged.
    pub state: Option<String>,
    /// Code challenge (S256).
    pub challenge: String,
    pub scope: String,
    /// Id of the login for a program without a browser. The person has to confirm such a login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Uuid>,
    /// Name of a client that registered itself. The person has to confirm such a login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered: Option<String>,
}

/// Login in progress at the provider, encoded in its `state` parameter. The node stores nothing of it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingLogin {
    pub asked: LoginAsked,
    /// Nonce that the ID token must have.
    pub nonce: String,
    /// Code verifier of this server for the provider.
    pub verifier: String,
    pub until: i64,
}

impl std::fmt::Debug for PendingLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingLogin").field("asked", &self.asked).finish_non_exhaustive()
    }
}

impl Ticket for PendingLogin {
    const USE: u8 = 1;

    fn until(&self) -> Option<i64> {
        Some(self.until)
    }
}

/// Authorization code, which a client exchanges for tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeTicket {
    pub login: Uuid,
    pub until: i64,
}

impl Ticket for CodeTicket {
    const USE: u8 = 2;

    fn until(&self) -> Option<i64> {
        Some(self.until)
    }
}

/// Session of a program that waits for authorization. The node does not store it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupTicket {
    pub session: Uuid,
    /// Code challenge (S256) of the program's verifier.
    pub challenge: String,
    pub until: i64,
}

impl Ticket for SetupTicket {
    const USE: u8 = 4;

    fn until(&self) -> Option<i64> {
        Some(self.until)
    }
}

/// Ticket for the confirmation of a waiting program by an authenticated person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedTicket {
    pub asked: LoginAsked,
    pub email: String,
    pub is_verified: bool,
    /// Id of the login that the confirmation creates, unless a setup session has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<Uuid>,
    pub until: i64,
}

impl Ticket for AskedTicket {
    const USE: u8 = 5;

    fn until(&self) -> Option<i64> {
        Some(self.until)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefreshTicket {
    pub login: Uuid,
    /// Generation within the login, from 1.
    pub generation: u64,
}

impl Ticket for RefreshTicket {
    const USE: u8 = 3;

    fn until(&self) -> Option<i64> {
        None
    }
}

/// Claims of an access token. Clients display its subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessClaims {
    pub iss: String,
    pub aud: String,
    /// Id of the user.
    pub sub: Uuid,
    pub name: String,
    pub email: String,
    pub iat: i64,
    pub exp: i64,
    pub jti: Uuid,
    /// Id of the login, whose record must still exist.
    pub sid: Uuid,
    pub client_id: String,
    pub scope: String,
}

/// Source of keys for logins: the master key of secrets.
pub trait LoginKeySource {
    /// Returns the id of the key, which contains no dot and reveals nothing of the key.
    fn key_id(&self) -> String;

    /// Derives a key for one purpose, which reveals nothing of this one or of others.
    fn derived_key(&self, context: &str) -> [u8; 32];

    /// Returns a cipher whose key is derived in the same way.
    fn ticket_cipher(&self, context: &str) -> Arc<dyn TicketCipher>;
}

/// Cipher for authenticated encryption with associated data.
pub trait TicketCipher: Send + Sync {
    /// Encrypts and returns the nonce and the encrypted bytes; `None` for too many bytes. Every call needs a new random
    /// nonce.
    fn seal(&self, bound_to: &[u8], plain: &[u8], nonce: [u8; TICKET_NONCE_BYTES]) -> Option<Vec<u8>>;

    /// Decrypts bytes; `None` if they were changed or have other associated data.
    fn open(&self, bound_to: &[u8], sealed: &[u8]) -> Option<Vec<u8>>;
}

/// Key that seals tickets and signs access tokens.
#[derive(Clone)]
pub struct LoginKey {
    cipher: Arc<dyn TicketCipher>,
    tokens: TokenKey,
}

impl std::fmt::Debug for LoginKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LoginKey({})", self.tokens.master())
    }
}

impl LoginKey {
    pub fn of(master: &impl LoginKeySource) -> LoginKey {
        LoginKey { cipher: master.ticket_cipher(SEAL_CONTEXT), tokens: TokenKey::of(ACCESS_TOKENS, master) }
    }

    /// Encrypts a ticket; `None` if it is too long. Every call needs a new random nonce.
    pub fn seal<T: Ticket>(&self, ticket: &T, nonce: [u8; TICKET_NONCE_BYTES]) -> Option<String> {
        let plain = serde_json::to_vec(ticket).ok()?;
        let sealed = self.cipher.seal(&bound::<T>(), &plain, nonce)?;
        let text = format!("{}.{}", self.tokens.master(), URL_SAFE_NO_PAD.encode(sealed));
        (text.len() <= TICKET_BYTES_MAX).then_some(text)
    }

    /// Decrypts a ticket; `None` if it has another key or type, was changed, or has expired.
    pub fn open<T: Ticket>(&self, text: &str, now: i64) -> Option<T> {
        if text.len() > TICKET_BYTES_MAX {
            return None;
        }
        let (key, sealed) = text.split_once('.')?;
        // An exact comparison, so that a ticket has only one encoding.
        if key != self.tokens.master() {
            return None;
        }
        let plain = self.cipher.open(&bound::<T>(), &decoded(sealed)?)?;
        let ticket: T = serde_json::from_slice(&plain).ok()?;
        ticket.until().is_none_or(|until| now < until).then_some(ticket)
    }

    /// Signs an access token; `None` if the claims are too long.
    pub fn sign(&self, claims: &AccessClaims) -> Option<String> {
        self.tokens.sign(claims)
    }

    /// Returns the claims of a valid access token of this origin.
    pub fn verified(&self, token: &str, origin: &str, now: i64) -> Option<AccessClaims> {
        let claims: AccessClaims = self.tokens.verified(token)?;
        (claims.iss == origin && claims.aud == origin && now < claims.exp).then_some(claims)
    }

    /// Returns the id of the master key that an access token names, if it is a token of this cluster.
    pub fn of_token(token: &str) -> Option<String> {
        ACCESS_TOKENS.master_of(token)
    }

    /// Returns the id of the master key of a ticket.
    pub fn of_ticket(text: &str) -> Option<&str> {
        text.split_once('.').map(|(master, _)| master)
    }
}

fn bound<T: Ticket>() -> Vec<u8> {
    [BOUND_TO, &[T::USE]].concat()
}

/// Returns a new code verifier or nonce of 43 characters.
pub fn new_login_secret(random: &[u8; LOGIN_SECRET_BYTES]) -> String {
    URL_SAFE_NO_PAD.encode(random)
}

/// Returns the challenge (S256) of a verifier.
pub fn challenge_of(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, verifier.as_bytes()))
}

/// Returns whether a text has the form of a code verifier or challenge.
pub fn is_pkce_text(text: &str) -> bool {
    PKCE_LETTERS.contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
}

/// Returns whether a verifier matches a challenge, in constant time.
pub fn proves(verifier: &str, challenge: &str) -> bool {
    is_pkce_text(verifier) && blake3::hash(challenge_of(verifier).as_bytes()) == blake3::hash(challenge.as_bytes())
}

/// Encodes pairs as `name=value&...`, for queries and forms.
pub fn form_encoded(pairs: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (name, value) in pairs {
        if !text.is_empty() {
            text.push('&');
        }
        encode(&mut text, name);
        text.push('=');
        encode(&mut text, value);
    }
    text
}

fn encode(text: &mut String, part: &str) {
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
}

/// Returns the `Authorization` value of a client at its provider (RFC 6749, 2.3.1).
pub fn basic_credential(client: &str, secret: &Secret) -> Secret {
    let (mut text, mut encoded) = (String::new(), String::new());
    encode(&mut text, client);
    encode(&mut encoded, secret.expose());
    let (whole, _encoded) = (Secret::new(format!("{text}:{encoded}")), Secret::new(encoded));
    Secret::new(format!("Basic {}", STANDARD.encode(whole.expose())))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::samples::SampleKey;

    const NOW: i64 = 1_800_000_000;
    const ORIGIN: &str = "https://assay.example";

    fn key(byte: u8) -> LoginKey {
        LoginKey::of(&SampleKey([byte; 32]))
    }

    fn code() -> CodeTicket {
        CodeTicket { login: Uuid::from_u128(7), until: NOW + 60 }
    }

    fn claims() -> AccessClaims {
        AccessClaims {
            iss: ORIGIN.into(),
            aud: ORIGIN.into(),
            sub: Uuid::from_u128(1),
            name: "Ann".into(),
            email: "ann@example.com".into(),
            iat: NOW,
            exp: NOW + 600,
            jti: Uuid::from_u128(2),
            sid: Uuid::from_u128(7),
            client_id: "cli".into(),
            scope: "mcp".into(),
        }
    }

    #[test]
    fn a_ticket_opens_in_time_for_its_own_use_under_its_own_key() {
        let text = key(1).seal(&code(), [3; TICKET_NONCE_BYTES]).expect("is short");
        assert!(!text.contains("login") && LoginKey::of_ticket(&text) == Some("0101"), "{text}");
        assert_eq!(key(1).open(&text, NOW + 59), Some(code()));
        assert_eq!(key(1).open::<CodeTicket>(&text, NOW + 60), None, "too late");
        assert_eq!(key(2).open::<CodeTicket>(&text, NOW), None, "another key");
        assert_eq!(key(1).open::<RefreshTicket>(&text, NOW), None, "another use");
        let refresh = RefreshTicket { login: Uuid::from_u128(7), generation: 3 };
        let text = key(1).seal(&refresh, [3; TICKET_NONCE_BYTES]).expect("is short");
        assert_eq!(key(1).open(&text, i64::MAX), Some(refresh), "its record says how long it is good");
        assert_eq!(key(1).open::<CodeTicket>(&text, NOW), None);
        for odd in ["", ".", "a.b", &text[..text.len() - 3], &"x".repeat(TICKET_BYTES_MAX + 1)] {
            assert_eq!(key(1).open::<RefreshTicket>(odd, NOW), None, "{odd}");
        }
    }

    #[test]
    fn what_does_not_come_back_is_not_handed_out() {
        let asked = LoginAsked {
            client_id: "cli".into(),
            redirect_uri: "http://127.0.0.1/callback".into(),
            state: Some("x".repeat(TICKET_BYTES_MAX)),
            challenge: String::new(),
            scope: String::new(),
            session: None,
            registered: None,
        };
        let pending = PendingLogin { asked, nonce: "n".into(), verifier: "secret".into(), until: NOW };
        assert_eq!(key(1).seal(&pending, [3; TICKET_NONCE_BYTES]), None);
        assert!(!format!("{pending:?}").contains("secret"));
    }

    proptest! {
        #[test]
        fn a_changed_ticket_or_token_opens_nothing(place in 0_usize..1000, bit in 0_u8..6) {
            let changed = |text: &str| {
                let mut bytes = text.as_bytes().to_vec();
                let place = place % bytes.len();
                bytes[place] ^= 1 << bit;
                String::from_utf8(bytes).ok().filter(|changed| changed != text)
            };
            let ticket = key(1).seal(&code(), [3; TICKET_NONCE_BYTES]).expect("is short");
            if let Some(changed) = changed(&ticket) {
                prop_assert_eq!(key(1).open::<CodeTicket>(&changed, NOW), None);
            }
            let token = key(1).sign(&claims()).expect("is short");
            if let Some(changed) = changed(&token) {
                prop_assert_eq!(key(1).verified(&changed, ORIGIN, NOW), None);
            }
        }
    }

    #[test]
    fn an_access_token_is_a_jwt_that_says_who_it_is_about() {
        let token = key(1).sign(&claims()).expect("is short");
        assert!(crate::jwt::looks_like_jwt(&token), "{token}");
        let payload = decoded(token.split('.').nth(1).expect("three parts")).expect("base64url");
        let payload: serde_json::Value = serde_json::from_slice(&payload).expect("JSON");
        assert_eq!((&payload["name"], &payload["email"]), (&json!("Ann"), &json!("ann@example.com")));
        assert_eq!(payload["sub"], json!(Uuid::from_u128(1)));
        assert_eq!(key(1).verified(&token, ORIGIN, NOW + 599), Some(claims()));
        assert_eq!(key(1).verified(&token, ORIGIN, NOW + 600), None, "has expired");
        assert_eq!(key(1).verified(&token, "https://other.example", NOW), None, "of another place");
        assert_eq!(key(2).verified(&token, ORIGIN, NOW), None, "of another key");
        let none = URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"none","kid":"login-{}"}}"#, key(1).tokens.master()));
        let unsigned = format!("{none}.{}.", token.split('.').nth(1).expect("three parts"));
        assert_eq!(key(1).verified(&unsigned, ORIGIN, NOW), None);
        assert_eq!(LoginKey::of_token("eyJhbGciOiJFUzI1NiIsImtpZCI6Im5ldyJ9.e30.AAAA"), None, "of somebody else");
    }

    #[test]
    fn a_verifier_proves_its_challenge() {
        // RFC 7636, appendix B.
        let (verifier, challenge) =
            ("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert!(proves(verifier, challenge));
        assert!(!proves(&verifier.replace('d', "e"), challenge) && !proves(challenge, challenge));
        assert!(!proves("", &challenge_of("")), "a short one proves nothing");
        let made = new_login_secret(&[255; LOGIN_SECRET_BYTES]);
        assert!(is_pkce_text(&made) && proves(&made, &challenge_of(&made)));
        for odd in ["short", &"x".repeat(129), &format!("{}=", "x".repeat(43)), &format!("{} ", "x".repeat(43))] {
            assert!(!is_pkce_text(odd), "{odd}");
        }
    }

    #[test]
    fn forms_and_credentials_are_encoded() {
        assert_eq!(form_encoded(&[("a b", "c&d=é"), ("x", "~-_.")]), "a%20b=c%26d%3D%C3%A9&x=~-_.");
        let basic = basic_credential("a:b", &Secret::new("c d".into()));
        assert_eq!(basic.expose(), format!("Basic {}", STANDARD.encode("a%3Ab:c%20d")));
    }
}
