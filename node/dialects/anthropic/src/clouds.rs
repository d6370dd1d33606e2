//! Requests to Anthropic's models at cloud providers, whose bodies differ little: InvokeModel of Amazon Bedrock, and Google
//! Vertex. Their answers are those of the Messages API.

use serde_json::{Map, Value};

use assay_node_dialects::DialectError;

const BEDROCK_VERSION: &str = "bedrock-2023-05-31";
const VERTEX_VERSION: &str = "vertex-2023-10-16";
/// Upper bound of the names in a header `anthropic-beta` that are passed on.
pub const BETAS_MAX: usize = 64;

/// Makes a body one of `invoke` or `invoke-with-response-stream`. Model and mode are in the URL there.
///
/// Moves the names of the header `anthropic-beta` to the member `anthropic_beta`, because Bedrock ignores the header.
pub fn body_for_bedrock(body: &Value, beta_header: Option<&str>) -> Result<Value, DialectError> {
    let mut fields = cloud_fields(body, BEDROCK_VERSION)?;
    fields.shift_remove("stream");
    let names = beta_header.unwrap_or_default().split(',').map(str::trim).filter(|name| !name.is_empty());
    let names: Vec<&str> = names.take(BETAS_MAX).collect();
    if !names.is_empty() && !fields.contains_key("anthropic_beta") {
        fields.insert("anthropic_beta".to_owned(), names.into());
    }
    Ok(Value::Object(fields))
}

/// Makes a body one of `rawPredict` or `streamRawPredict`. The model is in the URL there, and the mode in both.
/// The header `anthropic-beta` is sent as it is.
pub fn body_for_vertex(body: &Value) -> Result<Value, DialectError> {
    cloud_fields(body, VERTEX_VERSION).map(Value::Object)
}

fn cloud_fields(body: &Value, version: &str) -> Result<Map<String, Value>, DialectError> {
    let fields = body.as_object().ok_or_else(|| DialectError::malformed("body", "an object"))?;
    let mut written = Map::from_iter([("anthropic_version".to_owned(), Value::from(version))]);
    let kept = fields.iter().filter(|(name, _)| !matches!(name.as_str(), "anthropic_version" | "model"));
    written.extend(kept.map(|(name, value)| (name.clone(), value.clone())));
    Ok(written)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn body() -> Value {
        json!({"model": "claude", "max_tokens": 5, "messages": [], "stream": true, "anthropic_version": "2023-06-01"})
    }

    #[test]
    fn bedrock_has_model_mode_and_betas_elsewhere() {
        let plain = json!({"anthropic_version": "bedrock-2023-05-31", "max_tokens": 5, "messages": []});
        for header in [None, Some(""), Some(" , ")] {
            assert_eq!(body_for_bedrock(&body(), header), Ok(plain.clone()));
        }
        let mut expected = plain;
        expected["anthropic_beta"] = json!(["a-1", "b-2"]);
        assert_eq!(body_for_bedrock(&body(), Some("a-1, b-2")), Ok(expected.clone()));
        assert_eq!(body_for_bedrock(&expected, Some("c-3")), Ok(expected));
    }

    #[test]
    fn vertex_has_the_model_elsewhere() {
        let expected =
            json!({"anthropic_version": "vertex-2023-10-16", "max_tokens": 5, "messages": [], "stream": true});
        assert_eq!(body_for_vertex(&body()), Ok(expected));
    }

    #[test]
    fn a_body_that_is_no_object_is_refused() {
        assert!(body_for_bedrock(&json!([]), None).is_err());
        assert!(body_for_vertex(&json!("x")).is_err());
    }
}
