//! Blocked Bloom filter over hashes, in which one cache line decides whether a hash may be present.

/// Number of filter bits per hash.
pub(crate) const BITS_PER_HASH: usize = 16;
/// Number of bits set for a hash, all in one line.
const PROBES: u32 = 7;
/// Size of a cache line of 512 bits.
const LINE_WORDS: usize = 8;
pub(crate) const LINE_BYTES: usize = LINE_WORDS * size_of::<u64>();
/// Number of bits of a position within a line.
const PLACE_BITS: u32 = 9;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    words: Vec<u64>,
}

impl Filter {
    /// Creates a filter with space for this many different hashes.
    pub fn with_room_for(hashes: usize) -> Filter {
        let lines = (hashes * BITS_PER_HASH).div_ceil(LINE_BYTES * 8).max(1);
        Filter { words: vec![0; lines * LINE_WORDS] }
    }

    pub fn insert(&mut self, hash: u64) {
        let line = self.line_of(hash);
        for place in places(hash) {
            self.words[line + place / 64] |= 1 << (place % 64);
        }
    }

    pub fn may_contain(&self, hash: u64) -> bool {
        let line = self.line_of(hash);
        places(hash).all(|place| self.words[line + place / 64] & 1 << (place % 64) != 0)
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Decodes a filter. Returns `None` if the bytes cannot be a filter.
    pub fn from_bytes(bytes: &[u8]) -> Option<Filter> {
        let (words, rest) = bytes.as_chunks::<8>();
        let whole = rest.is_empty() && !words.is_empty() && words.len().is_multiple_of(LINE_WORDS);
        whole.then(|| Filter { words: words.iter().map(|word| u64::from_le_bytes(*word)).collect() })
    }

    pub fn memory_bytes(&self) -> usize {
        self.words.len() * size_of::<u64>()
    }

    fn line_of(&self, hash: u64) -> usize {
        let lines = (self.words.len() / LINE_WORDS) as u64;
        // The high half selects the line without a division.
        (((hash >> 32) * lines) >> 32) as usize * LINE_WORDS
    }
}

/// Returns the bit positions of a hash, mixed again because the line already used the high half.
fn places(hash: u64) -> impl Iterator<Item = usize> {
    let mixed = (hash ^ hash >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ mixed >> 32).wrapping_mul(0x94D0_49BB_1331_11EB);
    (0..PROBES).map(move |probe| (mixed >> (64 - PLACE_BITS * (probe + 1)) & ((1 << PLACE_BITS) - 1)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use xxhash_rust::xxh3::xxh3_64;

    #[test]
    fn what_went_in_is_found_and_under_one_in_two_hundred_of_the_rest() {
        let hash = |number: u32| xxh3_64(&number.to_le_bytes());
        let mut filter = Filter::with_room_for(20_000);
        (0..20_000).for_each(|number| filter.insert(hash(number)));
        assert!((0..20_000).all(|number| filter.may_contain(hash(number))));
        let wrong = (20_000..220_000).filter(|&number| filter.may_contain(hash(number))).count();
        assert!(wrong < 200_000 / 200, "{wrong} of 200,000");
        assert!(filter.memory_bytes() <= 20_000 * 17 / 8);
    }

    #[test]
    fn a_filter_reads_back_and_a_cut_one_does_not() {
        let mut filter = Filter::with_room_for(100);
        filter.insert(7);
        let bytes = filter.to_bytes();
        assert_eq!(Filter::from_bytes(&bytes), Some(filter));
        assert_eq!(Filter::from_bytes(&bytes[8..]), None);
        assert_eq!(Filter::from_bytes(&[]), None);
    }

    #[test]
    fn an_empty_filter_contains_nothing() {
        assert!(!Filter::with_room_for(0).may_contain(1));
    }
}
