//! JSON schemas as schemas of Gemini.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::refs::resolve;
use super::{COMMON_KEYWORDS, SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX, SCHEMA_NODES_MAX, SCHEMA_PATH_BYTES_MAX};
use crate::fields::too_many;
use assay_node_dialects::DialectError;

/// Rewrites a JSON schema in the subset of OpenAPI that Gemini takes.
///
/// References are inlined, alternatives and `null` are expressed, and keywords that Gemini lacks are left out. A schema
/// that refers to itself, or that nothing fulfils, is refused.
pub fn to_openapi(schema: &Value, path: &str) -> Result<Value, DialectError> {
    let mut writer = OpenapiWriter { root: schema, nodes: 0, bytes: 0, references: Vec::new() };
    writer.write(schema, path, 0).map(Value::Object)
}

struct OpenapiWriter<'a> {
    root: &'a Value,
    nodes: usize,
    /// Bytes that were copied.
    bytes: usize,
    /// References that are being inlined.
    references: Vec<&'a str>,
}

impl<'a> OpenapiWriter<'a> {
    fn write(&mut self, schema: &'a Value, path: &str, depth: usize) -> Result<Map<String, Value>, DialectError> {
        self.nodes += 1;
        if depth > SCHEMA_DEPTH_MAX {
            return Err(too_many("levels of a schema", SCHEMA_DEPTH_MAX));
        }
        if self.nodes > SCHEMA_NODES_MAX {
            return Err(too_many("schemas within a schema", SCHEMA_NODES_MAX));
        }
        if path.len() > SCHEMA_PATH_BYTES_MAX {
            return Err(too_many("bytes of a path within a schema", SCHEMA_PATH_BYTES_MAX));
        }
        let object = match schema {
            Value::Bool(true) => return Ok(Map::new()),
            Value::Bool(false) => return Err(DialectError::unsupported(path, "a schema that nothing fulfils")),
            Value::Object(object) => object,
            _ => return Err(DialectError::malformed(path, "a schema")),
        };
        self.spend(own_bytes(object))?;
        let mut written = Map::new();
        if let Some(reference) = object.get("$ref") {
            written = self.referred(reference, path, depth)?;
        }
        for (at, part) in array(object, "allOf").iter().enumerate() {
            let part = self.write(part, &format!("{path}.allOf[{at}]"), depth + 1)?;
            merge(&mut written, part, path)?;
        }
        self.keywords(object, &mut written, path, depth)?;
        self.alternatives(object, &mut written, path, depth)?;
        complete(&mut written);
        self.distribute(written, path)
    }

    /// Inlines a reference.
    fn referred(&mut self, reference: &'a Value, path: &str, depth: usize) -> Result<Map<String, Value>, DialectError> {
        let path = format!("{path}.$ref");
        let reference = reference.as_str().ok_or_else(|| DialectError::malformed(&*path, "a string"))?;
        let Some(target) = resolve(self.root, reference) else {
            return Err(DialectError::malformed(path, "a reference within the schema, such as `#/$defs/Step`"));
        };
        if self.references.contains(&reference) {
            return Err(DialectError::unsupported(path, "a schema that refers to itself"));
        }
        self.references.push(reference);
        let written = self.write(target, &path, depth + 1)?;
        self.references.pop();
        Ok(written)
    }

    fn keywords(
        &mut self,
        object: &'a Map<String, Value>,
        written: &mut Map<String, Value>,
        path: &str,
        depth: usize,
    ) -> Result<(), DialectError> {
        for name in COMMON_KEYWORDS {
            if let Some(value) = object.get(name) {
                written.insert(name.to_owned(), value.clone());
            }
        }
        if let Some(kind) = object.get("type") {
            self.kinds(kind, written, path)?;
        }
        write_words(object, written);
        write_bounds(object, written);
        if let Some(Value::Object(properties)) = object.get("properties") {
            let mut all = match written.remove("properties") {
                Some(Value::Object(before)) => before,
                _ => Map::new(),
            };
            for (name, schema) in properties {
                let schema = self.write(schema, &format!("{path}.properties.{name}"), depth + 1)?;
                all.insert(name.clone(), Value::Object(schema));
            }
            written.insert("properties".to_owned(), Value::Object(all));
        }
        append_required(written, array(object, "required"));
        self.items(object, written, path, depth)
    }

