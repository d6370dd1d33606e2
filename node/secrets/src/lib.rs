//! Storage of secrets that are returned later: their encryption, and the keys for it.
//!
//! ```text
//! master key     an operator's, outside the catalog      wraps the others        key_files, master_keys
//! data key       one an organization, kept wrapped       encrypts secrets        data_keys
//! signing key    the cluster's, kept wrapped             signs addresses         signing_key
//! ```
//! `vault` is the cryptography, pure. `key_rotation` replaces keys. What a record keeps encrypted is the business of the crate
//! of records, which this one must never name: it asks for the catalog as [`KeyCatalog`].

mod catalog;
mod data_keys;
mod key_files;
mod key_rotation;
mod master_keys;
mod signing_key;
mod vault;

use std::fmt;
use std::sync::{Arc, OnceLock};

use assay_cluster::Cluster;

use data_keys::UnwrappedKeys;

pub use assay_node_auth::Secret;
pub use catalog::{Author, KeyCatalog, PutOutcome, SecretsError, random};
pub use key_files::{
    KeySources, MASTER_KEY_FILE, MASTER_KEY_VARIABLE, NodeKeys, SecretsConfig, ensure_key_file, keep_secret_file,
    read_secret_file,
};
pub use master_keys::{MasterKey, without_key};
pub use signing_key::SigningSecrets;
pub use vault::{
    Belonging, BoundCipher, KEY_ID_BYTES, KeyId, Keyring, NONCE_BYTES, PLAIN_BYTES_MAX, Sealed, VAULT_KEY_BYTES,
    VaultError, VaultKey,
};

/// Upper bound of the attempts of one change. Each loses only to another writer that won.
const ATTEMPTS_MAX: usize = 8;

/// The keys of a cluster, as one node has them; clones share everything.
#[derive(Clone)]
pub struct Secrets<C> {
    catalog: C,
    cluster: Arc<Cluster>,
    /// The master keys, once the node has them.
    ring: Arc<OnceLock<Keyring>>,
    unwrapped: Arc<UnwrappedKeys>,
}

impl<C> fmt::Debug for Secrets<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

impl<C: KeyCatalog> Secrets<C> {
    pub fn new(catalog: C, cluster: Arc<Cluster>) -> Secrets<C> {
        Secrets { catalog, cluster, ring: Arc::default(), unwrapped: Arc::default() }
    }

    /// Sets the master keys of this node. Only the first call has an effect.
    pub fn give_keys(&self, ring: Keyring) {
        // Who gives them twice gives the same: a node reads them once, or makes one where it has none.
        drop(self.ring.set(ring));
    }

    /// Returns the master keys of this node; none where it has none yet.
    pub fn ring(&self) -> Option<&Keyring> {
        self.ring.get()
    }
}
