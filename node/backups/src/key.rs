//! Key of a backup, which encrypts objects and names their content.
//!
//! The key is not in the backup. Whoever has a copy of the store without the key learns the number and the sizes of its
//! objects and when they were written, and nothing else.

use std::fmt;
use std::path::Path;

use assay_node_secrets::{BoundCipher, KeyId, VAULT_KEY_BYTES, VaultKey, ensure_key_file, read_secret_file};

use crate::error::BackupError;

/// Frozen: objects of earlier backups are read with keys that were derived by these texts.
const CIPHER_CONTEXT: &str = "assay 2026-11-30 objects of a backup 1";
const NAMING_CONTEXT: &str = "assay 2026-11-30 names of content of a backup 1";

/// Hash of the content of an object, under a key. Equal contents have equal names in one store, and nobody without the
/// key can tell from a name whether the store has a certain content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentHash(pub [u8; 32]);

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl ContentHash {
    /// Parses 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<ContentHash> {
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let mut bytes = [0; 32];
        if pairs.len() != bytes.len() || !rest.is_empty() {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(pairs) {
            let pair =
                std::str::from_utf8(pair).ok().filter(|pair| pair.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
            *byte = u8::from_str_radix(pair, 16).ok()?;
        }
        Some(ContentHash(bytes))
    }
}

/// Key of a backup.
#[derive(Clone)]
pub struct BackupKey {
    key: VaultKey,
    cipher: BoundCipher,
    naming: [u8; VAULT_KEY_BYTES],
}

impl BackupKey {
    pub fn new(key: VaultKey) -> BackupKey {
        let cipher = BoundCipher::new(&key.derive(CIPHER_CONTEXT));
        let naming = key.derive(NAMING_CONTEXT);
        BackupKey { key, cipher, naming }
    }

    /// Reads the key from a file, or creates the file with a new key if there is none.
    ///
    /// Only the first backup may create a key. Anything else needs the key that exists.
    pub fn from_file(file: &Path, may_create: bool) -> Result<BackupKey, BackupError> {
        let failed = |why: String| BackupError::Key { file: file.to_owned(), why };
        let is_there = file.try_exists().map_err(|why| failed(why.to_string()))?;
        if !is_there && !may_create {
            return Err(failed("there is no such file; restore it from where you keep the key of the backup".into()));
        }
        ensure_key_file(file).map_err(|why| failed(format!("{why:#}")))?;
        let text = read_secret_file(file, WHAT).map_err(|why| failed(format!("{why:#}")))?;
        VaultKey::parse(&text).map(BackupKey::new).map_err(failed)
    }

    /// Returns the id of the key, which reveals nothing of the key.
    pub fn id(&self) -> KeyId {
        self.key.id()
    }

    pub(crate) fn cipher(&self) -> &BoundCipher {
        &self.cipher
    }

    /// Returns a hasher of content, for [`ContentHasher::finish`].
    pub fn hasher(&self) -> ContentHasher {
        ContentHasher(blake3::Hasher::new_keyed(&self.naming))
    }
}

const WHAT: &str = "the key of backups";

impl fmt::Debug for BackupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BackupKey({})", self.id())
    }
}

/// Hasher of the content of one object.
#[derive(Clone, Debug)]
pub struct ContentHasher(blake3::Hasher);

impl ContentHasher {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(&self) -> ContentHash {
        ContentHash(*self.0.finalize().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_content_depend_on_the_key() {
        let name = |key: u8| {
            let mut hasher = BackupKey::new(VaultKey::new([key; VAULT_KEY_BYTES])).hasher();
            hasher.update(b"content");
            hasher.finish()
        };
        assert_eq!(name(1), name(1));
        assert_ne!(name(1), name(2));
        assert_eq!(ContentHash::parse(&name(1).to_string()), Some(name(1)));
        assert_eq!(ContentHash::parse("ab"), None);
        assert_eq!(ContentHash::parse(&"+1".repeat(32)), None);
    }
}
