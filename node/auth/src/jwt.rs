//! JWTs as credentials: signed claims about a user from a trusted issuer.
//!
//! This module is pure: callers provide keys and the time. The key decides the algorithm: HS256 for the shared secret,
//! RS256 for RSA, ES256 for P-256. The header of the token only has to agree. Therefore a public key is never used as a
//! shared secret, and unsigned tokens are refused. Tokens must expire. The result is only an e-mail address; rights are
//! those of its user in this cluster.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::signature::{ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;
use serde_json::Value;

use crate::secret_text::Secret;

#[cfg(test)]
mod tests;

/// Upper bound of the length of a token.
pub const JWT_BYTES_MAX: usize = 8 << 10;
/// Upper bound of the length of a key set.
pub const JWKS_BYTES_MAX: usize = 256 << 10;
/// Lower bound of a shared secret: the output size of HS256. Shorter secrets can be guessed.
pub const JWT_SECRET_BYTES_MIN: usize = 32;
/// Upper bound of the keys in one set. A token without a key id is verified against each.
const KEYS_MAX: usize = 32;
/// Accepted difference between the clocks of the issuer and of this node, in seconds.
const LEEWAY: f64 = 60.0;
/// Upper bound of the audiences of one token.
const AUDIENCES_MAX: usize = 100;
/// Accepted lengths of an RSA modulus in bytes: 2048 to 8192 bits.
const MODULUS_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;
/// Length of one coordinate of a point on P-256.
const COORDINATE_BYTES: usize = 32;
/// Tag of an uncompressed point, which both coordinates follow.
const POINT_TAG: u8 = 4;

/// Required issuer and audience of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JwtRules {
    pub issuer: String,
    pub audience: String,
}

/// Reason for the refusal of a token. It is only logged, and not returned to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JwtRefusal {
    /// The text is not a token, or has invalid parts.
    Malformed(String),
    /// The header names an unknown key; the issuer may have new ones.
    UnknownKey,
    /// The algorithm does not match the key.
    Algorithm,
    Signature,
    /// The claims do not match: audience, time or subject.
    Claims(String),
}

impl fmt::Display for JwtRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JwtRefusal::Malformed(why) => write!(f, "it is malformed: {why}"),
            JwtRefusal::UnknownKey => f.write_str("its signing key is not in the issuer's key set"),
            JwtRefusal::Algorithm => f.write_str("its algorithm does not match its key"),
            JwtRefusal::Signature => f.write_str("its signature is wrong"),
            JwtRefusal::Claims(why) => f.write_str(why),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Hs256,
    Rs256,
    Es256,
}

impl Algorithm {
    fn of(name: &str) -> Option<Algorithm> {
        match name {
            "HS256" => Some(Algorithm::Hs256),
            "RS256" => Some(Algorithm::Rs256),
            "ES256" => Some(Algorithm::Es256),
            _ => None,
        }
    }
}

#[derive(Clone)]
enum Checker {
    Secret(hmac::Key),
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// Uncompressed point on P-256.
    Point(Vec<u8>),
}

impl Checker {
    fn algorithm(&self) -> Algorithm {
        match self {
            Checker::Secret(_) => Algorithm::Hs256,
            Checker::Rsa { .. } => Algorithm::Rs256,
            Checker::Point(_) => Algorithm::Es256,
        }
    }

    fn accepts(&self, message: &[u8], signature: &[u8]) -> bool {
        match self {
            Checker::Secret(key) => hmac::verify(key, message, signature).is_ok(),
            Checker::Rsa { modulus, exponent } => {
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature).is_ok()
            }
            Checker::Point(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature).is_ok()
            }
        }
    }
}

#[derive(Clone)]
struct Key {
    /// Id that token headers name. A key without an id applies to all tokens.
    id: Option<String>,
    checker: Checker,
}

/// Keys for the verification of signatures.
#[derive(Clone, Default)]
pub struct JwtKeys(Vec<Key>);

impl fmt::Debug for JwtKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JwtKeys({})", self.0.len())
    }
}

#[derive(Deserialize)]
struct Set {
    keys: Vec<Value>,
}

