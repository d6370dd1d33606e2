//! Fields of objects, taken by name until the unknown ones remain, and put back.

use serde_json::{Map, Value};

use assay_node_dialects::form::Extra;
use assay_node_dialects::{Dialect, DialectError};

/// Objects whose unknown fields are kept with those of the object around them, as `<object>.<field>`.
const NESTED: [&str; 8] = [
    "toolConfig.functionCallingConfig",
    "toolConfig",
    "generationConfig",
    "functionCall",
    "functionResponse",
    "inlineData",
    "fileData",
    "content",
];

/// Fields of one object of a body. Names are accepted in camelCase and in snake_case.
#[derive(Debug)]
pub(super) struct GeminiFields {
    fields: Map<String, Value>,
    path: String,
}

impl GeminiFields {
    pub fn of(value: Value, path: &str) -> Result<GeminiFields, DialectError> {
        match value {
            Value::Object(fields) => Ok(GeminiFields { fields, path: path.to_owned() }),
            _ => Err(DialectError::malformed(path, "an object")),
        }
    }

    pub fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// Takes a field; `null` is absent.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        let value = match self.fields.shift_remove(name) {
            Some(value) => value,
            None => self.fields.shift_remove(&snake_case(name))?,
        };
        (!value.is_null()).then_some(value)
    }

    /// Puts a field back that has no meaning in the form after all.
    pub fn keep(&mut self, name: &str, value: Value) {
        self.fields.insert(name.to_owned(), value);
    }

    pub fn text(&mut self, name: &str) -> Result<Option<String>, DialectError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(DialectError::malformed(self.path_of(name), "a string")),
        }
    }

    pub fn flag(&mut self, name: &str) -> Result<Option<bool>, DialectError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(DialectError::malformed(self.path_of(name), "true or false")),
        }
    }

    /// Takes a whole number, which the JSON of protobuf may spell as text.
    pub fn count(&mut self, name: &str) -> Result<Option<u64>, DialectError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let count = value.as_u64().or_else(|| value.as_str().and_then(|text| text.parse().ok()));
        count.map(Some).ok_or_else(|| DialectError::malformed(self.path_of(name), "a whole number"))
    }

    pub fn number(&mut self, name: &str) -> Result<Option<Value>, DialectError> {
        match self.take(name) {
            None => Ok(None),
            Some(value @ Value::Number(_)) => Ok(Some(value)),
            Some(_) => Err(DialectError::malformed(self.path_of(name), "a number")),
        }
    }

    pub fn list(&mut self, name: &str, max: usize) -> Result<Vec<Value>, DialectError> {
        match self.take(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(values)) if values.len() <= max => Ok(values),
            Some(Value::Array(_)) => Err(too_many("values of a list", max)),
            Some(_) => Err(DialectError::malformed(self.path_of(name), "a list")),
        }
    }

    pub fn texts(&mut self, name: &str, max: usize) -> Result<Vec<String>, DialectError> {
        let values = self.list(name, max)?.into_iter();
        let texts = values.map(|value| match value {
            Value::String(text) => Ok(text),
            _ => Err(DialectError::malformed(self.path_of(name), "a list of strings")),
        });
        texts.collect()
    }

    pub fn object(&mut self, name: &str) -> Result<Option<GeminiFields>, DialectError> {
        let path = self.path_of(name);
        self.take(name).map(|value| GeminiFields::of(value, &path)).transpose()
    }

    /// Moves the fields that were not taken to those of the object around it.
    pub fn rest_into(self, outer: &mut GeminiFields, name: &str) {
        outer.fields.extend(self.fields.into_iter().map(|(field, value)| (format!("{name}.{field}"), value)));
    }

    pub fn has(&self, name: &str) -> bool {
        let is_here = |name: &str| self.fields.get(name).is_some_and(|value| !value.is_null());
        is_here(name) || is_here(&snake_case(name))
    }

    /// Fields that were not taken.
    pub fn extra(self) -> Extra {
        Extra::of(Dialect::Gemini, self.fields)
    }

    /// The object with the fields that were not taken.
    pub fn value(self) -> Value {
        Value::Object(self.fields)
    }
}

pub(super) fn too_many(of: &'static str, max: usize) -> DialectError {
    DialectError::TooMany { dialect: Dialect::Gemini, of, max }
}

fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for character in name.chars() {
        if character.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    snake
}

pub(super) fn camel_case(name: &str) -> String {
    let mut camel = String::with_capacity(name.len());
    let mut characters = name.chars().peekable();
    while let Some(character) = characters.next() {
        match characters.peek() {
            Some(next) if character == '_' && !camel.is_empty() && next.is_ascii_lowercase() => {
                camel.push(next.to_ascii_uppercase());
                characters.next();
            }
            _ => camel.push(character),
        }
    }
    camel
}

/// Objects that decide what a part is. Their unknown fields are left out where they are not written themselves.
const KINDS_OF_PARTS: [&str; 4] = ["functionCall", "functionResponse", "inlineData", "fileData"];

/// Puts unknown fields of this dialect back. Fields that are written already win.
pub(super) fn put_back(target: &mut Map<String, Value>, extra: &Extra) {
    for (name, value) in extra.for_dialect(Dialect::Gemini).into_iter().flatten() {
        let nested = NESTED.iter().find_map(|outer| Some((*outer, name.strip_prefix(outer)?.strip_prefix('.')?)));
        match nested {
            None => put(target, name, value),
            Some((outer, _)) if KINDS_OF_PARTS.contains(&outer) && !target.contains_key(outer) => {}
            Some((outer, field)) => {
                if let Some(object) = object_at(target, outer) {
                    put(object, field, value);
                }
            }
        }
    }
}

fn put(target: &mut Map<String, Value>, name: &str, value: &Value) {
    if !target.contains_key(name) {
        target.insert(name.to_owned(), value.clone());
    }
}

fn object_at<'a>(target: &'a mut Map<String, Value>, path: &str) -> Option<&'a mut Map<String, Value>> {
    path.split('.').try_fold(target, |object, name| {
        object.entry(name).or_insert_with(|| Value::Object(Map::new())).as_object_mut()
    })
}
