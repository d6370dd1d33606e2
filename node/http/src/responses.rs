//! Responses as they are written: error responses, headers, compression, and bodies on their way to their readers.

pub mod compression;
pub mod cors;
pub mod finishing;
pub mod refusal;
pub mod response_body;
pub mod response_headers;
