//! Wire formats of model APIs, and translation between them through one internal form.
//!
//! ```text
//! client's body ── read ──▶ ModelRequest  ── write ──▶ body for the model server
//! client's body ◀─ write ── ModelResponse ◀── read ─── body of the model server
//! client's SSE  ◀─ write ── StreamEvent   ◀── read ─── SSE of the model server
//! ```
//! The crate does no IO and reads no clock. Fields without a meaning in the form are kept beside it, with the dialect they
//! came from: the writer of the same dialect puts them back, and those of other dialects name them as dropped.

use serde_json::Value;

mod error;
pub mod form;
pub mod responses;
mod sse;

pub use error::DialectError;
pub use sse::SseEvent;

/// Wire format of a model API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dialect {
    /// Chat completions of OpenAI.
    Chat,
    /// Responses of OpenAI.
    Responses,
    /// Messages of Anthropic.
    Anthropic,
    /// `generateContent` of Google Gemini.
    Gemini,
}

impl Dialect {
    pub const ALL: [Dialect; 4] = [Dialect::Chat, Dialect::Responses, Dialect::Anthropic, Dialect::Gemini];
}

/// Body of a request to a model server, and names of parameters that it cannot express and that only tune the answer.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenRequest {
    pub body: Value,
    pub dropped: Vec<String>,
}

/// Facts about the model that a request is written for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Upper bound of tokens in an answer, from the model catalog.
    pub model_max_output_tokens: Option<u64>,
    /// A JSON schema is sent as a forced tool instead of a response format.
    pub schema_as_tool: bool,
    /// The model takes the parameters of OpenAI's reasoning models only.
    pub is_reasoning_model: bool,
    /// The server understands `stream_options`.
    pub takes_stream_options: bool,
}
