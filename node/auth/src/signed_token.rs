//! Tokens that this cluster signs and verifies itself: JWTs with HS256, under keys derived from the master key.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::jwt::{JWT_BYTES_MAX, decoded};
use crate::login::LoginKeySource;

const ALGORITHM: &str = "HS256";

/// Parameters that distinguish the tokens of one purpose from those of another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenPurpose {
    /// Prefix of the master key id in `kid`, unique to this purpose.
    pub key_name: &'static str,
    /// Context for the derivation of the signing key. Frozen, because tokens stay valid after a restart.
    pub context: &'static str,
    /// `typ` of the header.
    pub media_type: &'static str,
}

/// Key that signs the tokens of one purpose.
#[derive(Clone)]
pub(crate) struct TokenKey {
    purpose: TokenPurpose,
    /// Id of the master key.
    master: String,
    signing: hmac::Key,
}

impl TokenKey {
    pub fn of(purpose: TokenPurpose, master: &impl LoginKeySource) -> TokenKey {
        let signing = hmac::Key::new(hmac::HMAC_SHA256, &master.derived_key(purpose.context));
        TokenKey { purpose, master: master.key_id(), signing }
    }

    /// Returns the id of the master key.
    pub fn master(&self) -> &str {
        &self.master
    }

    /// Signs claims; `None` if they are too long.
    pub fn sign(&self, claims: &impl Serialize) -> Option<String> {
        let TokenPurpose { key_name, media_type, .. } = self.purpose;
        let header = json!({"alg": ALGORITHM, "typ": media_type, "kid": format!("{key_name}{}", self.master)});
        let claims = serde_json::to_vec(claims).ok()?;
        let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header.to_string()), URL_SAFE_NO_PAD.encode(claims));
        let signature = hmac::sign(&self.signing, message.as_bytes());
        let token = format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()));
        (token.len() <= JWT_BYTES_MAX).then_some(token)
    }

    /// Returns the claims of a token that this key signed. The caller must check the expiry.
    pub fn verified<C: DeserializeOwned>(&self, token: &str) -> Option<C> {
        if self.purpose.master_of(token)? != self.master {
            return None;
        }
        let (message, signature) = token.rsplit_once('.')?;
        hmac::verify(&self.signing, message.as_bytes(), &decoded(signature)?).ok()?;
        let (_, claims) = message.split_once('.')?;
        serde_json::from_slice(&decoded(claims)?).ok()
    }
}

impl TokenPurpose {
    /// Returns the id of the master key that a token names, if it is a token of this purpose.
    pub fn master_of(&self, token: &str) -> Option<String> {
        #[derive(Deserialize)]
        struct SignedTokenHeader {
            alg: String,
            kid: String,
        }
        if token.len() > JWT_BYTES_MAX {
            return None;
        }
        let header: SignedTokenHeader = serde_json::from_slice(&decoded(token.split_once('.')?.0)?).ok()?;
        header.kid.strip_prefix(self.key_name).filter(|_| header.alg == ALGORITHM).map(str::to_owned)
    }
}
