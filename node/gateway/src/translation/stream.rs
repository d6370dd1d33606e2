//! Translation of streamed responses, from bytes of the model server to bytes for the client.

use assay_node_dialects::form::{
    Extra, FoldError, FoldLimits, ModelError, ModelErrorKind, ModelResponse, ResponseFold, StreamEvent,
};
use assay_node_dialects::sse::{SSE_EVENT_BYTES_MAX, SseError, write_event};
use assay_node_dialects::{DialectError, SseEvent};
use assay_node_dialects_converse::EventStreamError;

use super::{EventParser, StreamReader, StreamWriter};
use crate::outcome::response_text_bytes;

/// Error message for a stream that ends before its last event.
const CUT: &str = "the model server ended its answer early";

/// Error for an unreadable response of a model server.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TranslationError {
    #[error(transparent)]
    Sse(#[from] SseError),
    #[error(transparent)]
    EventStream(#[from] EventStreamError),
    #[error(transparent)]
    Dialect(#[from] DialectError),
    #[error(transparent)]
    Fold(#[from] FoldError),
}

/// Translation of one streamed response.
#[derive(Debug)]
pub struct StreamTranslation {
    parser: EventParser,
    reader: StreamReader,
    writer: StreamWriter,
    fold: ResponseFold,
    /// Creation time for responses without one, in seconds since 1970.
    created_s: Option<u64>,
    /// Bytes of the text up to the last report of usage.
    reported_bytes: u64,
}

/// Result of a translated stream.
#[derive(Debug)]
pub struct FinishedStream {
    /// Last bytes for the client.
    pub bytes: Vec<u8>,
    /// Response so far.
    pub response: ModelResponse,
    /// Error that the server sent, or the error for a truncated stream.
    pub error: Option<ModelError>,
}

impl StreamTranslation {
    pub fn new(reader: StreamReader, writer: StreamWriter) -> StreamTranslation {
        let fold = ResponseFold::new(FoldLimits::default());
        let parser = EventParser::sse(SSE_EVENT_BYTES_MAX);
        StreamTranslation { parser, reader, writer, fold, created_s: None, reported_bytes: 0 }
    }

    /// Replaces the parser, for other formats than server-sent events or for other bounds.
    pub fn with_parser(self, parser: EventParser) -> StreamTranslation {
        StreamTranslation { parser, ..self }
    }

    /// Sets the creation time for responses without one.
    pub fn with_created(self, created_s: u64) -> StreamTranslation {
        StreamTranslation { created_s: Some(created_s), ..self }
    }

    /// Returns the response so far.
    pub fn response(&self) -> &ModelResponse {
        self.fold.response()
    }

    /// Returns the bytes of the text that arrived after the last report of usage.
    pub(crate) fn unreported_bytes(&self) -> u64 {
        response_text_bytes(self.fold.response()).saturating_sub(self.reported_bytes)
    }

    /// Returns the error of the server that ended the response.
    pub fn error(&self) -> Option<&ModelError> {
        self.fold.error()
    }

    /// Processes bytes of the server, and appends the bytes for the client to `written`.
    ///
    /// On an error, `written` contains the events before the unreadable one. Events after the end of the response are
    /// ignored.
    pub fn push(&mut self, bytes: &[u8], written: &mut Vec<u8>) -> Result<(), TranslationError> {
        for event in self.parser.push(bytes)? {
            self.take(&event, written)?;
        }
        Ok(())
    }

    fn take(&mut self, event: &SseEvent, written: &mut Vec<u8>) -> Result<(), TranslationError> {
        let events = self.reader.push(event)?;
        let is_report = events.iter().any(|event| matches!(event, StreamEvent::Usage(_)));
        for mut event in events {
            if let StreamEvent::Start { created, .. } = &mut event {
                *created = created.or(self.created_s);
            }
            self.pass(&event, written)?;
        }
        if is_report {
            self.reported_bytes = response_text_bytes(self.fold.response());
        }
        Ok(())
    }

    fn pass(&mut self, event: &StreamEvent, written: &mut Vec<u8>) -> Result<(), TranslationError> {
        if self.is_ended() {
            return Ok(());
        }
        self.fold.push(event)?;
        for event in self.writer.write(event) {
            written.extend_from_slice(&write_event(&event));
        }
        Ok(())
    }

    /// Returns whether the response is complete, or an error of the server ended it.
    pub fn is_ended(&self) -> bool {
        self.fold.is_ended() || self.fold.error().is_some()
    }

    /// Ends the input. A truncated stream ends with an error in the client's wire format (G-16).
    pub fn finish(&mut self) -> Result<FinishedStream, TranslationError> {
        let (mut bytes, _) = self.end_input()?;
        if !self.is_ended() {
            bytes.extend(self.fail(cut()));
        }
        let error = self.fold.error().cloned();
        Ok(FinishedStream { bytes, response: std::mem::take(&mut self.fold).into_response(), error })
    }

    /// Ends the input. Returns the last bytes for the client, and whether the response is complete.
    pub fn end_input(&mut self) -> Result<(Vec<u8>, bool), TranslationError> {
        let mut bytes = Vec::new();
        // Some servers omit the blank line after their last event. A truncated event is unreadable, and is ignored.
        let last = self.parser.finish()?.and_then(|event| self.reader.push(&event).ok());
        for event in last.into_iter().flatten() {
            self.pass(&event, &mut bytes)?;
        }
        for event in self.reader.finish() {
            self.pass(&event, &mut bytes)?;
        }
        Ok((bytes, self.fold.is_ended() && self.fold.error().is_none()))
    }

    /// Ends the response with an error. Returns its bytes in the client's wire format.
    pub fn fail(&mut self, error: ModelError) -> Vec<u8> {
        let mut bytes = Vec::new();
        // Errors are not subject to the limits of the fold.
        drop(self.pass(&StreamEvent::Error(error), &mut bytes));
        bytes
    }
}

fn cut() -> ModelError {
    ModelError {
        kind: ModelErrorKind::Server,
        message: CUT.into(),
        code: Some("upstream_error".into()),
        param: None,
        extra: Extra::default(),
    }
}
