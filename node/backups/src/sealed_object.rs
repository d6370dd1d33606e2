//! Encryption of one object in frames, so that neither side needs it whole in memory.
//!
//! ```text
//! object   "assay backup 1\n", id of the key 8 bytes, frame*
//! frame    length u32, nonce 24 bytes, cipher text, tag 16 bytes          the length counts what follows it
//! ```
//! Each frame is bound to the name of the object, to its index, and to whether it is the last one. So no frame can be
//! moved, repeated or left out, and no object can take the name of another one. Numbers are little-endian.

use assay_node_auth::TicketCipher;
use assay_node_secrets::{KEY_ID_BYTES, KeyId, NONCE_BYTES, random};
use assay_node_segment_store::StoredName;
use bytes::{Buf, Bytes, BytesMut};

use crate::error::BackupError;
use crate::key::BackupKey;

const MAGIC: &[u8] = b"assay backup 1\n";
const HEAD_BYTES: usize = MAGIC.len() + KEY_ID_BYTES;
const LENGTH_BYTES: usize = 4;
const TAG_BYTES: usize = 16;
/// Plain bytes of a frame. Only the last frame may have fewer.
pub const FRAME_BYTES: usize = 1 << 20;
const FRAME_SEALED_BYTES_MAX: usize = NONCE_BYTES + FRAME_BYTES + TAG_BYTES;

/// Encrypts an object piece by piece.
#[derive(Debug)]
pub struct ObjectSealer {
    key: BackupKey,
    name: String,
    index: u64,
    waiting: BytesMut,
    has_begun: bool,
}

fn bound_to(name: &str, index: u64, is_last: bool) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    // No name has a zero byte, so the parts cannot be shifted.
    bytes.push(0);
    bytes.extend(index.to_le_bytes());
    bytes.push(u8::from(is_last));
    bytes
}

impl ObjectSealer {
    pub fn new(key: &BackupKey, name: &StoredName) -> ObjectSealer {
        let (key, name) = (key.clone(), name.as_str().to_owned());
        ObjectSealer { key, name, index: 0, waiting: BytesMut::new(), has_begun: false }
    }

    /// Adds plain bytes, and returns the encrypted bytes that are complete.
    pub fn push(&mut self, plain: &[u8]) -> Result<Bytes, BackupError> {
        let mut sealed = self.head();
        self.waiting.extend_from_slice(plain);
        // A frame that might be the last one waits for the end.
        while self.waiting.len() > FRAME_BYTES {
            let frame = self.waiting.split_to(FRAME_BYTES);
            self.seal(&frame, false, &mut sealed)?;
        }
        Ok(sealed.freeze())
    }

    /// Returns the rest of the object.
    pub fn finish(mut self) -> Result<Bytes, BackupError> {
        let mut sealed = self.head();
        let frame = self.waiting.split();
        self.seal(&frame, true, &mut sealed)?;
        Ok(sealed.freeze())
    }

    fn head(&mut self) -> BytesMut {
        let mut bytes = BytesMut::new();
        if !std::mem::replace(&mut self.has_begun, true) {
            bytes.extend_from_slice(MAGIC);
            bytes.extend_from_slice(&self.key.id().bytes());
        }
        bytes
    }

    fn seal(&mut self, plain: &[u8], is_last: bool, sealed: &mut BytesMut) -> Result<(), BackupError> {
        let nonce = random::<NONCE_BYTES>().map_err(|why| BackupError::Internal(why.to_string()))?;
        let to = bound_to(&self.name, self.index, is_last);
        let frame = self.key.cipher().seal(&to, plain, nonce);
        let frame = frame.ok_or_else(|| BackupError::Internal("a frame could not be encrypted".into()))?;
        let length = u32::try_from(frame.len()).expect("a frame has about a megabyte");
        sealed.extend_from_slice(&length.to_le_bytes());
        sealed.extend_from_slice(&frame);
        self.index += 1;
        Ok(())
    }
}