    /// Writes the type. Several types are alternatives.
    fn kinds(&mut self, kind: &Value, written: &mut Map<String, Value>, path: &str) -> Result<(), DialectError> {
        let kinds = match kind {
            Value::Array(kinds) => kinds.iter().map(Value::as_str).collect(),
            kind => vec![kind.as_str()],
        };
        let malformed = || DialectError::malformed(format!("{path}.type"), "the name of a type, or a list of names");
        let mut names = Vec::new();
        for kind in kinds {
            let kind = kind.map(str::to_ascii_uppercase).ok_or_else(malformed)?;
            match kind.as_str() {
                "STRING" | "NUMBER" | "INTEGER" | "BOOLEAN" | "ARRAY" | "OBJECT" | "NULL" => names.push(kind),
                _ => return Err(malformed()),
            }
        }
        let count = names.len();
        names.retain(|name| name != "NULL");
        if names.len() < count && !names.is_empty() {
            written.insert("nullable".to_owned(), json!(true));
        }
        match names.as_slice() {
            [] if count > 0 => drop(written.insert("type".to_owned(), json!("NULL"))),
            [] => {}
            [name] => drop(written.insert("type".to_owned(), json!(name))),
            names => {
                let alternatives: Vec<Value> = names.iter().map(|name| json!({ "type": name })).collect();
                written.insert("anyOf".to_owned(), Value::Array(alternatives));
            }
        }
        Ok(())
    }

    /// Writes the schema of the elements of a list. Elements at fixed positions are alternatives.
    fn items(
        &mut self,
        object: &'a Map<String, Value>,
        written: &mut Map<String, Value>,
        path: &str,
        depth: usize,
    ) -> Result<(), DialectError> {
        let mut alternatives: Vec<&'a Value> = array(object, "prefixItems").iter().collect();
        match object.get("items") {
            Some(Value::Array(items)) => alternatives.extend(items),
            Some(Value::Bool(_)) | None => {}
            Some(items) => alternatives.push(items),
        }
        let mut schemas = Vec::with_capacity(alternatives.len());
        for (at, item) in alternatives.into_iter().enumerate() {
            schemas.push(self.write(item, &format!("{path}.items[{at}]"), depth + 1)?);
        }
        schemas.dedup();
        let items = match schemas.len() {
            0 => return Ok(()),
            1 => Value::Object(schemas.remove(0)),
            _ => json!({ "anyOf": schemas }),
        };
        written.insert("items".to_owned(), items);
        Ok(())
    }

    /// Moves what a schema states beside its alternatives into each of them: Gemini takes nothing beside them.
    fn distribute(&mut self, mut schema: Map<String, Value>, path: &str) -> Result<Map<String, Value>, DialectError> {
        let Some(Value::Array(alternatives)) = schema.shift_remove("anyOf") else { return Ok(schema) };
        // a default of all is a default of none
        schema.shift_remove("default");
        let bytes = schema.iter().map(|(name, value)| name.len() + bytes_of(value)).sum::<usize>();
        self.spend(bytes.saturating_mul(alternatives.len()))?;
        let mut all = Vec::with_capacity(alternatives.len());
        for alternative in alternatives {
            let Value::Object(mut alternative) = alternative else { continue };
            merge(&mut alternative, schema.clone(), path)?;
            complete(&mut alternative);
            all.push(Value::Object(self.distribute(alternative, path)?));
        }
        Ok(Map::from_iter([("anyOf".to_owned(), Value::Array(all))]))
    }

    /// Counts bytes that are copied: references and alternatives could repeat a long text without bounds.
    fn spend(&mut self, bytes: usize) -> Result<(), DialectError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > SCHEMA_BYTES_MAX {
            return Err(too_many("bytes of a schema", SCHEMA_BYTES_MAX));
        }
        Ok(())
    }

    fn alternatives(
        &mut self,
        object: &'a Map<String, Value>,
        written: &mut Map<String, Value>,
        path: &str,
        depth: usize,
    ) -> Result<(), DialectError> {
        for name in ["anyOf", "oneOf"] {
            let mut schemas = Vec::new();
            let mut is_nullable = false;
            for (at, schema) in array(object, name).iter().enumerate() {
                let schema = self.write(schema, &format!("{path}.{name}[{at}]"), depth + 1)?;
                if schema.get("type") == Some(&json!("NULL")) {
                    is_nullable = true;
                } else {
                    schemas.push(schema);
                }
            }
            if is_nullable && !schemas.is_empty() {
                written.insert("nullable".to_owned(), json!(true));
            }
            match schemas.len() {
                0 if is_nullable => drop(written.insert("type".to_owned(), json!("NULL"))),
                0 => {}
                1 => merge(written, schemas.remove(0), path)?,
                _ => merge(written, Map::from_iter([("anyOf".to_owned(), json!(schemas))]), path)?,
            }
        }
        Ok(())
    }
}

fn array<'a>(object: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    object.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Writes `const` and `enum`. Gemini knows only words; other values are told in the description.
fn write_words(object: &Map<String, Value>, written: &mut Map<String, Value>) {
    let constant = object.get("const").map(std::slice::from_ref);
    let Some(values) = constant.or_else(|| object.get("enum")?.as_array().map(Vec::as_slice)) else { return };
    let others: Vec<&Value> = values.iter().filter(|value| !value.is_null()).collect();
    if others.len() < values.len() {
        if others.is_empty() {
            written.insert("type".to_owned(), json!("NULL"));
            return;
        }
        written.insert("nullable".to_owned(), json!(true));
    }
    if others.iter().all(|value| value.is_string()) {
        written.shift_remove("anyOf");
        written.insert("type".to_owned(), json!("STRING"));
        written.insert("format".to_owned(), json!("enum"));
        written.insert("enum".to_owned(), json!(others));
        return;
    }
    if !written.contains_key("type")
        && !written.contains_key("anyOf")
        && let Some(kind) = kind_of_all(&others)
    {
        written.insert("type".to_owned(), json!(kind));
    }
    let values = others.iter().map(|value| value.to_string()).collect::<Vec<_>>().join(", ");
    let before = written.get("description").and_then(Value::as_str).map(|text| format!("{text} "));
    let description = format!("{}One of: {values}", before.unwrap_or_default());
    written.insert("description".to_owned(), json!(description));
}

