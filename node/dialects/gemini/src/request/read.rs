//! Reading of requests.

use serde_json::Value;

use super::{contents, generation, tools};
use crate::call_ids::GeminiCallIds;
use crate::fields::GeminiFields;
use assay_node_dialects::DialectError;
use assay_node_dialects::form::{Message, ModelRequest};

/// Reads the body of a request. The model and whether the answer is a stream are in its URL.
pub fn read_request(model: &str, stream: bool, body: &Value) -> Result<ModelRequest, DialectError> {
    let mut body = GeminiFields::of(body.clone(), "")?;
    let mut request = ModelRequest { model: model.to_owned(), stream, ..ModelRequest::default() };
    request.messages = read_system_and_contents(&mut body)?;
    request.tools = tools::read_tools(&mut body)?;
    let mode = tools::read_choice(&mut body, &mut request)?;
    generation::read_generation(&mut body, &mut request)?;
    request.extra = body.extra();
    if let Some(mode) = mode {
        request.extra = request.extra.with_field_spelling(assay_node_dialects::Dialect::Gemini, tools::MODE, mode);
    }
    Ok(request)
}

/// Takes the instructions and the contents.
pub(crate) fn read_system_and_contents(body: &mut GeminiFields) -> Result<Vec<Message>, DialectError> {
    let mut ids = GeminiCallIds::default();
    let mut messages = Vec::new();
    if let Some(system) = body.take("systemInstruction") {
        messages.push(contents::read_system(system, &mut ids)?);
    }
    contents::read_contents(body, &mut ids, &mut messages)?;
    Ok(messages)
}
