//! Translation of a streamed answer: bytes of the model server in, bytes for the client out.

use assay_node_dialects::form::{
    Extra, FoldError, FoldLimits, ModelError, ModelErrorKind, ModelResponse, ResponseFold, StreamEvent,
};
use assay_node_dialects::sse::{SSE_EVENT_BYTES_MAX, SseError, write_event};
use assay_node_dialects::{DialectError, SseEvent};
use assay_node_dialects_converse::EventStreamError;

use super::{EventParser, StreamReader, StreamWriter};

/// Text of the error that a client gets if the stream of the server ends before its last event.
const CUT: &str = "the model server ended its answer early";

/// Answer of a model server that cannot be read.
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

/// Translation of one streamed answer.
#[derive(Debug)]
pub struct StreamTranslation {
    parser: EventParser,
    reader: StreamReader,
    writer: StreamWriter,
    fold: ResponseFold,
    /// Time for answers of servers that name none, in seconds since 1970.
    created_s: Option<u64>,
}

/// What came of a stream.
#[derive(Debug)]
pub struct FinishedStream {
    /// Last bytes for the client.
    pub bytes: Vec<u8>,
    /// Answer as far as it came.
    pub response: ModelResponse,
    /// Error that the server sent, or that the stream was cut.
    pub error: Option<ModelError>,
}

impl StreamTranslation {
    pub fn new(reader: StreamReader, writer: StreamWriter) -> StreamTranslation {
        let fold = ResponseFold::new(FoldLimits::default());
        StreamTranslation { parser: EventParser::sse(SSE_EVENT_BYTES_MAX), reader, writer, fold, created_s: None }
    }

    /// Sets another parser, for other streams than server-sent events and for other bounds.
    pub fn with_parser(self, parser: EventParser) -> StreamTranslation {
        StreamTranslation { parser, ..self }
    }

    /// Sets the time of answers whose server names none.
    pub fn with_created(self, created_s: u64) -> StreamTranslation {
        StreamTranslation { created_s: Some(created_s), ..self }
    }

    /// Returns the answer as far as it came.
    pub fn response(&self) -> &ModelResponse {
        self.fold.response()
    }

    /// Returns the error of the server that broke the answer.
    pub fn error(&self) -> Option<&ModelError> {
        self.fold.error()
    }

    /// Takes bytes of the server, and appends the bytes for the client: also those of the events before one that cannot be
    /// read. What follows the end of the answer is ignored.
    pub fn push(&mut self, bytes: &[u8], written: &mut Vec<u8>) -> Result<(), TranslationError> {
        for event in self.parser.push(bytes)? {
            self.take(&event, written)?;
        }
        Ok(())
    }

    fn take(&mut self, event: &SseEvent, written: &mut Vec<u8>) -> Result<(), TranslationError> {
        for mut event in self.reader.push(event)? {
            if let StreamEvent::Start { created, .. } = &mut event {
                *created = created.or(self.created_s);
            }
            self.pass(&event, written)?;
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

    /// Returns whether the answer is complete, or broken by an error of the server.
    pub fn is_ended(&self) -> bool {
        self.fold.is_ended() || self.fold.error().is_some()
    }

    /// Ends the input. A stream without its last event becomes an error of the client's wire format (G-16).
    pub fn finish(&mut self) -> Result<FinishedStream, TranslationError> {
        let (mut bytes, _) = self.end_input()?;
        if !self.is_ended() {
            bytes.extend(self.fail(cut()));
        }
        let error = self.fold.error().cloned();
        Ok(FinishedStream { bytes, response: std::mem::take(&mut self.fold).into_response(), error })
    }

    /// Ends the input. Returns the last bytes for the client, and whether the answer is complete.
    pub fn end_input(&mut self) -> Result<(Vec<u8>, bool), TranslationError> {
        let mut bytes = Vec::new();
        // Some servers omit the blank line behind their last event. An event that was cut cannot be read, and is ignored.
        let last = self.parser.finish()?.and_then(|event| self.reader.push(&event).ok());
        for event in last.into_iter().flatten() {
            self.pass(&event, &mut bytes)?;
        }
        for event in self.reader.finish() {
            self.pass(&event, &mut bytes)?;
        }
        Ok((bytes, self.fold.is_ended() && self.fold.error().is_none()))
    }

    /// Breaks the answer with an error of the client's wire format. Returns the bytes that say so.
    pub fn fail(&mut self, error: ModelError) -> Vec<u8> {
        let mut bytes = Vec::new();
        // The limits of the fold do not count for errors.
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
