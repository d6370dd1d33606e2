//! Conversion of whole responses of model servers for the client.

use assay_node_dialects::Dialect;
use assay_node_dialects::form::{ModelError, TokenUsage};
use assay_node_dialects_chat as chat;
use assay_node_dialects_chat::completions::CompletionResponse;
use assay_node_dialects_chat::embeddings::EmbeddingResponse;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

use crate::call::ModelCall;
use crate::error::GatewayError;
use crate::outcome::CallAnswer;
use crate::translation::{CallTranslation, UpstreamFormat, read_error, read_response, write_error};
use crate::upstream::{AttemptPlan, EmbeddingForm, ReplyForm, gemini_to_openai, openai_to_gemini_response};

const JSON: &str = "application/json";
/// Upper bound of the quoted bytes of an upstream error text.
const QUOTED_BYTES_MAX: usize = 1_000;

/// Response for the client, with the data for spans and budgets.
#[derive(Debug)]
pub(crate) struct WholeReply {
    pub bytes: Bytes,
    pub content_type: String,
    pub answer: CallAnswer,
    pub usage: Option<TokenUsage>,
    /// Failure that a response of status 200 reports.
    pub failure: Option<ModelError>,
}

impl WholeReply {
    fn json(bytes: Bytes, answer: CallAnswer, usage: Option<TokenUsage>) -> WholeReply {
        WholeReply { bytes, content_type: JSON.to_owned(), answer, usage, failure: None }
    }
}

/// Only member of a response that is read if the answer has no reader.
#[derive(Deserialize)]
struct ReportedUsage {
    usage: Value,
}

/// Reads a successful response. The error says why the response is unreadable.
///
/// Without `has_reader`, an untranslated chat response is only read for its usage.
pub(crate) fn read_whole(
    call: &ModelCall,
    plan: &AttemptPlan,
    (body, content_type): (Bytes, String),
    (now_s, has_reader): (u64, bool),
) -> Result<WholeReply, String> {
    if let ReplyForm::Passed { dialect: Dialect::Chat, .. } = plan.form
        && !has_reader
        && let Ok(ReportedUsage { usage }) = serde_json::from_slice(&body)
        && let Some(usage) = chat::read_usage(&usage)
    {
        return Ok(WholeReply::json(body, CallAnswer::None, Some(usage)));
    }
    if let ReplyForm::Opaque = plan.form {
        let usage = serde_json::from_slice::<Value>(&body).ok().and_then(|value| chat::read_usage(&value["usage"]));
        return Ok(WholeReply { bytes: body, content_type, answer: CallAnswer::None, usage, failure: None });
    }
    let value: Value = serde_json::from_slice(&body).map_err(|error| format!("the response is no JSON: {error}"))?;
    let text = |error: assay_node_dialects::DialectError| error.to_string();
    match &plan.form {
        ReplyForm::Translated(translation) => translated(call, translation, &value, now_s),
        ReplyForm::Passed { dialect, .. } => Ok(passed(*dialect, body, &value)),
        ReplyForm::Completions { .. } => {
            let response = CompletionResponse::read(&value).map_err(text)?;
            Ok(WholeReply::json(body, CallAnswer::Choices(response.choices), response.usage))
        }
        ReplyForm::Embeddings(form) => embeddings(call, *form, body, &value).map_err(text),
        ReplyForm::Moderations => Ok(WholeReply::json(body, CallAnswer::Results(value["results"].clone()), None)),
        ReplyForm::Opaque => Err("an opaque response is not read".to_owned()),
    }
}

