//! Reading of streamed answers.

use serde_json::{Map, Value};

use super::call_ids::GeminiCallIds;
use super::error::read_error;
use super::fields::{GeminiFields, too_many};
use super::finish::finish_of;
use super::logprobs::read_logprobs;
use super::response::{LOGPROBS, OF_CANDIDATE, is_blocked, take_parts};
use super::usage::read_usage;
use super::{CANDIDATES_MAX, PARTS_MAX};
use assay_node_dialects::form::{ContentPart, Extra, FinishReason, PartDelta, PartStart, StreamEvent, TokenUsage};
use assay_node_dialects::{Dialect, DialectError, SseEvent};

/// Upper bound of unknown fields of a candidate.
const CANDIDATE_FIELDS_MAX: usize = 256;
/// Status of an error in a stream that has no code.
const UNKNOWN_ERROR_STATUS: u16 = 500;
/// Data that some servers end a stream with.
const DONE: &str = "[DONE]";

/// Reader of a stream of answers, each with what came since the one before.
///
/// No event of this dialect ends a stream. It is complete when the input ends after a reason to finish.
#[derive(Debug, Default)]
pub struct GeminiStreamReader {
    is_started: bool,
    is_over: bool,
    is_blocked: bool,
    response_id: String,
    candidates: Vec<CandidateReader>,
    usage: Option<TokenUsage>,
}

impl GeminiStreamReader {
    /// Reads an event. After an error there are no more.
    pub fn push(&mut self, event: &SseEvent) -> Result<Vec<StreamEvent>, DialectError> {
        let data = event.data.trim();
        if self.is_over || data.is_empty() || data == DONE {
            return Ok(Vec::new());
        }
        let body: Value = serde_json::from_str(data).map_err(|error| DialectError::Stream(error.to_string()))?;
        if let Some(error) = body.get("error") {
            self.is_over = true;
            let code = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
            return Ok(vec![StreamEvent::Error(read_error(code.unwrap_or(UNKNOWN_ERROR_STATUS), &body))]);
        }
        let mut body = GeminiFields::of(body, "")?;
        let mut events = Vec::new();
        let id = body.text("responseId")?.unwrap_or_default();
        let model = body.text("modelVersion")?.unwrap_or_default();
        let candidates = body.list("candidates", CANDIDATES_MAX)?;
        if let Some(usage) = body.object("usageMetadata")? {
            self.usage = Some(read_usage(usage)?);
        }
        let extra = body.extra();
        self.is_blocked |= is_blocked(&extra);
        if !std::mem::replace(&mut self.is_started, true) {
            self.response_id.clone_from(&id);
            events.push(StreamEvent::Start { id, model, created: None, extra });
        }
        for (at, candidate) in candidates.into_iter().enumerate() {
            let candidate = GeminiFields::of(candidate, &format!("candidates[{at}]"))?;
            self.candidate(candidate, at, &mut events)?;
        }
        Ok(events)
    }

    fn candidate(
        &mut self,
        mut candidate: GeminiFields,
        at: usize,
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), DialectError> {
        let index = candidate.count("index")?.unwrap_or(at as u64);
        let known = self.candidates.iter().position(|known| known.index == index);
        let known = match known {
            Some(known) => known,
            None if self.candidates.len() >= CANDIDATES_MAX => return Err(too_many("candidates", CANDIDATES_MAX)),
            None => {
                self.candidates.push(CandidateReader::new(&self.response_id, index));
                self.candidates.len() - 1
            }
        };
        self.candidates[known].read(candidate, events)
    }

    /// Ends the input. Without a reason to finish in every candidate the stream was cut, and has no end.
    pub fn finish(&mut self) -> Vec<StreamEvent> {
        let mut events = Vec::new();
        if std::mem::replace(&mut self.is_over, true) {
            return events;
        }
        let is_blocked = self.is_blocked && self.candidates.is_empty();
        let is_complete = !self.candidates.is_empty() && self.candidates.iter().all(|one| one.reason.is_some());
        for candidate in &mut self.candidates {
            candidate.finish(&mut events);
        }
        if is_blocked {
            events.push(StreamEvent::Finish { choice: 0, reason: FinishReason::ContentFilter });
        }
        events.extend(self.usage.take().map(StreamEvent::Usage));
        if is_complete || is_blocked {
            events.push(StreamEvent::End);
        }
        events
    }
}

/// Reader of one candidate of a stream.
#[derive(Debug)]
struct CandidateReader {
    index: u64,
    ids: GeminiCallIds,
    /// Number of parts that were started.
    parts: usize,
    open: Option<OpenCandidatePart>,
    has_calls: bool,
    /// Reason to finish; some models state one in every answer of a stream.
    reason: Option<String>,
    /// Unknown fields, the latest of each name.
    fields: Map<String, Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenCandidatePart {
    Text,
    Reasoning,
    /// A part to which nothing is added.
    Whole,
}

impl CandidateReader {
    fn new(response_id: &str, index: u64) -> CandidateReader {
        let ids = GeminiCallIds::of_candidate(response_id, index);
        CandidateReader { index, ids, parts: 0, open: None, has_calls: false, reason: None, fields: Map::new() }
    }

