//! Reasoning items.

use serde_json::{Value, json};

use super::super::CONTENT_PARTS_MAX;
use super::super::fields::{Fields, kept, put, put_rest, put_some, take_list, take_text, text_of, typed, within};
use assay_node_dialects::form::{Extra, ReasoningPart};
use assay_node_dialects::{Dialect, DialectError};

/// Text between two parts of a summary in the form, which has one text.
pub(crate) const SUMMARY_GAP: &str = "\n\n";

/// Reads an item. Its text is the summary, or the content if there is no summary. Lists that cannot be rebuilt from the
/// text stay as they are.
pub(crate) fn read_reasoning(mut fields: Fields, path: &str) -> Result<ReasoningPart, DialectError> {
    fields.shift_remove("type");
    let summary = take_list(&mut fields, path, "summary", CONTENT_PARTS_MAX)?.unwrap_or_default();
    let content = take_list(&mut fields, path, "content", CONTENT_PARTS_MAX)?;
    let encrypted = take_text(&mut fields, path, "encrypted_content")?;
    // ours, see `write_reasoning`; a server of this dialect gets it back if it gave it
    let signature = text_of(&fields, "signature").map(str::to_owned);
    let mut text = joined(&summary, &within(path, "summary"))?;
    let is_content = summary.is_empty() && content.as_ref().is_some_and(|content| !content.is_empty());
    if let Some(content) = content {
        if is_content {
            text = joined(&content, &within(path, "content"))?;
        }
        put(&mut fields, "content", content);
    }
    if is_content || summary != summary_of(&text) {
        put(&mut fields, "summary", summary);
    }
    Ok(ReasoningPart { text, signature, encrypted, extra: Extra::marked(Dialect::Responses, fields) })
}

fn joined(parts: &[Value], path: &str) -> Result<String, DialectError> {
    let texts = parts.iter().enumerate().map(|(at, part)| {
        let text = part.get("text").and_then(Value::as_str);
        text.ok_or_else(|| DialectError::malformed(format!("{path}[{at}].text"), "a text"))
    });
    Ok(texts.collect::<Result<Vec<_>, _>>()?.join(SUMMARY_GAP))
}

fn summary_of(text: &str) -> Vec<Value> {
    match text.is_empty() {
        true => Vec::new(),
        false => vec![json!({"type": "summary_text", "text": text})],
    }
}

/// Writes an item. A signature of another provider is beside it, so that a client that sends items back sends it too.
pub(crate) fn write_reasoning(reasoning: &ReasoningPart) -> Fields {
    let mut fields = typed("reasoning");
    let summary = kept(&reasoning.extra, "summary").cloned();
    put(&mut fields, "summary", summary.unwrap_or_else(|| summary_of(&reasoning.text).into()));
    put_some(&mut fields, "encrypted_content", reasoning.encrypted.as_deref());
    put_some(&mut fields, "signature", reasoning.signature.as_deref());
    put_rest(&mut fields, &reasoning.extra);
    fields
}
