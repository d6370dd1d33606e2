//! Encoding and decoding of commands. Decoding borrows ids and documents from the bytes and allocates only the list of
//! rows. It refuses commands beyond the limits of length, size or rows.
//!
//! ```text
//! write        object 34 bytes, assigned u64, request (0 | 1, key 16, content 16), count u32, row*
//! row          id text, action u8, span_id text, root_span_id text, is_root u8, created i64, doc, rules, audit
//! advance      to u64
//! raise floor  object 34 bytes, floor u64
//! drop object  object 34 bytes
//! conditional  a write, count u32, (row u32, version u64)*
//! ```

use bincode::config::{Configuration, Limit, LittleEndian, Varint};
use bincode::de::{BorrowDecoder, Decode};
use bincode::enc::Encoder;
use bincode::error::{DecodeError as BadBody, EncodeError};
use bincode::{BorrowDecode, Encode};
use bytes::{Bytes, BytesMut};

use super::{
    Action, COMMAND_BYTES_MAX, COMMAND_VERSION, CONDITIONAL_FRAME, Command, ConditionalWrite, DecodeError, ExpectedRow,
    ROWS_PER_WRITE_MAX, RowOp, TAG_ADVANCE, TAG_CONDITIONAL_WRITE, TAG_DROP_OBJECT, TAG_RAISE_FLOOR, TAG_WRITE,
    TooLarge, Write,
};
use crate::ids::ObjectKey;
use crate::xact::Xact;

type Config = Configuration<LittleEndian, Varint, Limit<COMMAND_BYTES_MAX>>;

const CONFIG: Config = bincode::config::standard().with_limit::<COMMAND_BYTES_MAX>();
/// Version and tag.
const FRAME_BYTES: usize = 2;
/// More than the fixed parts of a row or of a write's head take.
const FIXED_BYTES_ROOM: usize = 96;
/// Bytes of the longest expected row: two numbers with their lengths.
const EXPECTED_BYTES_MAX: usize = 14;

impl<'a> Command<'a> {
    /// Encodes the command, whatever its size: `check_limits` tells whether it can be decoded again.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes_about());
        bytes.push(if matches!(self, Command::ConditionalWrite(_)) { CONDITIONAL_FRAME } else { COMMAND_VERSION });
        match self {
            Command::Write(write) => put(&mut bytes, TAG_WRITE, write),
            Command::ConditionalWrite(conditional) => put(&mut bytes, TAG_CONDITIONAL_WRITE, conditional),
            Command::Advance { to } => put(&mut bytes, TAG_ADVANCE, to.0),
            Command::RaiseFloor { object, floor } => put(&mut bytes, TAG_RAISE_FLOOR, (object.to_bytes(), floor.0)),
            Command::DropObject { object } => put(&mut bytes, TAG_DROP_OBJECT, object.to_bytes()),
        }
        bytes
    }

    pub fn decode(bytes: &'a [u8]) -> Result<Command<'a>, DecodeError> {
        if bytes.len() > COMMAND_BYTES_MAX {
            return Err(body(format!("{} bytes, above the {COMMAND_BYTES_MAX} a command may have", bytes.len())));
        }
        let (frame, rest) = bytes.split_first_chunk::<FRAME_BYTES>().ok_or_else(|| body("cut short".to_owned()))?;
        let [version, tag] = *frame;
        match version {
            CONDITIONAL_FRAME if tag == TAG_CONDITIONAL_WRITE => return Ok(Command::ConditionalWrite(take(rest)?)),
            CONDITIONAL_FRAME => return Err(DecodeError::Tag(tag)),
            COMMAND_VERSION => {}
            0 => return Err(body("version 0 does not exist".to_owned())),
            newer => return Err(DecodeError::Newer(newer)),
        }
        match tag {
            TAG_WRITE => Ok(Command::Write(take(rest)?)),
            TAG_ADVANCE => Ok(Command::Advance { to: Xact(take(rest)?) }),
            TAG_RAISE_FLOOR => {
                let (object, floor): ([u8; ObjectKey::BYTES], u64) = take(rest)?;
                Ok(Command::RaiseFloor { object: object_key(&object)?, floor: Xact(floor) })
            }
            TAG_DROP_OBJECT => {
                let object: [u8; ObjectKey::BYTES] = take(rest)?;
                Ok(Command::DropObject { object: object_key(&object)? })
            }
            unknown => Err(DecodeError::Tag(unknown)),
        }
    }

    /// Returns the same write with another id. Nothing is copied if the bytes are not shared and both ids have the same
    /// length.
    pub fn with_assigned(bytes: Bytes, assigned: Xact) -> Result<Bytes, DecodeError> {
        let cut_short = || body("a write that is cut short".to_owned());
        let frame = bytes.get(..FRAME_BYTES);
        let is_write = frame == Some(&[COMMAND_VERSION, TAG_WRITE]);
        if !is_write && frame != Some(&[CONDITIONAL_FRAME, TAG_CONDITIONAL_WRITE]) {
            return Err(body("not a write of this version".to_owned()));
        }
        let from = FRAME_BYTES + ObjectKey::BYTES;
        let rest = bytes.get(from..).ok_or_else(cut_short)?;
        let (_, before): (u64, usize) = bincode::decode_from_slice(rest, CONFIG).map_err(|e| body(e.to_string()))?;
        let encoded = bincode::encode_to_vec(assigned.0, CONFIG).expect("a number always encodes");
        if encoded.len() == before {
            let mut own = bytes.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
            own[from..from + before].copy_from_slice(&encoded);
            return Ok(own.freeze());
        }
        let mut changed = BytesMut::with_capacity(bytes.len() + encoded.len());
        changed.extend_from_slice(&bytes[..from]);
        changed.extend_from_slice(&encoded);
        changed.extend_from_slice(&bytes[from + before..]);
        Ok(changed.freeze())
    }

    /// Checks that the command may be proposed: a larger one can be encoded, but never decoded.
    pub fn check_limits(&self) -> Result<(), TooLarge> {
        let rows = self.rows().len();
        if rows > ROWS_PER_WRITE_MAX {
            return Err(TooLarge::Rows(rows));
        }
        let bytes = self.bytes_about();
        if bytes > COMMAND_BYTES_MAX { Err(TooLarge::Bytes(bytes)) } else { Ok(()) }
    }

    /// Returns an upper bound of the encoding's length, at most some per cent above it.
    pub fn bytes_about(&self) -> usize {
        let expected = if let Command::ConditionalWrite(write) = self { write.expected.len() } else { 0 };
        let rows = self.rows().iter().map(RowOp::bytes_about).sum::<usize>();
        FIXED_BYTES_ROOM + rows + expected * EXPECTED_BYTES_MAX
    }

    fn rows(&self) -> &[RowOp<'a>] {
        match self {
            Command::Write(write) | Command::ConditionalWrite(ConditionalWrite { write, .. }) => &write.rows,
            Command::Advance { .. } | Command::RaiseFloor { .. } | Command::DropObject { .. } => &[],
        }
    }
}