    fn read(&mut self, mut candidate: GeminiFields, events: &mut Vec<StreamEvent>) -> Result<(), DialectError> {
        for part in take_parts(&mut candidate, &mut self.ids)? {
            self.part(part, events)?;
        }
        if let Some(reason) = candidate.text("finishReason")? {
            self.reason = Some(reason);
        }
        if let Some(result) = candidate.take(LOGPROBS) {
            match read_logprobs(&result) {
                Some(logprobs) => events.push(StreamEvent::Logprobs { choice: self.index, logprobs }),
                None => candidate.keep(LOGPROBS, result),
            }
        }
        if let Value::Object(fields) = candidate.value() {
            self.fields.extend(fields);
        }
        if self.fields.len() > CANDIDATE_FIELDS_MAX {
            return Err(too_many("fields of a candidate", CANDIDATE_FIELDS_MAX));
        }
        Ok(())
    }

    fn part(&mut self, part: ContentPart, events: &mut Vec<StreamEvent>) -> Result<(), DialectError> {
        match part {
            ContentPart::Text(text) => {
                self.continue_part(OpenCandidatePart::Text, PartStart::Text, events)?;
                self.text(text.text, text.signature, text.extra, events);
            }
            ContentPart::Reasoning(reasoning) => {
                self.continue_part(OpenCandidatePart::Reasoning, PartStart::Reasoning, events)?;
                self.text(reasoning.text, reasoning.signature, reasoning.extra, events);
            }
            ContentPart::ToolCall(call) => {
                self.has_calls = true;
                let start = PartStart::ToolCall { id: call.id, name: call.name };
                self.start(OpenCandidatePart::Whole, start, events)?;
                self.delta(PartDelta::Arguments(call.arguments), events);
                self.signature_and_extra(call.signature, call.extra, events);
            }
            whole => self.start(OpenCandidatePart::Whole, PartStart::Whole(Box::new(whole)), events)?,
        }
        Ok(())
    }

    fn continue_part(
        &mut self,
        kind: OpenCandidatePart,
        start: PartStart,
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), DialectError> {
        if self.open == Some(kind) { Ok(()) } else { self.start(kind, start, events) }
    }

    fn start(
        &mut self,
        kind: OpenCandidatePart,
        start: PartStart,
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), DialectError> {
        if self.parts >= PARTS_MAX {
            return Err(too_many("parts of a candidate", PARTS_MAX));
        }
        self.end_part(events);
        self.open = Some(kind);
        events.push(StreamEvent::PartStart { choice: self.index, part: self.parts, start });
        self.parts += 1;
        Ok(())
    }

    fn text(&mut self, text: String, signature: Option<String>, extra: Extra, events: &mut Vec<StreamEvent>) {
        if !text.is_empty() {
            self.delta(PartDelta::Text(text), events);
        }
        let is_signed = signature.is_some();
        self.signature_and_extra(signature, extra, events);
        if is_signed {
            // a text after a signature is another part
            self.open = Some(OpenCandidatePart::Whole);
        }
    }

    fn signature_and_extra(&mut self, signature: Option<String>, extra: Extra, events: &mut Vec<StreamEvent>) {
        if let Some(signature) = signature {
            self.delta(PartDelta::Signature(signature), events);
        }
        if !extra.is_empty() {
            self.delta(PartDelta::Foreign(extra), events);
        }
    }

    /// Adds to the open part, which is the last one.
    fn delta(&mut self, delta: PartDelta, events: &mut Vec<StreamEvent>) {
        if let Some(part) = self.parts.checked_sub(1) {
            events.push(StreamEvent::PartDelta { choice: self.index, part, delta });
        }
    }

    fn end_part(&mut self, events: &mut Vec<StreamEvent>) {
        if let Some(part) = self.parts.checked_sub(1).filter(|_| self.open.take().is_some()) {
            events.push(StreamEvent::PartEnd { choice: self.index, part });
        }
    }

    fn finish(&mut self, events: &mut Vec<StreamEvent>) {
        let fields = std::mem::take(&mut self.fields).into_iter();
        let fields: Map<String, Value> = fields.map(|(name, value)| (format!("{OF_CANDIDATE}{name}"), value)).collect();
        if !fields.is_empty() {
            self.delta(PartDelta::Foreign(Extra::of(Dialect::Gemini, fields)), events);
        }
        self.end_part(events);
        if let Some(reason) = &self.reason {
            let reason = finish_of(reason, self.has_calls);
            events.push(StreamEvent::Finish { choice: self.index, reason });
        }
    }
}