/// Encrypts an object in memory.
pub fn seal(key: &BackupKey, name: &StoredName, plain: &[u8]) -> Result<Bytes, BackupError> {
    let mut sealer = ObjectSealer::new(key, name);
    let mut sealed = BytesMut::from(&*sealer.push(plain)?);
    sealed.extend_from_slice(&sealer.finish()?);
    Ok(sealed.freeze())
}

/// Decrypts an object piece by piece, in the order of its bytes.
#[derive(Debug)]
pub struct ObjectOpener<'k> {
    key: &'k BackupKey,
    name: StoredName,
    index: u64,
    waiting: BytesMut,
    has_begun: bool,
    has_ended: bool,
}

impl<'k> ObjectOpener<'k> {
    pub fn new(key: &'k BackupKey, name: &StoredName) -> ObjectOpener<'k> {
        let (name, waiting) = (name.clone(), BytesMut::new());
        ObjectOpener { key, name, index: 0, waiting, has_begun: false, has_ended: false }
    }

    fn damaged(&self, what: impl Into<String>) -> BackupError {
        BackupError::Damaged { name: self.name.clone(), what: what.into() }
    }

    /// Adds encrypted bytes, and returns the plain bytes that are complete. An error means that nothing more of the
    /// object can be used.
    pub fn push(&mut self, sealed: &[u8]) -> Result<Bytes, BackupError> {
        self.waiting.extend_from_slice(sealed);
        let mut plain = BytesMut::new();
        if !self.has_begun {
            if self.waiting.len() < HEAD_BYTES {
                return Ok(Bytes::new());
            }
            self.read_head()?;
        }
        while let Some(length) = self.frame_length()? {
            if self.waiting.len() < LENGTH_BYTES + length {
                break;
            }
            if self.has_ended {
                return Err(self.damaged("it has bytes behind its end"));
            }
            self.waiting.advance(LENGTH_BYTES);
            let frame = self.waiting.split_to(length);
            let opened = self.open(&frame)?;
            plain.extend_from_slice(&opened);
        }
        Ok(plain.freeze())
    }

    /// Checks that the object is complete.
    pub fn finish(self) -> Result<(), BackupError> {
        if self.has_ended && self.waiting.is_empty() {
            return Ok(());
        }
        Err(self.damaged(if self.has_ended { "it has bytes behind its end" } else { "it is cut short" }))
    }

    fn read_head(&mut self) -> Result<(), BackupError> {
        let head = self.waiting.split_to(HEAD_BYTES);
        let (magic, id) = head.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err(self.damaged("it is no object of a backup, or was written by a newer version"));
        }
        if id != self.key.id().bytes() {
            let needed = KeyId::from_bytes(id.try_into().expect("the length of an id"));
            return Err(BackupError::OtherKey { needed, given: self.key.id() });
        }
        self.has_begun = true;
        Ok(())
    }

    fn frame_length(&self) -> Result<Option<usize>, BackupError> {
        let Some(length) = self.waiting.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if !(NONCE_BYTES + TAG_BYTES..=FRAME_SEALED_BYTES_MAX).contains(&length) {
            return Err(self.damaged("the length of a frame is wrong"));
        }
        Ok(Some(length))
    }

    fn open(&mut self, frame: &[u8]) -> Result<Vec<u8>, BackupError> {
        // Only a frame that is not full tells that it is the last one; a full one may be either.
        let is_full = frame.len() == FRAME_SEALED_BYTES_MAX;
        let kinds: &[bool] = if is_full { &[false, true] } else { &[true] };
        for is_last in kinds {
            let to = bound_to(self.name.as_str(), self.index, *is_last);
            if let Some(plain) = self.key.cipher().open(&to, frame) {
                self.index += 1;
                self.has_ended = *is_last;
                return Ok(plain);
            }
        }
        Err(self.damaged(format!("frame {} was changed", self.index)))
    }
}

#[cfg(test)]
mod tests {
    use assay_node_secrets::{VAULT_KEY_BYTES, VaultKey};
    use proptest::prelude::*;

    use super::*;

