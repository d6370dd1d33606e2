//! Masking of a provider's key in errors of its server, which may quote the request (G-17).

use assay_node_auth::Secret;
use assay_node_dialects::form::ModelError;
use bytes::{Bytes, BytesMut};

/// Lowest length of a key that is masked. Shorter texts may occur in errors by chance.
const KEY_BYTES_MIN: usize = 8;
const MASK: &str = "***";

/// Mask for the key that was sent to a server, if any.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyMask(Option<Secret>);

impl KeyMask {
    pub fn new(key: Option<Secret>) -> KeyMask {
        KeyMask(key.filter(|key| key.expose().len() >= KEY_BYTES_MIN))
    }

    /// Replaces the key in bytes by the mask.
    pub fn bytes(&self, bytes: Bytes) -> Bytes {
        let Some(key) = self.0.as_ref().map(|key| key.expose().as_bytes()) else { return bytes };
        let (mut rest, mut masked) = (&bytes[..], BytesMut::new());
        while let Some(at) = rest.windows(key.len()).position(|part| part == key) {
            masked.extend_from_slice(&rest[..at]);
            masked.extend_from_slice(MASK.as_bytes());
            rest = &rest[at + key.len()..];
        }
        if masked.is_empty() {
            return bytes;
        }
        masked.extend_from_slice(rest);
        masked.freeze()
    }

    /// Masks the key in the message of an error.
    pub fn error(&self, mut error: ModelError) -> ModelError {
        if let Some(key) = &self.0 {
            error.message = error.message.replace(key.expose(), MASK);
        }
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_masked_wherever_it_is() {
        let mask = KeyMask::new(Some(Secret::new("sk-12345678".to_owned())));
        for (text, expected) in [
            ("", ""),
            ("no key: sk-1234", "no key: sk-1234"),
            ("sk-12345678", "***"),
            ("a sk-12345678, sk-12345678x", "a ***, ***x"),
        ] {
            assert_eq!(mask.bytes(Bytes::from(text)), expected, "{text}");
        }
    }

    #[test]
    fn short_and_missing_keys_mask_nothing() {
        for key in [None, Some(Secret::new(String::new())), Some(Secret::new("error".to_owned()))] {
            assert_eq!(KeyMask::new(key).bytes(Bytes::from("an error")), "an error");
        }
    }
}
