//! Translation of embeddings between the wire formats of OpenAI and Gemini.

use assay_node_dialects::DialectError;
use assay_node_dialects_gemini::{read_embed_request, write_embed_response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};

/// Upper bound of the inputs of one request.
const INPUTS_MAX: usize = 2_048;

/// Translates a request in OpenAI's format to `batchEmbedContents`.
pub(crate) fn openai_to_gemini(model: &str, body: &Value) -> Result<Value, DialectError> {
    let texts: Vec<&str> = match body.get("input") {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(inputs)) => {
            let texts = inputs.iter().enumerate().map(|(at, input)| {
                input.as_str().ok_or_else(|| DialectError::unsupported(format!("input[{at}]"), "a list of tokens"))
            });
            texts.collect::<Result<_, _>>()?
        }
        _ => return Err(DialectError::malformed("input", "a text or a list of texts")),
    };
    if texts.is_empty() || texts.len() > INPUTS_MAX {
        return Err(DialectError::malformed("input", "between 1 and 2048 texts"));
    }
    let name = format!("models/{}", model.trim_start_matches("models/"));
    let request = |text: &&str| {
        let mut request = json!({"model": name, "content": {"parts": [{"text": text}]}});
        if let Some(dimensions) = body.get("dimensions").filter(|value| !value.is_null()) {
            request["outputDimensionality"] = dimensions.clone();
        }
        request
    };
    Ok(json!({"requests": texts.iter().map(request).collect::<Vec<_>>()}))
}

/// Translates a response of `batchEmbedContents` to OpenAI's format.
pub(crate) fn gemini_to_openai(model: &str, asked: &Value, body: &Value) -> Result<Value, DialectError> {
    let embeddings = body.get("embeddings").and_then(Value::as_array);
    let embeddings = embeddings.ok_or_else(|| DialectError::malformed("embeddings", "a list"))?;
    let is_base64 = asked.get("encoding_format").is_some_and(|format| format == "base64");
    let mut data = Vec::with_capacity(embeddings.len());
    for (index, embedding) in embeddings.iter().enumerate() {
        let values = embedding.get("values").cloned().unwrap_or_else(|| json!([]));
        let values = if is_base64 { Value::String(base64_of(&numbers(&values, index)?)) } else { values };
        data.push(json!({"object": "embedding", "index": index, "embedding": values}));
    }
    let tokens = body.get("usageMetadata").and_then(|usage| usage.get("promptTokenCount")).and_then(Value::as_u64);
    let tokens = tokens.unwrap_or_else(|| estimated_tokens(asked));
    let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens});
    Ok(json!({"object": "list", "data": data, "model": model, "usage": usage}))
}

/// Translates a request in Gemini's format to OpenAI's.
pub(crate) fn gemini_to_openai_request(model: &str, body: &Value) -> Result<Value, DialectError> {
    let embeddings = read_embed_request(body)?;
    let texts: Vec<&str> = embeddings.iter().map(|embedding| embedding.text.as_str()).collect();
    let mut request = Map::new();
    request.insert("model".into(), json!(model));
    request.insert("input".into(), json!(texts));
    if let Some(dimensions) = embeddings.first().and_then(|embedding| embedding.dimensions) {
        request.insert("dimensions".into(), json!(dimensions));
    }
    Ok(Value::Object(request))
}

/// Translates a response in OpenAI's format to Gemini's.
pub(crate) fn openai_to_gemini_response(body: &Value, is_batch: bool) -> Result<Value, DialectError> {
    let data = body.get("data").and_then(Value::as_array).ok_or_else(|| DialectError::malformed("data", "a list"))?;
    let vectors = data.iter().enumerate().map(|(index, one)| numbers(&one["embedding"], index));
    Ok(write_embed_response(&vectors.collect::<Result<Vec<_>, _>>()?, is_batch))
}

fn numbers(values: &Value, index: usize) -> Result<Vec<f64>, DialectError> {
    let malformed = || DialectError::malformed(format!("data[{index}].embedding"), "numbers");
    let values = values.as_array().ok_or_else(malformed)?;
    values.iter().map(|value| value.as_f64().ok_or_else(malformed)).collect()
}

/// Encodes a vector like OpenAI: as little-endian single-precision floats in base64.
fn base64_of(numbers: &[f64]) -> String {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| (*number as f32).to_le_bytes()).collect();
    BASE64.encode(bytes)
}

fn estimated_tokens(asked: &Value) -> u64 {
    let bytes = |value: &Value| value.as_str().map_or(0, str::len);
    let bytes = match asked.get("input") {
        Some(Value::Array(inputs)) => inputs.iter().map(bytes).sum(),
        Some(input) => bytes(input),
        None => 0,
    };
    assay_node_models::catalog::estimate_tokens(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_pass_between_both_formats() {
        let asked = json!({"model": "m", "input": ["a", "b"], "dimensions": 2, "encoding_format": "base64"});
        let sent = openai_to_gemini("models/g", &asked).expect("a request");
        assert_eq!(sent["requests"][1]["content"]["parts"][0]["text"], "b");
        assert_eq!(sent["requests"][0]["model"], "models/g");
        assert_eq!(sent["requests"][0]["outputDimensionality"], 2);
        let answered = json!({"embeddings": [{"values": [1.0, 0.5]}, {"values": [0.0, 2.0]}]});
        let read = gemini_to_openai("g", &asked, &answered).expect("a response");
        assert_eq!(read["data"][0]["embedding"], "AACAPwAAAD8=");
        let plain = gemini_to_openai("g", &json!({"input": "a"}), &answered).expect("a response");
        assert_eq!(plain["data"][1]["embedding"], json!([0.0, 2.0]));
        let back = openai_to_gemini_response(&plain, true).expect("a response");
        assert_eq!(back, answered);
    }

    #[test]
    fn tokens_cannot_be_sent_to_gemini() {
        assert!(openai_to_gemini("g", &json!({"input": [[1, 2]]})).is_err());
        assert!(openai_to_gemini("g", &json!({"input": []})).is_err());
    }
}
