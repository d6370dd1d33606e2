//! Entries of the cache: a response with its times, its encoding before encryption, and its file.
//!
//! ```text
//! file    mark 4 | created_ms 8 | ttl_s 4 | used_ms 8 | sealed bytes 4 | sealed
//! plain   version 1 | status 2 | is_stream 1 | content_type 2 + n | note 4 + n | body
//! ```
//! Numbers are little endian. Only `used_ms` is neither encrypted nor authenticated, because it is overwritten in
//! place.

use std::fmt;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde_json::Value;

use crate::decision::TTL_MAX_S;
use crate::key::CacheKey;

/// Upper bound of an entry before encryption, including its note.
pub const ENTRY_BYTES_MAX: usize = 4 << 20;
/// Upper bound of the bytes that a cipher adds.
pub const SEAL_BYTES_MAX: usize = 256;
pub(crate) const HEADING_BYTES: usize = 4 + 8 + 4 + 8 + 4;
pub(crate) const FILE_BYTES_MAX: usize = HEADING_BYTES + ENTRY_BYTES_MAX + SEAL_BYTES_MAX;
/// Position of `used_ms` in a file.
pub(crate) const USED_OFFSET: u64 = 4 + 8 + 4;

const MARK: [u8; 4] = *b"ARC1";
const PLAIN_VERSION: u8 = 1;
/// Prefix of the associated data. It must never change, like the layout after it.
const BOUND_TO: &[u8] = b"assay cached response 1\0";

/// Complete response that may be stored.
#[derive(Clone, PartialEq)]
pub struct CacheableResponse {
    pub status: u16,
    pub content_type: String,
    /// Whether the body is an event stream.
    pub is_stream: bool,
    pub body: Bytes,
    /// Additional data for the caller, such as usage and the model's name.
    pub note: Value,
}

/// Response from the cache.
#[derive(Clone, PartialEq)]
pub struct CachedResponse {
    pub status: u16,
    pub content_type: String,
    /// Creation time in milliseconds since 1970.
    pub created_ms: u64,
    pub ttl_s: u32,
    pub is_stream: bool,
    pub body: Bytes,
    pub note: Value,
}

/// Prints no content, which may be confidential.
impl fmt::Debug for CacheableResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("CacheableResponse");
        shown.field("status", &self.status).field("body_bytes", &self.body.len()).finish_non_exhaustive()
    }
}

/// Prints no content, which may be confidential.
impl fmt::Debug for CachedResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("CachedResponse");
        shown.field("status", &self.status).field("created_ms", &self.created_ms).field("ttl_s", &self.ttl_s);
        shown.field("body_bytes", &self.body.len()).finish_non_exhaustive()
    }
}

impl CachedResponse {
    pub fn new(response: CacheableResponse, created_ms: u64, ttl_s: u32) -> CachedResponse {
        let CacheableResponse { status, content_type, is_stream, body, note } = response;
        CachedResponse { status, content_type, created_ms, ttl_s, is_stream, body, note }
    }

    /// Returns the value of the `age` header.
    pub fn age_s(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.created_ms) / 1000
    }

    pub(crate) fn times(&self) -> EntryTimes {
        EntryTimes { created_ms: self.created_ms, ttl_s: self.ttl_s }
    }

    /// Returns whether the response is small enough for an entry.
    pub(crate) fn is_small(&self) -> bool {
        self.plain_bytes(&self.note.to_string()) <= ENTRY_BYTES_MAX
    }

    fn plain_bytes(&self, note: &str) -> usize {
        1 + 2 + 1 + 2 + self.content_type.len() + 4 + note.len() + self.body.len()
    }

    /// Returns the bytes to encrypt, or `None` if they exceed the limit.
    pub(crate) fn plain(&self) -> Option<Vec<u8>> {
        let note = self.note.to_string();
        let content_type_bytes = u16::try_from(self.content_type.len()).ok()?;
        let bytes = self.plain_bytes(&note);
        if bytes > ENTRY_BYTES_MAX {
            return None;
        }
        let mut plain = Vec::with_capacity(bytes);
        plain.put_u8(PLAIN_VERSION);
        plain.put_u16_le(self.status);
        plain.put_u8(u8::from(self.is_stream));
        plain.put_u16_le(content_type_bytes);
        plain.put_slice(self.content_type.as_bytes());
        plain.put_u32_le(u32::try_from(note.len()).ok()?);
        plain.put_slice(note.as_bytes());
        plain.put_slice(&self.body);
        Some(plain)
    }

    /// Decodes the result of [`CachedResponse::plain`].
    pub(crate) fn read_plain(times: EntryTimes, plain: Vec<u8>) -> Option<CachedResponse> {
        let mut bytes = Bytes::from(plain);
        if bytes.try_get_u8().ok()? != PLAIN_VERSION {
            return None;
        }
        let status = bytes.try_get_u16_le().ok()?;
        let is_stream = match bytes.try_get_u8().ok()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        let length = usize::from(bytes.try_get_u16_le().ok()?);
        let content_type = String::from_utf8(take(&mut bytes, length)?.to_vec()).ok()?;
        let length = usize::try_from(bytes.try_get_u32_le().ok()?).ok()?;
        let note = serde_json::from_slice(&take(&mut bytes, length)?).ok()?;
        let EntryTimes { created_ms, ttl_s } = times;
        Some(CachedResponse { status, content_type, created_ms, ttl_s, is_stream, body: bytes, note })
    }
}

