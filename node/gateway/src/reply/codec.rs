//! Codecs for streams of model servers, which translate events, or pass and also read them.

use assay_node_dialects::form::{FoldLimits, ModelError, ResponseFold, StreamEvent};
use assay_node_dialects::sse::{SseParser, write_event};
use assay_node_dialects::{Dialect, SseEvent};
use assay_node_dialects_chat::completions::CompletionStreamFold;
use assay_node_dialects_chat::is_usage_chunk;
use bytes::Bytes;

use crate::gateway::now_ms;
use crate::outcome::{CallAnswer, choices_text_bytes, response_text_bytes};
use crate::translation::{StreamReader, StreamTranslation, TranslationError, event_bytes_max, stream_reader};
use crate::upstream::ReplyForm;

/// Codec of one stream, from the bytes of the server to the bytes for the client.
#[derive(Debug)]
pub(crate) enum StreamCodec {
    Translated(Box<StreamTranslation>),
    Passed(Box<PassedStream>),
    Completions(Box<PassedCompletions>),
    /// Bytes that pass unread. The flag says whether any have arrived.
    Opaque(bool),
}

/// Stream in the wire format of the client. Its events pass unmodified.
#[derive(Debug)]
pub(crate) struct PassedStream {
    parser: SseParser,
    /// `None` after an unreadable event, from which on the stream passes unread.
    reader: Option<StreamReader>,
    fold: ResponseFold,
    /// Bytes of the text up to the last report of usage.
    reported_bytes: u64,
    hides_usage: bool,
}

/// Stream of text completions.
#[derive(Debug)]
pub(crate) struct PassedCompletions {
    parser: SseParser,
    fold: CompletionStreamFold,
    /// Bytes of the text up to the last report of usage.
    reported_bytes: u64,
    hides_usage: bool,
}

impl StreamCodec {
    pub fn new(form: &ReplyForm) -> StreamCodec {
        match form {
            ReplyForm::Translated(translation) => {
                StreamCodec::Translated(Box::new(translation.stream().with_created(now_ms() / 1000)))
            }
            ReplyForm::Passed { dialect, hides_usage } => StreamCodec::Passed(Box::new(PassedStream {
                parser: SseParser::with_limit(event_bytes_max(*dialect)),
                reader: Some(stream_reader(*dialect)),
                fold: ResponseFold::new(FoldLimits::default()),
                reported_bytes: 0,
                hides_usage: *hides_usage,
            })),
            ReplyForm::Completions { hides_usage } => StreamCodec::Completions(Box::new(PassedCompletions {
                parser: SseParser::with_limit(event_bytes_max(Dialect::Chat)),
                fold: CompletionStreamFold::new(FoldLimits::default()),
                reported_bytes: 0,
                hides_usage: *hides_usage,
            })),
            ReplyForm::Embeddings(_) | ReplyForm::Moderations | ReplyForm::Opaque => StreamCodec::Opaque(false),
        }
    }

    /// Processes bytes of the server. Returns the bytes for the client, and an error if the rest is unreadable.
    pub fn push(&mut self, bytes: &Bytes) -> (Bytes, Result<(), TranslationError>) {
        let mut written = Vec::with_capacity(bytes.len());
        let pushed = match self {
            StreamCodec::Translated(translation) => translation.push(bytes, &mut written),
            StreamCodec::Passed(passed) => passed.push(bytes, &mut written),
            StreamCodec::Completions(passed) => passed.push(bytes, &mut written),
            StreamCodec::Opaque(came) => {
                *came = true;
                return (bytes.clone(), Ok(()));
            }
        };
        (written.into(), pushed)
    }

    /// Returns whether the client has received a part of the answer.
    pub fn has_content(&self) -> bool {
        let has_parts =
            |choices: &[assay_node_dialects::form::ModelChoice]| choices.iter().any(|choice| !choice.parts.is_empty());
        match self {
            StreamCodec::Translated(translation) => has_parts(&translation.response().choices),
            StreamCodec::Passed(passed) => passed.reader.is_none() || has_parts(&passed.fold.response().choices),
            StreamCodec::Completions(passed) => !passed.fold.response().choices.is_empty(),
            StreamCodec::Opaque(came) => *came,
        }
    }

    /// Returns whether the answer is complete, or an error of the server ended it.
    pub fn is_ended(&self) -> bool {
        match self {
            StreamCodec::Translated(translation) => translation.is_ended(),
            StreamCodec::Passed(passed) => passed.fold.is_ended() || passed.fold.error().is_some(),
            StreamCodec::Completions(passed) => passed.fold.is_ended() || passed.fold.error().is_some(),
            StreamCodec::Opaque(_) => false,
        }
    }

