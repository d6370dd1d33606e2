//! Whole answers.

use serde_json::{Map, Value, json};

use super::call_ids::GeminiCallIds;
use super::fields::{GeminiFields, put_back, too_many};
use super::finish::{finish_of, reason_of, with_spelling};
use super::logprobs::{read_logprobs, write_logprobs};
use super::parts::{call_part, read_answer_part, text_part, thought_part, write_media_or_text};
use super::usage::{read_usage, write_usage};
use super::{CANDIDATES_MAX, PARTS_MAX};
use assay_node_dialects::form::{ContentPart, Extra, FinishReason, ModelChoice, ModelResponse, ToolCallPart};
use assay_node_dialects::{Dialect, DialectError};

/// Field that says why no candidate answers the prompt.
pub(super) const PROMPT_FEEDBACK: &str = "promptFeedback";
/// Spelling of probabilities as the server sent them.
pub(super) const LOGPROBS: &str = "logprobsResult";
/// Beginning of names of fields of a candidate that a stream keeps with the part before them.
pub(super) const OF_CANDIDATE: &str = "candidate.";

/// Reads an answer. A blocked prompt is a choice without parts.
pub fn read_response(body: &Value) -> Result<ModelResponse, DialectError> {
    let mut body = GeminiFields::of(body.clone(), "")?;
    let id = body.text("responseId")?.unwrap_or_default();
    let model = body.text("modelVersion")?.unwrap_or_default();
    let usage = body.object("usageMetadata")?.map(read_usage).transpose()?;
    let candidates = body.list("candidates", CANDIDATES_MAX)?;
    let mut choices = Vec::with_capacity(candidates.len());
    for (at, candidate) in candidates.into_iter().enumerate() {
        choices.push(read_candidate(candidate, &id, at)?);
    }
    let extra = body.extra();
    if choices.is_empty() && is_blocked(&extra) {
        choices.push(blocked_choice());
    }
    Ok(ModelResponse { id, model, created: None, choices, usage, extra })
}

/// Whether the fields of an answer say that the prompt was blocked.
pub(super) fn is_blocked(extra: &Extra) -> bool {
    let feedback = extra.for_dialect(Dialect::Gemini).and_then(|fields| fields.get(PROMPT_FEEDBACK));
    feedback.and_then(|feedback| feedback.get("blockReason")).is_some_and(Value::is_string)
}

fn blocked_choice() -> ModelChoice {
    let finish = Some(FinishReason::ContentFilter);
    ModelChoice { index: 0, parts: Vec::new(), finish, logprobs: None, extra: Extra::default() }
}

fn read_candidate(candidate: Value, response_id: &str, at: usize) -> Result<ModelChoice, DialectError> {
    let mut candidate = GeminiFields::of(candidate, &format!("candidates[{at}]"))?;
    let index = candidate.count("index")?.unwrap_or(at as u64);
    let mut ids = GeminiCallIds::of_candidate(response_id, index);
    let parts = take_parts(&mut candidate, &mut ids)?;
    let has_calls = parts.iter().any(|part| matches!(part, ContentPart::ToolCall(_)));
    let reason = candidate.text("finishReason")?;
    let probabilities = candidate.take(LOGPROBS);
    let logprobs = probabilities.as_ref().and_then(read_logprobs);
    if let Some(unknown) = probabilities.as_ref().filter(|_| logprobs.is_none()) {
        candidate.keep(LOGPROBS, unknown.clone());
    }
    let mut extra = candidate.extra();
    if let Some(known) = probabilities.filter(|_| logprobs.is_some()) {
        extra = extra.with_field_spelling(Dialect::Gemini, LOGPROBS, known);
    }
    let finish = reason.as_deref().map(|reason| finish_of(reason, has_calls));
    if let (Some(reason), Some(finish)) = (&reason, &finish) {
        extra = with_spelling(extra, reason, finish);
    }
    Ok(ModelChoice { index, parts, finish, logprobs, extra })
}

/// Takes the parts of a candidate. Unknown fields of its content are kept with those of the candidate.
pub(super) fn take_parts(
    candidate: &mut GeminiFields,
    ids: &mut GeminiCallIds,
) -> Result<Vec<ContentPart>, DialectError> {
    let Some(mut content) = candidate.object("content")? else { return Ok(Vec::new()) };
    content.take("role");
    let values = content.list("parts", PARTS_MAX)?.into_iter().enumerate();
    let mut parts = Vec::with_capacity(values.len());
    for (at, part) in values {
        parts.push(read_answer_part(part, &content.path_of(&format!("parts[{at}]")), ids)?);
    }
    content.rest_into(candidate, "content");
    if parts.len() > PARTS_MAX {
        return Err(too_many("parts of a candidate", PARTS_MAX));
    }
    Ok(parts)
}

/// Writes an answer. Parts that only other dialects have are left out.
pub fn write_response(response: &ModelResponse) -> Value {
    let mut body = Map::new();
    let is_blocked = is_blocked(&response.extra);
    let choices = response.choices.iter().filter(|choice| !(is_blocked && choice.parts.is_empty()));
    let candidates: Vec<Value> = choices.map(write_choice).collect();
    if !candidates.is_empty() {
        body.insert("candidates".to_owned(), Value::Array(candidates));
    }
    if let Some(usage) = &response.usage {
        body.insert("usageMetadata".to_owned(), write_usage(usage));
    }
    write_names(&mut body, &response.id, &response.model);
    put_back(&mut body, &response.extra);
    Value::Object(body)
}

