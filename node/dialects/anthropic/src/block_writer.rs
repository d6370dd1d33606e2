//! Parts of requests to content blocks.

use std::collections::{BTreeSet, VecDeque};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::block_reader::{TEXT_DOCUMENT, tool_use};
use super::fields::{put, put_back, put_cache, typed};
use assay_node_dialects::form::{
    CacheControl, ContentPart, Extra, FilePart, ImageDetail, MediaSource, ReasoningPart, Role, TextPart, ToolCallPart,
    ToolResultPart,
};
use assay_node_dialects::{Dialect, DialectError, bare_media_type, parse_data_url};

/// Media types of images that the API reads.
const IMAGE_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
const PDF_TYPE: &str = "application/pdf";

/// Names of parameters that are not sent, each once, in the order of their discovery.
#[derive(Debug, Default)]
pub(super) struct AnthropicDropped {
    names: Vec<String>,
    seen: BTreeSet<String>,
}

impl AnthropicDropped {
    pub(super) fn add(&mut self, name: &str) {
        if self.seen.insert(name.to_owned()) {
            self.names.push(name.to_owned());
        }
    }

    /// Adds fields of other dialects.
    pub(super) fn add_extra(&mut self, extra: &Extra) {
        extra.dropped_by(Dialect::Anthropic).for_each(|name| self.add(name));
    }

    pub(super) fn into_names(self) -> Vec<String> {
        self.names
    }
}

/// Writer of the blocks of one request.
#[derive(Debug, Default)]
pub(super) struct AnthropicBlockWriter {
    /// The request came from this dialect and is passed on as it is.
    is_own: bool,
    pub(super) dropped: AnthropicDropped,
    /// Calls without an id that have no result so far: their names and made-up ids.
    unanswered: VecDeque<(String, String)>,
    made_up: usize,
}

impl AnthropicBlockWriter {
    pub(super) fn new(is_own: bool) -> AnthropicBlockWriter {
        AnthropicBlockWriter { is_own, ..AnthropicBlockWriter::default() }
    }

    /// Writes the parts of a message. Empty texts are left out.
    pub(super) fn blocks(&mut self, role: Role, parts: &[ContentPart], path: &str) -> Result<Vec<Value>, DialectError> {
        let mut blocks = Vec::with_capacity(parts.len());
        for (index, part) in parts.iter().enumerate() {
            blocks.extend(self.block(role, part, &format!("{path}[{index}]"))?);
        }
        Ok(blocks)
    }

    fn block(&mut self, role: Role, part: &ContentPart, path: &str) -> Result<Option<Value>, DialectError> {
        let is_user = matches!(role, Role::User | Role::Tool) || self.is_own;
        let block = match part {
            ContentPart::Text(part) | ContentPart::Refusal(part) => return Ok(self.text(part)),
            ContentPart::Image { source, detail, cache, extra } if is_user => {
                if detail.as_ref().is_some_and(|detail| *detail != ImageDetail::Auto) {
                    self.dropped.add("image_url.detail");
                }
                self.media(image(source, self.is_own, path)?, cache, extra)
            }
            ContentPart::File(file) if is_user => {
                let mut block = document(file, self.is_own, path)?;
                if block.get("type").is_some_and(|kind| kind == "document") {
                    put(&mut block, "title", file.name.clone());
                }
                self.media(block, &file.cache, &file.extra)
            }
            ContentPart::Image { .. } | ContentPart::File(_) => {
                return Err(DialectError::unsupported(path, "media in a message that is not the user's"));
            }
            ContentPart::Audio { .. } => return Err(DialectError::unsupported(path, "audio")),
            ContentPart::ToolCall(call) => self.tool_call(call, path)?,
            ContentPart::ToolResult(result) => self.tool_result(result, path)?,
            ContentPart::Reasoning(part) => return Ok(self.reasoning(part).map(Value::Object)),
            ContentPart::Foreign { from: Dialect::Anthropic, part } => return Ok(Some(part.clone())),
            ContentPart::Foreign { from, .. } => {
                return Err(DialectError::unsupported(path, format!("a part that only {from:?} has")));
            }
        };
        Ok(Some(Value::Object(block)))
    }

    fn text(&mut self, part: &TextPart) -> Option<Value> {
        self.dropped.add_extra(&part.extra);
        (!part.text.is_empty()).then(|| Value::Object(text_block(part)))
    }

