//! Row that conventions fill, and declaration of a convention. A field keeps its first value. [`crate::conventions`]
//! defines the precedence.

use serde_json::{Map, Number, Value};

use crate::attributes::Attributes;
use crate::value;

#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub input: Option<Value>,
    pub output: Option<Value>,
    pub expected: Option<Value>,
    pub origin: Option<Value>,
    pub scores: Map<String, Value>,
    pub metrics: Map<String, Value>,
    pub metadata: Map<String, Value>,
    pub tags: Vec<Value>,
    pub context: Map<String, Value>,
    /// Value of `span_attributes` from the exporter.
    pub given: Map<String, Value>,
    pub span_type: Option<&'static str>,
}

/// Source of a value, with its conversion.
#[derive(Clone, Copy)]
pub(crate) enum Source {
    /// Unchanged value of an attribute.
    Plain(&'static str),
    /// Value of an attribute, parsed if it is a text with JSON.
    Json(&'static str),
    /// List of texts, each parsed separately if it contains JSON.
    JsonEach(&'static str),
    /// List with an attribute for each part of an element.
    List(&'static str, fn(Value) -> Value),
    /// Result of a function over several attributes.
    Several(fn(&mut Attributes) -> Option<Value>),
}

impl Source {
    fn take(self, attributes: &mut Attributes) -> Option<Value> {
        match self {
            Source::Plain(name) => attributes.take(name),
            Source::Json(name) => attributes.take(name).map(value::parse_meant),
            Source::JsonEach(name) => attributes.take(name).map(|value| match value {
                Value::Array(values) => Value::Array(values.into_iter().map(value::parse_meant).collect()),
                other => value::parse_meant(other),
            }),
            Source::List(beginning, shape) => {
                let list = attributes.take_list(beginning)?;
                Some(Value::Array(list.into_iter().map(shape).collect()))
            }
            Source::Several(read) => read(attributes),
        }
    }
}

/// Attribute with a number, the name of its metric, and a factor.
pub(crate) struct MetricAttribute(pub &'static str, pub &'static str, pub f64);

/// Mapping of a convention from span attributes to fields.
///
/// Payloads, which may be large, are moved into their field. Small values are copied, and stay under their original
/// name, too.
pub(crate) struct Convention {
    /// Names, or prefixes that end with a dot, of which spans of this convention have at least one.
    pub signs: &'static [&'static str],
    /// Returns the type of a span from its attributes.
    pub span_type: fn(&Attributes) -> Option<&'static str>,
    /// Signs that only spans of model calls have.
    pub llm: &'static [&'static str],
    pub input: &'static [Source],
    pub output: &'static [Source],
    /// Small values, by the attribute's name and the key in `metadata`. The first existing one wins.
    pub metadata: &'static [(&'static str, &'static str)],
    /// Payloads with their key in `metadata`.
    pub payloads: &'static [(Source, &'static str)],
    pub metrics: &'static [MetricAttribute],
    /// Code that runs before the tables and takes precedence.
    pub before: fn(&mut Attributes, &mut Draft),
    /// Code that runs after the tables.
    pub after: fn(&mut Attributes, &mut Draft),
}

/// Empty convention, as a base for others.
pub(crate) const SILENT: Convention = Convention {
    signs: &[],
    span_type: |_| None,
    llm: &[],
    input: &[],
    output: &[],
    metadata: &[],
    payloads: &[],
    metrics: &[],
    before: |_, _| {},
    after: |_, _| {},
};

impl Convention {
    pub fn is_of(&self, attributes: &Attributes) -> bool {
        self.signs.iter().any(|sign| attributes.has(sign))
    }

    pub fn has_model_call(&self, attributes: &Attributes) -> bool {
        self.llm.iter().any(|sign| attributes.has(sign))
    }

    pub fn fill(&self, attributes: &mut Attributes, draft: &mut Draft) {
        (self.before)(attributes, draft);
        first(&mut draft.input, self.input, attributes);
        first(&mut draft.output, self.output, attributes);
        for (name, key) in self.metadata {
            if let Some(value) = attributes.get(name).filter(|_| !draft.metadata.contains_key(*key)) {
                draft.metadata.insert((*key).to_owned(), value.clone());
            }
        }
        for (source, key) in
            self.payloads.iter().filter(|(_, key)| !draft.metadata.contains_key(*key)).collect::<Vec<_>>()
        {
            if let Some(value) = source.take(attributes) {
                draft.metadata.insert((*key).to_owned(), value);
            }
        }
        for MetricAttribute(name, metric, factor) in self.metrics {
            draft.metric(metric, attributes.get(name).and_then(value::number), *factor);
        }
        (self.after)(attributes, draft);
    }
}

fn first(field: &mut Option<Value>, sources: &[Source], attributes: &mut Attributes) {
    for source in sources {
        if field.is_some() {
            return;
        }
        *field = source.take(attributes);
    }
}

impl Draft {
    pub fn metric(&mut self, name: &str, number: Option<Number>, factor: f64) {
        let Some(number) = number.filter(|_| !self.metrics.contains_key(name)) else { return };
        let number = if factor == 1.0 {
            Some(number)
        } else {
            number.as_f64().and_then(|number| Number::from_f64(number * factor))
        };
        self.metrics.extend(number.map(|number| (name.to_owned(), Value::Number(number))));
    }

    /// Adds the total of tokens, which some libraries omit.
    pub fn add_up_tokens(&mut self) {
        let count = |name: &str| self.metrics.get(name).and_then(Value::as_i64);
        if let (false, Some(prompt), Some(completion)) =
            (self.metrics.contains_key("tokens"), count("prompt_tokens"), count("completion_tokens"))
        {
            self.metrics.insert("tokens".to_owned(), Value::from(prompt.saturating_add(completion)));
        }
    }

    /// Adds tags without duplicates, in order.
    pub fn tag(&mut self, tags: Vec<Value>) {
        for tag in tags {
            if !self.tags.contains(&tag) {
                self.tags.push(tag);
            }
        }
    }

    /// Adds the members of an object. Members that exist win.
    pub fn add_metadata(&mut self, given: Map<String, Value>) {
        for (key, value) in given {
            self.metadata.entry(key).or_insert(value);
        }
    }
}

/// Returns the object that a value contains directly or as JSON text.
pub(crate) fn object(value: &Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(map) => Some(map.clone()),
        Value::String(text) => match value::parse(text)? {
            Value::Object(map) => Some(map),
            _ => None,
        },
        _ => None,
    }
}

/// Returns an object of numbers. The value `true` counts as one.
pub(crate) fn numbers(value: &Value) -> Option<Map<String, Value>> {
    let is_number = |text: &str| matches!(text, "NaN" | "Infinity" | "-Infinity");
    object(value)?
        .into_iter()
        .map(|(key, value)| match value {
            Value::Bool(flag) => Some((key, Value::from(i32::from(flag)))),
            Value::Number(_) | Value::Null => Some((key, value)),
            Value::String(text) if is_number(&text) => Some((key, Value::String(text))),
            _ => None,
        })
        .collect()
}

/// Returns a list of texts that a value contains directly or as JSON text.
pub(crate) fn texts(value: &Value) -> Option<Vec<Value>> {
    let list = match value {
        Value::Array(list) => list.clone(),
        Value::String(text) => match value::parse(text)? {
            Value::Array(list) => list,
            _ => return None,
        },
        _ => return None,
    };
    list.iter().all(Value::is_string).then_some(list)
}
