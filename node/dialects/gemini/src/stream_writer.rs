//! Writing of streamed answers.

use serde_json::{Map, Value, json};

use super::CANDIDATES_MAX;
use super::error::{error_status, write_error};
use super::fields::put_back;
use super::finish::reason_of;
use super::logprobs::write_logprobs;
use super::response::{
    CandidatePart, LOGPROBS, MALFORMED_CALL, content, is_blocked, move_candidate_fields, write_names, write_part,
};
use super::usage::write_usage;
use assay_node_dialects::form::{
    ContentPart, Extra, FinishReason, ModelError, ModelErrorKind, PartDelta, PartStart, ReasoningPart, StreamEvent,
    TextPart, TokenUsage, ToolCallPart,
};
use assay_node_dialects::{Dialect, SseEvent};

/// Upper bound of bytes of calls and signatures that are held until their part ends.
pub(super) const HELD_BYTES_MAX: usize = 32 << 20;

/// Upper bound of parts of a candidate that are streamed at the same time.
const OPEN_PARTS_MAX: usize = 1_024;

/// Writer of a stream of answers. Calls are written when they are whole, since the dialect has no pieces of them.
#[derive(Debug, Default)]
pub struct GeminiStreamWriter {
    is_over: bool,
    response_id: String,
    model: String,
    /// Fields of the first answer.
    extra: Extra,
    is_blocked: bool,
    candidates: Vec<CandidateWriter>,
    held_bytes: usize,
    usage: Option<TokenUsage>,
}

/// Writer of one candidate of a stream.
#[derive(Debug, Default)]
struct CandidateWriter {
    index: u64,
    has_parts: bool,
    open: Vec<(usize, HeldCandidatePart)>,
    finish: Option<FinishReason>,
    /// Message of a call that cannot be written.
    malformed: Option<String>,
    /// Fields of the candidate for its last answer.
    fields: Map<String, Value>,
}

/// Part that is being streamed: what is not written yet.
#[derive(Debug)]
struct HeldCandidatePart {
    part: ContentPart,
    signature: String,
    fields: Map<String, Value>,
}

impl GeminiStreamWriter {
    pub fn new() -> GeminiStreamWriter {
        GeminiStreamWriter::default()
    }

    /// Writes what the event adds.
    pub fn write(&mut self, event: &StreamEvent) -> Vec<SseEvent> {
        if self.is_over {
            return Vec::new();
        }
        let written = match event {
            StreamEvent::Error(error) => Ok(Some(self.error(error))),
            StreamEvent::Start { id, model, extra, .. } => {
                self.response_id.clone_from(id);
                self.model.clone_from(model);
                self.extra = extra.clone();
                self.is_blocked = is_blocked(extra);
                Ok(None)
            }
            StreamEvent::PartStart { choice, part, start } => self.start(*choice, *part, start),
            StreamEvent::PartDelta { choice, part, delta } => self.delta(*choice, *part, delta),
            StreamEvent::PartEnd { choice, part } => self.end(*choice, *part),
            StreamEvent::Logprobs { choice, logprobs } => Ok(write_logprobs(logprobs).map(|result| {
                let candidate = json!({ "index": choice, LOGPROBS: result });
                self.chunk(vec![candidate])
            })),
            StreamEvent::Finish { choice, reason } => self.candidate(*choice).map(|candidate| {
                candidate.finish = Some(reason.clone());
                None
            }),
            StreamEvent::Usage(usage) => {
                self.usage = Some(usage.clone());
                Ok(None)
            }
            StreamEvent::End => Ok(Some(self.last_chunk())),
        };
        let body = written.unwrap_or_else(|limit| Some(self.error(&overflow(limit))));
        body.map(|body| SseEvent { event: None, data: body.to_string() }).into_iter().collect()
    }

    /// Writes an error, after which nothing follows.
    fn error(&mut self, error: &ModelError) -> Value {
        self.is_over = true;
        write_error(error_status(error), error)
    }

