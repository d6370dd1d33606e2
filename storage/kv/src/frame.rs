//! Encoding of an entry in sled: a tag before its key, and before its value a version and a checksum over both.
//!
//! ```text
//! key:   1, key                       (tag 0 is the summary's, so that no key of a caller can be taken for it)
//! value: version u8 = 1, CRC32C u32 (little-endian, over version, key length u32, key, value), value
//! ```

pub(crate) const SUMMARY_KEY: &[u8] = b"\0summary";
const ENTRY_TAG: u8 = 1;
const VERSION: u8 = 1;
const HEADER_BYTES: usize = 5;

pub(crate) fn stored_key(key: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(1 + key.len());
    stored.push(ENTRY_TAG);
    stored.extend_from_slice(key);
    stored
}

/// The caller's key, or `None` if this is no entry's.
pub(crate) fn key_of(stored: &[u8]) -> Option<&[u8]> {
    stored.strip_prefix(&[ENTRY_TAG])
}

pub(crate) fn stored_value(key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(HEADER_BYTES + value.len());
    stored.push(VERSION);
    stored.extend_from_slice(&checksum(key, value).to_le_bytes());
    stored.extend_from_slice(value);
    stored
}

/// The value that was stored under `key`, or what is wrong with it.
pub(crate) fn value_of<'a>(key: &[u8], stored: &'a [u8]) -> Result<&'a [u8], &'static str> {
    let (header, value) = stored.split_at_checked(HEADER_BYTES).ok_or("a value is too short")?;
    if header[0] != VERSION {
        return Err("a value has an unknown version");
    }
    if header[1..] != checksum(key, value).to_le_bytes() {
        return Err("a value does not match its checksum");
    }
    Ok(value)
}

fn checksum(key: &[u8], value: &[u8]) -> u32 {
    let mut sum = crc32c::crc32c(&[VERSION]);
    sum = crc32c::crc32c_append(sum, &(key.len() as u32).to_le_bytes());
    sum = crc32c::crc32c_append(sum, key);
    crc32c::crc32c_append(sum, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_reads_back_under_its_key_alone() {
        let stored = stored_value(b"key", b"value");
        assert_eq!(value_of(b"key", &stored), Ok(&b"value"[..]));
        assert!(value_of(b"kez", &stored).is_err());
        assert!(value_of(b"keyv", &stored_value(b"key", b"v")).is_err());
        assert_eq!(key_of(&stored_key(b"key")), Some(&b"key"[..]));
        assert_eq!(key_of(SUMMARY_KEY), None);
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_seen() {
        let stored = stored_value(b"key", b"some value");
        for bit in 0..stored.len() * 8 {
            let mut flipped = stored.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(value_of(b"key", &flipped).is_err(), "bit {bit}");
        }
        for length in 0..stored.len() {
            assert!(value_of(b"key", &stored[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn the_frame_is_frozen() {
        assert_eq!(stored_value(b"k", b"v"), [1, 126, 208, 91, 66, b'v']);
    }
}
