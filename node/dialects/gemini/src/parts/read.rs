//! Reading of parts.

use serde_json::{Value, json};

use super::media::read_media;
use super::result_content;
use crate::PARTS_MAX;
use crate::call_ids::GeminiCallIds;
use crate::fields::GeminiFields;
use assay_node_dialects::form::{ContentPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart};
use assay_node_dialects::{Dialect, DialectError};

/// Who speaks the content of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentSpeaker {
    User,
    Model,
}

/// Reads a part of a request.
pub(crate) fn read_content_part(
    value: Value,
    path: &str,
    speaker: ContentSpeaker,
    ids: &mut GeminiCallIds,
) -> Result<ContentPart, DialectError> {
    let part = GeminiFields::of(value.clone(), path)?;
    if part.has("functionResponse") && speaker == ContentSpeaker::User {
        return read_result(part, value, ids);
    }
    match read_part(part, value, speaker, ids)? {
        ContentPart::Reasoning(mut reasoning) => {
            // says that the reasoning is of this dialect, which refuses that of others
            reasoning.extra = reasoning.extra.with_field_spelling(Dialect::Gemini, "thought", json!(true));
            Ok(ContentPart::Reasoning(reasoning))
        }
        part => Ok(part),
    }
}

/// Reads a part of an answer.
pub(crate) fn read_answer_part(value: Value, path: &str, ids: &mut GeminiCallIds) -> Result<ContentPart, DialectError> {
    read_part(GeminiFields::of(value.clone(), path)?, value, ContentSpeaker::Model, ids)
}

fn read_part(
    mut part: GeminiFields,
    whole: Value,
    speaker: ContentSpeaker,
    ids: &mut GeminiCallIds,
) -> Result<ContentPart, DialectError> {
    let is_thought = whole.get("thought") == Some(&Value::Bool(true));
    if part.has("text") {
        let text = part.text("text")?.unwrap_or_default();
        let signature = part.text("thoughtSignature")?;
        return Ok(if is_thought {
            part.take("thought");
            ContentPart::Reasoning(ReasoningPart { text, signature, encrypted: None, extra: part.extra() })
        } else {
            ContentPart::Text(TextPart { text, cache: None, signature, extra: part.extra() })
        });
    }
    // thoughts in images are no images of the answer
    if !is_thought && (part.has("inlineData") || part.has("fileData")) {
        return read_media(part);
    }
    if part.has("functionCall") && speaker == ContentSpeaker::Model {
        return read_call(part, whole, ids);
    }
    Ok(foreign(whole))
}

fn foreign(part: Value) -> ContentPart {
    ContentPart::Foreign { from: Dialect::Gemini, part }
}

fn read_call(mut part: GeminiFields, whole: Value, ids: &mut GeminiCallIds) -> Result<ContentPart, DialectError> {
    let signature = part.text("thoughtSignature")?;
    let Some(mut call) = part.object("functionCall")? else { return Ok(foreign(whole)) };
    // a piece of a call that the server streams in pieces has no name
    let Some(name) = call.text("name")? else { return Ok(foreign(whole)) };
    let arguments = match call.take("args") {
        None => "{}".to_owned(),
        Some(arguments @ Value::Object(_)) => arguments.to_string(),
        Some(_) => return Err(DialectError::malformed(call.path_of("args"), "an object")),
    };
    let id = ids.of_call(call.text("id")?, &name, &arguments)?;
    call.rest_into(&mut part, "functionCall");
    Ok(ContentPart::ToolCall(ToolCallPart { id, name, arguments, signature, cache: None, extra: part.extra() }))
}

fn read_result(mut part: GeminiFields, whole: Value, ids: &mut GeminiCallIds) -> Result<ContentPart, DialectError> {
    let Some(mut result) = part.object("functionResponse")? else { return Ok(foreign(whole)) };
    let name = result
        .text("name")?
        .ok_or_else(|| DialectError::malformed(result.path_of("name"), "the name of the function"))?;
    let call_id = ids.of_result(result.text("id")?, &name);
    let (mut content, mut is_error) = (Vec::new(), false);
    match result.take("response") {
        None => {}
        Some(Value::Object(response)) => {
            let text;
            (text, is_error) = result_content(&response);
            content.push(ContentPart::Text(TextPart { text, ..TextPart::default() }));
        }
        Some(_) => return Err(DialectError::malformed(result.path_of("response"), "an object")),
    }
    for (index, media) in result.list("parts", PARTS_MAX)?.into_iter().enumerate() {
        content.push(read_result_media(media, &result.path_of(&format!("parts[{index}]")))?);
    }
    result.rest_into(&mut part, "functionResponse");
    let name = Some(name);
    Ok(ContentPart::ToolResult(ToolResultPart { call_id, name, is_error, content, cache: None, extra: part.extra() }))
}

/// Reads media that a function returned.
fn read_result_media(value: Value, path: &str) -> Result<ContentPart, DialectError> {
    let part = GeminiFields::of(value.clone(), path)?;
    if part.has("inlineData") || part.has("fileData") {
        return read_media(part);
    }
    Ok(foreign(value))
}
