//! Parts of a message: texts, media, calls of tools and their results, reasoning.

use serde_json::Value;

use super::Extra;
use crate::Dialect;

/// One part of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum ContentPart {
    Text(TextPart),
    /// Text that says why the model does not answer.
    Refusal(TextPart),
    Image {
        source: MediaSource,
        detail: Option<ImageDetail>,
        cache: Option<CacheControl>,
        extra: Extra,
    },
    Audio {
        source: MediaSource,
        cache: Option<CacheControl>,
        extra: Extra,
    },
    File(FilePart),
    ToolCall(ToolCallPart),
    ToolResult(ToolResultPart),
    Reasoning(ReasoningPart),
    /// Part that only one dialect has. Other dialects refuse it.
    Foreign {
        from: Dialect,
        part: Value,
    },
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextPart {
    pub text: String,
    pub cache: Option<CacheControl>,
    /// Signature of the reasoning that led to the text (Gemini).
    pub signature: Option<String>,
    pub extra: Extra,
}

/// Where the bytes of an image, a sound or a file are.
#[derive(Clone, Debug, PartialEq)]
pub enum MediaSource {
    Url(String),
    Base64 {
        media_type: String,
        data: String,
    },
    /// File stored by the model provider.
    FileId(String),
    /// Text that a document consists of.
    Text(String),
}

/// Wanted resolution of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageDetail {
    Auto,
    Low,
    High,
    Other(String),
}

#[derive(Clone, Debug, PartialEq)]
pub struct FilePart {
    pub source: MediaSource,
    pub name: Option<String>,
    pub cache: Option<CacheControl>,
    pub extra: Extra,
}

/// Call of a tool by the model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCallPart {
    /// Empty if the dialect has no ids; see [`ToolCallPart::id`] users, which make one up.
    pub id: String,
    pub name: String,
    /// JSON text of the arguments, as the model wrote it.
    pub arguments: String,
    /// Signature of the reasoning that led to the call (Gemini).
    pub signature: Option<String>,
    pub cache: Option<CacheControl>,
    pub extra: Extra,
}

/// Result of a call, sent back to the model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResultPart {
    pub call_id: String,
    /// Name of the tool, where the dialect has it.
    pub name: Option<String>,
    pub is_error: bool,
    /// Texts and media.
    pub content: Vec<ContentPart>,
    pub cache: Option<CacheControl>,
    pub extra: Extra,
}

/// Reasoning of the model, with what the provider needs to accept it again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReasoningPart {
    pub text: String,
    /// Signature or id by which the provider recognizes the text.
    pub signature: Option<String>,
    /// Encrypted reasoning without a readable text.
    pub encrypted: Option<String>,
    pub extra: Extra,
}

/// Mark of the end of a prefix that the provider shall cache.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheControl {
    /// The object as sent, such as `{"type": "ephemeral", "ttl": "1h"}`.
    pub value: Value,
}

impl ContentPart {
    /// Size of the texts, the media and the unknown fields.
    pub fn bytes(&self) -> usize {
        let source = |source: &MediaSource| match source {
            MediaSource::Url(text) | MediaSource::FileId(text) | MediaSource::Text(text) => text.len(),
            MediaSource::Base64 { media_type, data } => media_type.len() + data.len(),
        };
        let size = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        match self {
            ContentPart::Text(part) | ContentPart::Refusal(part) => {
                part.text.len() + size(&part.signature) + part.extra.bytes()
            }
            ContentPart::Image { source: of, extra, .. } | ContentPart::Audio { source: of, extra, .. } => {
                source(of) + extra.bytes()
            }
            ContentPart::File(part) => source(&part.source) + size(&part.name) + part.extra.bytes(),
            ContentPart::ToolCall(part) => {
                let texts = [&part.id, &part.name, &part.arguments].map(String::len);
                texts.iter().sum::<usize>() + size(&part.signature) + part.extra.bytes()
            }
            // results contain no results, so that this ends
            ContentPart::ToolResult(part) => {
                let content = part.content.iter().filter(|part| !matches!(part, ContentPart::ToolResult(_)));
                part.call_id.len() + content.map(ContentPart::bytes).sum::<usize>() + part.extra.bytes()
            }
            ContentPart::Reasoning(part) => {
                part.text.len() + size(&part.signature) + size(&part.encrypted) + part.extra.bytes()
            }
            ContentPart::Foreign { part, .. } => part.to_string().len(),
        }
    }
}
