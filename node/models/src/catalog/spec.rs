//! Spec of one model, from the catalog or from `customModels` of a provider secret.

use serde_json::{Map, Value};

use super::price::{PRICE_AS, PriceHistory};
use crate::complaint::{FieldReader, MetadataComplaint};
use crate::provider::ProviderType;

/// Upper bound of the token limits of a model.
const TOKENS_MAX: u64 = 1_000_000_000;

/// Wire format of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WireFormat {
    #[default]
    OpenAi,
    Anthropic,
    Google,
    Window,
    Js,
    Converse,
}

impl WireFormat {
    const NAMES: [(&'static str, WireFormat); 6] = [
        ("openai", WireFormat::OpenAi),
        ("anthropic", WireFormat::Anthropic),
        ("google", WireFormat::Google),
        ("window", WireFormat::Window),
        ("js", WireFormat::Js),
        ("converse", WireFormat::Converse),
    ];

    pub fn parse(name: &str) -> Option<WireFormat> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
    }

    /// Returns the provider types that serve a format if the model does not name any.
    pub fn usual_providers(self) -> &'static [ProviderType] {
        match self {
            WireFormat::OpenAi => &[ProviderType::OpenAi, ProviderType::Azure],
            WireFormat::Anthropic => &[ProviderType::Anthropic],
            WireFormat::Google => &[ProviderType::Google],
            WireFormat::Converse => &[ProviderType::Bedrock],
            WireFormat::Window | WireFormat::Js => &[],
        }
    }
}

/// Kind of calls that a model serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ModelFlavor {
    #[default]
    Chat,
    Completion,
    Embedding,
}

impl ModelFlavor {
    pub fn parse(name: &str) -> Option<ModelFlavor> {
        match name {
            "chat" => Some(ModelFlavor::Chat),
            "completion" => Some(ModelFlavor::Completion),
            "embedding" => Some(ModelFlavor::Embedding),
            _ => None,
        }
    }
}

/// Spec of a model. Further members are only in `members`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelSpec {
    pub format: WireFormat,
    pub flavor: ModelFlavor,
    /// Provider types that serve the model, or `None` if the format decides. Unknown types are omitted.
    pub available_providers: Option<Vec<ProviderType>>,
    /// Other names of the same model.
    pub fallback_models: Vec<String>,
    pub max_input_tokens: Option<u64>,
    pub max_output_tokens: Option<u64>,
    pub multimodal: bool,
    pub reasoning: bool,
    pub reasoning_budget: bool,
    pub o1_like: bool,
    pub supports_streaming: bool,
    pub streaming_only: bool,
    /// Whether `json_schema` is sent as a forced tool (G-32).
    pub json_schema_as_tool: bool,
    pub prices: PriceHistory,
    /// Model of the catalog whose price applies if this model has no own price.
    pub price_as: Option<String>,
    /// All members in their original form.
    pub members: Map<String, Value>,
}

impl ModelSpec {
    /// Returns the spec, and complaints about members that count as absent. `path` is the prefix of their paths.
    pub fn parse(path: &str, members: &Map<String, Value>) -> (ModelSpec, Vec<MetadataComplaint>) {
        let mut reader = FieldReader::new(path, members);
        let flavor = word(&mut reader, "flavor", "`chat`, `completion` or `embedding`", ModelFlavor::parse);
        let spec = ModelSpec {
            format: word(
                &mut reader,
                "format",
                "`openai`, `anthropic`, `google`, `window`, `js` or `converse`",
                WireFormat::parse,
            ),
            flavor,
            available_providers: reader
                .texts("available_providers")
                .map(|names| names.iter().filter_map(|name| ProviderType::parse(name)).collect()),
            fallback_models: reader.texts("fallback_models").unwrap_or_default(),
            max_input_tokens: reader.whole("max_input_tokens", TOKENS_MAX),
            max_output_tokens: reader.whole("max_output_tokens", TOKENS_MAX),
            multimodal: reader.boolean("multimodal").unwrap_or(false),
            reasoning: reader.boolean("reasoning").unwrap_or(false),
            reasoning_budget: reader.boolean("reasoning_budget").unwrap_or(false),
            o1_like: reader.boolean("o1_like").unwrap_or(false),
            supports_streaming: reader.boolean("supports_streaming").unwrap_or(true),
            streaming_only: reader.boolean("streaming_only").unwrap_or(false),
            json_schema_as_tool: members.get("json_schema").and_then(Value::as_str) == Some("tool"),
            prices: PriceHistory::parse(path, &mut reader, flavor == ModelFlavor::Embedding),
            price_as: reader.filled_text(PRICE_AS),
            members: members.clone(),
        };
        (spec, reader.into_complaints())
    }

    /// Returns whether provider secrets of a type serve the model.
    pub fn is_served_by(&self, provider: ProviderType) -> bool {
        match &self.available_providers {
            Some(types) => types.contains(&provider),
            None => self.format.usual_providers().contains(&provider),
        }
    }
}

/// Reads one of several words. An absent or invalid word counts as the default.
fn word<T: Default>(reader: &mut FieldReader<'_>, name: &str, expected: &str, parse: impl Fn(&str) -> Option<T>) -> T {
    let Some(written) = reader.filled_text(name) else { return T::default() };
    parse(&written).unwrap_or_else(|| {
        reader
            .complain(name, format!("{expected} was expected, not {:?}", written.chars().take(32).collect::<String>()));
        T::default()
    })
}
