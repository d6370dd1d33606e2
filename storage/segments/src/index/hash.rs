//! Hashes stored on disk: xxh3 with seeds.
//!
//! A text has different hashes in each object, as an id and as a trace.

use assay_storage_model::ObjectKey;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Seed that separates traces from ids in their common filter.
const TRACE: u64 = 0x7472_6163_6521_0001;

/// Hasher of the texts of one object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hasher {
    seed: u64,
}

impl Hasher {
    pub fn new(object: ObjectKey) -> Hasher {
        Hasher { seed: xxh3_64(&object.to_bytes()) }
    }

    pub fn id(self, id: &str) -> u64 {
        xxh3_64_with_seed(id.as_bytes(), self.seed)
    }

    pub fn trace(self, root_span_id: &str) -> u64 {
        xxh3_64_with_seed(root_span_id.as_bytes(), self.seed ^ TRACE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_on_disk_and_never_change() {
        let hasher = Hasher::new(assay_storage_model::segment::SegmentMeta::NO_OBJECT);
        let found = [hasher.id("").to_string(), hasher.id("a").to_string(), hasher.trace("a").to_string()];
        assert_eq!(found, ["1877134164864213017", "10965864630192585834", "8795343350764878064"]);
    }
}
