//! Converse API of Amazon Bedrock: requests, answers, binary event streams and errors of the model server.
//!
//! No client speaks this format to us, so that there are no readers of requests and no writers of answers.
//!
//! ```text
//! bytes ── EventStreamParser ──▶ EventStreamMessage ── event ──▶ SseEvent ── ConverseStreamReader ──▶ StreamEvent
//! ```
//! Models of Anthropic are also called by InvokeModel, whose answers are Anthropic's own. [`read_invoke_event`] unpacks the
//! events of its streams; they are read as those of the Messages API. Errors are those of Bedrock in both APIs.
//!
//! The model is part of the URL. Bodies of answers name neither an id nor a model: [`ConverseAnswer`] gives them.
//!
//! - Instructions of all messages are joined. Messages of one role that follow each other are joined.
//! - Results of tools come first in their message. Cache points follow the block that was marked.
//! - Images and files are sent as bytes, or as locations in S3 (`s3://` URLs). Other URLs are refused.
//! - A request whose history has calls must have tools. One without gets a tool that says not to call it.
//! - A JSON schema is sent as `outputConfig.textFormat`, or as the forced tool `json` if the options say so or if there
//!   is no schema. [`uses_json_tool`] tells which.
//! - Reasoning is asked for in the form that Claude or an OpenAI model takes; for other models it is left out.
//! - Blocks of answers that the form does not have are skipped: results of tools that ran at the provider, and sources
//!   of citations.

mod blocks;
mod dropped;
mod error;
mod event_stream;
mod invoke;
mod media;
mod request;
mod response;
mod stream_reader;
#[cfg(test)]
mod tests;
mod usage;

pub use error::read_error;
pub use event_stream::{
    EVENT_STREAM_HEADERS_MAX, EVENT_STREAM_MESSAGE_BYTES_MAX, EventStreamError, EventStreamHeader, EventStreamMessage,
    EventStreamParser, EventStreamValue,
};
pub use invoke::read_invoke_event;
pub use request::{uses_json_tool, write_request};
pub use response::{ConverseAnswer, read_response, read_response_of};
pub use stream_reader::ConverseStreamReader;

/// Media type of streamed answers.
pub const EVENT_STREAM_TYPE: &str = "application/vnd.amazon.eventstream";
/// Upper bound of messages in a request.
pub const MESSAGES_MAX: usize = 100_000;
/// Upper bound of blocks in an answer.
pub const BLOCKS_MAX: usize = 20_000;
/// Upper bound of tools in a request.
pub const TOOLS_MAX: usize = 10_000;
/// Upper bound of stop sequences, which is the API's own.
pub const STOP_SEQUENCES_MAX: usize = 2_500;