    fn key(byte: u8) -> BackupKey {
        BackupKey::new(VaultKey::new([byte; VAULT_KEY_BYTES]))
    }

    fn open(key: &BackupKey, name: &StoredName, sealed: &[u8]) -> Result<Bytes, BackupError> {
        let mut opener = ObjectOpener::new(key, name);
        let plain = opener.push(sealed)?;
        opener.finish()?;
        Ok(plain)
    }

    fn name(text: &str) -> StoredName {
        StoredName::new(text).expect("a name")
    }

    #[test]
    fn objects_of_every_length_come_back() {
        let (key, name) = (key(1), name("content/a"));
        for length in [0, 1, FRAME_BYTES - 1, FRAME_BYTES, FRAME_BYTES + 1, 2 * FRAME_BYTES, 2 * FRAME_BYTES + 5] {
            let plain: Vec<u8> = (0..length).map(|place| (place % 251) as u8).collect();
            let sealed = seal(&key, &name, &plain).expect("sealed");
            assert!(open(&key, &name, &sealed).expect("opened") == plain, "{length} bytes");
        }
    }

    #[test]
    fn a_change_is_found_wherever_it_is() {
        let (key, own) = (key(1), name("content/a"));
        let sealed = seal(&key, &own, b"some content").expect("sealed");
        for bit in 0..sealed.len() * 8 {
            let mut flipped = sealed.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(open(&key, &own, &flipped).is_err(), "bit {bit}");
        }
        for length in 0..sealed.len() {
            assert!(open(&key, &own, &sealed[..length]).is_err(), "cut to {length}");
        }
        assert!(open(&key, &own, &[&sealed[..], b"x"].concat()).is_err(), "longer");
        assert!(open(&key, &name("content/b"), &sealed).is_err(), "under another name");
    }

    #[test]
    fn frames_cannot_change_places_or_be_left_out() {
        let (key, name) = (key(1), name("content/a"));
        let sealed = seal(&key, &name, &vec![7; 3 * FRAME_BYTES]).expect("sealed");
        let frame = LENGTH_BYTES + FRAME_SEALED_BYTES_MAX;
        let frames: Vec<&[u8]> = sealed[HEAD_BYTES..].chunks(frame).collect();
        let object = |order: &[usize]| {
            let mut bytes = sealed[..HEAD_BYTES].to_vec();
            order.iter().for_each(|index| bytes.extend_from_slice(frames[*index]));
            bytes
        };
        assert!(open(&key, &name, &object(&[0, 1, 2])).is_ok());
        for order in [&[1, 0, 2][..], &[0, 2], &[0, 1], &[0, 1, 1, 2], &[0, 1, 2, 2], &[2]] {
            assert!(open(&key, &name, &object(order)).is_err(), "{order:?}");
        }
    }

    #[test]
    fn another_key_is_named() {
        let name = name("content/a");
        let sealed = seal(&key(1), &name, b"content").expect("sealed");
        let error = open(&key(2), &name, &sealed).expect_err("another key");
        assert!(matches!(error, BackupError::OtherKey { .. }), "{error}");
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(pieces in proptest::collection::vec(0..400_000_usize, 0..12), step in 1..900_000_usize) {
            let (key, name) = (key(3), name("a"));
            let mut sealer = ObjectSealer::new(&key, &name);
            let (mut sealed, mut plain) = (Vec::new(), Vec::new());
            for (number, length) in pieces.iter().enumerate() {
                let piece = vec![number as u8; *length];
                sealed.extend_from_slice(&sealer.push(&piece).expect("sealed"));
                plain.extend_from_slice(&piece);
            }
            sealed.extend_from_slice(&sealer.finish().expect("sealed"));
            let mut opener = ObjectOpener::new(&key, &name);
            let mut opened = Vec::new();
            for piece in sealed.chunks(step) {
                opened.extend_from_slice(&opener.push(piece).expect("opened"));
            }
            opener.finish().expect("complete");
            prop_assert!(opened == plain);
        }
    }
}
