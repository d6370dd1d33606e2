//! Parts of requests to content blocks.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Map, Value, json};

use super::dropped::ConverseDropped;
use super::media;
use assay_node_dialects::form::{
    CacheControl, ContentPart, FilePart, ImageDetail, ReasoningPart, Role, ToolCallPart, ToolResultPart,
};
use assay_node_dialects::{Dialect, DialectError};

/// Longest id of a call. Longer ones end in a checksum instead.
const ID_BYTES_MAX: usize = 64;
const CHECKSUM_CHARS: usize = 9;

/// Blocks of one part, with its cache point.
#[derive(Debug, PartialEq)]
pub(super) struct PartBlocks {
    pub(super) is_tool_result: bool,
    pub(super) blocks: Vec<Value>,
}

/// Writer of the blocks of one request.
#[derive(Debug, Default)]
pub(super) struct ConverseBlockWriter {
    refuses_cache: bool,
    pub(super) dropped: ConverseDropped,
    /// The history has calls or results of them, so that the API demands tools.
    pub(super) has_tool_blocks: bool,
    /// Calls without an id that have no result so far: their names and made-up ids.
    unanswered: VecDeque<(String, String)>,
    made_up: usize,
    /// How many documents had a name, which must be unique.
    names: BTreeMap<String, usize>,
}

impl ConverseBlockWriter {
    pub(super) fn new(refuses_cache: bool) -> ConverseBlockWriter {
        ConverseBlockWriter { refuses_cache, ..ConverseBlockWriter::default() }
    }

    /// Writes the parts of a message. Blank texts are left out: the API refuses them.
    pub(super) fn parts(
        &mut self,
        role: Role,
        parts: &[ContentPart],
        path: &str,
    ) -> Result<Vec<PartBlocks>, DialectError> {
        let mut written = Vec::with_capacity(parts.len());
        for (index, part) in parts.iter().enumerate() {
            let mut blocks = self.part(role, part, &format!("{path}[{index}]"))?;
            if blocks.is_empty() {
                continue;
            }
            blocks.extend(self.cache_point(cache_of(part)));
            written.push(PartBlocks { is_tool_result: matches!(part, ContentPart::ToolResult(_)), blocks });
        }
        Ok(written)
    }

    /// Writes the mark of the end of a prefix to cache.
    pub(super) fn cache_point(&mut self, cache: Option<&CacheControl>) -> Option<Value> {
        let cache = cache?;
        if self.refuses_cache {
            self.dropped.add("cache_control");
            return None;
        }
        let mut point = Map::from_iter([("type".to_owned(), Value::from("default"))]);
        if cache.value.get("ttl").is_some_and(|ttl| ttl == "1h") {
            point.insert("ttl".to_owned(), "1h".into());
        }
        Some(json!({"cachePoint": point}))
    }

    fn part(&mut self, role: Role, part: &ContentPart, path: &str) -> Result<Vec<Value>, DialectError> {
        match part {
            ContentPart::Text(part) | ContentPart::Refusal(part) => {
                self.dropped.add_extra(&part.extra);
                Ok(text(&part.text).into_iter().collect())
            }
            ContentPart::ToolCall(call) => self.tool_call(call, path).map(|block| vec![block]),
            ContentPart::ToolResult(result) => self.tool_result(result, path).map(|block| vec![block]),
            ContentPart::Reasoning(part) => Ok(self.reasoning(part)),
            ContentPart::Foreign { from, .. } => {
                Err(DialectError::unsupported(path, format!("a part that only {from:?} has")))
            }
            ContentPart::Image { .. } | ContentPart::Audio { .. } | ContentPart::File(_) => {
                if !matches!(role, Role::User | Role::Tool) {
                    return Err(DialectError::unsupported(path, "media in a message that is not the user's"));
                }
                self.media(part, path).map(|block| vec![block])
            }
        }
    }

    fn media(&mut self, part: &ContentPart, path: &str) -> Result<Value, DialectError> {
        match part {
            ContentPart::Image { source, detail, extra, .. } => {
                let is_finer = detail.as_ref().is_some_and(|detail| *detail != ImageDetail::Auto);
                self.dropped.add_if("image_url.detail", is_finer);
                self.dropped.add_extra(extra);
                media::image(source, path)
            }
            ContentPart::Audio { source, extra, .. } => {
                self.dropped.add_extra(extra);
                media::audio(source, path)
            }
            ContentPart::File(file) => {
                self.dropped.add_extra(&file.extra);
                let name = self.document_name(file);
                media::file(&file.source, &name, path)
            }
            _ => Err(DialectError::unsupported(path, "a part of this kind")),
        }
    }

