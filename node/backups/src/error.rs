//! Errors of backups.

use std::path::PathBuf;

use assay_node_secrets::KeyId;
use assay_node_segment_store::{StoreError, StoredName};

/// Error of a step of a backup or a restore.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the key file {}: {why}", file.display())]
    Key { file: PathBuf, why: String },
    #[error("the backup was encrypted with the key {needed}, and the given key is {given}")]
    OtherKey { needed: KeyId, given: KeyId },
    #[error("object {name} of the backup is damaged: {what}")]
    Damaged { name: StoredName, what: String },
    #[error("object {0} of the backup is missing")]
    MissingObject(StoredName),
    #[error("the store has no backup: it lacks the object `{0}`")]
    NoBackup(StoredName),
    #[error(
        "the store has the backup of another cluster ({found}); this is {own}. Give each cluster a location of its own"
    )]
    OtherCluster { found: String, own: String },
    #[error("the backup was written by a newer version (format {0}): upgrade this program")]
    Newer(u32),
    /// The wanted state is not in the backup.
    #[error("{0}")]
    NotThere(String),
    #[error("the node: {0}")]
    Node(String),
    #[error("{0}")]
    Internal(String),
}
