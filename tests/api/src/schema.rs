//! JSON schemas as in OpenAPI 3.0: validation of a value, examples of valid values, and ways to make them invalid.
//!
//! Supported: `$ref` (with `nullable` beside it), `type` (also `null`, as in 3.1), `nullable`, `enum`, `format` uuid
//! and date-time, `minLength`, `maxLength`, `minimum`, `maximum`, `exclusiveMinimum`, `minItems`, `maxItems`, `items`,
//! `properties`, `required`, `additionalProperties`, `allOf`, `anyOf`, `oneOf`. One match of `oneOf` suffices: the
//! forms of a contract are not always distinct.

use serde_json::{Map, Value, json};

use crate::pattern::{is_time, is_uuid, shortened};

/// Maximum nesting of a value; a deeper schema refers to itself.
const DEPTH_MAX: usize = 64;
/// Values that are tried as those of another type.
const OTHERS: [fn() -> Value; 5] = [|| json!(17.5), || json!(true), || json!("text"), || json!([]), || json!({})];

/// An OpenAPI document.
#[derive(Clone, Debug)]
pub struct Document {
    root: Value,
}

/// An operation of a document.
#[derive(Clone, Debug)]
pub struct Operation<'d> {
    /// `POST`
    pub method: String,
    pub path: &'d str,
    pub said: &'d Value,
}

impl Operation<'_> {
    pub fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

impl Document {
    pub fn new(root: Value) -> Document {
        Document { root }
    }

    pub fn root(&self) -> &Value {
        &self.root
    }

