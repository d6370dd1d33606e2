//! Parts of contents: texts, media, calls and results.

mod arguments;
mod media;
mod read;
mod write;

pub(super) use arguments::{arguments_object, result_content, result_response};
pub(super) use media::{write_media, write_media_or_text};
pub(super) use read::{ContentSpeaker, read_answer_part, read_content_part};
pub(super) use write::{call_part, text_part, thought_part};

/// Signature that makes Gemini 3 accept a call whose own signature is lost.
pub const SIGNATURE_PLACEHOLDER: &str = "skip_thought_signature_validator";
