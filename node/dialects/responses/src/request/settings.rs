//! Settings of texts and of reasoning in requests.

use serde_json::{Value, json};

use super::super::fields::{
    Fields, kept, object, put, put_missing, put_rest, put_some, rest, take, take_flag, take_text, text_of, typed,
};
use assay_node_dialects::form::{
    Extra, JsonSchemaFormat, ModelRequest, OutputFormat, ReasoningEffort, ReasoningSettings,
};
use assay_node_dialects::{Dialect, DialectError};

/// Name of a schema whose client gave none; the server wants one.
const SCHEMA_NAME: &str = "output";

/// Shares of the output that a reasoning budget takes, up to which an effort is meant. Half way between those of the
/// efforts, which are 0.2, 0.5 and 0.8.
const LOW_SHARE_MAX: f64 = 0.35;
const MEDIUM_SHARE_MAX: f64 = 0.65;
/// Budgets up to which an effort is meant if the size of the output is unknown.
const LOW_BUDGET_MAX: u64 = 4_096;
const MEDIUM_BUDGET_MAX: u64 = 16_384;

/// Reads the field `text`: the format, and the rest.
pub(super) fn read_text_settings(text: Option<Value>) -> Result<(Option<OutputFormat>, Fields), DialectError> {
    let mut text = match text {
        None => return Ok((None, Fields::new())),
        Some(text) => object(text, "text")?,
    };
    let Some(format) = take(&mut text, "format") else { return Ok((None, text)) };
    let mut format = object(format, "text.format")?;
    let read = match text_of(&format, "type") {
        Some("text") => Some(OutputFormat::Text),
        Some("json_object") => Some(OutputFormat::JsonObject),
        Some("json_schema") => {
            format.shift_remove("type");
            return Ok((Some(OutputFormat::JsonSchema(Box::new(read_schema(format)?))), text));
        }
        // a grammar, or what comes later
        Some(_) => None,
        None => return Err(DialectError::malformed("text.format.type", "text, json_object or json_schema")),
    };
    if read.is_some() {
        format.shift_remove("type");
    }
    if !format.is_empty() {
        put(&mut text, "format", format);
    }
    Ok((read, text))
}

fn read_schema(mut format: Fields) -> Result<JsonSchemaFormat, DialectError> {
    let path = "text.format";
    Ok(JsonSchemaFormat {
        name: take_text(&mut format, path, "name")?,
        description: take_text(&mut format, path, "description")?,
        schema: take(&mut format, "schema")
            .ok_or_else(|| DialectError::malformed("text.format.schema", "a JSON schema"))?,
        strict: take_flag(&mut format, path, "strict")?,
        extra: rest(format),
    })
}

/// Writes the field `text`; none if it has nothing. `verbosity` is that of chat completions.
pub(super) fn write_text_settings(request: &ModelRequest, verbosity: Option<&Value>) -> Option<Value> {
    let mut text = kept(&request.extra, "text").and_then(Value::as_object).cloned().unwrap_or_default();
    let kept_format = text.shift_remove("format");
    let mut fields = Fields::new();
    let format = match &request.output_format {
        None => kept_format,
        Some(format) => {
            let mut written = write_format(format);
            if let Some(Value::Object(mut rest)) = kept_format {
                written.append(&mut rest);
            }
            Some(Value::Object(written))
        }
    };
    put_some(&mut fields, "format", format);
    fields.append(&mut text);
    if let Some(verbosity) = verbosity {
        put_missing(&mut fields, "verbosity", || verbosity.clone());
    }
    (!fields.is_empty()).then_some(Value::Object(fields))
}

fn write_format(format: &OutputFormat) -> Fields {
    match format {
        OutputFormat::Text => typed("text"),
        OutputFormat::JsonObject => typed("json_object"),
        OutputFormat::JsonSchema(schema) => {
            let mut fields = typed("json_schema");
            put(&mut fields, "name", schema.name.as_deref().unwrap_or(SCHEMA_NAME));
            put_some(&mut fields, "description", schema.description.as_deref());
            put(&mut fields, "schema", schema.schema.clone());
            put_some(&mut fields, "strict", schema.strict);
            put_rest(&mut fields, &schema.extra);
            fields
        }
    }
}

pub(super) fn read_reasoning_settings(fields: &mut Fields) -> Result<Option<ReasoningSettings>, DialectError> {
    let Some(reasoning) = take(fields, "reasoning") else { return Ok(None) };
    let mut reasoning = object(reasoning, "reasoning")?;
    let effort = take_text(&mut reasoning, "reasoning", "effort")?.map(|effort| match effort.as_str() {
        "none" => ReasoningEffort::None,
        "minimal" => ReasoningEffort::Minimal,
        "low" => ReasoningEffort::Low,
        "medium" => ReasoningEffort::Medium,
        "high" => ReasoningEffort::High,
        "xhigh" => ReasoningEffort::ExtraHigh,
        _ => ReasoningEffort::Other(effort),
    });
    let wants_summary = ["summary", "generate_summary"].iter().any(|name| text_of(&reasoning, name).is_some());
    Ok(Some(ReasoningSettings {
        effort,
        include_text: wants_summary.then_some(true),
        extra: Extra::marked(Dialect::Responses, reasoning),
        ..ReasoningSettings::default()
    }))
}

pub(super) fn write_reasoning_settings(request: &ModelRequest) -> Option<Value> {
    let settings = request.reasoning.as_ref()?;
    let mut fields = Fields::new();
    put_some(&mut fields, "effort", effort(settings, request.max_output_tokens));
    put_rest(&mut fields, &settings.extra);
    let is_asked = fields.contains_key("summary") || fields.contains_key("generate_summary");
    if settings.include_text == Some(true) && !is_asked {
        put(&mut fields, "summary", "auto");
    }
    let is_own = settings.extra.for_dialect(Dialect::Responses).is_some();
    (is_own || !fields.is_empty()).then(|| json!(fields))
}

fn effort(settings: &ReasoningSettings, max_output_tokens: Option<u64>) -> Option<&str> {
    match (&settings.effort, settings.budget_tokens, settings.enabled) {
        (Some(effort), ..) => Some(match effort {
            ReasoningEffort::None => "none",
            ReasoningEffort::Minimal => "minimal",
            ReasoningEffort::Low => "low",
            ReasoningEffort::Medium => "medium",
            ReasoningEffort::High => "high",
            ReasoningEffort::ExtraHigh => "xhigh",
            ReasoningEffort::Other(effort) => effort,
        }),
        (None, Some(0), _) | (None, _, Some(false)) => Some("none"),
        (None, Some(budget), _) => Some(effort_of_budget(budget, max_output_tokens)),
        (None, None, _) => None,
    }
}

fn effort_of_budget(budget: u64, max_output_tokens: Option<u64>) -> &'static str {
    let share = max_output_tokens.filter(|max| *max > 0).map(|max| budget as f64 / max as f64);
    let (is_low, is_medium) = match share {
        Some(share) => (share <= LOW_SHARE_MAX, share <= MEDIUM_SHARE_MAX),
        None => (budget <= LOW_BUDGET_MAX, budget <= MEDIUM_BUDGET_MAX),
    };
    match (is_low, is_medium) {
        (true, _) => "low",
        (_, true) => "medium",
        _ => "high",
    }
}
