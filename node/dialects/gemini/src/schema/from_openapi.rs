//! Schemas of Gemini as JSON schemas.

use serde_json::{Map, Value, json};

use super::{SCHEMA_DEPTH_MAX, SCHEMA_NODES_MAX, SCHEMA_PATH_BYTES_MAX};
use crate::fields::{camel_case, too_many};
use assay_node_dialects::DialectError;

/// Rewrites a schema of Gemini as a JSON schema. Unknown keywords stay.
pub fn from_openapi(schema: &Value, path: &str) -> Result<Value, DialectError> {
    let mut nodes = 0;
    read(schema, path, 0, &mut nodes)
}

fn read(schema: &Value, path: &str, depth: usize, nodes: &mut usize) -> Result<Value, DialectError> {
    let object = schema.as_object().ok_or_else(|| DialectError::malformed(path, "a schema"))?;
    *nodes += 1;
    if depth > SCHEMA_DEPTH_MAX {
        return Err(too_many("levels of a schema", SCHEMA_DEPTH_MAX));
    }
    if path.len() > SCHEMA_PATH_BYTES_MAX {
        return Err(too_many("bytes of a path within a schema", SCHEMA_PATH_BYTES_MAX));
    }
    if *nodes > SCHEMA_NODES_MAX {
        return Err(too_many("schemas within a schema", SCHEMA_NODES_MAX));
    }
    let (mut read_schema, mut is_nullable) = (Map::new(), false);
    for (name, value) in object.iter().filter(|(_, value)| !value.is_null()) {
        let name = camel_case(name);
        let path = format!("{path}.{name}");
        let value = match (name.as_str(), value) {
            ("nullable", nullable) => {
                is_nullable = nullable == &Value::Bool(true);
                continue;
            }
            ("type", Value::String(kind)) if kind == "TYPE_UNSPECIFIED" => continue,
            ("type", Value::String(kind)) => json!(kind.to_ascii_lowercase()),
            // a format of words is what `enum` says already
            ("format", Value::String(format)) if format == "enum" => continue,
            ("example", example) => {
                read_schema.insert("examples".to_owned(), json!([example]));
                continue;
            }
            ("properties", Value::Object(properties)) => {
                let mut all = Map::new();
                for (property, schema) in properties {
                    all.insert(property.clone(), read(schema, &format!("{path}.{property}"), depth + 1, nodes)?);
                }
                Value::Object(all)
            }
            ("items", items) => read(items, &path, depth + 1, nodes)?,
            ("anyOf", Value::Array(schemas)) => {
                let schemas = schemas.iter().enumerate();
                let read = schemas.map(|(at, schema)| read(schema, &format!("{path}[{at}]"), depth + 1, nodes));
                Value::Array(read.collect::<Result<_, _>>()?)
            }
            // the JSON of protobuf may spell whole numbers as texts
            (bound, Value::String(text)) if is_bound(bound) => match text.parse::<u64>() {
                Ok(count) => json!(count),
                Err(_) => return Err(DialectError::malformed(path, "a whole number")),
            },
            (_, value) => value.clone(),
        };
        read_schema.insert(name, value);
    }
    if is_nullable {
        allow_null(&mut read_schema);
    }
    Ok(Value::Object(read_schema))
}

fn is_bound(name: &str) -> bool {
    matches!(name, "minItems" | "maxItems" | "minLength" | "maxLength" | "minProperties" | "maxProperties")
}

fn allow_null(schema: &mut Map<String, Value>) {
    if let Some(kind) = schema.get_mut("type") {
        *kind = json!([kind.clone(), "null"]);
    }
    if let Some(Value::Array(schemas)) = schema.get_mut("anyOf") {
        schemas.push(json!({ "type": "null" }));
    }
    if let Some(Value::Array(words)) = schema.get_mut("enum")
        && !words.contains(&Value::Null)
    {
        words.push(Value::Null);
    }
}