/// Writes the id of an answer and the version of its model.
pub(super) fn write_names(body: &mut Map<String, Value>, id: &str, model: &str) {
    for (name, value) in
        [("modelVersion", model), ("responseId", id)].into_iter().filter(|(_, value)| !value.is_empty())
    {
        body.insert(name.to_owned(), json!(value));
    }
}

fn write_choice(choice: &ModelChoice) -> Value {
    let (mut parts, mut candidate, mut malformed) = (Vec::new(), Map::new(), None);
    for part in &choice.parts {
        match write_part(part) {
            CandidatePart::Written(Value::Object(mut part)) => {
                move_candidate_fields(&mut part, &mut candidate);
                parts.push(Value::Object(part));
            }
            CandidatePart::Written(part) => parts.push(part),
            CandidatePart::Malformed(message) => malformed = malformed.or(Some(message)),
            CandidatePart::LeftOut => {}
        }
    }
    let mut written = Map::from_iter([("content".to_owned(), content(parts))]);
    if let Some(message) = malformed {
        written.insert("finishReason".to_owned(), json!(MALFORMED_CALL));
        written.insert("finishMessage".to_owned(), json!(message));
    } else if let Some(finish) = &choice.finish {
        written.insert("finishReason".to_owned(), json!(reason_of(finish, &choice.extra)));
    }
    written.insert("index".to_owned(), json!(choice.index));
    let spelled = choice.extra.field_spelling(Dialect::Gemini, LOGPROBS);
    let spelled = spelled.filter(|spelled| read_logprobs(spelled) == choice.logprobs).cloned();
    if let Some(result) = spelled.or_else(|| write_logprobs(choice.logprobs.as_ref()?)) {
        written.insert(LOGPROBS.to_owned(), result);
    }
    written.extend(candidate);
    put_back(&mut written, &choice.extra);
    Value::Object(written)
}

/// Reason of a candidate whose call has no object as arguments.
pub(super) const MALFORMED_CALL: &str = "MALFORMED_FUNCTION_CALL";

/// Content of an answer. One without parts has only its role.
pub(super) fn content(parts: Vec<Value>) -> Value {
    let mut content = Map::new();
    if !parts.is_empty() {
        content.insert("parts".to_owned(), Value::Array(parts));
    }
    content.insert("role".to_owned(), json!("model"));
    Value::Object(content)
}

/// What the writer makes of a part.
#[derive(Debug)]
pub(super) enum CandidatePart {
    Written(Value),
    /// A call whose arguments are no object, with a message that says so.
    Malformed(String),
    /// Only another dialect has the part.
    LeftOut,
}

pub(super) fn write_part(part: &ContentPart) -> CandidatePart {
    let media = |source, name, extra| write_media_or_text(source, name, extra, "").ok();
    let written = match part {
        ContentPart::Text(text) | ContentPart::Refusal(text) => Some(text_part(text)),
        // encrypted reasoning without a text cannot be sent back through this dialect
        ContentPart::Reasoning(reasoning) if reasoning.text.is_empty() && reasoning.encrypted.is_some() => None,
        ContentPart::Reasoning(reasoning) => Some(thought_part(reasoning)),
        ContentPart::ToolCall(call) => match call_part(call, false) {
            Some(part) => Some(part),
            None => return CandidatePart::Malformed(malformed_call(call)),
        },
        ContentPart::Image { source, extra, .. } | ContentPart::Audio { source, extra, .. } => {
            media(source, None, extra)
        }
        ContentPart::File(file) => media(&file.source, file.name.as_deref(), &file.extra),
        ContentPart::Foreign { from: Dialect::Gemini, part } => return CandidatePart::Written(part.clone()),
        ContentPart::Foreign { .. } | ContentPart::ToolResult(_) => None,
    };
    written.map_or(CandidatePart::LeftOut, |part| CandidatePart::Written(Value::Object(part)))
}

/// Upper bound of bytes of arguments that a message quotes.
const QUOTED_BYTES_MAX: usize = 1_024;

fn malformed_call(call: &ToolCallPart) -> String {
    let mut end = call.arguments.len().min(QUOTED_BYTES_MAX);
    while !call.arguments.is_char_boundary(end) {
        end -= 1;
    }
    format!("Malformed function call: {}({})", call.name, &call.arguments[..end])
}

/// Moves fields of a candidate, which a stream kept with a part, to the candidate.
pub(super) fn move_candidate_fields(part: &mut Map<String, Value>, candidate: &mut Map<String, Value>) {
    let names: Vec<String> = part.keys().filter(|name| name.starts_with(OF_CANDIDATE)).cloned().collect();
    for name in names {
        if let Some(value) = part.shift_remove(&name) {
            candidate.insert(name[OF_CANDIDATE.len()..].to_owned(), value);
        }
    }
}
