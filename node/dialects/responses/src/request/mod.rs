//! Requests of the Responses API.

mod read;
mod settings;
mod stateful;
mod tools;
mod write;

pub use read::read_request;
pub use stateful::refuse_stateful;
pub use write::write_request;

/// Element of `include` that asks for log probabilities.
const INCLUDE_LOGPROBS: &str = "message.output_text.logprobs";
