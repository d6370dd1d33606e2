//! Input of the gateway for one call: caller, endpoint, body, and providers.

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

/// Owner of a call, as far as routes, headers, budgets and caches depend on it.
#[derive(Clone, Debug)]
pub struct CallOwner {
    pub organization: Uuid,
    /// Project whose providers are used besides those of the organization.
    pub project: Option<Uuid>,
    /// Id of the user or the service account, independent of the credential.
    pub principal: Uuid,
    pub email: Option<String>,
    /// Whether the principal is a service account.
    pub is_service_account: bool,
    /// Id of the API key or the service token, or `None` for other credentials.
    pub credential: Option<Uuid>,
    /// Id of the temporary credential, if the caller sent one.
    pub temporary: Option<Uuid>,
}

/// Access to the keys of provider secrets. No response may contain such a key.
pub trait ProviderKeys: Send + Sync + fmt::Debug {
    /// Returns the key of a secret, or `None` if it was not set. The error says why the key is unreadable.
    fn key(&self, secret_id: &str) -> BoxFuture<'_, Result<Option<Secret>, String>>;
}

/// Body of a request.
#[derive(Clone, Debug)]
pub enum CallBody {
    /// JSON object, with its original text.
    Json { value: Arc<Value>, bytes: Bytes },
    /// Bytes that pass unmodified, such as a form with an audio file.
    Opaque { bytes: Bytes, content_type: String },
}

impl CallBody {
    /// Returns the JSON value, or null for other bodies.
    pub fn json(&self) -> &Value {
        match self {
            CallBody::Json { value, .. } => value,
            CallBody::Opaque { .. } => &Value::Null,
        }
    }

    /// Returns the original bytes of the body.
    pub fn bytes(&self) -> &Bytes {
        match self {
            CallBody::Json { bytes, .. } | CallBody::Opaque { bytes, .. } => bytes,
        }
    }

    /// Creates a body from a JSON value.
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
    /// Returns the upper bound of output tokens that the client requests.
    pub fn output_bound(&self) -> Option<u64> {
        output_bound(self.body.json())
    }

    /// Returns a random number for one purpose, derived from the random id of the request.
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

/// Returns the model and mode of a request. `model_in_path` is the model from a path of Gemini's API.
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
        CallBody::Opaque { bytes, content_type } => model_in_form(bytes, content_type),
    };
    // Like OpenAI's own server, this endpoint has a default model.
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

/// Returns the field `model` of a multipart form.
///
/// Servers disagree on which one of several such fields counts, so a form with more than one has no model.
fn model_in_form(bytes: &[u8], content_type: &str) -> Option<String> {
    const END_OF_HEAD: &[u8] = b"\r\n\r\n";
    let boundary = format!("--{}", parameter(content_type, "boundary").filter(|boundary| !boundary.is_empty())?);
    let mut model = None;
    let (mut rest, mut next) = (bytes, position(bytes, boundary.as_bytes()));
    while let Some(at) = next {
        rest = &rest[at + boundary.len()..];
        next = position(rest, boundary.as_bytes());
        let part = &rest[..next.unwrap_or(rest.len())];
        let Some(end) = position(part, END_OF_HEAD).filter(|end| names_model(&part[..*end])) else { continue };
        let content = part[end + END_OF_HEAD.len()..].strip_suffix(b"\r\n")?;
        if model.replace(str::from_utf8(content).ok()?.trim()).is_some() {
            return None;
        }
    }
    model.filter(|model| !model.is_empty()).map(str::to_owned)
}

/// Returns the first position of a text that is not empty. Forms have megabytes, of which few bytes match the first one.
fn position(bytes: &[u8], sought: &[u8]) -> Option<usize> {
    let (first, mut from) = (sought.first()?, 0);
    loop {
        from += bytes[from..].iter().position(|byte| byte == first)?;
        if bytes[from..].starts_with(sought) {
            return Some(from);
        }
        from += 1;
    }
}

/// Returns a parameter of a header value, without quotes.
fn parameter<'h>(header: &'h str, name: &str) -> Option<&'h str> {
    let pairs = header.split(';').skip(1).filter_map(|pair| pair.split_once('='));
    let mut named = pairs.filter(|(known, _)| known.trim().eq_ignore_ascii_case(name));
    named.next().map(|(_, value)| value.trim().trim_matches('"'))
}

/// Returns whether the head of a part names the field `model`.
fn names_model(head: &[u8]) -> bool {
    String::from_utf8_lossy(head).split("\r\n").any(|line| {
        let value = line.split_once(':').filter(|(name, _)| name.trim().eq_ignore_ascii_case("content-disposition"));
        value.is_some_and(|(_, value)| parameter(value, "name") == Some("model"))
    })
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
        let part =
            |name: &str, content: &str| format!("--b\r\nContent-Disposition: form-data; {name}\r\n\r\n{content}\r\n");
        let model = |parts: &[String]| {
            model_in_form(format!("{}--b--\r\n", parts.concat()).as_bytes(), "multipart/form-data; boundary=\"b\"")
        };
        let (named, decoy) = ("name=\"model\"", "x name=\"model\"\r\n\r\nwhisper-1\r\n");
        assert_eq!(model(&[part(named, "whisper-1")]).as_deref(), Some("whisper-1"));
        assert_eq!(model(&[part("name=prompt", decoy), part("name=model", "m")]).as_deref(), Some("m"));
        assert_eq!(model(&[part(named, "m"), part("NAME=model", "n")]), None);
        assert_eq!(model(&[part(named, "")]), None);
        assert_eq!(model_in_form(b"name=\"model\"\r\n\r\n", "multipart/form-data; boundary=b"), None);
    }
}