    fn media(
        &mut self,
        mut block: Map<String, Value>,
        cache: &Option<CacheControl>,
        extra: &Extra,
    ) -> Map<String, Value> {
        self.dropped.add_extra(extra);
        put_cache(&mut block, cache);
        put_back(&mut block, extra);
        block
    }

    fn tool_call(&mut self, call: &ToolCallPart, path: &str) -> Result<Map<String, Value>, DialectError> {
        let id = if call.id.is_empty() {
            let id = format!("toolu_{}", self.made_up);
            self.made_up += 1;
            self.unanswered.push_back((call.name.clone(), id.clone()));
            id
        } else {
            self.id(&call.id)
        };
        let mut block = tool_use(id, &call.name, &call.arguments);
        if !self.is_own && !block.get("input").is_some_and(Value::is_object) {
            return Err(DialectError::malformed(format!("{path}.arguments"), "the JSON text of an object"));
        }
        self.dropped.add_extra(&call.extra);
        put_cache(&mut block, &call.cache);
        put_back(&mut block, &call.extra);
        Ok(block)
    }

    fn tool_result(&mut self, result: &ToolResultPart, path: &str) -> Result<Map<String, Value>, DialectError> {
        let id = if result.call_id.is_empty() { self.answered(result, path)? } else { self.id(&result.call_id) };
        let mut block = typed("tool_result");
        block.insert("tool_use_id".into(), id.into());
        let mut content = Vec::with_capacity(result.content.len());
        for (index, part) in result.content.iter().enumerate() {
            let path = format!("{path}.content[{index}]");
            match part {
                ContentPart::ToolCall(_) | ContentPart::ToolResult(_) | ContentPart::Reasoning(_) => {
                    return Err(DialectError::unsupported(path, "a part of this kind in the result of a tool"));
                }
                part => content.extend(self.block(Role::Tool, part, &path)?),
            }
        }
        if !content.is_empty() {
            block.insert("content".into(), lone_text(content));
        }
        put(&mut block, "is_error", result.is_error.then_some(true));
        self.dropped.add_extra(&result.extra);
        put_cache(&mut block, &result.cache);
        put_back(&mut block, &result.extra);
        Ok(block)
    }

    /// Made-up id of the first call without a result that has the name.
    fn answered(&mut self, result: &ToolResultPart, path: &str) -> Result<String, DialectError> {
        let is_it = |(name, _): &(String, String)| result.name.as_ref().is_none_or(|wanted| wanted == name);
        let call = self.unanswered.iter().position(is_it).and_then(|index| self.unanswered.remove(index));
        let no_call = || DialectError::malformed(path, "the result of a call in an earlier message");
        call.map(|(_, id)| id).ok_or_else(no_call)
    }

    /// Replaces characters that ids cannot have here, in calls and in results alike.
    fn id(&self, id: &str) -> String {
        if self.is_own { id.to_owned() } else { allowed_id(id) }
    }

    /// Writes reasoning that the provider accepts again, which is its own and signed.
    fn reasoning(&mut self, part: &ReasoningPart) -> Option<Map<String, Value>> {
        self.dropped.add_extra(&part.extra);
        if !self.is_own && !is_signed(part) {
            self.dropped.add("reasoning");
            return None;
        }
        Some(reasoning_block(part))
    }
}

/// Returns whether Anthropic signed or encrypted the reasoning, as far as one can tell.
pub(super) fn is_signed(part: &ReasoningPart) -> bool {
    let is_of_other = matches!(part.extra.dialect(), Some(Dialect::Responses | Dialect::Gemini));
    let is_encrypted = part.encrypted.is_some() && part.text.is_empty();
    !is_of_other && (is_encrypted || part.signature.is_some())
}

/// Ids have letters, digits, `_` and `-`.
pub(super) fn allowed_id(id: &str) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    id.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect()
}

/// Returns a single text without other fields as a string, and other blocks as a list.
pub(super) fn lone_text(blocks: Vec<Value>) -> Value {
    match blocks.as_slice() {
        [Value::Object(block)] if block.len() == 2 && block.get("type").is_some_and(|kind| kind == "text") => {
            block.get("text").cloned().unwrap_or_default()
        }
        _ => Value::Array(blocks),
    }
}

pub(super) fn text_block(part: &TextPart) -> Map<String, Value> {
    let mut block = typed("text");
    block.insert("text".into(), part.text.clone().into());
    put_cache(&mut block, &part.cache);
    put_back(&mut block, &part.extra);
    block
}