    fn start(&mut self, choice: u64, part: usize, start: &PartStart) -> Result<Option<Value>, &'static str> {
        let text = TextPart::default;
        let held = match start {
            PartStart::Text => ContentPart::Text(text()),
            PartStart::Refusal => ContentPart::Refusal(text()),
            PartStart::Reasoning => ContentPart::Reasoning(ReasoningPart::default()),
            PartStart::ToolCall { id, name } => ContentPart::ToolCall(ToolCallPart {
                id: id.clone(),
                name: name.clone(),
                arguments: String::new(),
                signature: None,
                cache: None,
                extra: Extra::default(),
            }),
            PartStart::Whole(whole) => {
                let written = self.candidate(choice)?.part(whole);
                self.open(choice, part, ContentPart::Text(text()))?;
                return Ok(written.map(|part| self.part_chunk(choice, part)));
            }
        };
        self.open(choice, part, held)?;
        Ok(None)
    }

    fn open(&mut self, choice: u64, part: usize, held: ContentPart) -> Result<(), &'static str> {
        let candidate = self.candidate(choice)?;
        if candidate.open.len() >= OPEN_PARTS_MAX {
            return Err("more parts at a time than can be held");
        }
        candidate.open.push((part, HeldCandidatePart { part: held, signature: String::new(), fields: Map::new() }));
        Ok(())
    }

    fn delta(&mut self, choice: u64, part: usize, delta: &PartDelta) -> Result<Option<Value>, &'static str> {
        let bytes = match delta {
            PartDelta::Arguments(text) | PartDelta::Signature(text) => text.len(),
            PartDelta::Text(_) | PartDelta::Encrypted(_) | PartDelta::Foreign(_) => 0,
        };
        self.held_bytes += bytes;
        if self.held_bytes > HELD_BYTES_MAX {
            return Err("a longer call than can be held");
        }
        let candidate = self.candidate(choice)?;
        let Some((_, held)) = candidate.open.iter_mut().find(|(open, _)| *open == part) else { return Ok(None) };
        let written = match (delta, &mut held.part) {
            (PartDelta::Text(text), ContentPart::Reasoning(_)) => {
                Some(ContentPart::Reasoning(ReasoningPart { text: text.clone(), ..ReasoningPart::default() }))
            }
            (PartDelta::Text(text), _) => {
                Some(ContentPart::Text(TextPart { text: text.clone(), ..TextPart::default() }))
            }
            (PartDelta::Arguments(text), ContentPart::ToolCall(call)) => {
                call.arguments.push_str(text);
                None
            }
            (PartDelta::Signature(text), _) => {
                held.signature.push_str(text);
                None
            }
            (PartDelta::Foreign(extra), _) => {
                held.fields.extend(extra.for_dialect(Dialect::Gemini).cloned().unwrap_or_default());
                None
            }
            // pieces of arguments belong to calls, and encrypted reasoning to other dialects
            (PartDelta::Arguments(_) | PartDelta::Encrypted(_), _) => None,
        };
        let written = written.and_then(|part| candidate.part(&part));
        Ok(written.map(|part| self.part_chunk(choice, part)))
    }

    /// Writes what was held of a part: a call, a signature, unknown fields.
    fn end(&mut self, choice: u64, part: usize) -> Result<Option<Value>, &'static str> {
        let candidate = self.candidate(choice)?;
        let Some(at) = candidate.open.iter().position(|(open, _)| *open == part) else { return Ok(None) };
        let (_, held) = candidate.open.remove(at);
        let bytes = held.bytes();
        let written = candidate.end(held);
        self.held_bytes = self.held_bytes.saturating_sub(bytes);
        Ok(written.map(|part| self.part_chunk(choice, part)))
    }

    fn candidate(&mut self, index: u64) -> Result<&mut CandidateWriter, &'static str> {
        let known = self.candidates.iter().position(|candidate| candidate.index == index);
        if known.is_none() && self.candidates.len() >= CANDIDATES_MAX {
            return Err("more candidates than can be held");
        }
        let at = known.unwrap_or_else(|| {
            self.candidates.push(CandidateWriter { index, ..CandidateWriter::default() });
            self.candidates.len() - 1
        });
        Ok(&mut self.candidates[at])
    }

    fn part_chunk(&mut self, choice: u64, part: Value) -> Value {
        let candidate = json!({ "content": content(vec![part]), "index": choice });
        self.chunk(vec![candidate])
    }

    fn chunk(&mut self, candidates: Vec<Value>) -> Value {
        let mut body = Map::new();
        if !candidates.is_empty() {
            body.insert("candidates".to_owned(), Value::Array(candidates));
        }
        write_names(&mut body, &self.response_id, &self.model);
        put_back(&mut body, &std::mem::take(&mut self.extra));
        Value::Object(body)
    }

    /// The answer that ends a stream: reasons to finish and the usage.
    fn last_chunk(&mut self) -> Value {
        self.is_over = true;
        let is_blocked = self.is_blocked;
        let candidates = std::mem::take(&mut self.candidates).into_iter().map(|mut candidate| {
            let parts = candidate.end_all();
            (candidate, parts)
        });
        let candidates = candidates.filter(|(candidate, _)| candidate.has_parts || !is_blocked);
        let mut body = self.chunk(candidates.map(|(candidate, parts)| candidate.last(parts)).collect());
        if let (Some(usage), Value::Object(body)) = (&self.usage, &mut body) {
            body.insert("usageMetadata".to_owned(), write_usage(usage));
        }
        body
    }
}

