//! Limits of the content of a bundle, and of the cache.

/// Upper bound of the stored bytes of a bundle.
pub const STORED_BYTES_MAX: u64 = 64 << 20;
/// Upper bound of the bytes of all files of a bundle.
pub const UNPACKED_BYTES_MAX: u64 = 512 << 20;
/// Upper bound of the files of a bundle.
pub const FILES_MAX: u64 = 50_000;
/// Upper bound of the directories of a bundle, because short paths may create many of them.
pub const DIRECTORIES_MAX: u64 = 10_000;
/// Upper bound of one name in a path, which is the limit of Linux.
pub const NAME_BYTES_MAX: usize = 255;
/// Upper bound of a path in a bundle. Linux allows 4,096 bytes including the path of the cache.
pub const PATH_BYTES_MAX: usize = 2_048;
/// Upper bound of the names in a path.
pub const DEPTH_MAX: usize = 64;
/// Upper bound of the disk space of all cached bundles.
pub const CACHED_BYTES_MAX: u64 = 2 << 30;
/// Upper bound of the number of cached bundles.
pub const CACHED_BUNDLES_MAX: usize = 1_000;

/// Limits that hold while a bundle is read, whatever its headers claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundleLimits {
    pub stored_bytes: u64,
    pub unpacked_bytes: u64,
    pub files: u64,
    pub directories: u64,
}

impl Default for BundleLimits {
    fn default() -> BundleLimits {
        BundleLimits {
            stored_bytes: STORED_BYTES_MAX,
            unpacked_bytes: UNPACKED_BYTES_MAX,
            files: FILES_MAX,
            directories: DIRECTORIES_MAX,
        }
    }
}

/// Limits of a cache, and of each bundle in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundleCacheLimits {
    /// Disk space of all unpacked bundles, in whole blocks.
    pub bytes: u64,
    pub bundles: usize,
    pub content: BundleLimits,
}

impl Default for BundleCacheLimits {
    fn default() -> BundleCacheLimits {
        BundleCacheLimits { bytes: CACHED_BYTES_MAX, bundles: CACHED_BUNDLES_MAX, content: BundleLimits::default() }
    }
}
