//! Internal form of requests, responses and streams, which every dialect is read into and written from.

mod content;
mod extra;
mod fold;
mod request;
mod response;
mod stream;

pub use content::{
    CacheControl, ContentPart, FilePart, ImageDetail, MediaSource, ReasoningPart, TextPart, ToolCallPart,
    ToolResultPart,
};
pub use extra::Extra;
pub use fold::{FoldError, FoldLimits, ResponseFold, unfold};
pub use request::{
    JsonSchemaFormat, Message, ModelRequest, OutputFormat, ReasoningEffort, ReasoningSettings, Role, Sampling,
    ToolChoice, ToolDefinition,
};
pub use response::{FinishReason, ModelChoice, ModelError, ModelErrorKind, ModelResponse, TokenUsage};
pub use stream::{PartDelta, PartStart, StreamEvent};