impl HeldCandidatePart {
    /// Bytes that count as held.
    fn bytes(&self) -> usize {
        let arguments = match &self.part {
            ContentPart::ToolCall(call) => call.arguments.len(),
            _ => 0,
        };
        self.signature.len() + arguments
    }
}

impl CandidateWriter {
    /// Writes a part, unless this dialect has none for it.
    fn part(&mut self, part: &ContentPart) -> Option<Value> {
        match write_part(part) {
            CandidatePart::Written(part) => {
                self.has_parts = true;
                Some(part)
            }
            CandidatePart::Malformed(message) => {
                self.malformed.get_or_insert(message);
                None
            }
            CandidatePart::LeftOut => None,
        }
    }

    /// Writes what was held of a part.
    fn end(&mut self, held: HeldCandidatePart) -> Option<Value> {
        let HeldCandidatePart { mut part, signature, mut fields } = held;
        move_candidate_fields(&mut fields, &mut self.fields);
        let signature = Some(signature).filter(|signature| !signature.is_empty());
        let is_bare = signature.is_none() && fields.is_empty();
        let extra = Extra::of(Dialect::Gemini, fields);
        match &mut part {
            ContentPart::ToolCall(call) => (call.signature, call.extra) = (signature, extra),
            _ if is_bare => return None,
            ContentPart::Text(text) | ContentPart::Refusal(text) => (text.signature, text.extra) = (signature, extra),
            ContentPart::Reasoning(reasoning) => (reasoning.signature, reasoning.extra) = (signature, extra),
            _ => return None,
        }
        self.part(&part)
    }

    /// Writes what was held of parts that no event ended.
    fn end_all(&mut self) -> Vec<Value> {
        let open = std::mem::take(&mut self.open);
        open.into_iter().filter_map(|(_, held)| self.end(held)).collect()
    }

    /// Writes the last answer, with the parts that are left.
    fn last(self, parts: Vec<Value>) -> Value {
        let mut last = Map::from_iter([("content".to_owned(), content(parts))]);
        if let Some(message) = self.malformed {
            last.insert("finishReason".to_owned(), json!(MALFORMED_CALL));
            last.insert("finishMessage".to_owned(), json!(message));
        } else if let Some(finish) = self.finish {
            last.insert("finishReason".to_owned(), json!(reason_of(&finish, &Extra::default())));
        }
        last.insert("index".to_owned(), json!(self.index));
        put_back(&mut last, &Extra::of(Dialect::Gemini, self.fields));
        Value::Object(last)
    }
}

fn overflow(message: &str) -> ModelError {
    ModelError {
        kind: ModelErrorKind::Server,
        message: format!("the model server streams {message}"),
        code: None,
        param: None,
        extra: Extra::default(),
    }
}
