//! Binary event streams of AWS: an incremental parser of their messages.
//!
//! ```text
//! message  =  total length, headers length, CRC of both  (4 bytes each, big-endian)
//!             headers, payload, CRC of all before        (CRC-32 of IEEE)
//! header   =  length of the name (1), name, type (1), value
//! ```

use serde_json::{Map, Value};

use assay_node_dialects::SseEvent;

/// Upper bound of the bytes of one message.
pub const EVENT_STREAM_MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Upper bound of the headers of one message.
pub const EVENT_STREAM_HEADERS_MAX: usize = 64;

const PRELUDE_BYTES: usize = 12;
const CHECKSUM_BYTES: usize = 4;
/// Name of an event that [`EventStreamMessage::event`] makes of an exception or an error.
pub(crate) const EXCEPTION_EVENT: &str = "exception";

/// Stream that cannot be split into messages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventStreamError {
    #[error("a message of the stream has {bytes} bytes; at most {EVENT_STREAM_MESSAGE_BYTES_MAX} are read")]
    TooLong { bytes: usize },
    #[error("a message of the stream has more than {EVENT_STREAM_HEADERS_MAX} headers")]
    TooManyHeaders,
    #[error("the checksum of the {part} of a message is wrong")]
    Checksum { part: &'static str },
    #[error("the lengths at the begin of a message contradict each other")]
    Lengths,
    #[error("header {number} of a message cannot be read: {problem}")]
    Header { number: usize, problem: &'static str },
    #[error("the stream ended within a message")]
    Truncated,
}

/// One message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventStreamMessage {
    pub headers: Vec<EventStreamHeader>,
    pub payload: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct EventStreamHeader {
    pub name: String,
    pub value: EventStreamValue,
}

/// Value of a header.
#[derive(Clone, Debug, PartialEq)]
pub enum EventStreamValue {
    Bool(bool),
    /// A whole number of 1, 2, 4 or 8 bytes.
    Integer(i64),
    Bytes(Vec<u8>),
    Text(String),
    /// Milliseconds since 1970.
    Time(i64),
    Uuid([u8; 16]),
}

impl EventStreamMessage {
    /// Returns the text of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|header| header.name == name).and_then(|header| match &header.value {
            EventStreamValue::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Returns the message as an event: its type, and its payload as data.
    ///
    /// An exception or an error is the event `exception`. Its data is the body that an HTTP response with this error would
    /// have, with the name of the error in `__type`.
    pub fn event(&self) -> SseEvent {
        let payload = String::from_utf8_lossy(&self.payload).into_owned();
        let exception = match self.header(":message-type") {
            Some("exception") => (self.header(":exception-type"), None),
            Some("error") => (self.header(":error-code"), self.header(":error-message")),
            _ => return SseEvent { event: self.header(":event-type").map(str::to_owned), data: payload },
        };
        let (name, message) = exception;
        let mut body = match serde_json::from_str(&payload) {
            Ok(Value::Object(body)) => body,
            _ if payload.is_empty() => Map::new(),
            _ => Map::from_iter([("message".to_owned(), Value::from(payload))]),
        };
        if let Some(message) = message {
            body.insert("message".to_owned(), message.into());
        }
        if let Some(name) = name {
            body.insert("__type".to_owned(), name.into());
        }
        SseEvent { event: Some(EXCEPTION_EVENT.to_owned()), data: Value::Object(body).to_string() }
    }
}

/// Incremental parser of a stream of messages.
#[derive(Debug, Default)]
pub struct EventStreamParser {
    /// Begin of a message that is not complete.
    bytes: Vec<u8>,
    failed: Option<EventStreamError>,
}

impl EventStreamParser {
    pub fn new() -> EventStreamParser {
        EventStreamParser::default()
    }

    /// Reads bytes and returns the messages that they complete. If a later message is broken, the messages before it are
    /// returned first, and the error by the next call.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<EventStreamMessage>, EventStreamError> {
        let mut messages = Vec::new();
        let mut rest = bytes;
        while self.failed.is_none() && !rest.is_empty() {
            match self.step(&mut rest) {
                Ok(message) => messages.extend(message),
                Err(why) => {
                    self.failed = Some(why);
                    self.bytes = Vec::new();
                }
            }
        }
        match &self.failed {
            Some(why) if messages.is_empty() => Err(why.clone()),
            _ => Ok(messages),
        }
    }

    /// Ends the input. It must not end within a message.
    pub fn finish(&mut self) -> Result<(), EventStreamError> {
        match &self.failed {
            Some(why) => Err(why.clone()),
            None if self.bytes.is_empty() => Ok(()),
            None => Err(EventStreamError::Truncated),
        }
    }

    /// Takes bytes up to the end of the prelude, and then up to the end of the message.
    fn step(&mut self, rest: &mut &[u8]) -> Result<Option<EventStreamMessage>, EventStreamError> {
        let wanted = if self.bytes.len() < PRELUDE_BYTES { PRELUDE_BYTES } else { prelude(&self.bytes)?.total };
        let (taken, after) = rest.split_at(rest.len().min(wanted - self.bytes.len()));
        self.bytes.extend_from_slice(taken);
        *rest = after;
        if self.bytes.len() < PRELUDE_BYTES {
            return Ok(None);
        }
        let prelude = prelude(&self.bytes)?;
        if self.bytes.len() < prelude.total {
            return Ok(None);
        }
        let message = read_message(&self.bytes, prelude.headers);
        self.bytes.clear();
        message.map(Some)
    }
}

