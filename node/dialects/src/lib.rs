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

mod data_url;
mod error;
pub mod form;
pub mod sse;
pub mod thinking_budget;

pub use data_url::{bare_media_type, data_url, parse_data_url};
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
    /// The server understands `stream_options`. Every stream is asked for its usage then (G-33).
    pub takes_stream_options: bool,
    /// How chat completions send reasoning of earlier turns (G-73).
    pub reasoning_history: ReasoningHistory,
    /// The server refuses `parallel_tool_calls` of chat completions.
    pub refuses_parallel_tool_calls: bool,
    /// The server refuses `cache_control` in chat completions.
    pub refuses_cache_control: bool,
    /// The server does not know the role `developer` of chat completions.
    pub developer_as_system: bool,
    /// The model refuses calls of its history without a signature (Gemini 3).
    pub needs_call_signatures: bool,
    /// The server refuses ids of calls (older routes of Gemini).
    pub omits_call_ids: bool,
    /// The model takes a level of thinking instead of a budget (Gemini 3).
    pub takes_thinking_level: bool,
    /// The server takes whole JSON schemas, not only the subset of OpenAPI (Gemini).
    pub takes_json_schema: bool,
    /// Server of Anthropic's API that takes a JSON schema in `output_format` instead of `output_config.format`.
    pub schema_in_output_format: bool,
    /// Claude model that chooses its reasoning budget itself, and refuses budgets and sampling parameters.
    pub adaptive_thinking: bool,
}

/// How reasoning in the history of a request is sent (G-73).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReasoningHistory {
    /// As the client sent it.
    #[default]
    Keep,
    /// Lists become a text under both names, `reasoning` and `reasoning_content`; texts pass. For self-hosted servers.
    Texts,
    /// Not at all: OpenAI refuses it.
    Remove,
}
