//! Typed view of the metadata of a provider secret. Unknown keys are kept, and invalid values count as absent.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::tls::ProviderTls;
use crate::catalog::ModelSpec;
use crate::complaint::{FieldReader, MetadataComplaint, kind_of};

pub const WEIGHT_MAX: f64 = 1e6;
pub const PRIORITY_MAX: i64 = 1_000_000;
/// Upper bound of `timeout_ms`, because no call lasts longer (G-18).
pub const TIMEOUT_MS_MAX: u64 = 30 * 60 * 1000;
/// Upper bound of the custom models of one secret. Further ones are ignored.
const CUSTOM_MODELS_MAX: usize = 10_000;
/// Upper bound of the additional headers of one secret. Further ones are ignored.
const ADDITIONAL_HEADERS_MAX: usize = 64;

const WEIGHT_DEFAULT: f64 = 1.0;

/// Form of the `Authorization` header of OpenAI-compatible servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuthFormat {
    #[default]
    Bearer,
    /// `Authorization: Api-Key <key>`
    ApiKey,
}

/// Text that is never printed, for credentials that users store in the metadata.
#[derive(Clone, PartialEq, Eq)]
pub struct HiddenText(String);

impl HiddenText {
    pub fn new(text: impl Into<String>) -> HiddenText {
        HiddenText(text.into())
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for HiddenText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("(hidden)")
    }
}

/// Metadata of a provider secret (1.3).
#[derive(Clone, PartialEq)]
pub struct ProviderMetadata {
    pub api_base: Option<String>,
    pub auth_type: Option<String>,
    pub auth_source: Option<String>,
    pub auth_format: AuthFormat,
    pub organization_id: Option<String>,
    /// Path that replaces the path of every endpoint. An empty text means no path.
    pub endpoint_path: Option<String>,
    pub api_version: Option<String>,
    pub deployment: Option<String>,
    pub no_named_deployment: bool,
    pub region: Option<String>,
    pub access_key: Option<HiddenText>,
    pub session_token: Option<HiddenText>,
    pub role_arn: Option<String>,
    pub external_id: Option<HiddenText>,
    pub project: Option<String>,
    pub location: Option<String>,
    /// Exclusive list of the models that may be called, if present.
    pub models: Option<Vec<String>>,
    pub custom_models: BTreeMap<String, Arc<ModelSpec>>,
    pub exclude_default_models: bool,
    /// Names and templates of headers, as configured. See `render_additional_headers`.
    pub additional_headers: Vec<(String, String)>,
    pub supports_streaming: bool,
    pub override_model: Option<String>,
    pub override_system_prompt: Option<String>,
    /// Share of the calls within one priority. A secret with zero is used only if no other is left.
    pub weight: f64,
    /// Priority. Secrets with low numbers are tried first.
    pub priority: i64,
    pub timeout_ms: Option<u64>,
    pub tls: ProviderTls,
    /// All members in their original form, including unknown ones.
    pub members: Map<String, Value>,
}

impl fmt::Debug for ProviderMetadata {
    /// Prints no stored members, because users store credentials in them.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ProviderMetadata")
            .field("api_base", &self.api_base)
            .field("auth_type", &self.auth_type)
            .field("models", &self.models)
            .field("custom_models", &self.custom_models.keys())
            .field("weight", &self.weight)
            .field("priority", &self.priority)
            .finish_non_exhaustive()
    }
}

impl ProviderMetadata {
    pub(super) fn parse(members: &Map<String, Value>) -> (ProviderMetadata, Vec<MetadataComplaint>) {
        let mut reader = FieldReader::new("metadata", members);
        let metadata = ProviderMetadata {
            api_base: reader.filled_text("api_base"),
            auth_type: auth_type(&mut reader),
            auth_source: reader.filled_text("auth_source"),
            auth_format: auth_format(&mut reader),
            organization_id: reader.filled_text("organization_id"),
            endpoint_path: reader.text("endpoint_path"),
            api_version: reader.filled_text("api_version"),
            deployment: reader.filled_text("deployment"),
            no_named_deployment: reader.boolean("no_named_deployment").unwrap_or(false),
            region: reader.filled_text("region"),
            access_key: reader.filled_text("access_key").map(HiddenText),
            session_token: reader.filled_text("session_token").map(HiddenText),
            role_arn: reader.filled_text("role_arn"),
            external_id: reader.filled_text("external_id").map(HiddenText),
            project: reader.filled_text("project"),
            location: reader.filled_text("location"),
            models: reader.texts("models"),
            custom_models: custom_models(&mut reader),
            exclude_default_models: reader.boolean("excludeDefaultModels").unwrap_or(false),
            additional_headers: additional_headers(&mut reader),
            supports_streaming: reader.boolean("supportsStreaming").unwrap_or(true),
            override_model: reader.filled_text("overrideModel"),
            override_system_prompt: reader.filled_text("overrideSystemPrompt"),
            weight: reader.number("weight", 0.0, WEIGHT_MAX).unwrap_or(WEIGHT_DEFAULT),
            priority: reader.signed("priority", PRIORITY_MAX).unwrap_or_default(),
            timeout_ms: reader.whole("timeout_ms", TIMEOUT_MS_MAX).filter(|limit| *limit > 0),
            tls: ProviderTls::read(&mut reader),
            members: members.clone(),
        };
        (metadata, reader.into_complaints())
    }

    /// Returns whether a model may be called. Without a list of models, every model may.
    pub fn allows(&self, model: &str) -> bool {
        self.models.as_ref().is_none_or(|models| models.iter().any(|name| name == model))
    }

    /// Returns whether there is a list of models that contains this one.
    pub fn lists(&self, model: &str) -> bool {
        self.models.is_some() && self.allows(model)
    }
}

