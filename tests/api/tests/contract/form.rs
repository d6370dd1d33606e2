//! A schema as the set of values that it accepts: references are followed and alternatives flattened, so that
//! equivalent schemas look alike.

use std::collections::{BTreeMap, BTreeSet};

use assay_test_api::schema::Document;
use serde_json::Value;

/// References that lead in a circle end here.
const DEPTH_MAX: usize = 32;

#[derive(Clone, Debug, Default)]
pub struct Form<'d> {
    pub nullable: bool,
    /// Lets anything through.
    pub any: bool,
    pub text: Option<Text>,
    /// `integer`, `number`, `boolean`.
    pub scalars: BTreeSet<&'d str>,
    pub lists: Vec<&'d Value>,
    pub objects: Vec<ObjectForm<'d>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    pub formats: BTreeSet<String>,
    /// None: any text of the formats.
    pub words: Option<BTreeSet<String>>,
}

#[derive(Clone, Debug, Default)]
pub struct ObjectForm<'d> {
    pub properties: BTreeMap<&'d str, &'d Value>,
    pub required: BTreeSet<&'d str>,
    pub others: Others<'d>,
}

#[derive(Clone, Copy, Debug, Default)]
pub enum Others<'d> {
    /// Not restricted.
    #[default]
    Open,
    None,
    Like(&'d Value),
}

impl<'d> Form<'d> {
    pub fn of(document: &'d Document, schema: &'d Value) -> Form<'d> {
        Form::at(document, schema, 0)
    }

    fn at(document: &'d Document, schema: &'d Value, depth: usize) -> Form<'d> {
        assert!(depth < DEPTH_MAX, "a schema that refers to itself: {schema}");
        let mut form = if schema.get("$ref").is_some() {
            Form::at(document, document.resolved(schema), depth + 1)
        } else {
            Form::alone(schema)
        };
        for part in parts(schema, "allOf") {
            let part = Form::at(document, part, depth + 1);
            if !part.any {
                form.meet(part);
            }
        }
        for part in parts(schema, "anyOf").iter().chain(parts(schema, "oneOf")) {
            form.join(Form::at(document, part, depth + 1));
        }
        form.nullable |= schema["nullable"] == true;
        if form.text.is_none() && form.scalars.is_empty() && form.lists.is_empty() && form.objects.is_empty() {
            form.any = schema["type"] != "null";
            form.nullable = true;
        }
        form
    }

    /// Returns the schema's own restrictions.
    fn alone(schema: &'d Value) -> Form<'d> {
        let words = schema["enum"].as_array();
        let mut form = Form { nullable: words.is_some_and(|words| words.contains(&Value::Null)), ..Form::default() };
        match schema["type"].as_str() {
            Some("string") => {
                let formats = schema["format"].as_str().map(str::to_owned).into_iter().collect();
                let texts = |words: &Vec<Value>| words.iter().filter_map(Value::as_str).map(str::to_owned).collect();
                form.text = Some(Text { formats, words: words.map(texts) });
            }
            Some(scalar @ ("integer" | "number" | "boolean")) => drop(form.scalars.insert(scalar)),
            Some("array") => form.lists.extend(schema.get("items")),
            Some("object") => form.objects.push(ObjectForm::of(schema)),
            _ if schema.get("properties").is_some() => form.objects.push(ObjectForm::of(schema)),
            _ => {}
        }
        form
    }

    fn join(&mut self, other: Form<'d>) {
        self.nullable |= other.nullable;
        self.any |= other.any;
        self.text = match (self.text.take(), other.text) {
            (Some(mut a), Some(b)) => {
                a.formats.extend(b.formats);
                a.words = a.words.zip(b.words).map(|(a, b)| a.union(&b).cloned().collect());
                Some(a)
            }
            (a, b) => a.or(b),
        };
        self.scalars.extend(other.scalars);
        self.lists.extend(other.lists);
        self.objects.extend(other.objects);
    }

    /// Objects that are both.
    fn meet(&mut self, other: Form<'d>) {
        match (self.objects.first_mut(), other.objects.first()) {
            (Some(own), Some(other)) => {
                own.properties.extend(&other.properties);
                own.required.extend(&other.required);
            }
            _ => self.join(other),
        }
    }

    /// The types that it lets through.
    pub fn types(&self) -> BTreeSet<&'d str> {
        let mut types = self.scalars.clone();
        let some =
            [("string", self.text.is_some()), ("array", !self.lists.is_empty()), ("object", !self.objects.is_empty())];
        types.extend(some.into_iter().filter(|(_, is)| *is).map(|(name, _)| name));
        types
    }

    /// Returns objects by their distinguishing property: properties of one word, or else their position.
    pub fn objects_by_tag(&self) -> BTreeMap<String, &ObjectForm<'d>> {
        let mut found = BTreeMap::new();
        for object in &self.objects {
            let tag = if self.objects.len() == 1 { String::new() } else { object.tag() };
            let number = (1..).find(|number| !found.contains_key(&named(&tag, *number))).unwrap_or_default();
            found.insert(named(&tag, number), object);
        }
        found
    }
}

fn named(tag: &str, number: usize) -> String {
    if number == 1 { tag.to_owned() } else { format!("{tag}#{number}") }
}

impl<'d> ObjectForm<'d> {
    fn of(schema: &'d Value) -> ObjectForm<'d> {
        let properties = schema["properties"].as_object().into_iter().flatten();
        let others = match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => Others::None,
            Some(other) if says_something(other) => Others::Like(other),
            _ => Others::Open,
        };
        ObjectForm {
            properties: properties.map(|(name, schema)| (name.as_str(), schema)).collect(),
            required: parts(schema, "required").iter().filter_map(Value::as_str).collect(),
            others,
        }
    }

    fn tag(&self) -> String {
        let tags =
            self.properties.iter().filter_map(|(name, schema)| match schema["enum"].as_array().map(Vec::as_slice) {
                Some([Value::String(word)]) => Some(format!("{name}={word}")),
                _ => None,
            });
        tags.collect::<Vec<_>>().join(",")
    }
}

fn says_something(schema: &Value) -> bool {
    schema.as_object().is_some_and(|members| members.keys().any(|name| name != "nullable" && !name.starts_with("x-")))
}

fn parts<'d>(schema: &'d Value, word: &str) -> &'d [Value] {
    schema.get(word).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
