//! Frames: byte strings of a message between nodes, each preceded by its length.

use bytes::{Buf, BufMut, Bytes, BytesMut};

const LENGTH_BYTES: usize = 4;

/// Encodes each part after its length, a little-endian u32.
pub fn encode_frames<'a>(parts: impl Iterator<Item = &'a [u8]> + Clone) -> Bytes {
    let mut body = BytesMut::with_capacity(parts.clone().map(|part| part.len() + LENGTH_BYTES).sum());
    put_frames(&mut body, parts);
    body.freeze()
}

pub(super) fn put_frames<'a>(body: &mut BytesMut, parts: impl Iterator<Item = &'a [u8]>) {
    for part in parts {
        body.put_u32_le(u32::try_from(part.len()).expect("a frame is far below 4 GiB"));
        body.put_slice(part);
    }
}

/// Decodes at most `frames_max` parts. Returns `None` if the message is truncated or has more.
pub fn decode_frames(mut body: Bytes, frames_max: usize) -> Option<Vec<Bytes>> {
    let mut parts = Vec::new();
    while body.remaining() >= LENGTH_BYTES && parts.len() < frames_max {
        let length = body.get_u32_le() as usize;
        if length > body.remaining() {
            return None;
        }
        parts.push(body.split_to(length));
    }
    body.is_empty().then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_read_back_and_a_cut_message_does_not() {
        let parts = [Bytes::from_static(b"abc"), Bytes::new()];
        let body = encode_frames(parts.iter().map(|part| &part[..]));
        assert_eq!(decode_frames(body.clone(), 2), Some(parts.to_vec()));
        assert_eq!(decode_frames(body.clone(), 1), None, "it has more frames than are taken");
        for length in 1..body.len() {
            let cut = decode_frames(body.slice(..length), 2);
            assert!(cut.is_none() || length == 7, "{length}: {cut:?}"); // the first frame ends there
        }
    }
}
