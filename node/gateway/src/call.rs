//! A call as the gateway takes it: caller, endpoint, body, providers.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use assay_node_auth::Secret;
use assay_node_models::provider::Provider;
use bytes::Bytes;
use futures::future::BoxFuture;
use serde_json::Value;
use uuid::Uuid;

use crate::endpoint::{ClientEndpoint, GeminiVerb};
use crate::error::GatewayError;
use crate::upstream::output_bound;

/// Bytes of a form that are searched for the name of the model.
const FORM_SEARCH_BYTES_MAX: usize = 64 << 10;

/// Who calls, as far as routes and headers depend on it.
#[derive(Clone, Debug)]
pub struct CallOwner {
    pub organization: Uuid,
    /// Project whose providers are used besides those of the organization.
    pub project: Option<Uuid>,
    /// Id of the user or the service account, whatever credential was sent.
    pub principal: Uuid,
    pub email: Option<String>,
    /// Whether the principal is a service account.
    pub is_service_account: bool,
    /// Record of the API key or the service token; `None` for other credentials.
    pub credential: Option<Uuid>,
    /// Record of the temporary credential that was sent, if any.
    pub temporary: Option<Uuid>,
}

/// Access to the keys of provider secrets. No answer ever shows one.
pub trait ProviderKeys: Send + Sync + fmt::Debug {
    /// Returns the key of a secret; none if it was not set. The error says why it cannot be read.
    fn key(&self, secret_id: &str) -> BoxFuture<'_, Result<Option<Secret>, String>>;
}

/// Body of a request.
#[derive(Clone, Debug)]
pub enum CallBody {
    /// A JSON object, and its text as it came.
    Json { value: Arc<Value>, bytes: Bytes },
    /// Bytes that pass as they are, such as a form with an audio file.
    Opaque { bytes: Bytes, content_type: String },
}

impl CallBody {
    /// Returns the JSON value; null for another body.
    pub fn json(&self) -> &Value {
        match self {
            CallBody::Json { value, .. } => value,
            CallBody::Opaque { .. } => &Value::Null,
        }
    }

    /// Returns the bytes of the body as they came.
    pub fn bytes(&self) -> &Bytes {
        match self {
            CallBody::Json { bytes, .. } | CallBody::Opaque { bytes, .. } => bytes,
        }
    }

    /// Makes a body of a value.
    pub fn of_value(value: Value) -> CallBody {
        let bytes = Bytes::from(value.to_string());
        CallBody::Json { value: Arc::new(value), bytes }
    }
}

/// Call of a model.
#[derive(Clone, Debug)]
pub struct ModelCall {
    pub request_id: String,
    pub owner: CallOwner,
    pub endpoint: ClientEndpoint,
    pub model: String,
    pub stream: bool,
    pub body: CallBody,
    /// Headers of the client, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// Name of the only secret that may be used.
    pub endpoint_name: Option<String>,
    /// Secrets of the organization and of the project that the caller may use.
    pub providers: Arc<[Arc<Provider>]>,
    pub keys: Arc<dyn ProviderKeys>,
}

impl ModelCall {
    /// Returns the upper bound of the tokens of the answer, as the client asks for it.
    pub fn output_bound(&self) -> Option<u64> {
        output_bound(self.body.json())
    }

    /// Returns a random number for one purpose, derived from the id, which is random.
    pub(crate) fn random_number(&self, purpose: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        (purpose, &self.request_id).hash(&mut hasher);
        hasher.finish()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Model and mode of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallTarget {
    pub model: String,
    pub stream: bool,
}

/// Returns what a body asks for. `model_in_path` is the model in the path of Gemini's API.
pub fn read_target(
    endpoint: &ClientEndpoint,
    body: &CallBody,
    model_in_path: Option<&str>,
) -> Result<CallTarget, GatewayError> {
    if let (ClientEndpoint::Gemini(verb), Some(model)) = (endpoint, model_in_path) {
        return Ok(CallTarget { model: model.to_owned(), stream: *verb == GeminiVerb::StreamGenerate });
    }
    let model = match body {
        CallBody::Json { value, .. } => match value.get("model") {
            Some(Value::String(model)) if !model.is_empty() => Some(model.clone()),
            None | Some(Value::Null) => None,
            Some(_) => return Err(of_model("`model` has to be the name of a model, as a string that is not empty")),
        },
        CallBody::Opaque { bytes, .. } => model_in_form(bytes),
    };
    // servers of this endpoint have a default model, as OpenAI's
    let usual = || (*endpoint == ClientEndpoint::Moderations).then(|| "omni-moderation-latest".to_owned());
    let model = model.or_else(usual).ok_or_else(|| of_model("`model` is missing: name the model to call"))?;
    let stream = match body.json().get("stream") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(stream)) => *stream,
        Some(_) => return Err(GatewayError::invalid("`stream` has to be true or false")),
    };
    Ok(CallTarget { model, stream })
}

fn of_model(message: &str) -> GatewayError {
    let mut refusal = GatewayError::invalid(message);
    refusal.error.param = Some("model".to_owned());
    refusal
}

/// Finds the field `model` near the begin of a form.
fn model_in_form(bytes: &[u8]) -> Option<String> {
    const FIELD: &[u8] = b"name=\"model\"\r\n\r\n";
    let begin = &bytes[..bytes.len().min(FORM_SEARCH_BYTES_MAX)];
    let at = begin.windows(FIELD.len()).position(|window| window == FIELD)? + FIELD.len();
    let length = begin[at..].iter().position(|byte| *byte == b'\r')?;
    let model = str::from_utf8(&begin[at..at + length]).ok()?.trim();
    (!model.is_empty()).then(|| model.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_body_names_its_model_and_mode() {
        let read = |body: Value| read_target(&ClientEndpoint::Chat, &CallBody::of_value(body), None);
        assert_eq!(read(json!({"model": "m", "stream": true})), Ok(CallTarget { model: "m".into(), stream: true }));
        for body in [json!({}), json!({"model": 1}), json!({"model": ""}), json!({"model": "m", "stream": 1})] {
            assert_eq!(read(body.clone()).map_err(|refusal| refusal.status), Err(400), "{body}");
        }
    }

    #[test]
    fn a_form_names_its_model_in_a_field() {
        let form = "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper-1\r\n--b--";
        assert_eq!(model_in_form(form.as_bytes()).as_deref(), Some("whisper-1"));
        assert_eq!(model_in_form(b"name=\"model\"\r\n\r\n"), None);
    }
}