pub(super) fn reasoning_block(part: &ReasoningPart) -> Map<String, Value> {
    let mut block = match &part.encrypted {
        Some(data) if part.text.is_empty() => {
            let mut block = typed("redacted_thinking");
            block.insert("data".into(), data.clone().into());
            block
        }
        _ => {
            let mut block = typed("thinking");
            block.insert("thinking".into(), part.text.clone().into());
            block.insert("signature".into(), part.signature.clone().unwrap_or_default().into());
            block
        }
    };
    put_back(&mut block, &part.extra);
    block
}

/// Returns a block with this source.
pub(super) fn with_source(kind: &str, source: &MediaSource) -> Map<String, Value> {
    let mut inner;
    match source {
        MediaSource::Url(url) => {
            inner = typed("url");
            inner.insert("url".into(), url.clone().into());
        }
        MediaSource::Base64 { media_type, data } => {
            inner = typed("base64");
            inner.insert("media_type".into(), media_type.clone().into());
            inner.insert("data".into(), data.clone().into());
        }
        MediaSource::FileId(id) => {
            inner = typed("file");
            inner.insert("file_id".into(), id.clone().into());
        }
        MediaSource::Text(text) => {
            inner = typed("text");
            inner.insert("media_type".into(), TEXT_DOCUMENT.into());
            inner.insert("data".into(), text.clone().into());
        }
    }
    let mut block = typed(kind);
    block.insert("source".into(), Value::Object(inner));
    block
}

fn image(source: &MediaSource, is_own: bool, path: &str) -> Result<Map<String, Value>, DialectError> {
    if is_own {
        return Ok(with_source("image", source));
    }
    match reachable(source, path)? {
        MediaSource::Base64 { media_type, data } => {
            let bare = bare_media_type(&media_type);
            if !IMAGE_TYPES.contains(&bare) {
                return Err(DialectError::unsupported(path, format!("an image of the type {media_type}")));
            }
            Ok(with_source("image", &MediaSource::Base64 { media_type: bare.to_owned(), data }))
        }
        MediaSource::Text(_) => Err(DialectError::unsupported(path, "a text as an image")),
        source => Ok(with_source("image", &source)),
    }
}

/// Returns the block of a file: an image, a PDF or a text.
fn document(file: &FilePart, is_own: bool, path: &str) -> Result<Map<String, Value>, DialectError> {
    if is_own {
        return Ok(with_source("document", &file.source));
    }
    match reachable(&file.source, path)? {
        MediaSource::Base64 { media_type, data } => {
            let bare = bare_media_type(&media_type);
            if IMAGE_TYPES.contains(&bare) {
                return Ok(with_source("image", &MediaSource::Base64 { media_type: bare.to_owned(), data }));
            }
            if bare == PDF_TYPE {
                return Ok(with_source("document", &MediaSource::Base64 { media_type: bare.to_owned(), data }));
            }
            if !bare.starts_with("text/") && bare != "application/json" {
                return Err(DialectError::unsupported(path, format!("a file of the type {media_type}")));
            }
            let text = STANDARD.decode(&data).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            let text = text.ok_or_else(|| DialectError::malformed(path, "base64 of a UTF-8 text"))?;
            Ok(with_source("document", &MediaSource::Text(text)))
        }
        source => Ok(with_source("document", &source)),
    }
}

/// Returns the source if the provider can read it. `data:` URLs are taken apart.
fn reachable(source: &MediaSource, path: &str) -> Result<MediaSource, DialectError> {
    match source {
        MediaSource::FileId(_) => Err(DialectError::unsupported(path, "a file stored by another provider")),
        MediaSource::Url(url) if url.starts_with("data:") => {
            data_url(url).ok_or_else(|| DialectError::malformed(path, "a URL like data:image/png;base64,aGk="))
        }
        MediaSource::Url(url) if !url.starts_with("https://") && !url.starts_with("http://") => {
            Err(DialectError::unsupported(path, "a URL that is neither http nor https"))
        }
        source => Ok(source.clone()),
    }
}

fn data_url(url: &str) -> Option<MediaSource> {
    let (media_type, data) = parse_data_url(url)?;
    Some(MediaSource::Base64 { media_type: media_type.to_owned(), data: data.to_owned() })
}
