//! Errors of the blob store.

use std::io;
use std::path::PathBuf;

use crate::{BLOB_BYTES_MAX, BlobName};

#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    #[error("blob {name} is missing here: fetch it from another replica")]
    Missing { name: BlobName },

    /// Never served. A `put` of the right content heals it.
    #[error("{}: {what}: fetch blob {name} from another replica and put it again", path.display())]
    Damaged { name: BlobName, path: PathBuf, what: String },

    #[error("a blob of {length} bytes is too large: the limit is {}", BLOB_BYTES_MAX)]
    TooLarge { length: u64 },

    #[error("an earlier sync of this blob store failed: restart the node, and check its disk")]
    Stopped,

    #[error(transparent)]
    Io(#[from] io::Error),
}