    /// Returns the operations in the order of the document.
    pub fn operations(&self) -> Vec<Operation<'_>> {
        const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];
        let paths = self.root["paths"].as_object().into_iter().flatten();
        let each = paths.flat_map(|(path, methods)| {
            let methods =
                methods.as_object().into_iter().flatten().filter(|(name, _)| METHODS.contains(&name.as_str()));
            methods.map(move |(method, said)| Operation { method: method.to_uppercase(), path, said })
        });
        each.collect()
    }

    /// Returns the target of a reference, or the value itself. A dangling reference gives null, which is no schema.
    pub fn resolved<'d>(&'d self, mut value: &'d Value) -> &'d Value {
        for _ in 0..DEPTH_MAX {
            let Some(target) = value.get("$ref").and_then(Value::as_str) else { return value };
            value = self.root.pointer(target.trim_start_matches('#')).unwrap_or(&Value::Null);
        }
        &Value::Null
    }

    /// The parameters of an operation, with references followed.
    pub fn parameters<'d>(&'d self, operation: &Operation<'d>) -> Vec<&'d Value> {
        let all = operation.said["parameters"].as_array().into_iter().flatten();
        all.map(|parameter| self.resolved(parameter)).collect()
    }

    /// The schema of a JSON body, if the operation takes one.
    pub fn body<'d>(&'d self, operation: &Operation<'d>) -> Option<&'d Value> {
        self.resolved(operation.said.get("requestBody")?).pointer("/content/application~1json/schema")
    }

    /// The schema of the answer of a success in JSON.
    pub fn answer<'d>(&'d self, operation: &Operation<'d>) -> Option<&'d Value> {
        self.resolved(operation.said.pointer("/responses/200")?).pointer("/content/application~1json/schema")
    }

    /// Returns the defects of the value, a line each; nothing if it matches the schema.
    pub fn complaints(&self, schema: &Value, value: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.check(schema, value, "", 0, &mut found);
        found
    }

    fn fits(&self, schema: &Value, value: &Value, depth: usize) -> bool {
        let mut found = Vec::new();
        self.check(schema, value, "", depth, &mut found);
        found.is_empty()
    }

    fn check(&self, schema: &Value, value: &Value, path: &str, depth: usize, out: &mut Vec<String>) {
        let here = if path.is_empty() { "the value" } else { path };
        if depth > DEPTH_MAX {
            return out.push(format!("{here}: the schema is nested without an end"));
        }
        if value.is_null() && takes_null(schema) {
            return;
        }
        if schema.get("$ref").is_some() {
            let target = self.resolved(schema);
            if target.is_null() {
                return out.push(format!("{here}: {} leads nowhere", schema["$ref"]));
            }
            return self.check(target, value, path, depth + 1, out);
        }
        for part in list(schema, "allOf") {
            self.check(part, value, path, depth + 1, out);
        }
        for word in ["anyOf", "oneOf"] {
            let forms = list(schema, word);
            if !forms.is_empty() && !forms.iter().any(|form| self.fits(form, value, depth + 1)) {
                out.push(format!("{here}: {} is none of {} forms", brief(value), forms.len()));
                // Where one form is meant, what is wrong with it says more.
                if let Some(form) = self.meant(forms, value) {
                    self.check(form, value, path, depth + 1, out);
                }
            }
        }
        if let Some(kind) = schema["type"].as_str()
            && !is_a(kind, value)
        {
            return out.push(format!("{here}: {} is no {kind}", brief(value)));
        }
        if let Some(words) = schema["enum"].as_array()
            && !words.contains(value)
        {
            out.push(format!("{here}: {} is none of {}", brief(value), brief(&schema["enum"])));
        }
        match value {
            Value::String(text) => check_text(schema, text, here, out),
            Value::Number(number) => check_number(schema, number.as_f64().unwrap_or(f64::NAN), here, out),
            Value::Array(items) => self.check_items(schema, items, path, depth, out),
            Value::Object(members) => self.check_members(schema, members, path, depth, out),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// The form whose words of one value are the value's.
    fn meant<'d>(&'d self, forms: &'d [Value], value: &Value) -> Option<&'d Value> {
        forms.iter().map(|form| self.resolved(form)).find(|form| {
            let properties = form["properties"].as_object().into_iter().flatten();
            let mut tags =
                properties.filter(|(_, schema)| schema["enum"].as_array().is_some_and(|words| words.len() == 1));
            let all: Vec<bool> = tags.by_ref().map(|(name, schema)| schema["enum"][0] == value[name]).collect();
            !all.is_empty() && all.iter().all(|is| *is)
        })
    }

    fn check_items(&self, schema: &Value, items: &[Value], path: &str, depth: usize, out: &mut Vec<String>) {
        let count = items.len() as u64;
        if schema["minItems"].as_u64().is_some_and(|min| count < min) {
            out.push(format!("{path}: {count} items, at least {} are wanted", schema["minItems"]));
        }
        if schema["maxItems"].as_u64().is_some_and(|max| count > max) {
            out.push(format!("{path}: {count} items, at most {} are wanted", schema["maxItems"]));
        }
        if let Some(each) = schema.get("items") {
            for (at, item) in items.iter().enumerate() {
                self.check(each, item, &format!("{path}[{at}]"), depth + 1, out);
            }
        }
    }

    fn check_members(
        &self,
        schema: &Value,
        members: &Map<String, Value>,
        path: &str,
        depth: usize,
        out: &mut Vec<String>,
    ) {
        for name in list(schema, "required").iter().filter_map(Value::as_str) {
            if !members.contains_key(name) {
                out.push(format!("{path}.{name}: is missing"));
            }
        }
        let others = schema.get("additionalProperties");
        for (name, value) in members {
            let here = format!("{path}.{name}");
            match (schema["properties"].get(name), others) {
                (Some(known), _) => self.check(known, value, &here, depth + 1, out),
                (None, Some(Value::Bool(false))) => out.push(format!("{here}: is not known")),
                (None, Some(other)) if other.is_object() => self.check(other, value, &here, depth + 1, out),
                (None, _) => {}
            }
        }
    }

    /// A valid value with what is required and nothing else. `known` gives values of fields by their names.
    pub fn example(&self, schema: &Value, known: &mut dyn FnMut(&str) -> Option<Value>) -> Value {
        self.example_at(schema, "", known, 0)
    }

    fn example_at(
        &self,
        schema: &Value,
        name: &str,
        known: &mut dyn FnMut(&str) -> Option<Value>,
        depth: usize,
    ) -> Value {
        let schema = self.resolved(schema);
        if depth > DEPTH_MAX {
            return Value::Null;
        }
        if let Some(word) = list(schema, "enum").iter().find(|word| !word.is_null()) {
            return word.clone();
        }
        for word in ["anyOf", "oneOf"] {
            if let Some(first) = list(schema, word).first() {
                return self.example_at(first, name, known, depth + 1);
            }
        }
        let mut all = Map::new();
        for part in list(schema, "allOf") {
            match self.example_at(part, name, known, depth + 1) {
                Value::Object(members) => all.extend(members),
                Value::Null => {}
                other => return other,
            }
        }
        if let Some(value) = known(name) {
            return value;
        }
        match schema["type"].as_str() {
            Some("object") => {
                for name in list(schema, "required").iter().filter_map(Value::as_str) {
                    let value = self.example_at(&schema["properties"][name], name, known, depth + 1);
                    all.insert(name.to_owned(), value);
                }
                Value::Object(all)
            }
            Some("array") => {
                let item = self.example_at(&schema["items"], "", known, depth + 1);
                json!([item])
            }
            Some("boolean") => json!(true),
            Some("integer" | "number") => {
                let least = schema["minimum"].as_f64().unwrap_or(1.0);
                let least = if schema["exclusiveMinimum"] == true { least + 1.0 } else { least };
                json!(least.ceil() as i64)
            }
            Some("string") => match schema["format"].as_str() {
                Some("uuid") => json!("11111111-2222-4333-8444-555555555555"),
                Some("date-time") => json!("2026-11-21T05:44:00.123Z"),
                Some("uri") => json!("https://example.com/"),
                _ => json!("text"),
            },
            _ if all.is_empty() => json!({"any": "value"}),
            _ => Value::Object(all),
        }
    }

    /// The value with each thing that may be null and is not required set to null; nothing where there is no such thing.
    pub fn with_nulls(&self, schema: &Value, value: &Value) -> Option<Value> {
        let (schema, mut value) = (self.resolved(schema), value.clone());
        let properties = schema["properties"].as_object()?;
        let members = value.as_object_mut()?;
        let optional = properties.iter().filter(|(_, schema)| self.fits(schema, &Value::Null, 0));
        let mut any = false;
        for (name, _) in optional {
            if !members.contains_key(name) {
                members.insert(name.clone(), Value::Null);
                any = true;
            }
        }
        any.then_some(value)
    }

    /// The value made wrong in each of its required fields: left out, of another type, out of its range or words. Each comes
    /// with where and how, and with the name of the field.
    pub fn spoiled(&self, schema: &Value, value: &Value) -> Vec<Spoiled> {
        let mut found = Vec::new();
        self.spoil(schema, value, &mut Vec::new(), &mut found, value);
        found
    }

    fn spoil(&self, schema: &Value, value: &Value, path: &mut Vec<String>, out: &mut Vec<Spoiled>, whole: &Value) {
        let schema = self.chosen(schema, value);
        if let (Some(items), Some(first)) = (schema.get("items"), value.get(0)) {
            path.push("0".into());
            self.spoil(items, first, path, out, whole);
            path.pop();
        }
        for name in list(schema, "required").iter().filter_map(Value::as_str) {
            let Some(found) = value.get(name) else { continue };
            let field = &schema["properties"][name];
            path.push(name.to_owned());
            out.push(Spoiled::new(whole, path, "left out", None));
            if let Some(other) = OTHERS.iter().map(|make| make()).find(|other| self.is_of_no_form(field, other)) {
                out.push(Spoiled::new(whole, path, "of another type", Some(other)));
            }
            if let Some(beyond) = self.beyond(field) {
                out.push(Spoiled::new(whole, path, "out of range", Some(beyond)));
            }
            self.spoil(field, found, path, out, whole);
            path.pop();
        }
    }

    fn is_of_no_form(&self, schema: &Value, value: &Value) -> bool {
        let same = |kind: &str| is_a(kind, value);
        let schema = self.resolved(schema);
        let of_same_type = schema["type"].as_str().is_some_and(same);
        !of_same_type && !self.fits(schema, value, 0)
    }

    /// Returns the alternative that the value matches, if there are several.
    fn chosen<'d>(&'d self, schema: &'d Value, value: &Value) -> &'d Value {
        let schema = self.resolved(schema);
        let forms = ["anyOf", "oneOf", "allOf"].into_iter().flat_map(|word| list(schema, word));
        forms.map(|form| self.resolved(form)).find(|form| self.fits(form, value, 0)).unwrap_or(schema)
    }

    /// A value of the type that is out of what is allowed.
    fn beyond(&self, schema: &Value) -> Option<Value> {
        let schema = self.resolved(schema);
        if schema.get("enum").is_some() {
            return Some(json!("no such word"));
        }
        match (schema["type"].as_str()?, schema["format"].as_str()) {
            ("string", Some("uuid")) => Some(json!("no id")),
            ("string", Some("date-time")) => Some(json!("yesterday")),
            ("string", _) if schema["minLength"].as_u64().is_some_and(|min| min > 0) => Some(json!("")),
            ("integer" | "number", _) => {
                let below = schema["minimum"].as_f64().map(|min| min - 1.0);
                below.or(schema["maximum"].as_f64().map(|max| max + 1.0)).map(|bound| json!(bound as i64))
            }
            _ => None,
        }
    }
}

/// A body that is wrong in one place.
#[derive(Clone, Debug)]
pub struct Spoiled {
    /// `config.event_type left out`
    pub how: String,
    /// Field that the refusal has to name.
    pub field: String,
    pub body: Value,
}

impl Spoiled {
    fn new(whole: &Value, path: &[String], how: &str, value: Option<Value>) -> Spoiled {
        let (mut body, field) = (whole.clone(), path.last().cloned().unwrap_or_default());
        let above: String = path[..path.len() - 1].iter().map(|part| format!("/{part}")).collect();
        if let Some(members) = body.pointer_mut(&above).and_then(Value::as_object_mut) {
            match value {
                Some(value) => drop(members.insert(field.clone(), value)),
                None => drop(members.remove(&field)),
            }
        }
        Spoiled { how: format!("{} {how}", path.join(".")), field, body }
    }
}

fn list<'v>(schema: &'v Value, word: &str) -> &'v [Value] {
    schema.get(word).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Returns whether null is allowed: by the type, by its absence, or by a list of words that includes it.
