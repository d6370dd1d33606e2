//! Summary of a store in four numbers, which reveals an entry that sled forgot.
//!
//! Stored twice: as the record `SUMMARY_KEY` in sled, changed by the same batch as the entries it counts, and in the
//! file `kv.seal`, replaced after each barrier. Both are 36 bytes, little-endian: an 8-byte label for the kind, commit,
//! entries and digest as u64, and the CRC32C of all preceding bytes as u32.

use xxhash_rust::xxh3::Xxh3;

/// Kind of a stored summary: the record in sled or the seal.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SummaryKind {
    Record,
    Seal,
}

impl SummaryKind {
    fn label(self) -> &'static [u8; LABEL_BYTES] {
        match self {
            SummaryKind::Record => b"kvmeta-1",
            SummaryKind::Seal => b"kvseal-1",
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
    /// Sum of the hashes of all entries: independent of their order and easy to update.
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

    pub fn encode(&self, place: SummaryKind) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(SUMMARY_BYTES);
        bytes.extend_from_slice(place.label());
        for number in [self.commit, self.entries, self.digest] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    }

    /// `None` if any bit is not as it was written, or if it was written for another place.
    pub fn decode(place: SummaryKind, bytes: &[u8]) -> Option<Summary> {
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
        let bytes = summary.encode(SummaryKind::Seal);
        assert_eq!(Summary::decode(SummaryKind::Seal, &bytes), Some(summary));
        assert_eq!(Summary::decode(SummaryKind::Record, &bytes), None);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Summary::decode(SummaryKind::Seal, &flipped), None, "bit {bit}");
        }
    }
}
