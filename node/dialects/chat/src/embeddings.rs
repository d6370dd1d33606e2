//! Embeddings of OpenAI: views of bodies that pass as they are.

#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use crate::completions::{PromptSize, count, model_of};
use crate::read_usage;
use assay_node_dialects::DialectError;
use assay_node_dialects::form::TokenUsage;

/// Bytes of one number of a vector in base64.
const FLOAT_BYTES: usize = 4;

/// What the gateway needs of a request, and the whole body.
#[derive(Clone, Debug, PartialEq)]
pub struct EmbeddingRequest {
    pub model: String,
    pub input: PromptSize,
    /// Wanted length of the vectors.
    pub dimensions: Option<u64>,
    pub body: Map<String, Value>,
}

impl EmbeddingRequest {
    pub fn read(body: &Value) -> Result<EmbeddingRequest, DialectError> {
        let body = body.as_object().ok_or_else(|| DialectError::malformed("body", "an object"))?;
        let input = PromptSize::of("input", body.get("input").unwrap_or(&Value::Null))?;
        Ok(EmbeddingRequest {
            model: model_of(body)?,
            input,
            dimensions: count(body, "dimensions")?,
            body: body.clone(),
        })
    }

    /// Returns the body for a server that may name the model otherwise.
    pub fn body_for(&self, model: &str) -> Value {
        let mut body = self.body.clone();
        body.insert("model".to_owned(), json!(model));
        body.shift_remove("use_cache");
        Value::Object(body)
    }
}

/// What the gateway needs of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EmbeddingResponse {
    pub model: String,
    /// Number of vectors.
    pub vectors: usize,
    /// Length of the first vector, or 0 if there is none. It is what a log has of the answer.
    pub embedding_length: usize,
    pub usage: Option<TokenUsage>,
}

impl EmbeddingResponse {
    pub fn read(body: &Value) -> Result<EmbeddingResponse, DialectError> {
        let data = body["data"].as_array().ok_or_else(|| DialectError::malformed("data", "a list"))?;
        let embedding_length = match data.first().map(|first| &first["embedding"]) {
            None => 0,
            Some(Value::Array(numbers)) => numbers.len(),
            Some(Value::String(base64)) => base64_bytes(base64) / FLOAT_BYTES,
            Some(_) => return Err(DialectError::malformed("data[0].embedding", "numbers or base64")),
        };
        let model = body["model"].as_str().unwrap_or_default().to_owned();
        Ok(EmbeddingResponse { model, vectors: data.len(), embedding_length, usage: read_usage(&body["usage"]) })
    }
}

/// Returns how many bytes a base64 text stands for.
fn base64_bytes(text: &str) -> usize {
    text.trim_end_matches('=').len() * 3 / 4
}
