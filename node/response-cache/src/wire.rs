//! Encoding of messages between nodes.
//!
//! A node refuses bytes that it cannot decode, such as those of another version. The sender treats that as a miss.
//!
//! An entry travels as its file, so it is encrypted in transit, too.

use assay_storage_model::OrgId;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use uuid::Uuid;

use crate::decision::MaxAge;
use crate::entry::EntryFile;
use crate::key::CacheKey;

const VERSION: u8 = 1;
const GET: u8 = 1;
const PUT: u8 = 2;
const REMOVE_ORGANIZATION: u8 = 3;
const NO: u8 = 0;
const YES: u8 = 1;
const KEY_BYTES: usize = 16 + 32;
/// Encoding of an unlimited age.
const ANY_AGE: u64 = u64::MAX;

/// Message to the owner of a key or to all nodes.
#[derive(Clone, Debug)]
pub(crate) enum CacheMessage {
    Get(CacheKey, MaxAge),
    Put(CacheKey, EntryFile),
    RemoveOrganization(OrgId),
}

pub(crate) fn message(message: &CacheMessage) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_u8(VERSION);
    match message {
        CacheMessage::Get(key, max_age) => {
            bytes.put_u8(GET);
            put_key(&mut bytes, key);
            bytes.put_u64_le(match max_age {
                MaxAge::Any => ANY_AGE,
                MaxAge::Seconds(seconds) => *seconds,
            });
        }
        CacheMessage::Put(key, file) => {
            bytes.reserve(1 + KEY_BYTES + file.bytes.len());
            bytes.put_u8(PUT);
            put_key(&mut bytes, key);
            bytes.put_slice(&file.bytes);
        }
        CacheMessage::RemoveOrganization(organization) => {
            bytes.put_u8(REMOVE_ORGANIZATION);
            bytes.put_slice(organization.0.as_bytes());
        }
    }
    bytes.freeze()
}

pub(crate) fn read_message(mut bytes: Bytes) -> Option<CacheMessage> {
    if bytes.try_get_u8().ok()? != VERSION {
        return None;
    }
    match bytes.try_get_u8().ok()? {
        GET => {
            let key = read_key(&mut bytes)?;
            let max_age = match bytes.try_get_u64_le().ok()? {
                ANY_AGE => MaxAge::Any,
                seconds => MaxAge::Seconds(seconds),
            };
            bytes.is_empty().then_some(CacheMessage::Get(key, max_age))
        }
        PUT => Some(CacheMessage::Put(read_key(&mut bytes)?, EntryFile::read(bytes)?)),
        REMOVE_ORGANIZATION => {
            let organization = read_organization(&mut bytes)?;
            bytes.is_empty().then_some(CacheMessage::RemoveOrganization(organization))
        }
        _ => None,
    }
}

/// Encodes the response to [`CacheMessage::Get`].
pub(crate) fn found(file: Option<&EntryFile>) -> Bytes {
    let Some(file) = file else { return done(false) };
    let mut bytes = BytesMut::with_capacity(2 + file.bytes.len());
    bytes.put_u8(VERSION);
    bytes.put_u8(YES);
    bytes.put_slice(&file.bytes);
    bytes.freeze()
}

/// Decodes a response to [`CacheMessage::Get`]. The outer option is `None` if it is invalid.
pub(crate) fn read_found(mut bytes: Bytes) -> Option<Option<EntryFile>> {
    if bytes.try_get_u8().ok()? != VERSION {
        return None;
    }
    match bytes.try_get_u8().ok()? {
        NO if bytes.is_empty() => Some(None),
        YES => EntryFile::read(bytes).map(Some),
        _ => None,
    }
}

/// Encodes the response to the other messages.
pub(crate) fn done(is_done: bool) -> Bytes {
    Bytes::copy_from_slice(&[VERSION, if is_done { YES } else { NO }])
}

pub(crate) fn read_done(bytes: &[u8]) -> Option<bool> {
    match bytes {
        [VERSION, YES] => Some(true),
        [VERSION, NO] => Some(false),
        _ => None,
    }
}

fn put_key(bytes: &mut BytesMut, key: &CacheKey) {
    bytes.put_slice(key.organization().0.as_bytes());
    bytes.put_slice(key.hash());
}

fn read_key(bytes: &mut Bytes) -> Option<CacheKey> {
    let organization = read_organization(bytes)?;
    let mut hash = [0; 32];
    bytes.try_copy_to_slice(&mut hash).ok()?;
    Some(CacheKey::of_hash(organization, hash))
}

fn read_organization(bytes: &mut Bytes) -> Option<OrgId> {
    let mut organization = [0; 16];
    bytes.try_copy_to_slice(&mut organization).ok()?;
    Some(OrgId(Uuid::from_bytes(organization)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::entry::EntryTimes;

    fn file(sealed: &[u8]) -> EntryFile {
        EntryFile::new(EntryTimes { created_ms: 7, ttl_s: 60 }, sealed).expect("is short")
    }

    proptest! {
        #[test]
        fn what_is_sent_is_what_is_read(org: u128, hash: [u8; 32], age: Option<u32>, sealed: Vec<u8>) {
            let (organization, file) = (OrgId(Uuid::from_u128(org)), file(&sealed));
            let key = CacheKey::of_hash(organization, hash);
            let max_age = age.map_or(MaxAge::Any, |age| MaxAge::Seconds(age.into()));
            for sent in [
                CacheMessage::Get(key, max_age),
                CacheMessage::Put(key, file.clone()),
                CacheMessage::RemoveOrganization(organization),
            ] {
                let bytes = message(&sent);
                let read = read_message(bytes.clone()).expect("is whole");
                prop_assert_eq!(format!("{sent:?}"), format!("{read:?}"));
                prop_assert_eq!(message(&read), bytes.clone());
                for length in 0..bytes.len() {
                    prop_assert!(read_message(bytes.slice(..length)).is_none());
                }
                let newer = [&[VERSION + 1], &bytes[1..]].concat();
                prop_assert!(read_message(newer.into()).is_none());
            }
            let read = read_found(found(Some(&file))).flatten().expect("is whole");
            prop_assert_eq!(read.bytes, file.bytes);
        }

        #[test]
        fn no_bytes_make_reading_panic(bytes: Vec<u8>, kind in 0..5_u8) {
            let told = [&[VERSION, kind][..], &bytes].concat();
            let _ = (read_message(told.clone().into()), read_done(&told), read_found(told.into()));
            let _ = (read_message(bytes.clone().into()), read_found(bytes.into()));
        }
    }

    #[test]
    fn answers_are_read_in_this_form_only() {
        assert!(matches!(read_found(found(None)), Some(None)));
        assert_eq!((read_done(&done(true)), read_done(&done(false))), (Some(true), Some(false)));
        for other in [&[][..], &[VERSION], &[VERSION + 1, YES], &[VERSION, 2], &[VERSION, NO, 0]] {
            assert_eq!(read_done(other), None);
            assert!(read_found(Bytes::copy_from_slice(other)).is_none());
        }
    }
}
