//! Chat completions of OpenAI, and the dialects of the servers that imitate them.
//!
//! Reading and writing again gives an equal body, except that:
//! - members that are `null` and have a meaning are left out, and so are empty lists of tools and of stop sequences;
//! - a lone plain text is written as a string, and `stop` as a list;
//! - a missing or empty content of the model beside other parts is `null`, and otherwise empty;
//! - images are objects with a URL, and documents among them are files with a name;
//! - parameters of the media type in a data URI, and the type `text` of a response format, are left out;
//! - of two bounds of the answer the larger is sent, as `max_completion_tokens`; counts are written without a fraction;
//! - arguments that are an object are its JSON text, and calls have the type `function`;
//! - the choice `any` is `required`, and a single allowed tool is a named one;
//! - content pieces of an answer are one string, and its thinking pieces are the list `reasoning`;
//! - usage has all three counts; cached tokens of DeepSeek are also in the details;
//! - parameters of the gateway (`use_cache`, `reasoning_enabled`, `reasoning_budget`) are not sent.

pub mod completions;
pub mod embeddings;
mod errors;
mod fields;
mod json_tool;
mod messages;
mod parts;
mod quirks;
mod reasoning;
mod request;
mod response;
mod stream_reader;
mod stream_writer;
#[cfg(test)]
mod tests;
mod tools;
mod usage;

pub(crate) use errors::read_stream_error;
pub use errors::{error_status, read_error, write_error};
pub(crate) use fields::count_of;
pub use json_tool::{JSON_TOOL, JsonToolStream, text_of_json_tool};
pub use messages::CHAT_MESSAGES_MAX;
pub use quirks::{adapt, azure_deployment, is_reasoning_model_name};
pub use reasoning::put_reasoning_text;
pub use request::{CHAT_TOOLS_MAX, asks_for_function_call, read_request, write_request};
pub use response::{CHAT_CHOICES_MAX, read_response, use_function_call, write_response};
pub use stream_reader::{CHAT_STREAM_CALLS_MAX, ChatStreamReader};
pub use stream_writer::{ChatStreamOptions, ChatStreamWriter};
pub use usage::{is_usage_chunk, read_usage, write_usage};
