//! Input of the gateway for one call: caller, endpoint, body, and providers.

use std::any::Any;
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
use crate::form::{FormError, FormParts};
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

/// Member of a body, or field of a form, with the name of the model.
const MODEL: &str = "model";

/// Body of a request.
#[derive(Clone, Debug)]
pub enum CallBody {
    /// JSON object, with its original text.
    Json { value: Arc<Value>, bytes: Bytes, memory: BodyReservation },
    /// Bytes that pass unmodified, such as a form with an audio file.
    Opaque { bytes: Bytes, content_type: String, memory: BodyReservation },
}

/// Reservation of the memory of a body. It is released with the last clone of the body.
#[derive(Clone, Default)]
pub struct BodyReservation(Option<Arc<dyn Any + Send + Sync>>);

impl BodyReservation {
    /// Keeps a value that reserves memory until it is dropped.
    pub fn of(held: impl Send + Sync + 'static) -> BodyReservation {
        BodyReservation(Some(Arc::new(held)))
    }
}

impl fmt::Debug for BodyReservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BodyReservation").field(&self.0.is_some()).finish()
    }
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

    /// Creates a body from a JSON value, without a reservation.
    pub fn of_value(value: Value) -> CallBody {
        CallBody::reserved(value, BodyReservation::default())
    }

    /// Creates a body from a JSON value whose memory is reserved.
    pub fn reserved(value: Value, memory: BodyReservation) -> CallBody {
        let bytes = Bytes::from(value.to_string());
        CallBody::Json { value: Arc::new(value), bytes, memory }
    }

    /// Returns the texts of the body for guardrails: the JSON value, or a list of the texts in a form.
    ///
    /// The model of a form is not among them. Refuses a form whose texts are encoded.
    pub fn texts(&self) -> Result<Value, GatewayError> {
        match self {
            CallBody::Json { value, .. } => Ok(Value::clone(value)),
            CallBody::Opaque { bytes, content_type, .. } => {
                Ok(FormParts::read(bytes, content_type)?.texts(bytes, MODEL)?.into())
            }
        }
    }

    /// Replaces the texts of the body. The new ones have the form of [`CallBody::texts`].
    pub fn set_texts(&mut self, texts: Value) -> Result<(), GatewayError> {
        match self {
            CallBody::Json { memory, .. } => *self = CallBody::reserved(texts, memory.clone()),
            CallBody::Opaque { bytes, content_type, .. } => {
                let texts = texts.as_array().map(Vec::as_slice).unwrap_or_default();
                let texts: Vec<String> =
                    texts.iter().map(|text| text.as_str().unwrap_or_default().to_owned()).collect();
                *bytes = FormParts::read(bytes, content_type)?.with_texts(bytes, (content_type, MODEL), &texts)?;
            }
        }
        Ok(())
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
        CallBody::Json { value, .. } => match value.get(MODEL) {
            Some(Value::String(model)) if !model.is_empty() => Some(model.clone()),
            None | Some(Value::Null) => None,
            Some(_) => return Err(of_model("`model` has to be the name of a model, as a string that is not empty")),
        },
        CallBody::Opaque { bytes, content_type, .. } => model_in_form(bytes, content_type)?,
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
    refusal.error.param = Some(MODEL.to_owned());
    refusal
}

/// Returns the field `model` of a multipart form.
///
/// Servers disagree on which one of several such fields counts, so a form with more than one has no model.
fn model_in_form(bytes: &[u8], content_type: &str) -> Result<Option<String>, FormError> {
    let parts = FormParts::read(bytes, content_type)?;
    let fields = parts.fields(bytes, MODEL);
    let [field] = fields.as_slice() else { return Ok(None) };
    let model = str::from_utf8(field).unwrap_or_default().trim();
    Ok(Some(model.to_owned()).filter(|model| !model.is_empty()))
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
            let form = format!("{}--b--\r\n", parts.concat());
            model_in_form(form.as_bytes(), "multipart/form-data; boundary=\"b\"").ok().flatten()
        };
        let (named, decoy) = ("name=\"model\"", "x name=\"model\"\r\n\r\nwhisper-1\r\n");
        assert_eq!(model(&[part(named, "whisper-1")]).as_deref(), Some("whisper-1"));
        assert_eq!(model(&[part("name=prompt", decoy), part("name=model", "m")]).as_deref(), Some("m"));
        assert_eq!(model(&[part(named, "m"), part("NAME=model", "n")]), None);
        assert_eq!(model(&[part(named, "")]), None);
        let form = CallBody::Opaque {
            bytes: Bytes::from_static(b"name=\"model\"\r\n\r\n"),
            content_type: "multipart/form-data; boundary=b".into(),
            memory: BodyReservation::default(),
        };
        // The default model of this endpoint does not excuse a form that servers may read otherwise.
        let refused = read_target(&ClientEndpoint::Moderations, &form, None);
        assert_eq!(refused.map_err(|refusal| refusal.status), Err(400));
    }

    #[test]
    fn other_texts_of_a_body_keep_its_reservation() {
        let form = b"--b\r\nContent-Disposition: form-data; name=prompt\r\n\r\na\r\n--b--";
        let opaque = |memory| CallBody::Opaque {
            bytes: Bytes::from_static(form),
            content_type: "multipart/form-data; boundary=b".into(),
            memory,
        };
        let json = |memory| CallBody::reserved(json!({"input": "a"}), memory);
        for body_of in [&opaque as &dyn Fn(BodyReservation) -> CallBody, &json] {
            let held = Arc::new(());
            let mut body = body_of(BodyReservation::of(Arc::clone(&held)));
            let texts = body.texts().expect("texts").to_string().replace("\"a\"", "\"other\"");
            body.set_texts(serde_json::from_str(&texts).expect("JSON")).expect("texts");
            assert!(body.bytes().windows(5).any(|bytes| bytes == b"other"), "{body:?}");
            let clone = body.clone();
            drop(body);
            assert_eq!(Arc::strong_count(&held), 2, "a clone still holds it");
            drop(clone);
            assert_eq!(Arc::strong_count(&held), 1);
        }
    }
}
