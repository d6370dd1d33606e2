//! Tests of schemas.

use serde_json::{Value, json};

use super::{SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX, SCHEMA_NODES_MAX, from_openapi, to_openapi};
use assay_node_dialects::DialectError;

#[test]
fn json_schemas_are_written_in_the_subset() {
    for (schema, expected) in [
        (json!(true), json!({})),
        (
            json!({ "type": "string", "format": "uri", "minLength": 1, "$comment": "x" }),
            json!({ "minLength": 1, "type": "STRING" }),
        ),
        (json!({ "type": "string", "format": "date-time" }), json!({ "type": "STRING", "format": "date-time" })),
        (
            json!({ "type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10 }),
            json!({ "type": "INTEGER", "minimum": 1, "maximum": 9 }),
        ),
        (json!({ "type": ["integer", "null"] }), json!({ "nullable": true, "type": "INTEGER" })),
        (json!({ "type": "null" }), json!({ "type": "NULL" })),
        (
            json!({ "type": ["string", "integer"], "description": "d" }),
            json!({ "anyOf": [{ "type": "STRING", "description": "d" }, { "type": "INTEGER", "description": "d" }] }),
        ),
        (json!({ "const": "a" }), json!({ "type": "STRING", "format": "enum", "enum": ["a"] })),
        (
            json!({ "enum": ["a", null] }),
            json!({ "nullable": true, "type": "STRING", "format": "enum", "enum": ["a"] }),
        ),
        (
            json!({ "enum": [1, 2], "description": "How many." }),
            json!({ "description": "How many. One of: 1, 2", "type": "INTEGER" }),
        ),
        (json!({ "const": null }), json!({ "type": "NULL" })),
        (
            json!({ "anyOf": [{ "type": "string" }, { "type": "null" }], "title": "A", "default": null }),
            json!({ "title": "A", "default": null, "nullable": true, "type": "STRING" }),
        ),
        (
            json!({ "oneOf": [{ "type": "string" }, { "type": "integer" }, { "type": "null" }] }),
            json!({ "anyOf": [{ "type": "STRING", "nullable": true }, { "type": "INTEGER", "nullable": true }] }),
        ),
        (
            json!({ "properties": { "a": {} }, "required": ["a", "b"] }),
            json!({ "properties": { "a": {} }, "required": ["a"], "type": "OBJECT" }),
        ),
        (json!({ "type": "object", "required": ["b"], "patternProperties": {} }), json!({ "type": "OBJECT" })),
        (json!({ "type": "array" }), json!({ "type": "ARRAY", "items": { "type": "OBJECT" } })),
        (
            json!({ "prefixItems": [{ "type": "string" }, { "type": "integer" }], "items": false }),
            json!({ "items": { "anyOf": [{ "type": "STRING" }, { "type": "INTEGER" }] }, "type": "ARRAY" }),
        ),
        (
            json!({ "allOf": [{ "$ref": "#/$defs/A" }, { "properties": { "b": { "type": "number" } }, "required": ["b"] }], "description": "d",
                "$defs": { "A": { "type": "object", "description": "a", "properties": { "a": { "$ref": "#/$defs/B%20b" } }, "required": ["a"] }, "B b": { "type": "boolean" } } }),
            json!({ "type": "OBJECT", "description": "d", "properties": { "a": { "type": "BOOLEAN" }, "b": { "type": "NUMBER" } }, "required": ["a", "b"] }),
        ),
        (
            json!({ "properties": { "a": { "$ref": "#/definitions/A", "description": "outer" }, "b": { "$ref": "#/definitions/A" } }, "definitions": { "A": { "type": "string", "description": "inner" } } }),
            json!({ "properties": { "a": { "description": "outer", "type": "STRING" }, "b": { "description": "inner", "type": "STRING" } }, "type": "OBJECT" }),
        ),
    ] {
        assert_eq!(to_openapi(&schema, "s").expect("writes"), expected, "of {schema}");
    }
}

#[test]
fn schemas_that_cannot_be_expressed_are_refused() {
    for schema in [
        json!(false),
        json!({ "properties": { "a": { "$ref": "#" } } }),
        json!({ "$ref": "#/$defs/A", "$defs": { "A": { "items": { "$ref": "#/$defs/A" } } } }),
        json!({ "allOf": [{ "type": "string" }, { "type": "integer" }] }),
    ] {
        let refused = to_openapi(&schema, "s");
        assert!(matches!(refused, Err(DialectError::Unsupported { .. })), "{schema}: {refused:?}");
    }
    for schema in [
        json!(1),
        json!({ "type": "text" }),
        json!({ "type": 1 }),
        json!({ "$ref": "https://a.example" }),
        json!({ "$ref": "#/a" }),
    ] {
        let refused = to_openapi(&schema, "s");
        assert!(matches!(refused, Err(DialectError::Malformed { .. })), "{schema}: {refused:?}");
    }
}

#[test]
fn depth_and_number_of_schemas_are_bounded() {
    let nested =
        |depth| (0..depth).fold(json!({ "type": "string" }), |inner, _| json!({ "type": "array", "items": inner }));
    assert!(to_openapi(&nested(SCHEMA_DEPTH_MAX), "s").is_ok() && from_openapi(&nested(SCHEMA_DEPTH_MAX), "s").is_ok());
    let deep = nested(SCHEMA_DEPTH_MAX + 1);
    assert!(matches!(to_openapi(&deep, "s"), Err(DialectError::TooMany { .. })));
    assert!(matches!(from_openapi(&deep, "s"), Err(DialectError::TooMany { .. })));
    // each definition has the next one twice: references grow a schema without bounds
    let definitions = (0..30).map(|at| {
        let next = json!({ "$ref": format!("#/$defs/D{}", at + 1) });
        (format!("D{at}"), json!({ "properties": { "a": next, "b": next } }))
    });
    let mut all: serde_json::Map<String, Value> = definitions.collect();
    all.insert("D30".to_owned(), json!({ "type": "string" }));
    let bomb = json!({ "$ref": "#/$defs/D0", "$defs": all });
    let refused = to_openapi(&bomb, "s");
    assert!(matches!(refused, Err(DialectError::TooMany { max: SCHEMA_NODES_MAX, .. })), "{refused:?}");
}

#[test]
fn repeated_texts_are_bounded() {
    let long = "a".repeat(1 << 20);
    let references: Vec<Value> = (0..100).map(|_| json!({ "$ref": "#/$defs/A" })).collect();
    let repeated = json!({ "anyOf": references, "$defs": { "A": { "type": "string", "description": long } } });
    let alternatives: Vec<Value> = (0..100).map(|_| json!({ "type": "string" })).collect();
    let beside = json!({ "anyOf": alternatives, "description": long });
    for schema in [repeated, beside] {
        let refused = to_openapi(&schema, "s");
        assert!(matches!(refused, Err(DialectError::TooMany { max: SCHEMA_BYTES_MAX, .. })), "{refused:?}");
    }
}

#[test]
fn nothing_stands_beside_alternatives() {
    let schema = json!({ "description": "d", "anyOf": [
        { "type": "null" },
        { "oneOf": [{ "properties": { "a": {} }, "required": ["a", "a"] }, { "type": "integer" }] },
        { "type": "string", "description": "own" }] });
    let expected = json!({ "anyOf": [
        { "anyOf": [
            { "properties": { "a": {} }, "required": ["a"], "type": "OBJECT", "description": "d", "nullable": true },
            { "type": "INTEGER", "description": "d", "nullable": true }] },
        { "type": "STRING", "description": "own", "nullable": true }] });
    assert_eq!(to_openapi(&schema, "s"), Ok(expected));
}

#[test]
fn schemas_of_gemini_are_read_as_json_schemas() {
    for (schema, expected) in [
        (
            json!({ "type": "STRING", "nullable": true, "format": "enum", "enum": ["a"] }),
            json!({ "type": ["string", "null"], "enum": ["a", null] }),
        ),
        (
            json!({ "type": "ARRAY", "items": { "type": "INTEGER", "format": "int32" }, "min_items": "1", "maxItems": 3 }),
            json!({ "type": "array", "items": { "type": "integer", "format": "int32" }, "minItems": 1, "maxItems": 3 }),
        ),
        (
            json!({ "any_of": [{ "type": "STRING" }], "nullable": true, "example": "x" }),
            json!({ "anyOf": [{ "type": "string" }, { "type": "null" }], "examples": ["x"] }),
        ),
        (json!({ "type": "TYPE_UNSPECIFIED", "nullable": false, "title": null }), json!({})),
        (
            json!({ "properties": { "any_of": { "type": "STRING" } } }),
            json!({ "properties": { "any_of": { "type": "string" } } }),
        ),
    ] {
        assert_eq!(from_openapi(&schema, "s").expect("reads"), expected);
    }
    assert!(from_openapi(&json!({ "items": [] }), "s").is_err());
    assert!(from_openapi(&json!({ "minItems": "x" }), "s").is_err());
}
