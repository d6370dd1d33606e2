//! Writing of responses: error responses, headers, compression, and streamed bodies.

pub mod compression;
pub(crate) mod cors;
pub(crate) mod finishing;
pub(crate) mod in_use_body;
pub mod refusal;
pub mod response_body;
pub mod response_headers;

use actix_web::http::header;
use actix_web::{HttpResponse, HttpResponseBuilder};
use serde::Serialize;

use crate::responses::refusal::Refusal;

/// Result of a handler.
pub type HandlerResult = Result<HttpResponse, Refusal>;

/// Returns a 200 with a JSON body.
pub fn json(value: &impl Serialize) -> HandlerResult {
    let body = serde_json::to_vec(value).map_err(Refusal::internal)?;
    Ok(json_builder().body(body))
}

/// Returns the builder of a 200 with a JSON body.
pub fn json_builder() -> HttpResponseBuilder {
    let mut answer = HttpResponse::Ok();
    answer.insert_header((header::CONTENT_TYPE, "application/json"));
    answer
}