fn take(bytes: &mut Bytes, length: usize) -> Option<Bytes> {
    (length <= bytes.len()).then(|| bytes.split_to(length))
}

/// Creation time and lifetime of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryTimes {
    pub created_ms: u64,
    pub ttl_s: u32,
}

impl EntryTimes {
    pub fn is_expired(&self, now_ms: u64) -> bool {
        now_ms >= self.created_ms.saturating_add(u64::from(self.ttl_s) * 1000)
    }

    pub fn age_s(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.created_ms) / 1000
    }

    /// Returns the associated data, whose parts have fixed lengths.
    ///
    /// It binds an entry to its organization, key and times.
    pub fn bound_to(&self, key: &CacheKey) -> Vec<u8> {
        let mut bytes = BOUND_TO.to_vec();
        bytes.put_slice(key.organization().0.as_bytes());
        bytes.put_slice(key.hash());
        bytes.put_u64_le(self.created_ms);
        bytes.put_u32_le(self.ttl_s);
        bytes
    }
}

/// Heading of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHeading {
    pub times: EntryTimes,
    /// Time of the last use in milliseconds since 1970, which is updated only occasionally.
    pub used_ms: u64,
    pub sealed_bytes: u32,
}

impl FileHeading {
    /// Reads the heading of a file of the given length. Returns `None` if the file cannot be complete.
    pub fn read(mut bytes: &[u8], file_bytes: u64) -> Option<FileHeading> {
        if bytes.len() < HEADING_BYTES || !bytes.starts_with(&MARK) {
            return None;
        }
        bytes.advance(MARK.len());
        let times = EntryTimes { created_ms: bytes.get_u64_le(), ttl_s: bytes.get_u32_le() };
        let heading = FileHeading { times, used_ms: bytes.get_u64_le(), sealed_bytes: bytes.get_u32_le() };
        let is_whole = file_bytes == HEADING_BYTES as u64 + u64::from(heading.sealed_bytes);
        (is_whole && file_bytes <= FILE_BYTES_MAX as u64 && times.ttl_s <= TTL_MAX_S).then_some(heading)
    }
}

/// Bytes of a file with a valid heading.
#[derive(Clone, Debug)]
pub(crate) struct EntryFile {
    pub heading: FileHeading,
    pub bytes: Bytes,
}

impl EntryFile {
    pub fn new(times: EntryTimes, sealed: &[u8]) -> Option<EntryFile> {
        let sealed_bytes = u32::try_from(sealed.len()).ok()?;
        let mut bytes = BytesMut::with_capacity(HEADING_BYTES + sealed.len());
        bytes.put_slice(&MARK);
        bytes.put_u64_le(times.created_ms);
        bytes.put_u32_le(times.ttl_s);
        bytes.put_u64_le(times.created_ms);
        bytes.put_u32_le(sealed_bytes);
        bytes.put_slice(sealed);
        EntryFile::read(bytes.freeze())
    }

    pub fn read(bytes: Bytes) -> Option<EntryFile> {
        let heading = FileHeading::read(&bytes, bytes.len() as u64)?;
        Some(EntryFile { heading, bytes })
    }