impl RowOp<'_> {
    fn bytes_about(&self) -> usize {
        let texts = self.id.len() + self.span_id.len() + self.root_span_id.len();
        FIXED_BYTES_ROOM + texts + self.doc.len() + self.rules.len() + self.audit.len()
    }
}

fn put(bytes: &mut Vec<u8>, tag: u8, value: impl Encode) {
    bytes.push(tag);
    bincode::encode_into_std_write(value, bytes, CONFIG).expect("a vector takes every byte");
}

fn take<'a, T: BorrowDecode<'a, ()>>(rest: &'a [u8]) -> Result<T, DecodeError> {
    let (value, used) = bincode::borrow_decode_from_slice(rest, CONFIG).map_err(|e| body(e.to_string()))?;
    if used != rest.len() {
        return Err(body(format!("{} bytes after the end", rest.len() - used)));
    }
    Ok(value)
}

fn body(what: String) -> DecodeError {
    DecodeError::Body(what)
}

fn object_key(bytes: &[u8]) -> Result<ObjectKey, DecodeError> {
    ObjectKey::from_bytes(bytes).ok_or_else(|| body("an object of an unknown kind".to_owned()))
}

impl Encode for Action {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        (*self as u8).encode(encoder)
    }
}

impl<'de, Context> BorrowDecode<'de, Context> for Action {
    fn borrow_decode<D: BorrowDecoder<'de, Context = Context>>(decoder: &mut D) -> Result<Self, BadBody> {
        let byte: u8 = Decode::decode(decoder)?;
        Action::from_byte(byte).ok_or(BadBody::Other("an unknown action"))
    }
}

impl Encode for Write<'_> {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        self.object.to_bytes().encode(encoder)?;
        self.assigned.0.encode(encoder)?;
        self.request.encode(encoder)?;
        let count = u32::try_from(self.rows.len()).map_err(|_| EncodeError::Other("more rows than 32 bits"))?;
        count.encode(encoder)?;
        self.rows.iter().try_for_each(|row| row.encode(encoder))
    }
}

/// Hand-written, since the number of rows is checked before memory for them is allocated.
impl<'de, Context> BorrowDecode<'de, Context> for Write<'de> {
    fn borrow_decode<D: BorrowDecoder<'de, Context = Context>>(decoder: &mut D) -> Result<Self, BadBody> {
        let object: [u8; ObjectKey::BYTES] = BorrowDecode::borrow_decode(decoder)?;
        let object = ObjectKey::from_bytes(&object).ok_or(BadBody::Other("an object of an unknown kind"))?;
        let assigned = Xact(Decode::decode(decoder)?);
        let request = BorrowDecode::borrow_decode(decoder)?;
        let count: u32 = Decode::decode(decoder)?;
        if count as usize > ROWS_PER_WRITE_MAX {
            return Err(BadBody::Other("more rows than a write may have"));
        }
        let mut rows = Vec::with_capacity(count as usize);
        for _ in 0..count {
            rows.push(BorrowDecode::borrow_decode(decoder)?);
        }
        Ok(Write { object, assigned, request, rows })
    }
}

impl Encode for ConditionalWrite<'_> {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        self.write.encode(encoder)?;
        let count = u32::try_from(self.expected.len()).map_err(|_| EncodeError::Other("more rows than 32 bits"))?;
        count.encode(encoder)?;
        self.expected.iter().try_for_each(|expected| (expected.row, expected.version.0).encode(encoder))
    }
}

/// Hand-written, since the number of conditions is checked before memory for them is allocated.
impl<'de, Context> BorrowDecode<'de, Context> for ConditionalWrite<'de> {
    fn borrow_decode<D: BorrowDecoder<'de, Context = Context>>(decoder: &mut D) -> Result<Self, BadBody> {
        let write: Write<'de> = BorrowDecode::borrow_decode(decoder)?;
        let count: u32 = Decode::decode(decoder)?;
        if count as usize > write.rows.len() {
            return Err(BadBody::Other("more conditions than rows"));
        }
        let mut expected = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let (row, version): (u32, u64) = Decode::decode(decoder)?;
            if row as usize >= write.rows.len() {
                return Err(BadBody::Other("a condition on a row that the write does not have"));
            }
            expected.push(ExpectedRow { row, version: Xact(version) });
        }
        Ok(ConditionalWrite { write, expected })
    }
}
