//! JSON schemas (OpenAPI 3.0) of shapes, for clients.
//!
//! A schema bounds the characters of texts, and requests are bounded in bytes: `maxLength` is the bound in bytes, and
//! `x-bytes-max` is that of other values.

use serde_json::{Map, Value, json};

use crate::{MOST_NEGATIVE, MOST_POSITIVE, Member, Shape};

/// Schema of an object, built member by member.
#[derive(Debug, Default)]
pub struct Object {
    pub properties: Map<String, Value>,
    required: Vec<Value>,
}

impl Object {
    /// Adds a member. One that is not required may be null, which counts as absent.
    pub fn put(&mut self, name: &str, schema: Value, required: bool) {
        if required {
            self.always(name, schema);
        } else {
            self.properties.insert(name.to_owned(), nullable(schema));
        }
    }

    /// Adds a member that is always present.
    pub fn always(&mut self, name: &str, schema: Value) {
        self.properties.insert(name.to_owned(), schema);
        self.required.push(name.into());
    }

    pub fn done(self) -> Value {
        let mut object = json!({"type": "object", "properties": self.properties});
        if !self.required.is_empty() {
            object["required"] = self.required.into();
        }
        object
    }
}

pub fn text() -> Value {
    json!({"type": "string"})
}

pub fn uuid() -> Value {
    json!({"type": "string", "format": "uuid"})
}

/// Returns the schema of an id that may be an empty string, which counts as absent.
pub fn uuid_or_empty() -> Value {
    json!({"anyOf": [uuid(), {"type": "string", "maxLength": 0}]})
}

pub fn time() -> Value {
    json!({"type": "string", "format": "date-time"})
}

/// Makes a schema nullable. Among alternatives only the first has to be.
pub fn nullable(mut schema: Value) -> Value {
    for alternatives in ["anyOf", "oneOf"] {
        if let Some(first) = schema.get_mut(alternatives).and_then(|list| list.get_mut(0)) {
            *first = nullable(first.take());
            return schema;
        }
    }
    if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        words.push(Value::Null);
    }
    schema["nullable"] = true.into();
    schema
}

/// Returns the schema of a shape.
pub fn schema(shape: &Shape) -> Value {
    match shape {
        Shape::Text { bytes_min, bytes_max } => {
            let mut schema = json!({"type": "string", "maxLength": bytes_max});
            if *bytes_min > 0 {
                schema["minLength"] = json!(1);
            }
            schema
        }
        Shape::Secret { bytes_max } => json!({"type": "string", "maxLength": bytes_max, "writeOnly": true}),
        Shape::Uuid => uuid(),
        Shape::Bool => json!({"type": "boolean"}),
        Shape::Number { min, max } => {
            let mut schema = json!({"type": "number"});
            if *min > MOST_NEGATIVE {
                schema["minimum"] = number(*min);
            }
            if *max < MOST_POSITIVE {
                schema["maximum"] = number(*max);
            }
            schema
        }
        Shape::Whole { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        Shape::Any { bytes_max } => json!({"x-bytes-max": bytes_max}),
        Shape::Values { of, items_max } => {
            json!({"type": "object", "additionalProperties": schema(of), "maxProperties": items_max})
        }
        Shape::Either(shapes) => json!({"anyOf": shapes.iter().map(schema).collect::<Vec<_>>()}),
        Shape::Word(words) => json!({"type": "string", "enum": words}),
        Shape::Texts { items_max, bytes_max } => {
            json!({"type": "array", "items": {"type": "string", "maxLength": bytes_max}, "maxItems": items_max})
        }
        Shape::Open { bytes_max } => {
            json!({"type": "object", "additionalProperties": {"nullable": true}, "x-bytes-max": bytes_max})
        }
        Shape::Known { members, bytes_max } => {
            let mut schema = object(None, members);
            schema["additionalProperties"] = json!({"nullable": true});
            schema["x-bytes-max"] = json!(bytes_max);
            schema
        }
        Shape::Closed(members) => object(None, members),
        Shape::List { of, items_max } => json!({"type": "array", "items": schema(of), "maxItems": items_max}),
        Shape::Tagged(tag, variants) => {
            let variants: Vec<_> = variants.iter().map(|(name, members)| object(Some((tag, name)), members)).collect();
            json!({ "oneOf": variants })
        }
        Shape::TaggedOpen(tag, variants) => {
            let variants = variants.iter().map(|(name, members)| {
                let mut variant = object(Some((tag, name)), members);
                variant["additionalProperties"] = json!({"nullable": true});
                variant
            });
            json!({ "oneOf": variants.collect::<Vec<_>>() })
        }
    }
}

/// Whole numbers without a fraction, as people write them.
fn number(bound: f64) -> Value {
    if bound.fract() == 0.0 && bound.abs() < 1e15 { json!(bound as i64) } else { json!(bound) }
}

fn object(tag: Option<(&str, &str)>, members: &[Member]) -> Value {
    let mut object = Object::default();
    if let Some((tag, name)) = tag {
        object.always(tag, json!({"type": "string", "enum": [name]}));
    }
    for member in members {
        object.put(member.name, schema(&member.shape), member.required);
    }
    object.done()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shape_takes_is_said_with_its_bounds() {
        const PAIR: Shape = Shape::Closed(&[
            Member::required("url", Shape::Text { bytes_min: 1, bytes_max: 5 }),
            Member::optional("on", Shape::Word(&["x"])),
        ]);
        const SHARE: Shape = Shape::Number { min: 0.0, max: MOST_POSITIVE };
        assert_eq!(
            schema(&PAIR),
            json!({
                "type": "object", "required": ["url"],
                "properties": {
                    "url": {"type": "string", "minLength": 1, "maxLength": 5},
                    "on": {"type": "string", "enum": ["x", null], "nullable": true},
                },
            })
        );
        assert_eq!(schema(&SHARE), json!({"type": "number", "minimum": 0}));
        const TAGGED: Shape = Shape::TaggedOpen("type", &[("a", &[Member::required("n", SHARE)])]);
        let tagged = schema(&TAGGED);
        assert_eq!(tagged["oneOf"][0]["properties"]["type"], json!({"type": "string", "enum": ["a"]}));
        assert_eq!(tagged["oneOf"][0]["required"], json!(["type", "n"]));
        assert_eq!(tagged["oneOf"][0]["additionalProperties"], json!({"nullable": true}));
        let either = nullable(schema(&Shape::Either(&[Shape::Uuid, SHARE])));
        assert_eq!(either["anyOf"][0]["nullable"], json!(true));
        assert_eq!(either["anyOf"][1].get("nullable"), None);
    }
}
