//! Code bundles of functions: their checks, their unpacking, and a cache of unpacked bundles on the disk.
//!
//! ```text
//! stored bytes ── check_bundle ──▶ UnpackedSize
//!        └─────── BundleCache::insert ──▶ CachedBundle, which dereferences to a read-only directory
//! ```
//!
//! | module | subject |
//! |---|---|
//! | `kind` | kinds of bundles, and the keys of the cache |
//! | `limits` | limits of the content of a bundle, and of the cache |
//! | `unpack` | reading of a text or a zip within the limits, into a sink; independent of the disk |
//! | `directory` | the sink that writes a directory, and the removal and measurement of directories |
//! | `manifest` | the file beside an unpacked bundle that tells its kind and size |
//! | `index` | entries of the cache in order of use, and the choice of those to evict; pure |
//! | `turns` | the bound of bundles that are unpacked at a time |
//! | `cache` | the cache itself |
//!
//! Functions block the thread. The crate uses no network and no store: callers pass the bytes.

mod cache;
mod directory;
mod error;
mod index;
mod kind;
mod limits;
mod manifest;
mod turns;
mod unpack;

#[cfg(test)]
mod cache_tests;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod unpack_tests;

pub use cache::{BundleCache, BundleCacheUsage, CachedBundle};
pub use error::{BundleError, BundleRefusal, EntryProblem};
pub use index::CacheFull;
pub use kind::{BundleHash, BundleKey, BundleKind, InvalidBundleHash, InvalidBundleKind};
pub use limits::{
    BundleCacheLimits, BundleLimits, CACHED_BUNDLES_MAX, CACHED_BYTES_MAX, DEPTH_MAX, DIRECTORIES_MAX, FILES_MAX,
    NAME_BYTES_MAX, PATH_BYTES_MAX, STORED_BYTES_MAX, UNPACKED_BYTES_MAX,
};
pub use turns::UNPACKING_MAX;
pub use unpack::{NODE_BUNDLE_FILE, UnpackedSize, check_bundle};