    /// Returns the error that the server sent in the stream.
    pub fn error(&self) -> Option<&ModelError> {
        match self {
            StreamCodec::Translated(translation) => translation.error(),
            StreamCodec::Passed(passed) => passed.fold.error(),
            StreamCodec::Completions(passed) => passed.fold.error(),
            StreamCodec::Opaque(_) => None,
        }
    }

    /// Ends the input. Returns the last bytes, and whether the answer is complete.
    pub fn finish(&mut self) -> Result<(Bytes, bool), TranslationError> {
        match self {
            StreamCodec::Translated(translation) => {
                translation.end_input().map(|(bytes, is_complete)| (bytes.into(), is_complete))
            }
            StreamCodec::Passed(passed) => passed.finish(),
            StreamCodec::Completions(passed) => {
                let mut bytes = Vec::new();
                if let Some(event) = passed.parser.finish()? {
                    passed.take(&event, &mut bytes)?;
                }
                let is_complete = passed.fold.is_ended() && passed.fold.error().is_none();
                Ok((bytes.into(), is_complete))
            }
            StreamCodec::Opaque(_) => Ok((Bytes::new(), true)),
        }
    }

    /// Returns the answer so far.
    pub fn answer(&self) -> CallAnswer {
        match self {
            StreamCodec::Translated(translation) => CallAnswer::Conversation(Box::new(translation.response().clone())),
            StreamCodec::Passed(passed) => CallAnswer::Conversation(Box::new(passed.fold.response().clone())),
            StreamCodec::Completions(passed) => CallAnswer::Choices(passed.fold.response().choices.clone()),
            StreamCodec::Opaque(_) => CallAnswer::None,
        }
    }

    pub fn usage(&self) -> Option<assay_node_dialects::form::TokenUsage> {
        match self {
            StreamCodec::Translated(translation) => translation.response().usage.clone(),
            StreamCodec::Passed(passed) => passed.fold.response().usage.clone(),
            StreamCodec::Completions(passed) => passed.fold.response().usage.clone(),
            StreamCodec::Opaque(_) => None,
        }
    }

    /// Returns the bytes of the text that arrived after the last report of usage.
    pub fn unreported_bytes(&self) -> u64 {
        match self {
            StreamCodec::Translated(translation) => translation.unreported_bytes(),
            StreamCodec::Passed(passed) => {
                response_text_bytes(passed.fold.response()).saturating_sub(passed.reported_bytes)
            }
            StreamCodec::Completions(passed) => {
                choices_text_bytes(&passed.fold.response().choices).saturating_sub(passed.reported_bytes)
            }
            StreamCodec::Opaque(_) => 0,
        }
    }
}

impl PassedStream {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), TranslationError> {
        for event in self.parser.push(bytes)? {
            self.take(&event, out);
        }
        Ok(())
    }

    fn take(&mut self, event: &SseEvent, out: &mut Vec<u8>) {
        if !(self.hides_usage && is_usage_chunk(event)) {
            out.extend_from_slice(&write_event(event));
        }
        let Some(reader) = &mut self.reader else { return };
        match reader.push(event) {
            Ok(events) => {
                for event in &events {
                    // An answer that exceeds the limits of the log still passes.
                    drop(self.fold.push(event));
                }
                if events.iter().any(|event| matches!(event, StreamEvent::Usage(_))) {
                    self.reported_bytes = response_text_bytes(self.fold.response());
                }
            }
            Err(_) => self.reader = None,
        }
    }

    fn finish(&mut self) -> Result<(Bytes, bool), TranslationError> {
        let mut out = Vec::new();
        if let Some(event) = self.parser.finish()? {
            self.take(&event, &mut out);
        }
        for event in self.reader.as_mut().map(StreamReader::finish).unwrap_or_default() {
            drop(self.fold.push(&event));
        }
        let is_complete = self.fold.is_ended() && self.fold.error().is_none();
        Ok((out.into(), is_complete || self.reader.is_none()))
    }
}

impl PassedCompletions {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), TranslationError> {
        for event in self.parser.push(bytes)? {
            self.take(&event, out)?;
        }
        Ok(())
    }

    fn take(&mut self, event: &SseEvent, out: &mut Vec<u8>) -> Result<(), TranslationError> {
        let before = self.fold.response().usage.clone();
        self.fold.push(event)?;
        let response = self.fold.response();
        if response.usage != before {
            self.reported_bytes = choices_text_bytes(&response.choices);
        }
        if !(self.hides_usage && is_usage_chunk(event)) {
            out.extend_from_slice(&write_event(event));
        }
        Ok(())
    }
}
