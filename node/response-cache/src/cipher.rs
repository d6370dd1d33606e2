//! Encryption of entries with keys of their organizations.

use std::fmt;
use std::sync::Arc;

use assay_node_auth::TicketCipher;
use assay_node_secrets::{BoundCipher, KeyCatalog, Secrets, VaultKey, random};
use assay_storage_model::OrgId;
use futures::FutureExt;
use futures::future::BoxFuture;

/// Context of the key derivation. A change makes all stored entries unreadable.
const CIPHER_CONTEXT: &str = "assay 2026-11-28 cached responses 1";

/// Cipher for the entries of one organization. It only computes, and blocks its thread meanwhile.
pub trait EntryCipher: Send + Sync {
    /// Encrypts an entry. The result is at most [`SEAL_BYTES_MAX`](crate::SEAL_BYTES_MAX) bytes longer.
    fn seal(&self, bound_to: &[u8], plain: &[u8]) -> Result<Vec<u8>, String>;

    /// Decrypts an entry. Returns `None` if the bytes were changed or are bound to something else.
    fn open(&self, bound_to: &[u8], sealed: &[u8]) -> Option<Vec<u8>>;
}

/// Source of the keys of organizations. Errors say why a key is unavailable.
pub trait EntryKeys: Send + Sync + fmt::Debug + 'static {
    /// Returns the cipher of an organization that already has a key.
    fn existing(&self, organization: OrgId) -> Result<Arc<dyn EntryCipher>, String>;

    /// Returns the cipher of an organization, and creates its key if it is missing.
    fn ensured(&self, organization: OrgId) -> BoxFuture<'static, Result<Arc<dyn EntryCipher>, String>>;
}

/// Data keys of organizations, from which the keys of the cache are derived.
pub struct DataKeys<C>(Arc<Secrets<C>>);

impl<C> fmt::Debug for DataKeys<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DataKeys")
    }
}

impl<C> DataKeys<C> {
    pub fn new(secrets: Secrets<C>) -> DataKeys<C> {
        DataKeys(Arc::new(secrets))
    }
}

impl<C: KeyCatalog + 'static> EntryKeys for DataKeys<C> {
    fn existing(&self, organization: OrgId) -> Result<Arc<dyn EntryCipher>, String> {
        let key = self.0.existing_data_key(organization).map_err(|error| error.to_string())?;
        Ok(DerivedCipher::shared(&key))
    }

    fn ensured(&self, organization: OrgId) -> BoxFuture<'static, Result<Arc<dyn EntryCipher>, String>> {
        let secrets = Arc::clone(&self.0);
        async move {
            let key = secrets.data_key(organization).await.map_err(|error| error.to_string())?;
            Ok(DerivedCipher::shared(&key))
        }
        .boxed()
    }
}

/// Cipher for secrets at rest, with a key that only the cache uses.
struct DerivedCipher(BoundCipher);

impl DerivedCipher {
    fn shared(key: &VaultKey) -> Arc<dyn EntryCipher> {
        Arc::new(DerivedCipher(BoundCipher::new(&key.derive(CIPHER_CONTEXT))))
    }
}

impl EntryCipher for DerivedCipher {
    fn seal(&self, bound_to: &[u8], plain: &[u8]) -> Result<Vec<u8>, String> {
        let nonce = random().map_err(|error| error.to_string())?;
        self.0.seal(bound_to, plain, nonce).ok_or_else(|| format!("{} bytes are too many to encrypt", plain.len()))
    }

    fn open(&self, bound_to: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        self.0.open(bound_to, sealed)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::HashMap;

    use assay_node_secrets::VAULT_KEY_BYTES;
    use parking_lot::Mutex;

    use super::*;

    /// Keys by organization. A missing key is unavailable.
    #[derive(Debug, Default)]
    pub struct FixedKeys(pub Mutex<HashMap<OrgId, u8>>);

    impl FixedKeys {
        pub fn of(keys: &[(OrgId, u8)]) -> Arc<FixedKeys> {
            Arc::new(FixedKeys(Mutex::new(keys.iter().copied().collect())))
        }
    }

    pub fn cipher(byte: u8) -> Arc<dyn EntryCipher> {
        DerivedCipher::shared(&VaultKey::new([byte; VAULT_KEY_BYTES]))
    }

    impl EntryKeys for FixedKeys {
        fn existing(&self, organization: OrgId) -> Result<Arc<dyn EntryCipher>, String> {
            self.0.lock().get(&organization).map(|byte| cipher(*byte)).ok_or_else(|| "there is no key".to_owned())
        }

        fn ensured(&self, organization: OrgId) -> BoxFuture<'static, Result<Arc<dyn EntryCipher>, String>> {
            let existing = self.existing(organization);
            async move { existing }.boxed()
        }
    }

    #[test]
    fn what_was_sealed_opens_with_the_same_key_and_binding_only() {
        let sealed = cipher(1).seal(b"bound", b"a plain text").expect("is short");
        assert!(sealed.len() <= "a plain text".len() + crate::SEAL_BYTES_MAX);
        assert_eq!(cipher(1).open(b"bound", &sealed).as_deref(), Some(&b"a plain text"[..]));
        assert_eq!(cipher(1).open(b"other", &sealed), None);
        assert_eq!(cipher(2).open(b"bound", &sealed), None);
        assert_ne!(cipher(1).seal(b"bound", b"a plain text"), Ok(sealed), "the nonce is drawn anew");
    }
}
