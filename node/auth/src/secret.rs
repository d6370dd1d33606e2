//! API keys and service tokens: their creation, stored form and preview.
//!
//! Both have 256 random bits. Only the fingerprint is stored: a hash under the pepper, which is a secret key of the
//! cluster. A stolen catalog without the pepper neither reveals keys nor lets an attacker test guesses. Keys are found
//! by their fingerprint, so the timing of a lookup reveals nothing without the pepper.

use std::fmt;
use std::hint::black_box;

use crate::secret_text::{Secret, hex_digit};

/// Random bytes of a new key.
pub const API_KEY_BYTES: usize = 32;
pub const PEPPER_BYTES: usize = 32;

const API_KEY_PREFIX: &str = "sk-";
/// Prefix of service tokens, by which clients distinguish them from API keys.
const SERVICE_TOKEN_PREFIX: &str = "bt-st-";
/// Prefix of administrator tokens, which distinguishes them from API keys.
const ADMIN_TOKEN_PREFIX: &str = "adm-";
const CONSOLE_SESSION_PREFIX: &str = "cs-";
/// Lower bound of the length of an administrator token. Shorter tokens can be guessed.
pub const ADMIN_TOKEN_LETTERS_MIN: usize = 32;
/// Upper bound of the length of an administrator token. A longer text is likely another file.
const ADMIN_TOKEN_LETTERS_MAX: usize = 512;
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Number of base-62 digits that hold 256 bits. Every key has exactly as many.
const API_KEY_DIGITS: usize = 43;
/// Prefix of hashed API keys, so that the pepper may have other uses. Frozen, because every fingerprint depends on it.
const FINGERPRINT_CONTEXT: &[u8] = b"assay api key 1\0";
/// Prefix of hashed service tokens, so that neither kind is ever found as the other. Frozen.
const SERVICE_TOKEN_CONTEXT: &[u8] = b"assay service token 1\0";
/// Prefix of hashed values of console sessions. Frozen.
const CONSOLE_SESSION_CONTEXT: &[u8] = b"assay console session 1\0";
/// Number of final characters in a preview. Secrets below the minimum length show none.
const PREVIEW_LETTERS: usize = 4;
const PREVIEW_LENGTH_MIN: usize = 16;

/// Returns an API key: `sk-` and 43 letters and digits.
pub fn new_api_key(random: &[u8; API_KEY_BYTES]) -> Secret {
    prefixed(API_KEY_PREFIX, random)
}

/// Returns a service token: `bt-st-` and 43 letters and digits.
pub fn new_service_token(random: &[u8; API_KEY_BYTES]) -> Secret {
    prefixed(SERVICE_TOKEN_PREFIX, random)
}

/// Returns the value of a console session: `cs-` and 43 letters and digits.
pub fn new_console_session(random: &[u8; API_KEY_BYTES]) -> Secret {
    prefixed(CONSOLE_SESSION_PREFIX, random)
}

/// Returns an administrator token: `adm-` and 43 letters and digits.
pub fn new_admin_token(random: &[u8; API_KEY_BYTES]) -> Secret {
    prefixed(ADMIN_TOKEN_PREFIX, random)
}

fn prefixed(prefix: &str, random: &[u8; API_KEY_BYTES]) -> Secret {
    let mut number = *random;
    let mut digits = [b'0'; API_KEY_DIGITS];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[usize::from(divide_by_62(&mut number))];
    }
    number.fill(0);
    black_box(&number);
    let mut text = String::with_capacity(prefix.len() + API_KEY_DIGITS);
    text.push_str(prefix);
    text.extend(digits.iter().copied().map(char::from));
    Secret::new(text)
}

/// Divides a big-endian number in place and returns the remainder.
fn divide_by_62(number: &mut [u8; API_KEY_BYTES]) -> u8 {
    let mut rest = 0_u16;
    for byte in number {
        let dividend = (rest << 8) | u16::from(*byte);
        *byte = u8::try_from(dividend / 62).expect("the rest is below 62, so the quotient is below 256");
        rest = dividend % 62;
    }
    u8::try_from(rest).expect("below 62")
}

