//! What a store holds, in four numbers, so that an entry which sled forgot is missed.
//!
//! Kept twice: as the record `SUMMARY_KEY` in sled, changed by the same batch as the entries it counts, and in the file
//! `kv.seal` beside sled's own, replaced after each barrier. Both are 36 bytes: an 8-byte label that says which of the
//! two it is, commit, entries and digest as u64, CRC32C of all before it as u32; little-endian.

use xxhash_rust::xxh3::Xxh3;

/// Which of the two places a summary was written for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    Record,
    Seal,
}

impl Place {
    fn label(self) -> &'static [u8; LABEL_BYTES] {
        match self {
            Place::Record => b"kvmeta-1",
            Place::Seal => b"kvseal-1",
        }
    }
}

const LABEL_BYTES: usize = 8;
pub(crate) const SUMMARY_BYTES: usize = LABEL_BYTES + 3 * 8 + 4;

/// The state after some commit; the default is that of a new store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Commits so far.
    pub commit: u64,
    pub entries: u64,
    /// Sum of the hashes of all entries, so that it does not depend on their order and can be kept up to date.
    pub digest: u64,
}

impl Summary {
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        self.entries = self.entries.wrapping_add(1);
        self.digest = self.digest.wrapping_add(hash(key, value));
    }

    /// Undoes an `add`.
    pub fn take(&mut self, key: &[u8], value: &[u8]) {
        self.entries = self.entries.wrapping_sub(1);
        self.digest = self.digest.wrapping_sub(hash(key, value));
    }

    pub fn encode(&self, place: Place) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(SUMMARY_BYTES);
        bytes.extend_from_slice(place.label());
        for number in [self.commit, self.entries, self.digest] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    }

    /// `None` if any bit is not as it was written, or if it was written for another place.
    pub fn decode(place: Place, bytes: &[u8]) -> Option<Summary> {
        let bytes: &[u8; SUMMARY_BYTES] = bytes.try_into().ok()?;
        let (body, checksum) = bytes.split_at(SUMMARY_BYTES - 4);
        if checksum != crc32c::crc32c(body).to_le_bytes() || !body.starts_with(place.label()) {
            return None;
        }
        let number = |at: usize| Some(u64::from_le_bytes(body.get(at..at + 8)?.try_into().ok()?));
        Some(Summary { commit: number(8)?, entries: number(16)?, digest: number(24)? })
    }
}

fn hash(key: &[u8], value: &[u8]) -> u64 {
    let mut hasher = Xxh3::new();
    hasher.update(&(key.len() as u32).to_le_bytes());
    hasher.update(key);
    hasher.update(value);
    hasher.digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_does_not_depend_on_the_way_to_it() {
        let mut there = Summary::default();
        there.add(b"a", b"1");
        there.add(b"b", b"2");
        there.take(b"a", b"1");
        there.add(b"a", b"3");
        let mut straight = Summary::default();
        straight.add(b"a", b"3");
        straight.add(b"b", b"2");
        assert_eq!(there, straight);
        let mut shifted = Summary::default();
        shifted.add(b"", b"a3");
        shifted.add(b"b2", b"");
        assert_ne!(shifted.digest, straight.digest);
    }

    #[test]
    fn every_flipped_bit_is_seen_and_places_are_not_mixed() {
        let summary = Summary { commit: 1, entries: 2, digest: 3 };
        let bytes = summary.encode(Place::Seal);
        assert_eq!(Summary::decode(Place::Seal, &bytes), Some(summary));
        assert_eq!(Summary::decode(Place::Record, &bytes), None);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Summary::decode(Place::Seal, &flipped), None, "bit {bit}");
        }
    }
}