/// Members of a JWK, all optional except the type.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    alg: Option<String>,
    n: Option<String>,
    e: Option<String>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl JwtKeys {
    /// Returns the key of a shared secret.
    pub fn of_secret(secret: &Secret) -> Result<JwtKeys, String> {
        let bytes = secret.expose().as_bytes();
        if bytes.len() < JWT_SECRET_BYTES_MIN {
            let length = bytes.len();
            return Err(format!(
                "a secret for HS256 must have at least {JWT_SECRET_BYTES_MIN} bytes, but this one has {length}"
            ));
        }
        let checker = Checker::Secret(hmac::Key::new(hmac::HMAC_SHA256, bytes));
        Ok(JwtKeys(vec![Key { id: None, checker }]))
    }

    /// Returns the public keys of a JWK set that verify RS256 or ES256 signatures.
    ///
    /// Keys for other uses are ignored. Invalid signature keys are an error, and so is a set without usable keys.
    pub fn of_jwks(bytes: &[u8]) -> Result<JwtKeys, String> {
        if bytes.len() > JWKS_BYTES_MAX {
            return Err(format!("a key set may have at most {JWKS_BYTES_MAX} bytes, but this one has {}", bytes.len()));
        }
        let set: Set = serde_json::from_slice(bytes).map_err(|error| format!("it is not a JWK set: {error}"))?;
        let mut keys = Vec::new();
        for (place, key) in set.keys.into_iter().enumerate() {
            let wrong = |why: String| format!("keys[{place}]: {why}");
            let jwk: Jwk = serde_json::from_value(key).map_err(|error| wrong(error.to_string()))?;
            let checker = checker_of(&jwk).map_err(wrong)?;
            keys.extend(checker.map(|checker| Key { id: jwk.kid, checker }));
        }
        match keys.len() {
            0 => Err("it has no key for RS256 (RSA) or ES256 (P-256)".into()),
            1..=KEYS_MAX => Ok(JwtKeys(keys)),
            count => Err(format!("it has {count} keys for signatures; the maximum is {KEYS_MAX}")),
        }
    }

    #[must_use]
    pub fn and(mut self, others: &JwtKeys) -> JwtKeys {
        self.0.extend(others.0.iter().cloned());
        self
    }

    /// Returns the e-mail address of the user whom the token identifies. `now` is in seconds since the epoch.
    pub fn verify(&self, token: &str, rules: &JwtRules, now: i64) -> Result<String, JwtRefusal> {
        part::<Claims>(self.signed_claims(token)?, "claims")?.email(rules, now as f64)
    }

    /// Returns the identity claims of an ID token with this nonce.
    ///
    /// The caller must check that the address is verified. If the provider does not report this, the address counts as
    /// unverified.
    pub fn identify(&self, token: &str, rules: &JwtRules, nonce: &str, now: i64) -> Result<IdTokenClaims, JwtRefusal> {
        let text = self.signed_claims(token)?;
        let (claims, login): (Claims, LoginClaims) = (part(text, "claims")?, part(text, "claims")?);
        let refuse = |why: String| Err(JwtRefusal::Claims(why));
        claims.check(rules, now as f64)?;
        if login.nonce.as_deref() != Some(nonce) {
            return refuse("its `nonce` does not match this login".into());
        }
        let is_for_others = matches!(&claims.aud, Some(Audience::Many(many)) if many.len() > 1);
        if login.azp.as_deref().map_or(is_for_others, |azp| azp != rules.audience) {
            return refuse(format!("its `azp` is not `{}`", rules.audience));
        }
        let is_verified = claims.email_verified.as_ref().is_some_and(Verified::is_true);
        match claims.email.filter(|email| !email.is_empty()) {
            None => refuse("it has no `email`, which identifies the user: request the scope `email`".into()),
            Some(email) => Ok(IdTokenClaims { email, is_verified }),
        }
    }

    /// Returns the claims of a token with a valid signature.
    fn signed_claims<'t>(&self, token: &'t str) -> Result<&'t str, JwtRefusal> {
        let malformed = |why: &str| JwtRefusal::Malformed(why.to_owned());
        if token.len() > JWT_BYTES_MAX {
            return Err(JwtRefusal::Malformed(format!("it has more than {JWT_BYTES_MAX} bytes")));
        }
        let (message, signature) = token.rsplit_once('.').ok_or_else(|| malformed("it does not have three parts"))?;
        let (header, claims) = message.split_once('.').ok_or_else(|| malformed("it does not have three parts"))?;
        let header: JwtHeader = part(header, "header")?;
        let signature = decoded(signature).ok_or_else(|| malformed("its signature is not base64url"))?;
        if header.crit.is_some() {
            return Err(malformed("its header requires an extension, and none is supported"));
        }
        let candidates = self.candidates(&header)?;
        if !candidates.iter().any(|key| key.checker.accepts(message.as_bytes(), &signature)) {
            return Err(JwtRefusal::Signature);
        }
        Ok(claims)
    }

    /// Returns the keys that may have signed the token.
    fn candidates(&self, header: &JwtHeader) -> Result<Vec<&Key>, JwtRefusal> {
        let algorithm = Algorithm::of(&header.alg).ok_or(JwtRefusal::Algorithm)?;
        let is_named = |key: &&Key| match (&key.id, &header.kid) {
            (Some(id), Some(named)) => id == named,
            _ => true,
        };
        let named: Vec<&Key> = self.0.iter().filter(is_named).collect();
        let found: Vec<&Key> = named.iter().copied().filter(|key| key.checker.algorithm() == algorithm).collect();
        if !found.is_empty() {
            return Ok(found);
        }
        // A named key for another algorithm is no reason to fetch new keys.
        let has_other = named.iter().any(|key| key.id.is_some() && header.kid.is_some());
        let of_set = algorithm != Algorithm::Hs256;
        Err(if of_set && !has_other { JwtRefusal::UnknownKey } else { JwtRefusal::Algorithm })
    }
}

