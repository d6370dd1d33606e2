//! Encoding of the messages between nodes.
//!
//! A node refuses bytes that it cannot decode, such as those of another version. The asking node then uses its share.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::bucket::{Ask, Grant};
use super::key::BucketKey;

const VERSION: u8 = 1;
const ASK_BYTES: usize = 1 + 8 + 16 + 16 + 4 + 4 + 4;
const GRANT_BYTES: usize = 1 + 4 + 8;

/// Version of a request that reads a bucket. Nodes that do not know it refuse the request.
const READING_VERSION: u8 = 2;
const READING_BYTES: usize = 1 + 8 + 16 + 16;
const LEFT_BYTES: usize = 1 + 8;

/// Encodes a request that reads a bucket.
pub fn read(key: &BucketKey) -> Bytes {
    let mut bytes = BytesMut::with_capacity(READING_BYTES);
    bytes.put_u8(READING_VERSION);
    bytes.put_u64_le(key.rule);
    bytes.put_u128_le(key.first);
    bytes.put_u128_le(key.second);
    bytes.freeze()
}

pub fn read_reading(mut bytes: &[u8]) -> Option<BucketKey> {
    if bytes.len() != READING_BYTES || bytes.get_u8() != READING_VERSION {
        return None;
    }
    Some(BucketKey { rule: bytes.get_u64_le(), first: bytes.get_u128_le(), second: bytes.get_u128_le() })
}

/// Encodes the number of tokens left in a bucket.
pub fn left(tokens: f64) -> Bytes {
    let mut bytes = BytesMut::with_capacity(LEFT_BYTES);
    bytes.put_u8(READING_VERSION);
    bytes.put_f64_le(tokens);
    bytes.freeze()
}

pub fn read_left(mut bytes: &[u8]) -> Option<f64> {
    (bytes.len() == LEFT_BYTES && bytes.get_u8() == READING_VERSION).then(|| bytes.get_f64_le())
}

pub fn ask(key: &BucketKey, ask: &Ask) -> Bytes {
    let mut bytes = BytesMut::with_capacity(ASK_BYTES);
    bytes.put_u8(VERSION);
    bytes.put_u64_le(key.rule);
    bytes.put_u128_le(key.first);
    bytes.put_u128_le(key.second);
    bytes.put_u32_le(ask.want);
    bytes.put_u32_le(ask.unused);
    bytes.put_u32_le(ask.debt);
    bytes.freeze()
}

pub fn read_ask(mut bytes: &[u8]) -> Option<(BucketKey, Ask)> {
    if bytes.len() != ASK_BYTES || bytes.get_u8() != VERSION {
        return None;
    }
    let key = BucketKey { rule: bytes.get_u64_le(), first: bytes.get_u128_le(), second: bytes.get_u128_le() };
    Some((key, Ask { want: bytes.get_u32_le(), unused: bytes.get_u32_le(), debt: bytes.get_u32_le() }))
}

pub fn grant(grant: &Grant) -> Bytes {
    let mut bytes = BytesMut::with_capacity(GRANT_BYTES);
    bytes.put_u8(VERSION);
    bytes.put_u32_le(grant.granted);
    bytes.put_u64_le(grant.wait);
    bytes.freeze()
}

pub fn read_grant(mut bytes: &[u8]) -> Option<Grant> {
    if bytes.len() != GRANT_BYTES || bytes.get_u8() != VERSION {
        return None;
    }
    Some(Grant { granted: bytes.get_u32_le(), wait: bytes.get_u64_le() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_what_is_read() {
        let key = BucketKey { rule: u64::MAX - 1, first: 1 << 100, second: 3 };
        let asked = Ask { want: 7, unused: u32::MAX, debt: 0 };
        assert_eq!(read_ask(&ask(&key, &asked)), Some((key, asked)));
        let granted = Grant { granted: 9, wait: 1 << 40 };
        assert_eq!(read_grant(&grant(&granted)), Some(granted));
    }

    #[test]
    fn what_is_of_another_form_is_not_read() {
        let asked = ask(&BucketKey { rule: 1, first: 2, second: 3 }, &Ask::default());
        let granted = grant(&Grant::default());
        for length in 0..ASK_BYTES {
            assert!(read_ask(&asked[..length]).is_none());
            assert!(length == GRANT_BYTES || read_grant(&asked[..length]).is_none());
        }
        let newer = |bytes: &[u8]| [&[VERSION + 1], &bytes[1..]].concat();
        assert!(read_ask(&newer(&asked)).is_none() && read_grant(&newer(&granted)).is_none());
    }
}
