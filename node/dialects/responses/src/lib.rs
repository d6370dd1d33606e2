//! OpenAI Responses.
//!
//! Reading and writing a body gives an equal body, but for these normalisations:
//! - a known field that is `null` is left out, and so are an empty `input`, `tools` and `text`;
//! - `input` is a list of items; each message says its type; a first system message of one plain text is `instructions`;
//! - content that is one plain text is a text; texts of the assistant are `output_text`, and the others `input_text`;
//! - `output_text` has `annotations`; bytes of a file have a media type and a name; `arguments` is a text;
//! - an allowed tool that is alone is a named tool;
//! - a response has the fields that its schema requires, and items of it have a status and an id.
//!
//! Fields of a message of the assistant are kept with the first part of its content, because neighbouring items become one
//! message of the form. `call_id` is the id of a call (G-31); ids of items are extra fields. An answer has one choice.

mod error;
mod fields;
mod items;
mod request;
mod response;
mod stream_reader;
mod stream_writer;
#[cfg(test)]
mod tests;
mod usage;

pub use error::{error_status, read_error, write_error};
pub use request::{read_request, refuse_stateful, write_request};
pub use response::{failure, read_response, write_response};
pub use stream_reader::ResponsesStreamReader;
pub use stream_writer::ResponsesStreamWriter;

/// Items of a request.
pub const INPUT_ITEMS_MAX: usize = 20_000;
/// Parts of a message, of a result or of reasoning.
pub const CONTENT_PARTS_MAX: usize = 4_096;
/// Tools of a request.
pub const TOOLS_MAX: usize = 4_096;
/// Items of an answer.
pub const OUTPUT_ITEMS_MAX: usize = 4_096;
/// Parts of all items of an answer.
pub const OUTPUT_PARTS_MAX: usize = 8_192;
