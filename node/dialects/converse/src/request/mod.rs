//! The internal form to bodies of requests.

mod reasoning;
mod tools;
mod write;

pub use tools::uses_json_tool;
pub use write::write_request;