/// Returns the verifier of a JWK; `None` if the key has another use.
fn checker_of(jwk: &Jwk) -> Result<Option<Checker>, String> {
    if jwk.purpose.as_deref().is_some_and(|purpose| purpose != "sig") {
        return Ok(None);
    }
    let is_for = |algorithm: &str| jwk.alg.as_deref().is_none_or(|alg| alg == algorithm);
    let bytes = |name: &str, member: &Option<String>| {
        let text = member.as_deref().ok_or_else(|| format!("`{name}` is missing"))?;
        decoded(text).ok_or_else(|| format!("`{name}` is not base64url"))
    };
    match jwk.kty.as_str() {
        "RSA" if is_for("RS256") => {
            let (modulus, exponent) = (bytes("n", &jwk.n)?, bytes("e", &jwk.e)?);
            // Some issuers write leading zeros, which the standard forbids.
            let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
            let modulus = modulus[zeros..].to_vec();
            if !MODULUS_BYTES.contains(&modulus.len()) {
                return Err(format!("`n` has {} bits; keys must have 2048 to 8192", modulus.len() * 8));
            }
            if exponent.is_empty() || exponent.len() > 4 {
                return Err("`e` is not an exponent".into());
            }
            Ok(Some(Checker::Rsa { modulus, exponent }))
        }
        "EC" if jwk.crv.as_deref() == Some("P-256") && is_for("ES256") => {
            let (x, y) = (bytes("x", &jwk.x)?, bytes("y", &jwk.y)?);
            if x.len() != COORDINATE_BYTES || y.len() != COORDINATE_BYTES {
                return Err(format!("`x` and `y` must have {COORDINATE_BYTES} bytes each"));
            }
            Ok(Some(Checker::Point([vec![POINT_TAG], x, y].concat())))
        }
        // A published shared secret is not secret, so it is ignored.
        _ => Ok(None),
    }
}

#[derive(Deserialize)]
struct JwtHeader {
    alg: String,
    kid: Option<String>,
    crit: Option<Value>,
}

/// Checked claims of a token.
///
/// A claim of a wrong type makes the whole token malformed, so that it never counts as absent.
#[derive(Deserialize)]
struct Claims {
    iss: Option<String>,
    aud: Option<Audience>,
    exp: Option<f64>,
    nbf: Option<f64>,
    email: Option<String>,
    email_verified: Option<Verified>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

/// Claim that some issuers encode as a string.
#[derive(Deserialize)]
#[serde(untagged)]
enum Verified {
    Truth(bool),
    Text(String),
}

impl Verified {
    fn is_true(&self) -> bool {
        match self {
            Verified::Truth(truth) => *truth,
            Verified::Text(text) => text == "true",
        }
    }
}

/// Additional claims of an ID token.
#[derive(Deserialize)]
struct LoginClaims {
    nonce: Option<String>,
    azp: Option<String>,
}

/// Claims of a person who logged in with a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdTokenClaims {
    pub email: String,
    /// Whether the provider has verified the address.
    pub is_verified: bool,
}

impl Claims {
    /// Checks issuer, audience and time.
    fn check(&self, rules: &JwtRules, now: f64) -> Result<(), JwtRefusal> {
        let refuse = |why: String| Err(JwtRefusal::Claims(why));
        if self.iss.as_deref() != Some(rules.issuer.as_str()) {
            return refuse(format!("its issuer is not `{}`", rules.issuer));
        }
        let is_for = match &self.aud {
            Some(Audience::One(one)) => *one == rules.audience,
            Some(Audience::Many(many)) => many.len() <= AUDIENCES_MAX && many.contains(&rules.audience),
            None => false,
        };
        if !is_for {
            return refuse(format!("its audience is not `{}`", rules.audience));
        }
        match self.exp {
            None => return refuse("it has no `exp`: tokens must expire".into()),
            Some(exp) if exp + LEEWAY <= now => return refuse("it has expired".into()),
            Some(_) => {}
        }
        if self.nbf.is_some_and(|nbf| nbf - LEEWAY > now) {
            return refuse("it is not valid yet".into());
        }
        Ok(())
    }

    fn email(self, rules: &JwtRules, now: f64) -> Result<String, JwtRefusal> {
        self.check(rules, now)?;
        let refuse = |why: String| Err(JwtRefusal::Claims(why));
        let is_verified = self.email_verified.as_ref().is_none_or(Verified::is_true);
        match self.email.filter(|email| !email.is_empty()) {
            None => refuse("it has no `email`, which identifies the user".into()),
            Some(_) if !is_verified => refuse("its address is not verified (`email_verified`)".into()),
            Some(email) => Ok(email),
        }
    }
}

/// Returns whether a credential has the form of a JWT: three non-empty parts in base64url.
pub fn looks_like_jwt(text: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    text.split('.').count() == 3 && text.split('.').all(is_part)
}

pub(crate) fn decoded(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

fn part<T: for<'de> Deserialize<'de>>(text: &str, name: &str) -> Result<T, JwtRefusal> {
    let wrong = |why: &dyn fmt::Display| JwtRefusal::Malformed(format!("its {name}: {why}"));
    let bytes = decoded(text).ok_or_else(|| wrong(&"not base64url"))?;
    serde_json::from_slice(&bytes).map_err(|error| wrong(&error))
}
