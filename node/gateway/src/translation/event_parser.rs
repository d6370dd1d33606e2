//! Parsers of streams: server-sent events, and binary event streams of AWS.

use assay_node_dialects::SseEvent;
use assay_node_dialects::sse::SseParser;
use assay_node_dialects_converse::{EventStreamError, EventStreamParser};

use super::TranslationError;

/// Incremental parser of the stream of a model server.
#[derive(Debug)]
pub enum EventParser {
    Sse(SseParser),
    AwsEventStream(EventStreamParser),
}

impl EventParser {
    /// Makes a parser of server-sent events of at most so many bytes each.
    pub fn sse(event_bytes_max: usize) -> EventParser {
        EventParser::Sse(SseParser::with_limit(event_bytes_max))
    }

    /// Makes a parser of binary event streams.
    pub fn aws() -> EventParser {
        EventParser::AwsEventStream(EventStreamParser::new())
    }

    /// Reads bytes and returns the events that they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<SseEvent>, TranslationError> {
        match self {
            EventParser::Sse(parser) => Ok(parser.push(bytes)?),
            EventParser::AwsEventStream(parser) => {
                Ok(parser.push(bytes)?.iter().map(|message| message.event()).collect())
            }
        }
    }

    /// Ends the input. Returns the event that nothing ended.
    pub fn finish(&mut self) -> Result<Option<SseEvent>, TranslationError> {
        match self {
            EventParser::Sse(parser) => Ok(parser.finish()?),
            EventParser::AwsEventStream(parser) => match parser.finish() {
                // the reader of the events knows whether the answer is whole
                Ok(()) | Err(EventStreamError::Truncated) => Ok(None),
                Err(error) => Err(error.into()),
            },
        }
    }
}