    /// Returns a name that no earlier document has.
    fn document_name(&mut self, file: &FilePart) -> String {
        let name = media::document_name(file.name.as_deref());
        let count = self.names.entry(name.clone()).or_default();
        *count += 1;
        if *count == 1 { name } else { format!("{name} ({count})") }
    }

    fn tool_call(&mut self, call: &ToolCallPart, path: &str) -> Result<Value, DialectError> {
        self.has_tool_blocks = true;
        self.dropped.add_extra(&call.extra);
        let id = if call.id.is_empty() {
            let id = format!("tooluse_{}", self.made_up);
            self.made_up += 1;
            self.unanswered.push_back((call.name.clone(), id.clone()));
            id
        } else {
            allowed_id(&call.id)
        };
        let input = match call.arguments.trim() {
            "" => Ok(Value::Object(Map::new())),
            arguments => serde_json::from_str::<Value>(arguments),
        };
        let input = input.ok().filter(Value::is_object);
        let no_object = || DialectError::malformed(format!("{path}.arguments"), "the JSON text of an object");
        let input = input.ok_or_else(no_object)?;
        Ok(json!({"toolUse": {"toolUseId": id, "name": call.name, "input": input}}))
    }

    fn tool_result(&mut self, result: &ToolResultPart, path: &str) -> Result<Value, DialectError> {
        self.has_tool_blocks = true;
        self.dropped.add_extra(&result.extra);
        let id = if result.call_id.is_empty() { self.answered(result, path)? } else { allowed_id(&result.call_id) };
        let mut content = Vec::with_capacity(result.content.len());
        for (index, part) in result.content.iter().enumerate() {
            let path = format!("{path}.content[{index}]");
            match part {
                ContentPart::Text(part) | ContentPart::Refusal(part) => {
                    self.dropped.add_extra(&part.extra);
                    content.extend(text(&part.text));
                }
                ContentPart::Image { .. } | ContentPart::File(_) => content.push(self.media(part, &path)?),
                _ => return Err(DialectError::unsupported(path, "a part of this kind in the result of a tool")),
            }
            // marks are between blocks of a message only
            self.dropped.add_if("cache_control", cache_of(part).is_some());
        }
        let mut written = json!({"toolUseId": id, "content": content});
        if result.is_error {
            written["status"] = "error".into();
        }
        Ok(json!({"toolResult": written}))
    }

    /// Made-up id of the first call without a result that has the name.
    fn answered(&mut self, result: &ToolResultPart, path: &str) -> Result<String, DialectError> {
        let is_it = |(name, _): &(String, String)| result.name.as_ref().is_none_or(|wanted| wanted == name);
        let call = self.unanswered.iter().position(is_it).and_then(|index| self.unanswered.remove(index));
        let no_call = || DialectError::malformed(path, "the result of a call in an earlier message");
        call.map(|(_, id)| id).ok_or_else(no_call)
    }

    /// Writes reasoning that the provider accepts again, which is signed or encrypted.
    fn reasoning(&mut self, part: &ReasoningPart) -> Vec<Value> {
        self.dropped.add_extra(&part.extra);
        // signatures of OpenAI and Gemini mean nothing here
        let is_of_other = matches!(part.extra.dialect(), Some(Dialect::Responses | Dialect::Gemini));
        let mut blocks = Vec::new();
        if !is_of_other {
            if let Some(signature) = part.signature.as_ref().filter(|_| !part.text.is_empty()) {
                let signed = json!({"text": part.text, "signature": signature});
                blocks.push(json!({"reasoningContent": {"reasoningText": signed}}));
            }
            let encrypted = part.encrypted.as_ref();
            blocks.extend(encrypted.map(|encrypted| json!({"reasoningContent": {"redactedContent": encrypted}})));
        }
        self.dropped.add_if("reasoning", blocks.is_empty());
        blocks
    }
}

fn cache_of(part: &ContentPart) -> Option<&CacheControl> {
    match part {
        ContentPart::Text(part) | ContentPart::Refusal(part) => part.cache.as_ref(),
        ContentPart::Image { cache, .. } | ContentPart::Audio { cache, .. } => cache.as_ref(),
        ContentPart::File(part) => part.cache.as_ref(),
        ContentPart::ToolCall(part) => part.cache.as_ref(),
        ContentPart::ToolResult(part) => part.cache.as_ref(),
        ContentPart::Reasoning(_) | ContentPart::Foreign { .. } => None,
    }
}

fn text(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({"text": text}))
}

/// Returns an id with the characters and the length that the API allows. Calls and results get the same.
fn allowed_id(id: &str) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '-');
    let allowed: String = id.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect();
    if allowed.len() <= ID_BYTES_MAX {
        return allowed;
    }
    let checksum = crc32fast::hash(id.as_bytes());
    format!("{}_{checksum:08x}", &allowed[..ID_BYTES_MAX - CHECKSUM_CHARS])
}
