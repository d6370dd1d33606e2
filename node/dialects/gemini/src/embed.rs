//! Views of requests for embeddings and for numbers of tokens, and their answers.

use serde_json::{Map, Value, json};

use super::fields::GeminiFields;
use super::request::read_system_and_contents;
use super::{CONTENTS_MAX, PARTS_MAX, read_request};
use assay_node_dialects::DialectError;
use assay_node_dialects::form::{Extra, ModelRequest};

/// Text to embed, of `embedContent` or of one entry of `batchEmbedContents`.
#[derive(Clone, Debug, PartialEq)]
pub struct GeminiEmbedding {
    pub text: String,
    pub dimensions: Option<u64>,
    /// Other fields, such as `taskType`.
    pub extra: Extra,
}

/// Reads a request of `embedContent`, or all entries of `batchEmbedContents`.
pub fn read_embed_request(body: &Value) -> Result<Vec<GeminiEmbedding>, DialectError> {
    let mut body = GeminiFields::of(body.clone(), "")?;
    if !body.has("requests") {
        return Ok(vec![read_embedding(body)?]);
    }
    let requests = body.list("requests", CONTENTS_MAX)?.into_iter().enumerate();
    requests.map(|(at, request)| read_embedding(GeminiFields::of(request, &format!("requests[{at}]"))?)).collect()
}

fn read_embedding(mut request: GeminiFields) -> Result<GeminiEmbedding, DialectError> {
    let content = request.object("content")?;
    let mut content = content.ok_or_else(|| DialectError::malformed(request.path_of("content"), "a content"))?;
    let mut texts = Vec::new();
    for (at, part) in content.list("parts", PARTS_MAX)?.into_iter().enumerate() {
        let path = content.path_of(&format!("parts[{at}]"));
        let text = GeminiFields::of(part, &path)?.text("text")?;
        texts.push(text.ok_or_else(|| DialectError::unsupported(path, "an embedding of other than text"))?);
    }
    let dimensions = request.count("outputDimensionality")?;
    Ok(GeminiEmbedding { text: texts.join("\n"), dimensions, extra: request.extra() })
}

/// Writes the answer to a request of `embedContent`, or with `is_batch` of `batchEmbedContents`.
pub fn write_embed_response(embeddings: &[Vec<f64>], is_batch: bool) -> Value {
    let mut written = embeddings.iter().map(|values| json!({ "values": values }));
    if is_batch {
        return json!({ "embeddings": written.collect::<Vec<_>>() });
    }
    written.next().map_or_else(|| json!({}), |embedding| json!({ "embedding": embedding }))
}

/// Reads a request of `countTokens`: contents, or a whole request for an answer.
pub fn read_count_tokens(model: &str, body: &Value) -> Result<ModelRequest, DialectError> {
    let mut fields = GeminiFields::of(body.clone(), "")?;
    if let Some(request) = fields.take("generateContentRequest") {
        return read_request(model, false, &request);
    }
    let messages = read_system_and_contents(&mut fields)?;
    Ok(ModelRequest { model: model.to_owned(), messages, extra: fields.extra(), ..ModelRequest::default() })
}

/// Writes the answer to a request of `countTokens`.
pub fn write_count_tokens_response(total: u64, cached: Option<u64>) -> Value {
    let mut body = Map::from_iter([("totalTokens".to_owned(), json!(total))]);
    if let Some(cached) = cached {
        body.insert("cachedContentTokenCount".to_owned(), json!(cached));
    }
    Value::Object(body)
}
