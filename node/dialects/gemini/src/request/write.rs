//! Writing of requests.

use serde_json::{Map, Value};

use super::contents::ContentsWriter;
use super::{UnsentNames, generation, tools};
use crate::fields::put_back;
use assay_node_dialects::form::ModelRequest;
use assay_node_dialects::{DialectError, WriteOptions, WrittenRequest};

/// Writes the body of a request. The model and whether the answer is a stream belong in its URL.
pub fn write_request(request: &ModelRequest, options: &WriteOptions) -> Result<WrittenRequest, DialectError> {
    let mut dropped = UnsentNames::default();
    let mut body = Map::new();
    let mut writer = ContentsWriter::new(&request.messages, options, &mut dropped);
    if let Some(system) = writer.system(&request.messages)? {
        body.insert("systemInstruction".to_owned(), Value::Object(system));
    }
    body.insert("contents".to_owned(), Value::Array(writer.contents(&request.messages)?));
    let tools = tools::write_tools(&request.tools, options, &mut dropped)?;
    if !tools.is_empty() {
        body.insert("tools".to_owned(), Value::Array(tools));
    }
    if let Some(choice) = tools::write_choice(request) {
        body.insert("toolConfig".to_owned(), choice);
    }
    let generation = generation::write_generation(request, options, &mut dropped)?;
    if !generation.is_empty() {
        body.insert("generationConfig".to_owned(), Value::Object(generation));
    }
    put_back(&mut body, &request.extra);
    dropped.add_if(request.parallel_tool_calls == Some(false), "parallel_tool_calls");
    dropped.add_if(request.user.is_some(), "user");
    dropped.add_if(request.metadata.is_some(), "metadata");
    dropped.add_extra(&request.extra);
    Ok(WrittenRequest { body: Value::Object(body), dropped: dropped.into_names() })
}
