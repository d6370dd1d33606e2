//! Framing of messages between nodes: the length of a JSON head, the head, and raw bytes such as an encoded part. Pure.

use bytes::{Buf, Bytes};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) fn pack(head: &impl Serialize, body: &[u8]) -> Bytes {
    let head = serde_json::to_vec(head).expect("plain data encodes");
    let mut packed = Vec::with_capacity(4 + head.len() + body.len());
    packed.extend_from_slice(&u32::try_from(head.len()).expect("a head is short").to_le_bytes());
    packed.extend_from_slice(&head);
    packed.extend_from_slice(body);
    packed.into()
}

/// Decodes a message. Returns `None` if it is invalid.
pub(crate) fn unpack<H: DeserializeOwned>(mut packed: Bytes) -> Option<(H, Bytes)> {
    let length = packed.remaining().checked_sub(4).map(|_| packed.get_u32_le() as usize)?;
    if length > packed.remaining() {
        return None;
    }
    let head = serde_json::from_slice(&packed.split_to(length)).ok()?;
    Some((head, packed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_reads_back_and_what_is_cut_does_not() {
        let packed = pack(&(1, "a"), b"rows");
        assert_eq!(unpack::<(u32, String)>(packed.clone()), Some(((1, "a".into()), Bytes::from_static(b"rows"))));
        for length in 0..packed.len() - 4 {
            assert_eq!(unpack::<(u32, String)>(packed.slice(..length)), None, "{length}");
        }
        assert_eq!(unpack::<String>(packed), None);
    }
}
