//! Messages between an origin and an executor: a header as JSON, and bytes.

use assay_node_runner::CodeEvent;
use bytes::{BufMut, Bytes, BytesMut};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Bytes of the length before each header.
const LENGTH_BYTES: usize = 4;
/// Upper bound of a header.
const HEADER_BYTES_MAX: usize = 4 << 10;
/// Upper bound of a part of an outcome.
const PART_BYTES_MAX: usize = 1 << 20;
/// Upper bound of the text of the events of one message, apart from the last event.
const BATCH_BYTES_MAX: usize = 32 << 10;
/// Upper bound of the events of one message.
const BATCH_EVENTS_MAX: usize = 64;

/// Message to an executor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToExecutor {
    /// Starts a call, whose request follows.
    Start {
        id: Uuid,
        time_ms: u64,
        /// Whether the origin wants the events of the function.
        has_events: bool,
    },
    Cancel {
        id: Uuid,
    },
}

/// Message to an origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ToOrigin {
    pub id: Uuid,
    /// Number of the message within its call.
    pub number: u64,
    pub kind: OutputKind,
}

/// Content of a message to an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OutputKind {
    /// Sign of life.
    Alive,
    /// List of events.
    Events,
    /// Part of the outcome, which is not its last one.
    Part,
    /// Last part of the outcome.
    End { is_refused: bool },
    /// The executor stops, and ends the call.
    Stopping,
}

/// Answer of an origin to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OutputAnswer {
    /// The message has been taken.
    Taken,
    /// Earlier output waits for its reader. The message has to be sent again.
    Full,
    /// The call has ended at its origin.
    Gone,
}

/// Returns a message of a header and bytes.
pub(crate) fn encode<H: Serialize>(header: &H, content: &[u8]) -> Result<Bytes, String> {
    let header = serde_json::to_vec(header).map_err(|why| format!("a header cannot be encoded: {why}"))?;
    let length = u32::try_from(header.len()).ok().filter(|_| header.len() <= HEADER_BYTES_MAX);
    let length = length.ok_or_else(|| format!("a header has {} bytes", header.len()))?;
    let mut message = BytesMut::with_capacity(LENGTH_BYTES + header.len() + content.len());
    message.put_u32_le(length);
    message.put_slice(&header);
    message.put_slice(content);
    Ok(message.freeze())
}

/// Returns the header and the bytes of a message.
pub(crate) fn decode<H: DeserializeOwned>(mut message: Bytes) -> Result<(H, Bytes), String> {
    let (length, _) = message.split_first_chunk::<LENGTH_BYTES>().ok_or("the message has no header")?;
    let length = u32::from_le_bytes(*length) as usize;
    if length > HEADER_BYTES_MAX || length > message.len() - LENGTH_BYTES {
        return Err("the header of the message is cut off".to_owned());
    }
    let content = message.split_off(LENGTH_BYTES + length);
    let header = serde_json::from_slice(&message[LENGTH_BYTES..]);
    Ok((header.map_err(|why| format!("the header of the message cannot be read: {why}"))?, content))
}

/// Returns the parts of an outcome, of which there is at least one.
pub(crate) fn parts(mut outcome: Bytes) -> Vec<Bytes> {
    let mut parts = Vec::with_capacity(outcome.len() / PART_BYTES_MAX + 1);
    while outcome.len() > PART_BYTES_MAX {
        parts.push(outcome.split_to(PART_BYTES_MAX));
    }
    parts.push(outcome);
    parts
}

/// Events that travel together.
#[derive(Debug, Default)]
pub(crate) struct EventBatch {
    events: Vec<CodeEvent>,
    bytes: usize,
}

impl EventBatch {
    pub fn push(&mut self, event: CodeEvent) {
        self.bytes += match &event {
            CodeEvent::Console { message, .. } => message.len(),
            // Events of tasks are as large as a task makes them, so each goes alone.
            CodeEvent::Progress(_) => BATCH_BYTES_MAX,
        };
        self.events.push(event);
    }

    pub fn is_full(&self) -> bool {
        self.events.len() >= BATCH_EVENTS_MAX || self.bytes >= BATCH_BYTES_MAX
    }

    pub fn encode(self) -> Result<Vec<u8>, String> {
        serde_json::to_vec(&self.events).map_err(|why| format!("events cannot be encoded: {why}"))
    }
}

pub(crate) fn read_events(content: &[u8]) -> Result<Vec<CodeEvent>, String> {
    serde_json::from_slice(content).map_err(|why| format!("events cannot be read: {why}"))
}

#[cfg(test)]
mod tests {
    use assay_node_runner::ConsoleStream;

    use super::*;

    #[test]
    fn a_message_has_a_header_and_bytes() {
        let header = ToOrigin { id: Uuid::from_u128(1), number: 7, kind: OutputKind::End { is_refused: true } };
        for content in [&b""[..], b"{}"] {
            let message = encode(&header, content).expect("a message");
            let (read, rest) = decode::<ToOrigin>(message).expect("it reads");
            assert_eq!((read, &rest[..]), (header.clone(), content));
        }
        for wrong in [&b""[..], b"\x01\x00", b"\x05\x00\x00\x00{}", b"\xff\xff\xff\xff{}", b"\x02\x00\x00\x00[]"] {
            assert!(decode::<ToOrigin>(Bytes::from_static(wrong)).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn an_outcome_is_sent_in_parts() {
        for (length, count) in [(0, 1), (1, 1), (PART_BYTES_MAX, 1), (PART_BYTES_MAX + 1, 2), (3 * PART_BYTES_MAX, 3)] {
            let parts = parts(Bytes::from(vec![7; length]));
            assert_eq!(parts.len(), count, "{length}");
            assert_eq!(parts.iter().map(Bytes::len).sum::<usize>(), length);
        }
    }

    #[test]
    fn a_batch_of_events_is_bounded() {
        let line = |length| CodeEvent::Console { stream: ConsoleStream::Stdout, message: "x".repeat(length) };
        let mut batch = EventBatch::default();
        batch.push(line(BATCH_BYTES_MAX - 1));
        assert!(!batch.is_full());
        batch.push(line(1));
        assert!(batch.is_full());
        let mut many = EventBatch::default();
        (0..BATCH_EVENTS_MAX).for_each(|_| many.push(line(0)));
        assert!(many.is_full());
        let events = read_events(&many.encode().expect("bytes")).expect("events");
        assert_eq!((events.len(), &events[0]), (BATCH_EVENTS_MAX, &line(0)));
    }
}
