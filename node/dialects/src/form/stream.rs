//! Events of a streamed answer.

use serde_json::Value;

use super::{ContentPart, Extra, FinishReason, ModelError, TokenUsage};

/// One step of a streamed answer. Parts of a choice are numbered from 0 in the order of their starts.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEvent {
    /// First event of a stream.
    Start {
        id: String,
        model: String,
        created: Option<u64>,
        extra: Extra,
    },
    PartStart {
        choice: u64,
        part: usize,
        start: PartStart,
    },
    PartDelta {
        choice: u64,
        part: usize,
        delta: PartDelta,
    },
    PartEnd {
        choice: u64,
        part: usize,
    },
    Logprobs {
        choice: u64,
        logprobs: Value,
    },
    Finish {
        choice: u64,
        reason: FinishReason,
    },
    /// Usage so far; later ones replace earlier ones.
    Usage(TokenUsage),
    /// Error after the head of the response was sent. Nothing follows.
    Error(ModelError),
    /// Regular end of the stream. Nothing follows. A stream without it was cut.
    End,
}

/// What a part is.
#[derive(Clone, Debug, PartialEq)]
pub enum PartStart {
    Text,
    Refusal,
    Reasoning,
    ToolCall {
        id: String,
        name: String,
    },
    /// Part that comes whole, such as an image.
    Whole(Box<ContentPart>),
}

/// Addition to a part.
#[derive(Clone, Debug, PartialEq)]
pub enum PartDelta {
    /// Text of a text, a refusal or reasoning.
    Text(String),
    /// Piece of the JSON text of a call's arguments.
    Arguments(String),
    /// Signature of a reasoning, a text or a call; a piece of it where the dialect cuts it.
    Signature(String),
    /// Encrypted reasoning.
    Encrypted(String),
    /// Annotations, such as citations of a text, which only one dialect has.
    Foreign(Extra),
}