/// Lengths of a message, which have been checked.
struct EventStreamPrelude {
    total: usize,
    headers: usize,
}

fn number(bytes: &[u8]) -> usize {
    let word = bytes[..4].try_into().expect("the slice has four bytes");
    usize::try_from(u32::from_be_bytes(word)).unwrap_or(usize::MAX)
}

/// Returns whether four bytes are the checksum of those before.
fn is_checksum(bytes: &[u8], checksum: &[u8]) -> bool {
    crc32fast::hash(bytes).to_be_bytes() == checksum
}

/// Reads the first bytes of a message; there are enough.
fn prelude(bytes: &[u8]) -> Result<EventStreamPrelude, EventStreamError> {
    if !is_checksum(&bytes[..8], &bytes[8..PRELUDE_BYTES]) {
        return Err(EventStreamError::Checksum { part: "prelude" });
    }
    let (total, headers) = (number(bytes), number(&bytes[4..]));
    if total > EVENT_STREAM_MESSAGE_BYTES_MAX {
        return Err(EventStreamError::TooLong { bytes: total });
    }
    if headers.saturating_add(PRELUDE_BYTES + CHECKSUM_BYTES) > total {
        return Err(EventStreamError::Lengths);
    }
    Ok(EventStreamPrelude { total, headers })
}

fn read_message(bytes: &[u8], headers: usize) -> Result<EventStreamMessage, EventStreamError> {
    let (content, checksum) = bytes.split_at(bytes.len() - CHECKSUM_BYTES);
    if !is_checksum(content, checksum) {
        return Err(EventStreamError::Checksum { part: "content" });
    }
    let (headers, payload) = content[PRELUDE_BYTES..].split_at(headers);
    Ok(EventStreamMessage { headers: read_headers(headers)?, payload: payload.to_vec() })
}

fn read_headers(bytes: &[u8]) -> Result<Vec<EventStreamHeader>, EventStreamError> {
    let mut headers = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        if headers.len() == EVENT_STREAM_HEADERS_MAX {
            return Err(EventStreamError::TooManyHeaders);
        }
        let number = headers.len() + 1;
        headers.push(read_header(&mut rest).map_err(|problem| EventStreamError::Header { number, problem })?);
    }
    Ok(headers)
}

fn read_header(rest: &mut &[u8]) -> Result<EventStreamHeader, &'static str> {
    let length = take(rest, 1)?[0];
    let name = text(take(rest, length.into())?)?;
    let value = match take(rest, 1)?[0] {
        0 => EventStreamValue::Bool(true),
        1 => EventStreamValue::Bool(false),
        2 => EventStreamValue::Integer(integer(take(rest, 1)?)),
        3 => EventStreamValue::Integer(integer(take(rest, 2)?)),
        4 => EventStreamValue::Integer(integer(take(rest, 4)?)),
        5 => EventStreamValue::Integer(integer(take(rest, 8)?)),
        6 => EventStreamValue::Bytes(counted(rest)?.to_vec()),
        7 => EventStreamValue::Text(text(counted(rest)?)?),
        8 => EventStreamValue::Time(integer(take(rest, 8)?)),
        9 => EventStreamValue::Uuid(take(rest, 16)?.try_into().expect("the slice has sixteen bytes")),
        _ => return Err("its value has an unknown type"),
    };
    Ok(EventStreamHeader { name, value })
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8], &'static str> {
    let (taken, after) = rest.split_at_checked(count).ok_or("it ends early")?;
    *rest = after;
    Ok(taken)
}

/// Takes bytes whose count is in the two before them.
fn counted<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], &'static str> {
    let count = take(rest, 2)?;
    take(rest, u16::from_be_bytes([count[0], count[1]]).into())
}

fn text(bytes: &[u8]) -> Result<String, &'static str> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| "it is not UTF-8")
}

/// Number of at most eight bytes, with its sign.
fn integer(bytes: &[u8]) -> i64 {
    let sign = if bytes[0] & 0x80 == 0 { 0 } else { -1 };
    bytes.iter().fold(sign, |number, byte| (number << 8) | i64::from(*byte))
}