fn takes_null(schema: &Value) -> bool {
    let says_nothing =
        ["$ref", "type", "enum", "allOf", "anyOf", "oneOf"].iter().all(|word| schema.get(word).is_none());
    schema["nullable"] == true
        || schema["type"] == "null"
        || says_nothing
        || list(schema, "enum").contains(&Value::Null)
}

fn is_a(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "null" => value.is_null(),
        _ => false,
    }
}

fn check_text(schema: &Value, text: &str, here: &str, out: &mut Vec<String>) {
    let letters = text.chars().count() as u64;
    if schema["minLength"].as_u64().is_some_and(|min| letters < min) {
        out.push(format!("{here}: {letters} letters, at least {} are wanted", schema["minLength"]));
    }
    if schema["maxLength"].as_u64().is_some_and(|max| letters > max) {
        out.push(format!("{here}: {letters} letters, at most {} are wanted", schema["maxLength"]));
    }
    let right = match schema["format"].as_str() {
        Some("uuid") => is_uuid(text),
        Some("date-time") => is_time(text),
        _ => true,
    };
    if !right {
        out.push(format!("{here}: `{}` is no {}", shortened(text), schema["format"]));
    }
}

fn check_number(schema: &Value, number: f64, here: &str, out: &mut Vec<String>) {
    let excluded = schema["exclusiveMinimum"] == true;
    if schema["minimum"].as_f64().is_some_and(|min| number < min || (excluded && number <= min)) {
        out.push(format!("{here}: {number} is less than {}", schema["minimum"]));
    }
    if schema["maximum"].as_f64().is_some_and(|max| number > max) {
        out.push(format!("{here}: {number} is more than {}", schema["maximum"]));
    }
}

