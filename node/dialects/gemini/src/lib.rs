//! Google Gemini: `generateContent` and `streamGenerateContent`.
//!
//! Reading and writing a body again gives an equal body, but for these normalisations:
//! - Known fields are written in camelCase. `null` is absent.
//! - A content without a role is the user's; `function` becomes `user`; contents without parts and empty texts beside
//!   other parts are left out. A text as `systemInstruction` becomes a part.
//! - Function results and other parts of one content are written as several contents, and neighbouring contents that
//!   have only results as one.
//! - All function declarations are in the first tool; every other tool follows alone.
//! - A result without an id gets that of its call. `args` is always written. `includeThoughts: false`, empty lists and empty
//!   settings are left out. A schema of the answer always has its `responseMimeType`.
//! - Inline media have standard base64 instead of that for URLs.
//! - In answers `index`, `content.role`, `candidatesTokenCount` and `totalTokenCount` are always written.

mod call_ids;
mod embed;
mod error;
mod fields;
mod finish;
mod logprobs;
mod parts;
mod request;
mod response;
mod schema;
mod stream_reader;
mod stream_writer;
#[cfg(test)]
mod tests;
mod usage;

pub use call_ids::CALL_ID_BYTES_MAX;
pub use embed::{
    GeminiEmbedding, read_count_tokens, read_embed_request, write_count_tokens_response, write_embed_response,
};
pub use error::{error_status, read_error, write_error};
pub use parts::SIGNATURE_PLACEHOLDER;
pub use request::{read_request, write_request};
pub use response::{read_response, write_response};
pub use schema::{from_openapi, to_openapi};
pub use stream_reader::GeminiStreamReader;
pub use stream_writer::GeminiStreamWriter;

/// Upper bound of contents of a request.
pub const CONTENTS_MAX: usize = 20_000;
/// Upper bound of parts of a content or of a candidate.
pub const PARTS_MAX: usize = 20_000;
/// Upper bound of tools of a request, with all their function declarations.
pub const TOOLS_MAX: usize = 2_048;
/// Upper bound of candidates of an answer.
pub const CANDIDATES_MAX: usize = 64;