/// Reads the kind of credentials. Secrets of type `vertex` spell the member's name differently.
fn auth_type(reader: &mut FieldReader<'_>) -> Option<String> {
    let other = reader.filled_text("authType");
    reader.filled_text("auth_type").or(other)
}

fn auth_format(reader: &mut FieldReader<'_>) -> AuthFormat {
    match reader.filled_text("auth_format").as_deref() {
        None | Some("bearer") => AuthFormat::Bearer,
        Some("api_key") => AuthFormat::ApiKey,
        Some(_) => {
            reader.complain("auth_format", "`bearer` or `api_key` was expected");
            AuthFormat::Bearer
        }
    }
}

fn custom_models(reader: &mut FieldReader<'_>) -> BTreeMap<String, Arc<ModelSpec>> {
    let Some(models) = reader.object("customModels") else { return BTreeMap::new() };
    if models.len() > CUSTOM_MODELS_MAX {
        reader.complain("customModels", format!("only the first {CUSTOM_MODELS_MAX} models are read"));
    }
    let mut found = BTreeMap::new();
    for (name, value) in models.iter().take(CUSTOM_MODELS_MAX) {
        let no_members = Map::new();
        if !value.is_object() && !value.is_null() {
            reader.complain(&format!("customModels.{name}"), format!("an object was expected, not {}", kind_of(value)));
        }
        // A model without a valid spec still belongs to this provider.
        let members = value.as_object().unwrap_or(&no_members);
        let (spec, complaints) = ModelSpec::parse(&format!("metadata.customModels.{name}"), members);
        reader.add(complaints);
        found.insert(name.clone(), Arc::new(spec));
    }
    found
}

fn additional_headers(reader: &mut FieldReader<'_>) -> Vec<(String, String)> {
    let Some(headers) = reader.object("additionalHeaders") else { return Vec::new() };
    if headers.len() > ADDITIONAL_HEADERS_MAX {
        reader.complain("additionalHeaders", format!("only the first {ADDITIONAL_HEADERS_MAX} headers are sent"));
    }
    let mut found = Vec::new();
    for (name, value) in headers.iter().take(ADDITIONAL_HEADERS_MAX) {
        match value {
            Value::Null => {}
            Value::String(text) => found.push((name.clone(), text.clone())),
            Value::Number(_) | Value::Bool(_) => found.push((name.clone(), value.to_string())),
            Value::Array(_) | Value::Object(_) => {
                let problem = format!("a string was expected, not {}", kind_of(value));
                reader.complain(&format!("additionalHeaders.{name}"), problem);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(members: Value) -> (ProviderMetadata, Vec<String>) {
        let (metadata, complaints) = ProviderMetadata::parse(members.as_object().expect("an object"));
        (metadata, complaints.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn unknown_keys_are_kept_and_change_nothing() {
        let (metadata, complaints) = parse(json!({"zeta": [1, {"a": null}], "api_base": "http://a", "weight": 2}));
        assert!(complaints.is_empty());
        assert_eq!(metadata.members["zeta"], json!([1, {"a": null}]));
        assert_eq!((metadata.weight, metadata.api_base.as_deref()), (2.0, Some("http://a")));
    }

    #[test]
    fn odd_values_count_as_absent_and_are_named() {
        let (metadata, complaints) = parse(json!({
            "api_base": 7, "models": "gpt", "weight": -1, "priority": 1.5, "timeout_ms": "5", "supportsStreaming": "no",
            "customModels": {"a": 3, "b": {"format": "new"}}, "additionalHeaders": {"x": [], "y": 1, "z": null},
            "auth_format": "digest"
        }));
        assert_eq!((metadata.api_base, metadata.models), (None, None));
        assert_eq!((metadata.weight, metadata.priority, metadata.timeout_ms), (1.0, 0, None));
        assert!(metadata.supports_streaming && metadata.auth_format == AuthFormat::Bearer);
        assert_eq!(metadata.custom_models.keys().collect::<Vec<_>>(), ["a", "b"], "defined all the same");
        assert_eq!(metadata.additional_headers, [("y".to_owned(), "1".to_owned())]);
        let named = |path: &str| complaints.iter().any(|said| said.starts_with(&format!("metadata.{path}: ")));
        for path in ["api_base", "models", "weight", "priority", "timeout_ms", "supportsStreaming", "customModels.a"] {
            assert!(named(path), "{path} in {complaints:?}");
        }
        assert!(named("customModels.b.format") && named("additionalHeaders.x") && named("auth_format"));
    }

    #[test]
    fn an_empty_endpoint_path_is_no_path_and_an_absent_one_is_the_usual() {
        assert_eq!(parse(json!({"endpoint_path": ""})).0.endpoint_path.as_deref(), Some(""));
        assert_eq!(parse(json!({})).0.endpoint_path, None);
    }

    #[test]
    fn an_empty_list_of_models_allows_none() {
        assert!(parse(json!({})).0.allows("a") && !parse(json!({})).0.lists("a"));
        assert!(!parse(json!({"models": []})).0.allows("a"));
        assert!(parse(json!({"models": ["a"]})).0.lists("a") && !parse(json!({"models": ["a"]})).0.allows("b"));
    }

    #[test]
    fn credentials_in_metadata_are_not_printed() {
        let (metadata, _) = parse(json!({"access_key": "AKIA", "session_token": "tok", "password": "hunter2"}));
        let printed = format!("{metadata:?} {:?}", metadata.access_key);
        assert!(!["AKIA", "tok\"", "hunter2"].iter().any(|word| printed.contains(word)), "{printed}");
        assert_eq!(metadata.access_key.expect("a key").reveal(), "AKIA");
    }
}
