//! Format of the answer's text.

use serde_json::{Map, Value, json};

use super::UnsentNames;
use crate::fields::GeminiFields;
use crate::schema::{from_openapi, to_openapi};
use assay_node_dialects::form::{JsonSchemaFormat, OutputFormat};
use assay_node_dialects::{Dialect, DialectError, WriteOptions};

const SCHEMA: &str = "responseSchema";
const JSON_SCHEMA: &str = "responseJsonSchema";
const JSON: &str = "application/json";
const PLAIN: &str = "text/plain";

pub(super) fn read_format(settings: &mut GeminiFields) -> Result<Option<OutputFormat>, DialectError> {
    let media_type = settings.text("responseMimeType")?;
    match media_type.as_deref() {
        Some(PLAIN) => return Ok(Some(OutputFormat::Text)),
        Some(JSON) | None => {}
        // such as one of a list of words, which has no other spelling
        Some(other) => {
            settings.keep("responseMimeType", json!(other));
            return Ok(None);
        }
    }
    let (schema, spelling) = if let Some(schema) = settings.take(JSON_SCHEMA) {
        (schema, (JSON_SCHEMA, json!(true)))
    } else if let Some(schema) = settings.take(SCHEMA) {
        (from_openapi(&schema, &settings.path_of(SCHEMA))?, (SCHEMA, schema))
    } else {
        return Ok(media_type.map(|_| OutputFormat::JsonObject));
    };
    let extra =
        assay_node_dialects::form::Extra::default().with_field_spelling(Dialect::Gemini, spelling.0, spelling.1);
    let format = JsonSchemaFormat { name: None, description: None, schema, strict: None, extra };
    Ok(Some(OutputFormat::JsonSchema(Box::new(format))))
}

pub(super) fn write_format(
    format: &OutputFormat,
    options: &WriteOptions,
    dropped: &mut UnsentNames,
    settings: &mut Map<String, Value>,
) -> Result<(), DialectError> {
    let media_type = if *format == OutputFormat::Text { PLAIN } else { JSON };
    settings.insert("responseMimeType".to_owned(), json!(media_type));
    let OutputFormat::JsonSchema(format) = format else { return Ok(()) };
    dropped.add_extra(&format.extra);
    let path = "output_format.schema";
    let spelled = format.extra.field_spelling(Dialect::Gemini, SCHEMA);
    if options.takes_json_schema && spelled.is_none()
        || format.extra.field_spelling(Dialect::Gemini, JSON_SCHEMA).is_some()
    {
        settings.insert(JSON_SCHEMA.to_owned(), format.schema.clone());
    } else if let Some(spelled) = spelled.filter(|spelled| from_openapi(spelled, path).as_ref() == Ok(&format.schema)) {
        settings.insert(SCHEMA.to_owned(), spelled.clone());
    } else {
        settings.insert(SCHEMA.to_owned(), to_openapi(&format.schema, path)?);
    }
    Ok(())
}
