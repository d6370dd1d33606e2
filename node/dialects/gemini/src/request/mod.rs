//! Requests for answers.

mod contents;
mod generation;
mod names;
mod output;
mod read;
mod thinking;
mod tools;
mod write;

pub(super) use names::UnsentNames;
pub use read::read_request;
pub(super) use read::read_system_and_contents;
pub use write::write_request;