/// Returns the preview of a key or a token in lists.
pub fn preview(secret: &str) -> String {
    let prefixes = [API_KEY_PREFIX, SERVICE_TOKEN_PREFIX];
    let prefix = prefixes.into_iter().find(|prefix| secret.starts_with(prefix)).unwrap_or_default();
    let letters = secret.chars().count();
    let hidden = if letters < PREVIEW_LENGTH_MIN { letters } else { letters - PREVIEW_LETTERS };
    format!("{prefix}***{}", secret.chars().skip(hidden).collect::<String>())
}

/// Administrator token of a node, stored as a hash. Comparisons take constant time.
#[derive(Clone)]
pub struct AdminToken(blake3::Hash);

impl AdminToken {
    /// Hashes a token, or explains why the text is invalid.
    pub fn new(token: &Secret) -> Result<AdminToken, String> {
        let text = token.expose();
        let letters = text.len();
        if !(ADMIN_TOKEN_LETTERS_MIN..=ADMIN_TOKEN_LETTERS_MAX).contains(&letters) {
            return Err(format!(
                "a token for administrators must have {ADMIN_TOKEN_LETTERS_MIN} to {ADMIN_TOKEN_LETTERS_MAX} \
                 characters, but this one has {letters}"
            ));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("a token for administrators must consist of ASCII letters, digits and punctuation, without \
                        spaces"
                .into());
        }
        for (prefix, what) in [(API_KEY_PREFIX, "API keys"), (SERVICE_TOKEN_PREFIX, "service tokens")] {
            if text.starts_with(prefix) {
                let said = format!("it begins with `{prefix}` like {what}; use a separate token for administrators");
                return Err(said);
            }
        }
        Ok(AdminToken(blake3::hash(text.as_bytes())))
    }

    pub fn is(&self, shown: &str) -> bool {
        self.0 == blake3::hash(shown.as_bytes())
    }
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminToken(..)")
    }
}

/// Secret key of the cluster for fingerprints, which is created once and stored in the catalog.
#[derive(Clone)]
pub struct Pepper([u8; PEPPER_BYTES]);

impl Pepper {
    pub fn new(bytes: [u8; PEPPER_BYTES]) -> Pepper {
        Pepper(bytes)
    }

    /// Returns the form that is stored in the catalog.
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub fn from_hex(text: &str) -> Option<Pepper> {
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != PEPPER_BYTES || !rest.is_empty() {
            return None;
        }
        let mut bytes = [0; PEPPER_BYTES];
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = hex_digit(*high)? << 4 | hex_digit(*low)?;
        }
        Some(Pepper(bytes))
    }

    /// Derives a key for one purpose, which reveals nothing of the pepper or of others.
    pub fn derive(&self, context: &str) -> [u8; 32] {
        blake3::derive_key(context, &self.0)
    }

    /// Returns the fingerprint of an API key: 64 hexadecimal digits.
    pub fn fingerprint(&self, secret: &str) -> String {
        self.hashed(FINGERPRINT_CONTEXT, secret)
    }

    /// Returns the fingerprint of a service token.
    pub fn fingerprint_of_token(&self, secret: &str) -> String {
        self.hashed(SERVICE_TOKEN_CONTEXT, secret)
    }

    /// Returns the fingerprint of the value of a console session.
    pub fn fingerprint_of_console_session(&self, value: &str) -> String {
        self.hashed(CONSOLE_SESSION_CONTEXT, value)
    }

    fn hashed(&self, context: &[u8], secret: &str) -> String {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(context);
        hasher.update(secret.as_bytes());
        hasher.finalize().to_hex().to_string()
    }
}

impl fmt::Debug for Pepper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pepper(..)")
    }
}

