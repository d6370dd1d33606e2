//! Stores of immutable objects outside of a node: a directory, or a bucket of an object store.
//!
//! Backups use them now. Segments that are rarely read may be moved to one later.
//!
//! ```text
//! SegmentStore: put whole, read a range, list, delete
//!   DirectoryStore     files below one directory, also on a network file system
//!   BucketStore        S3, Google Cloud Storage or Azure, over the client for outbound calls
//! ```
//! An object appears whole or not at all. `put` returns once the store has made the object durable. An object is never
//! changed, so a repeated `put` of the same name writes the same bytes.

mod attempts;
mod bucket;
mod connector;
mod directory;
mod error;
mod location;
mod name;

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

pub use attempts::OPERATION_ATTEMPTS_MAX;
pub use bucket::BucketStore;
pub use directory::DirectoryStore;
pub use error::StoreError;
pub use location::{BucketLocation, BucketService, LocationError, StoreLocation};
pub use name::{NAME_BYTES_MAX, StoredName};

/// Content of an object that is written, in order. Chunks have at most [`CHUNK_BYTES_MAX`] bytes.
pub type Chunks = BoxStream<'static, Result<Bytes, StoreError>>;

/// Upper bound of one chunk of an object that is written.
pub const CHUNK_BYTES_MAX: usize = 8 << 20;

/// Object of a store, as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoredObject {
    pub name: StoredName,
    pub bytes: u64,
}

/// Store of immutable objects.
pub trait SegmentStore: Send + Sync + Debug + 'static {
    /// Writes an object whole, and returns its length once it is durable.
    fn put<'a>(&'a self, name: &'a StoredName, content: Chunks) -> BoxFuture<'a, Result<u64, StoreError>>;
    /// Reads a range of an object. The range must be within the object.
    fn read<'a>(&'a self, name: &'a StoredName, range: Range<u64>) -> BoxFuture<'a, Result<Bytes, StoreError>>;
    /// Returns the length of an object, or `None` if there is none.
    fn length<'a>(&'a self, name: &'a StoredName) -> BoxFuture<'a, Result<Option<u64>, StoreError>>;
    /// Lists the objects below a directory by name, beginning behind a name.
    fn list<'a>(
        &'a self,
        directory: &'a str,
        behind: Option<&'a StoredName>,
    ) -> BoxFuture<'a, Result<Vec<StoredObject>, StoreError>>;
    /// Deletes an object. Succeeds if there is none.
    fn delete<'a>(&'a self, name: &'a StoredName) -> BoxFuture<'a, Result<(), StoreError>>;
    /// Removes what writers that are gone for a day have left, and returns the number. A bucket does that by a rule of
    /// its own.
    fn remove_leftovers(&self) -> BoxFuture<'_, Result<usize, StoreError>>;
    /// Returns the location for messages, without credentials.
    fn location(&self) -> String;
}

/// Opens the store at a location.
pub fn open(location: &StoreLocation) -> Result<Arc<dyn SegmentStore>, StoreError> {
    match location {
        StoreLocation::Directory(directory) => Ok(Arc::new(DirectoryStore::open(directory.clone())?)),
        StoreLocation::Bucket(bucket) => Ok(Arc::new(BucketStore::open(bucket)?)),
    }
}

/// Returns the chunks of content in memory.
pub fn chunks_of(content: Bytes) -> Chunks {
    let starts = (0..content.len()).step_by(CHUNK_BYTES_MAX);
    let parts: Vec<_> =
        starts.map(|start| Ok(content.slice(start..content.len().min(start + CHUNK_BYTES_MAX)))).collect();
    Box::pin(futures::stream::iter(parts))
}