    pub fn sealed(&self) -> &[u8] {
        &self.bytes[HEADING_BYTES..]
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use assay_storage_model::OrgId;
    use proptest::prelude::*;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    pub fn response(body: &str) -> CacheableResponse {
        CacheableResponse {
            status: 200,
            content_type: "application/json".to_owned(),
            is_stream: false,
            body: Bytes::copy_from_slice(body.as_bytes()),
            note: json!({"usage": {"tokens": 7}}),
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_what_is_read(
            status: u16, content_type in ".{0,30}", created_ms: u64, ttl_s in 0..=TTL_MAX_S, is_stream: bool,
            body: Vec<u8>, note in ".{0,30}",
        ) {
            let note = json!({ "text": note });
            let cached =
                CachedResponse { status, content_type, created_ms, ttl_s, is_stream, body: body.into(), note };
            let plain = cached.plain().expect("is short");
            prop_assert_eq!(CachedResponse::read_plain(cached.times(), plain.clone()), Some(cached.clone()));
            let file = EntryFile::new(cached.times(), &plain).expect("is short");
            let read = EntryFile::read(file.bytes.clone()).expect("is whole");
            prop_assert_eq!(read.heading, file.heading);
            prop_assert_eq!(read.sealed(), &plain[..]);
            let heading = read.heading;
            prop_assert_eq!((heading.times, heading.used_ms), (cached.times(), created_ms));
        }

        #[test]
        fn no_bytes_make_reading_panic(bytes: Vec<u8>, is_marked: bool) {
            let marked = if is_marked { [&MARK[..], &bytes].concat() } else { bytes.clone() };
            let _ = EntryFile::read(marked.into());
            let times = EntryTimes { created_ms: 0, ttl_s: 1 };
            let versioned = [&[PLAIN_VERSION, 0, 0, 1][..], &bytes].concat();
            let _ = (CachedResponse::read_plain(times, bytes), CachedResponse::read_plain(times, versioned));
        }
    }

    #[test]
    fn a_file_of_another_length_is_not_read() {
        let file = EntryFile::new(EntryTimes { created_ms: 5, ttl_s: 1 }, b"sealed").expect("is short");
        for length in 0..file.bytes.len() {
            assert!(EntryFile::read(file.bytes.slice(..length)).is_none(), "{length}");
        }
        assert!(EntryFile::read([&file.bytes[..], b"x"].concat().into()).is_none());
        let too_long = vec![0; ENTRY_BYTES_MAX + SEAL_BYTES_MAX + 1];
        assert!(EntryFile::new(file.heading.times, &too_long).is_none());
        assert!(EntryFile::new(EntryTimes { created_ms: 5, ttl_s: TTL_MAX_S + 1 }, b"").is_none());
    }

    #[test]
    fn nothing_prints_an_answer() {
        let response = response("an answer");
        let cached = CachedResponse::new(response.clone(), 1, 2);
        for shown in [format!("{response:?}"), format!("{cached:?}")] {
            assert!(
                !shown.contains("answer") && !shown.contains("usage") && shown.contains("body_bytes: 9"),
                "{shown}"
            );
        }
    }

    #[test]
    fn a_large_answer_is_no_entry() {
        let plain = |body: usize| {
            let response = CacheableResponse { body: vec![b'x'; body].into(), ..response("") };
            CachedResponse::new(response, 0, 1).plain()
        };
        let beside = plain(0).expect("is short").len();
        assert_eq!(plain(ENTRY_BYTES_MAX - beside).expect("just fits").len(), ENTRY_BYTES_MAX);
        assert!(plain(ENTRY_BYTES_MAX - beside + 1).is_none());
    }

    #[test]
    fn an_entry_ends_with_its_time() {
        let times = EntryTimes { created_ms: 10_000, ttl_s: 5 };
        assert!(!times.is_expired(0) && !times.is_expired(14_999) && times.is_expired(15_000));
        assert_eq!([0, 10_999, 11_000].map(|now| times.age_s(now)), [0, 0, 1]);
        assert!(!EntryTimes { created_ms: u64::MAX, ttl_s: 5 }.is_expired(15_000));
    }

    #[test]
    fn an_entry_is_bound_to_all_that_it_belongs_to() {
        let times = EntryTimes { created_ms: 1, ttl_s: 2 };
        let key = |org, byte| CacheKey::of_hash(OrgId(Uuid::from_u128(org)), [byte; 32]);
        let bound = [
            times.bound_to(&key(1, 1)),
            times.bound_to(&key(2, 1)),
            times.bound_to(&key(1, 2)),
            EntryTimes { created_ms: 2, ..times }.bound_to(&key(1, 1)),
            EntryTimes { ttl_s: 3, ..times }.bound_to(&key(1, 1)),
        ];
        for (place, one) in bound.iter().enumerate() {
            assert_eq!(bound.iter().position(|other| other == one), Some(place));
        }
    }
}
