//! Storage of keys in the catalog, as a trait, so that the crate `records` can depend on this one.

use std::fmt;
use std::sync::Arc;

use assay_storage_model::catalog::{PutRecord, Record, RecordKind, UniqueKey};

/// Author of a change of keys. The audit log has changes by operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    Operator,
    System,
}

/// Outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    Written,
    /// Another writer was faster, and nothing was written.
    Lost,
}

/// Operations that keys need of the catalog.
pub trait KeyCatalog: Send + Sync {
    type Error: From<SecretsError> + fmt::Display + Send;

    /// Returns the record that has this key, as the local copy has it.
    fn find(&self, key: &UniqueKey) -> Option<Arc<Record>>;

    /// Returns all records of a kind, as the local copy has them.
    fn all(&self, kind: RecordKind) -> Vec<Arc<Record>>;

    /// Returns the secret for one purpose that versions up to 0.4.0 derived: every copy of the catalog can make it.
    fn legacy_secret(&self, context: &str) -> Result<[u8; 32], Self::Error>;

    /// Returns microseconds since the epoch, UTC.
    fn now_micros(&self) -> i64;

    /// Returns when everything acknowledged before the call can be read.
    fn fence(&self) -> impl Future<Output = Result<(), Self::Error>> + Send;

    fn put(&self, author: Author, put: PutRecord) -> impl Future<Output = Result<PutOutcome, Self::Error>> + Send;
}

/// Error of using or changing a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretsError {
    /// This node lacks a key, or the cluster is unavailable.
    Unavailable(String),
    /// Nothing was written; try again in a moment.
    Busy(String),
    /// Stored bytes are invalid, or the system returns no random bytes.
    Internal(String),
}

impl fmt::Display for SecretsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretsError::Unavailable(why) | SecretsError::Busy(why) | SecretsError::Internal(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for SecretsError {}

/// Returns bytes of the system's source for secrets.
pub fn random<const BYTES: usize>() -> Result<[u8; BYTES], SecretsError> {
    let mut bytes = [0; BYTES];
    let filled = getrandom::fill(&mut bytes);
    filled.map_err(|error| SecretsError::Internal(format!("the system returned no random bytes: {error}")))?;
    Ok(bytes)
}