fn brief(value: &Value) -> String {
    shortened(&value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "11111111-2222-4333-8444-555555555555";

    fn document() -> Document {
        Document::new(json!({
            "paths": {"/a": {"post": {"x": 1}, "parameters": []}},
            "components": {"schemas": {
                "Id": {"type": "string", "format": "uuid"},
                "Word": {"type": "string", "enum": ["a", "b"]},
                "Loop": {"$ref": "#/components/schemas/Loop"},
            }},
        }))
    }

    #[track_caller]
    fn check(schema: Value, right: &[Value], wrong: &[(Value, &str)]) {
        let document = document();
        for value in right {
            assert_eq!(document.complaints(&schema, value), Vec::<String>::new(), "{value}");
        }
        for (value, words) in wrong {
            let found = document.complaints(&schema, value).join("; ");
            assert!(found.contains(words) && !found.is_empty(), "{value}: {found}");
        }
    }

    #[test]
    fn types_and_words_are_checked() {
        check(json!({"type": "string"}), &[json!("a")], &[(json!(1), "is no string"), (json!(null), "is no string")]);
        check(json!({"type": "integer"}), &[json!(1), json!(1.0)], &[(json!(1.5), "is no integer")]);
        check(json!({"type": "string", "nullable": true}), &[json!("a"), json!(null)], &[(json!([]), "is no string")]);
        check(json!({"enum": ["a", null]}), &[json!("a"), json!(null)], &[(json!("b"), "is none of")]);
        check(json!({}), &[json!(null), json!(1), json!({"a": []})], &[]);
    }

    #[test]
    fn bounds_and_formats_are_checked() {
        check(
            json!({"type": "string", "minLength": 1, "maxLength": 2}),
            &[json!("ü")],
            &[(json!(""), "at least 1"), (json!("abc"), "at most 2")],
        );
        check(
            json!({"type": "number", "minimum": 0, "maximum": 1}),
            &[json!(0), json!(0.5)],
            &[(json!(-1), "less than 0"), (json!(2), "more than 1")],
        );
        check(
            json!({"type": "number", "minimum": 0, "exclusiveMinimum": true}),
            &[json!(0.1)],
            &[(json!(0), "less than 0")],
        );
        check(json!({"type": "string", "format": "uuid"}), &[json!(ID)], &[(json!("x"), "is no \"uuid\"")]);
        let time = json!({"type": "string", "format": "date-time"});
        check(time, &[json!("2026-11-21T05:44:00.123Z")], &[(json!("yesterday"), "date-time")]);
    }

    #[test]
    fn lists_and_objects_are_checked_within() {
        let list = json!({"type": "array", "items": {"type": "integer"}, "maxItems": 2});
        check(
            list,
            &[json!([]), json!([1, 2])],
            &[(json!([1, "a"]), "[1]: \"a\" is no integer"), (json!([1, 2, 3]), "at most 2")],
        );
        let object = json!({
            "type": "object", "required": ["id"], "additionalProperties": {"type": "boolean"},
            "properties": {"id": {"$ref": "#/components/schemas/Id"}},
        });
        check(
            object,
            &[json!({"id": ID, "x": true})],
            &[
                (json!({}), ".id: is missing"),
                (json!({"id": "x"}), ".id: `x` is no"),
                (json!({"id": ID, "x": 1}), ".x: 1 is no boolean"),
            ],
        );
        let closed = json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false});
        check(closed, &[json!({"a": 1})], &[(json!({"b": 1}), ".b: is not known")]);
    }

    #[test]
    fn forms_and_references_are_followed() {
        let word = json!({"$ref": "#/components/schemas/Word", "nullable": true});
        check(word, &[json!("a"), json!(null)], &[(json!("c"), "is none of")]);
        let tagged = |tag: &str, field: &str| json!({"type": "object", "required": ["type", field], "properties": {"type": {"enum": [tag]}, field: {"type": "string"}}});
        let either = json!({"oneOf": [tagged("x", "n"), tagged("y", "m"), {"type": "null"}]});
        let right = [json!({"type": "x", "n": "1"}), json!({"type": "y", "m": "1"}), json!(null)];
        check(either, &right, &[(json!({"type": "y", "n": "1"}), ".m: is missing"), (json!(3), "none of 3 forms")]);
        let both = json!({"allOf": [{"type": "object", "required": ["a"]}, {"required": ["b"]}]});
        check(both, &[json!({"a": 1, "b": 1})], &[(json!({"a": 1}), ".b: is missing")]);
        check(json!({"$ref": "#/components/schemas/Loop"}), &[], &[(json!(1), "leads nowhere")]);
        check(json!({"$ref": "#/none"}), &[], &[(json!(1), "leads nowhere")]);
    }

    #[test]
    fn an_example_is_valid_and_spoiled_ones_are_not() {
        let document = document();
        let schema = json!({
            "type": "object", "required": ["id", "word", "n", "items", "free"],
            "properties": {
                "id": {"$ref": "#/components/schemas/Id"}, "word": {"$ref": "#/components/schemas/Word"},
                "n": {"type": "integer", "minimum": 3}, "free": {"nullable": true},
                "items": {"type": "array", "items": {"type": "object", "required": ["a"], "properties": {"a": {"type": "boolean"}}}},
                "more": {"type": "string", "nullable": true},
            },
        });
        let example = document.example(&schema, &mut |name| (name == "id").then(|| json!(ID)));
        assert_eq!(example, json!({"id": ID, "word": "a", "n": 3, "items": [{"a": true}], "free": {"any": "value"}}));
        assert_eq!(document.complaints(&schema, &example), Vec::<String>::new());
        let nulls = document.with_nulls(&schema, &example).expect("something may be null");
        assert_eq!(nulls["more"], json!(null));
        assert_eq!(document.complaints(&schema, &nulls), Vec::<String>::new());
        let spoiled = document.spoiled(&schema, &example);
        for one in &spoiled {
            assert!(!document.complaints(&schema, &one.body).is_empty(), "{}: {}", one.how, one.body);
        }
        let ways: Vec<&str> = spoiled.iter().map(|one| one.how.as_str()).collect();
        for way in ["id left out", "id of another type", "id out of range", "word out of range", "n out of range"] {
            assert!(ways.contains(&way), "{way}");
        }
        assert!(ways.contains(&"items.0.a of another type") && !ways.contains(&"free of another type"), "{ways:?}");
    }

    #[test]
    fn operations_are_listed_by_method() {
        let names: Vec<String> = document().operations().iter().map(Operation::name).collect();
        assert_eq!(names, ["POST /a"]);
    }
}
