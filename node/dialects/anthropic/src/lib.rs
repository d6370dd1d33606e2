//! Messages API of Anthropic: requests, answers, streams and errors, in both directions.
//!
//! A body of this dialect that is read and written again is the same JSON value, except for these:
//!
//! - content or a system instruction that is one plain text is written as a string, other content as blocks;
//! - empty texts and messages without content are left out, because the API refuses them;
//! - a message joins the one of the same role before it, unless it has unknown fields;
//! - results of tools come first in their message;
//! - a known optional field that is null or has its default is left out: `stream: false`, `is_error: false`, a tool's
//!   `type: "custom"`, a text document's media type;
//! - a schema is written in `output_config.format`, or in `output_format` if the options say so;
//! - thinking without a signature has an empty one, and the `input` of a call is an object;
//! - `seed`, `use_cache`, `reasoning_enabled` and `reasoning_budget` are never sent.
//!
//! Requests that came from another dialect follow stricter rules, because their writer does not know this API: limits
//! of reasoning, allowed names of tools, and sources of media are checked or adapted. Answers of the form have one
//! choice here; [`AnthropicReadOptions`] turn the call of the `json` tool back into text.

mod answer_blocks;
mod block_reader;
mod block_writer;
mod clouds;
mod error;
mod fields;
mod request;
mod response;
mod stream_reader;
mod stream_writer;
#[cfg(test)]
mod tests;
mod usage;

pub use clouds::{BETAS_MAX, body_for_bedrock, body_for_vertex};
pub use error::{error_status, read_error, write_error};
pub use request::{AnthropicReadOptions, read_request, write_request};
pub use response::{read_response, read_response_with, write_response};
pub use stream_reader::{AnthropicStreamReader, HELD_BYTES_MAX};
pub use stream_writer::{AnthropicStreamWriter, WAITING_EVENTS_MAX};

/// Upper bound of messages in a request, which is the API's own.
pub const MESSAGES_MAX: usize = 100_000;
/// Upper bound of blocks in a message or an answer.
pub const BLOCKS_MAX: usize = 20_000;
/// Upper bound of tools in a request.
pub const TOOLS_MAX: usize = 10_000;
/// Upper bound of stop sequences in a request.
pub const STOP_SEQUENCES_MAX: usize = 8_192;

/// Name of the tool whose input is the answer where the model has no response format.
const SCHEMA_TOOL: &str = "json";