fn translated(
    call: &ModelCall,
    translation: &CallTranslation,
    value: &Value,
    now_s: u64,
) -> Result<WholeReply, String> {
    if let Some(failure) = translation.read_failure(value) {
        let mut reply = WholeReply::json(Bytes::new(), CallAnswer::None, None);
        reply.failure = Some(failure);
        return Ok(reply);
    }
    let mut response = translation.read_response(value).map_err(|error| error.to_string())?;
    response.created.get_or_insert(now_s);
    let (usage, answer) = (response.usage.clone(), CallAnswer::Conversation(Box::new(response.clone())));
    let bytes = match call.stream {
        true => Bytes::from(translation.write_as_stream(&response)),
        false => Bytes::from(translation.write_response(response).to_string()),
    };
    let mut reply = WholeReply::json(bytes, answer, usage);
    if call.stream {
        reply.content_type = "text/event-stream".to_owned();
    }
    Ok(reply)
}

fn passed(dialect: Dialect, body: Bytes, value: &Value) -> WholeReply {
    match dialect {
        Dialect::Chat => {
            let choices = value.get("choices").and_then(Value::as_array).cloned().unwrap_or_default();
            WholeReply::json(body, CallAnswer::Choices(choices), chat::read_usage(&value["usage"]))
        }
        dialect => match read_response(dialect, value) {
            Ok(response) => {
                let usage = response.usage.clone();
                let answer = match dialect {
                    Dialect::Responses => CallAnswer::Output(value["output"].clone()),
                    _ => CallAnswer::Conversation(Box::new(response)),
                };
                WholeReply::json(body, answer, usage)
            }
            // A response that the gateway cannot read still passes.
            Err(_) => WholeReply::json(body, CallAnswer::None, None),
        },
    }
}

fn embeddings(
    call: &ModelCall,
    form: EmbeddingForm,
    body: Bytes,
    value: &Value,
) -> Result<WholeReply, assay_node_dialects::DialectError> {
    let length = |values: &Value| values.as_array().map_or(0, Vec::len);
    let bytes = |value: Value| Bytes::from(value.to_string());
    Ok(match form {
        EmbeddingForm::Passed => {
            let read = EmbeddingResponse::read(value)?;
            WholeReply::json(body, CallAnswer::EmbeddingLength(read.embedding_length), read.usage)
        }
        EmbeddingForm::PassedGemini => {
            let first = value.get("embedding").or_else(|| value.get("embeddings")?.get(0));
            let length = first.map_or(0, |embedding| length(&embedding["values"]));
            WholeReply::json(body, CallAnswer::EmbeddingLength(length), None)
        }
        EmbeddingForm::GeminiToOpenAi => {
            let written = gemini_to_openai(&call.model, call.body.json(), value)?;
            let length = length(&value["embeddings"][0]["values"]);
            let usage = chat::read_usage(&written["usage"]);
            WholeReply::json(bytes(written), CallAnswer::EmbeddingLength(length), usage)
        }
        EmbeddingForm::OpenAiToGemini { is_batch } => {
            let read = EmbeddingResponse::read(value)?;
            let written = openai_to_gemini_response(value, is_batch)?;
            WholeReply::json(bytes(written), CallAnswer::EmbeddingLength(read.embedding_length), read.usage)
        }
    })
}

/// Returns an error response of a server in the wire format of the client, and its message (G-17).
pub(crate) fn failed_reply(call: &ModelCall, plan: &AttemptPlan, status: u16, body: &Bytes) -> (Bytes, String) {
    let client = call.endpoint.dialect();
    let Ok(value) = serde_json::from_slice::<Value>(body) else {
        let text = String::from_utf8_lossy(&body[..body.len().min(QUOTED_BYTES_MAX)]);
        let is_page = text.trim_start().starts_with('<');
        let said = if is_page || text.trim().is_empty() { String::new() } else { format!(": {}", text.trim()) };
        let message = format!("the model server answered with status {status}{said}");
        let error = GatewayError::new(status, "upstream_error", message.clone());
        return (Bytes::from(error.body(client).to_string()), message);
    };
    let error = read_error(plan.server, status, &value);
    let message = error.message.clone();
    if plan.server == UpstreamFormat::Client(client) && value.is_object() {
        return (body.clone(), message);
    }
    (Bytes::from(write_error(client, status, &error).to_string()), message)
}
