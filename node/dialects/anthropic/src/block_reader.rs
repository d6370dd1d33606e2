//! Content blocks to parts.

use serde_json::{Map, Value};

use super::BLOCKS_MAX;
use super::fields::{
    extra, items, keep_inner, object, put, require_text, take, take_bool, take_cache, take_text, typed,
};
use assay_node_dialects::form::{
    ContentPart, FilePart, MediaSource, ReasoningPart, TextPart, ToolCallPart, ToolResultPart,
};
use assay_node_dialects::{Dialect, DialectError};

/// Media type of text documents, which is their only one.
pub(super) const TEXT_DOCUMENT: &str = "text/plain";

/// Reads content, which is a text or a list of blocks.
pub(super) fn read_content(value: &Value, path: &str) -> Result<Vec<ContentPart>, DialectError> {
    if let Value::String(text) = value {
        return Ok(vec![ContentPart::Text(TextPart { text: text.clone(), ..TextPart::default() })]);
    }
    let blocks = items(value, path, "blocks of content", BLOCKS_MAX)?;
    let blocks = blocks.iter().enumerate();
    blocks.map(|(index, block)| read_block(block, &format!("{path}[{index}]"))).collect()
}

pub(super) fn read_block(block: &Value, path: &str) -> Result<ContentPart, DialectError> {
    let mut fields = object(block, path)?;
    let kind = require_text(&mut fields, path, "type")?;
    match kind.as_str() {
        "text" => {
            let text = require_text(&mut fields, path, "text")?;
            let cache = take_cache(&mut fields);
            Ok(ContentPart::Text(TextPart { text, cache, signature: None, extra: extra(fields) }))
        }
        "image" | "document" => read_media(&kind, block, fields, path),
        "tool_use" => read_tool_use(fields, path).map(ContentPart::ToolCall),
        "tool_result" => read_tool_result(fields, path),
        "thinking" => {
            let text = require_text(&mut fields, path, "thinking")?;
            let signature = take_text(&mut fields, path, "signature")?.filter(|signature| !signature.is_empty());
            Ok(ContentPart::Reasoning(ReasoningPart { text, signature, encrypted: None, extra: extra(fields) }))
        }
        "redacted_thinking" => {
            let encrypted = Some(require_text(&mut fields, path, "data")?);
            Ok(ContentPart::Reasoning(ReasoningPart { encrypted, extra: extra(fields), ..ReasoningPart::default() }))
        }
        _ => Ok(foreign(block)),
    }
}

fn foreign(block: &Value) -> ContentPart {
    ContentPart::Foreign { from: Dialect::Anthropic, part: block.clone() }
}

/// Reads an image or a document. One whose source the form does not have is kept whole.
fn read_media(
    kind: &str,
    block: &Value,
    mut fields: Map<String, Value>,
    path: &str,
) -> Result<ContentPart, DialectError> {
    let inner_path = format!("{path}.source");
    let mut inner = object(&take(&mut fields, "source").unwrap_or_default(), &inner_path)?;
    let source_kind = require_text(&mut inner, &inner_path, "type")?;
    let source = match (source_kind.as_str(), kind) {
        ("base64", _) => MediaSource::Base64 {
            media_type: require_text(&mut inner, &inner_path, "media_type")?,
            data: require_text(&mut inner, &inner_path, "data")?,
        },
        ("url", _) => MediaSource::Url(require_text(&mut inner, &inner_path, "url")?),
        ("file", _) => MediaSource::FileId(require_text(&mut inner, &inner_path, "file_id")?),
        ("text", "document") => {
            let media_type = take_text(&mut inner, &inner_path, "media_type")?;
            put(&mut inner, "media_type", media_type.filter(|media_type| media_type != TEXT_DOCUMENT));
            MediaSource::Text(require_text(&mut inner, &inner_path, "data")?)
        }
        _ => return Ok(foreign(block)),
    };
    keep_inner(&mut fields, "source", inner);
    let cache = take_cache(&mut fields);
    if kind == "image" {
        return Ok(ContentPart::Image { source, detail: None, cache, extra: extra(fields) });
    }
    let name = take_text(&mut fields, path, "title")?;
    Ok(ContentPart::File(FilePart { source, name, cache, extra: extra(fields) }))
}

/// Reads a call without its type.
pub(super) fn read_tool_use(mut fields: Map<String, Value>, path: &str) -> Result<ToolCallPart, DialectError> {
    let id = require_text(&mut fields, path, "id")?;
    let name = require_text(&mut fields, path, "name")?;
    let input = take(&mut fields, "input").unwrap_or_else(|| Value::Object(Map::new()));
    let cache = take_cache(&mut fields);
    Ok(ToolCallPart { id, name, arguments: input.to_string(), signature: None, cache, extra: extra(fields) })
}

fn read_tool_result(mut fields: Map<String, Value>, path: &str) -> Result<ContentPart, DialectError> {
    let call_id = require_text(&mut fields, path, "tool_use_id")?;
    let is_error = take_bool(&mut fields, path, "is_error")?.unwrap_or(false);
    let content = match take(&mut fields, "content") {
        None => Vec::new(),
        Some(content) => read_result_content(&content, &format!("{path}.content"))?,
    };
    let cache = take_cache(&mut fields);
    Ok(ContentPart::ToolResult(ToolResultPart { call_id, name: None, is_error, content, cache, extra: extra(fields) }))
}

/// Reads texts and media. Other blocks are kept whole, so that results do not nest.
fn read_result_content(value: &Value, path: &str) -> Result<Vec<ContentPart>, DialectError> {
    if value.is_string() {
        return read_content(value, path);
    }
    let blocks = items(value, path, "blocks of content", BLOCKS_MAX)?;
    let read = |(index, block): (usize, &Value)| {
        let path = format!("{path}[{index}]");
        match block.get("type").and_then(Value::as_str) {
            Some("text" | "image" | "document") | None => read_block(block, &path),
            Some(_) => Ok(foreign(block)),
        }
    };
    blocks.iter().enumerate().map(read).collect()
}

/// Returns a call's block, whose input is the arguments if they are JSON and else their text.
pub(super) fn tool_use(id: String, name: &str, arguments: &str) -> Map<String, Value> {
    let mut block = typed("tool_use");
    block.insert("id".into(), id.into());
    block.insert("name".into(), name.into());
    block.insert("input".into(), input_of(arguments));
    block
}

/// Value of a call's arguments. No text is an empty object, and a text that is no JSON stays a text.
fn input_of(arguments: &str) -> Value {
    if arguments.trim().is_empty() {
        return Value::Object(Map::new());
    }
    serde_json::from_str(arguments).unwrap_or_else(|_| Value::from(arguments))
}