/// Type that all of the values have.
fn kind_of_all(values: &[&Value]) -> Option<&'static str> {
    let kind = |value: &Value| match value {
        Value::Bool(_) => "BOOLEAN",
        Value::Number(number) if number.is_f64() => "NUMBER",
        Value::Number(_) => "INTEGER",
        Value::String(_) => "STRING",
        Value::Array(_) => "ARRAY",
        Value::Object(_) => "OBJECT",
        Value::Null => "NULL",
    };
    let first = kind(values.first()?);
    values.iter().all(|value| kind(value) == first).then_some(first)
}

/// Writes formats that Gemini knows, and exclusive bounds of whole numbers.
fn write_bounds(object: &Map<String, Value>, written: &mut Map<String, Value>) {
    let kind = written.get("type").and_then(Value::as_str).unwrap_or_default();
    let format = object.get("format").and_then(Value::as_str).unwrap_or_default();
    let is_known = match kind {
        "STRING" => format == "date-time",
        "NUMBER" => matches!(format, "float" | "double"),
        "INTEGER" => matches!(format, "int32" | "int64"),
        _ => false,
    };
    let is_integer = kind == "INTEGER";
    if is_known {
        written.insert("format".to_owned(), json!(format));
    }
    for (exclusive, name, step) in [("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)] {
        let bound = object.get(exclusive).and_then(Value::as_i64).and_then(|bound| bound.checked_add(step));
        if let Some(bound) = bound.filter(|_| is_integer && !written.contains_key(name)) {
            written.insert(name.to_owned(), json!(bound));
        }
    }
}

fn append_required(written: &mut Map<String, Value>, names: &[Value]) {
    if names.is_empty() {
        return;
    }
    if let Value::Array(required) = written.entry("required").or_insert_with(|| json!([])) {
        required.extend_from_slice(names);
    }
}

/// Adds a schema that holds at the same time. Descriptions of the outer schema win.
fn merge(target: &mut Map<String, Value>, other: Map<String, Value>, path: &str) -> Result<(), DialectError> {
    for (name, value) in other {
        match (name.as_str(), target.get_mut(&name), value) {
            (_, None, value) => drop(target.insert(name, value)),
            ("properties", Some(Value::Object(before)), Value::Object(properties)) => {
                for (property, schema) in properties {
                    before.entry(property).or_insert(schema);
                }
            }
            ("required", Some(_), Value::Array(names)) => append_required(target, &names),
            ("title" | "description" | "default" | "propertyOrdering" | "nullable", Some(_), _) => {}
            (_, Some(before), value) if *before == value => {}
            _ => return Err(DialectError::unsupported(path, format!("`{name}` that several schemas state"))),
        }
    }
    Ok(())
}

/// Adds what Gemini wants: a type for objects and lists, a schema of elements, and required names that exist.
fn complete(schema: &mut Map<String, Value>) {
    let kind = if schema.contains_key("properties") { Some("OBJECT") } else { None };
    let kind = kind.or(schema.contains_key("items").then_some("ARRAY"));
    if let Some(kind) = kind.filter(|_| !schema.contains_key("type") && !schema.contains_key("anyOf")) {
        schema.insert("type".to_owned(), json!(kind));
    }
    if schema.get("type") == Some(&json!("ARRAY")) && !schema.contains_key("items") {
        schema.insert("items".to_owned(), json!({ "type": "OBJECT" }));
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut properties: HashSet<String> = properties.into_iter().flat_map(Map::keys).cloned().collect();
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        // each name once
        required.retain(|name| name.as_str().is_some_and(|name| properties.remove(name)));
        if required.is_empty() {
            schema.shift_remove("required");
        }
    }
}

/// Bytes of what a schema states itself, without the schemas within it.
fn own_bytes(schema: &Map<String, Value>) -> usize {
    let bytes = schema.iter().map(|(name, value)| match (name.as_str(), value) {
        ("properties", Value::Object(properties)) => properties.keys().map(String::len).sum(),
        ("properties" | "items" | "prefixItems" | "anyOf" | "oneOf" | "allOf" | "$defs" | "definitions", _) => 0,
        (_, value) => bytes_of(value),
    });
    bytes.sum()
}

fn bytes_of(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::String(text) => text.len(),
            Value::Array(values) => values.iter().map(bytes_of).sum(),
            Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + bytes_of(value)).sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}
