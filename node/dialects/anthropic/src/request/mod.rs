//! Requests of the Messages API.

mod output;
mod read;
mod thinking;
mod tools;
mod write;

pub use output::AnthropicReadOptions;
pub use read::read_request;
pub use write::write_request;