impl Drop for Pepper {
    fn drop(&mut self) {
        self.0.fill(0);
        black_box(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_is_its_random_bytes_in_base_62() {
        assert_eq!(new_api_key(&[0; 32]).expose(), format!("sk-{}", "0".repeat(43)));
        let mut one = [0; 32];
        one[31] = 63;
        assert_eq!(new_api_key(&one).expose(), format!("sk-{}11", "0".repeat(41)));
    }

    proptest! {
        #[test]
        fn every_key_has_the_same_form_and_other_bytes_make_another_key(a: [u8; 32], b: [u8; 32]) {
            let (key, other) = (new_api_key(&a), new_api_key(&b));
            let digits = key.expose().strip_prefix("sk-").expect("the prefix");
            prop_assert!(digits.len() == 43 && digits.bytes().all(|byte| byte.is_ascii_alphanumeric()));
            prop_assert_eq!(back(digits), a, "nothing of the randomness is lost");
            prop_assert_eq!(key == other, a == b);
        }

        #[test]
        fn a_pepper_reads_back_from_its_text(bytes: [u8; 32]) {
            let text = Pepper::new(bytes).to_hex();
            prop_assert_eq!(Pepper::from_hex(&text).expect("reads").0, bytes);
            prop_assert!(Pepper::from_hex(&text[1..]).is_none());
            prop_assert!(Pepper::from_hex(&text.replace(&text[..1], "g")).is_none());
        }

        #[test]
        fn a_preview_shows_at_most_four_letters(secret in "(sk-)?[a-zA-Z0-9é]{0,60}") {
            let shown = preview(&secret);
            let rest = shown.trim_start_matches("sk-").trim_start_matches("***");
            prop_assert!(rest.chars().count() <= 4 && secret.ends_with(rest), "{}", shown);
        }
    }

    fn back(digits: &str) -> [u8; 32] {
        let mut number = [0_u8; 32];
        for digit in digits.bytes() {
            let mut carry = BASE62.iter().position(|known| *known == digit).expect("a digit of base 62");
            for byte in number.iter_mut().rev() {
                carry += usize::from(*byte) * 62;
                *byte = (carry & 0xff) as u8;
                carry >>= 8;
            }
            assert_eq!(carry, 0, "it fits");
        }
        number
    }

    #[test]
    fn a_token_of_administrators_is_long_and_no_api_key() {
        let made = new_admin_token(&[7; 32]);
        let token = AdminToken::new(&made).expect("what is made is one");
        assert!(token.is(made.expose()) && !token.is("") && !token.is(&made.expose()[1..]));
        assert_eq!(format!("{token:?}"), "AdminToken(..)");
        let refused = |text: &str| AdminToken::new(&Secret::new(text.into())).expect_err(text);
        assert!(refused("short").contains("32 to 512 characters, but this one has 5"));
        assert!(refused(&"x".repeat(513)).contains("this one has 513"));
        assert!(refused(&format!("{} {}", "x".repeat(20), "y".repeat(20))).contains("without spaces"));
        assert!(refused(new_api_key(&[7; 32]).expose()).contains("like API keys"));
        assert!(refused(new_service_token(&[7; 32]).expose()).contains("like service tokens"));
    }

    #[test]
    fn a_preview_names_the_end() {
        assert_eq!(preview("sk-abcdefghijklmnopwxyz"), "sk-***wxyz");
        assert_eq!(preview("a-key-of-ones-own"), "***-own");
        assert_eq!(preview(new_service_token(&[0; 32]).expose()), "bt-st-***0000");
        assert_eq!(preview("sk-short"), "sk-***");
        assert_eq!(preview(""), "***");
    }

    #[test]
    fn nothing_prints_a_secret() {
        assert_eq!(format!("{:?}", Secret::new("sk-abc".into())), "Secret(..)");
        assert_eq!(format!("{:?}", Pepper::new([7; 32])), "Pepper(..)");
    }

    #[test]
    fn fingerprints_are_frozen_and_depend_on_the_pepper() {
        let (one, two) = (Pepper::new([1; 32]), Pepper::new([2; 32]));
        assert_eq!(one.fingerprint("sk-abc"), "aa12c717057b3b5cd056b1a17067eb14f85c574f90bcd7412e8668814a51a5ca");
        assert_ne!(one.fingerprint("sk-abc"), two.fingerprint("sk-abc"));
        assert_ne!(one.fingerprint("sk-abc"), one.fingerprint("sk-abd"));
        assert_eq!(
            one.fingerprint_of_token("sk-abc"),
            "506b878dc2ea0bfaa3c3c981ff41842eb0220855fb7112fadd4d8bffab4ede7a"
        );
    }
}
