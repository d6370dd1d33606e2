//! Stream parsers for server-sent events and for the binary event streams of AWS.

use assay_node_dialects::SseEvent;
use assay_node_dialects::sse::SseParser;
use assay_node_dialects_converse::{EventStreamError, EventStreamParser};

use super::TranslationError;

/// Incremental parser for the stream of a model server.
#[derive(Debug)]
pub enum EventParser {
    Sse(SseParser),
    AwsEventStream(EventStreamParser),
}

impl EventParser {
    /// Creates a parser for server-sent events of at most `event_bytes_max` bytes each.
    pub fn sse(event_bytes_max: usize) -> EventParser {
        EventParser::Sse(SseParser::with_limit(event_bytes_max))
    }

    /// Creates a parser for the binary event streams of AWS.
    pub fn aws() -> EventParser {
        EventParser::AwsEventStream(EventStreamParser::new())
    }

    /// Parses bytes, and returns the events that they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<SseEvent>, TranslationError> {
        match self {
            EventParser::Sse(parser) => Ok(parser.push(bytes)?),
            EventParser::AwsEventStream(parser) => {
                Ok(parser.push(bytes)?.iter().map(|message| message.event()).collect())
            }
        }
    }

    /// Ends the input, and returns an event without a terminator, if there is one.
    pub fn finish(&mut self) -> Result<Option<SseEvent>, TranslationError> {
        match self {
            EventParser::Sse(parser) => Ok(parser.finish()?),
            EventParser::AwsEventStream(parser) => match parser.finish() {
                // The reader of the events determines whether the answer is complete.
                Ok(()) | Err(EventStreamError::Truncated) => Ok(None),
                Err(error) => Err(error.into()),
            },
        }
    }
}
