//! Objects of chat bodies, whose known members are taken one by one so that the rest can be kept.

use serde_json::{Map, Value};

use assay_node_dialects::form::Extra;
use assay_node_dialects::{Dialect, DialectError};

/// Object of a body and its path. Members that are taken are removed; `null` counts as absent.
#[derive(Debug)]
pub(super) struct ChatFields {
    path: String,
    map: Map<String, Value>,
}

impl ChatFields {
    pub fn of(path: impl Into<String>, value: Value) -> Result<ChatFields, DialectError> {
        match value {
            Value::Object(map) => Ok(ChatFields { path: path.into(), map }),
            _ => Err(DialectError::malformed(path, "an object")),
        }
    }

    /// Returns the path of a member.
    pub fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.map.shift_remove(name).filter(|value| !value.is_null())
    }

    /// Takes a member only if it is a text. Anything else stays.
    pub fn take_text(&mut self, name: &str) -> Option<String> {
        match self.map.get(name) {
            Some(Value::String(_)) => {}
            Some(Value::Null) => {
                self.map.shift_remove(name);
                return None;
            }
            _ => return None,
        }
        match self.map.shift_remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.map.get(name)
    }

    pub fn text(&mut self, name: &str) -> Result<Option<String>, DialectError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(DialectError::malformed(self.path_of(name), "a text")),
        }
    }

    pub fn required_text(&mut self, name: &str) -> Result<String, DialectError> {
        self.text(name)?.ok_or_else(|| DialectError::malformed(self.path_of(name), "a text"))
    }

    pub fn boolean(&mut self, name: &str) -> Result<Option<bool>, DialectError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(DialectError::malformed(self.path_of(name), "true or false")),
        }
    }

    /// Takes a count. A whole number that is written with a fraction, such as `5.0`, is one as well.
    pub fn count(&mut self, name: &str) -> Result<Option<u64>, DialectError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        match count_of(&value) {
            Some(count) => Ok(Some(count)),
            None => Err(DialectError::malformed(self.path_of(name), "a whole number that is not negative")),
        }
    }

    pub fn object(&mut self, name: &str) -> Result<Option<ChatFields>, DialectError> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => ChatFields::of(self.path_of(name), value).map(Some),
        }
    }

    pub fn list(&mut self, name: &str) -> Result<Option<Vec<Value>>, DialectError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Array(values)) => Ok(Some(values)),
            Some(_) => Err(DialectError::malformed(self.path_of(name), "a list")),
        }
    }

    /// Puts a member back, or one that another level does not know.
    pub fn put(&mut self, name: &str, value: Value) {
        self.map.insert(name.to_owned(), value);
    }

    /// Keeps what is left of a nested object below its name.
    pub fn put_rest(&mut self, name: &str, rest: ChatFields) {
        if !rest.map.is_empty() {
            self.put(name, Value::Object(rest.map));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    pub fn into_map(self) -> Map<String, Value> {
        self.map
    }

    pub fn into_extra(self) -> Extra {
        Extra::of(Dialect::Chat, self.map)
    }
}

/// Reads a count, also one that is written with a fraction of zero.
pub(crate) fn count_of(value: &Value) -> Option<u64> {
    /// Largest whole number below which every one has a float of its own.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let float = || value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..EXACT_MAX).contains(number));
    value.as_u64().or_else(|| float().map(|number| number as u64))
}

/// Adds the kept members of the own dialect to an object. Members that both have are united if they are objects;
/// otherwise the written one wins.
pub(super) fn put_extra(map: &mut Map<String, Value>, extra: &Extra) {
    if let Some(kept) = extra.for_dialect(Dialect::Chat) {
        unite(map, kept, UNITED_LEVELS_MAX);
    }
}

/// Levels of objects that are united: `extra_content.google` has two.
const UNITED_LEVELS_MAX: usize = 4;

fn unite(map: &mut Map<String, Value>, kept: &Map<String, Value>, levels: usize) {
    for (name, value) in kept {
        match (map.get_mut(name), value) {
            (None, _) => {
                map.insert(name.clone(), value.clone());
            }
            (Some(Value::Object(written)), Value::Object(kept)) if levels > 0 => unite(written, kept, levels - 1),
            _ => {}
        }
    }
}

/// Inserts a member if there is a value.
pub(super) fn put_some(map: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        map.insert(name.to_owned(), value.into());
    }
}

/// Takes the signature of Google's OpenAI form, `extra_content.google.thought_signature` (G-30).
pub(super) fn take_signature(fields: &mut ChatFields) -> Option<String> {
    let content = fields.map.get_mut("extra_content")?.as_object_mut()?;
    let google = content.get_mut("google")?.as_object_mut()?;
    let signature = google.get("thought_signature")?.as_str()?.to_owned();
    google.shift_remove("thought_signature");
    if google.is_empty() {
        content.shift_remove("google");
    }
    if content.is_empty() {
        fields.map.shift_remove("extra_content");
    }
    Some(signature)
}

pub(super) fn put_signature(map: &mut Map<String, Value>, signature: Option<&String>) {
    if let Some(signature) = signature {
        let content = serde_json::json!({ "google": { "thought_signature": signature } });
        map.insert("extra_content".to_owned(), content);
    }
}
