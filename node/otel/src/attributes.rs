//! Attributes of a span during its conversion: found by name or prefix, and taken once.

use serde_json::{Map, Value};

use crate::proto::KeyValue;
use crate::value;

/// Upper bound of an attribute's name. Names become columns of rows, and no instrumentation has longer ones.
pub const ATTRIBUTE_NAME_BYTES_MAX: usize = 1024;
/// Upper bound of the parts of a structured name, such as `llm.input_messages.0.message.role`.
const PARTS_MAX: usize = 16;

#[derive(Debug)]
pub(crate) struct Attributes {
    /// Attributes sorted by name, each once.
    items: Vec<Attribute>,
    /// Whether attributes that are taken stay, too.
    pub preserves: bool,
}

#[derive(Debug)]
struct Attribute {
    name: String,
    value: Value,
    is_taken: bool,
}

impl Attributes {
    /// Collects attributes. Among attributes with the same name, the last one counts.
    pub fn of(pairs: Vec<KeyValue>, depth: usize) -> Result<Attributes, String> {
        let mut items = Vec::with_capacity(pairs.len());
        for KeyValue { key: name, value } in pairs {
            if name.len() > ATTRIBUTE_NAME_BYTES_MAX {
                return Err(format!("the name of an attribute has more than {ATTRIBUTE_NAME_BYTES_MAX} bytes"));
            }
            let Some(value) = value::of_any(value, depth) else {
                return Err(format!("the attribute {name:?} is nested more than {depth} levels"));
            };
            items.push(Attribute { name, value, is_taken: false });
        }
        // The sort is stable, so the later of two equal names comes last.
        items.sort_by(|one, other| one.name.cmp(&other.name));
        items.dedup_by(|later, earlier| {
            let is_one = later.name == earlier.name;
            if is_one {
                std::mem::swap(later, earlier);
            }
            is_one
        });
        Ok(Attributes { items, preserves: false })
    }

    fn place(&self, name: &str) -> Option<usize> {
        let place = self.items.binary_search_by(|item| item.name.as_str().cmp(name)).ok()?;
        Some(place).filter(|place| !self.items[*place].is_taken)
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.place(name).map(|place| &self.items[place].value).filter(|value| !value.is_null())
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    /// Takes a value, so that it is no longer among the rest.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        let place = self.place(name)?;
        let item = &mut self.items[place];
        if item.value.is_null() {
            return None;
        }
        if self.preserves {
            return Some(item.value.clone());
        }
        item.is_taken = true;
        Some(std::mem::take(&mut item.value))
    }

    /// Takes a value that `read` accepts; others stay.
    pub fn take_if<T>(&mut self, name: &str, read: impl FnOnce(&Value) -> Option<T>) -> Option<T> {
        let place = self.place(name)?;
        let read = read(&self.items[place].value)?;
        if !self.preserves {
            self.items[place].is_taken = true;
            self.items[place].value = Value::Null;
        }
        Some(read)
    }

    /// Returns whether there is an attribute with this name, or with this prefix if the name ends with a dot.
    pub fn has(&self, name: &str) -> bool {
        if name.ends_with('.') {
            return self.beginning(name).any(|item| !item.is_taken);
        }
        self.place(name).is_some()
    }

    fn from(&self, beginning: &str) -> usize {
        self.items.partition_point(|item| item.name.as_str() < beginning)
    }

    fn beginning<'a>(&'a self, beginning: &'a str) -> impl Iterator<Item = &'a Attribute> {
        self.items[self.from(beginning)..].iter().take_while(move |item| item.name.starts_with(beginning))
    }

    /// Returns attributes with a prefix, by the rest of their names, without taking them.
    pub fn under<'a>(&'a self, beginning: &'a str) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.beginning(beginning)
            .filter(|item| !item.is_taken)
            .map(move |item| (&item.name[beginning.len()..], &item.value))
    }

    /// Takes a list whose elements have an attribute for each part: `<beginning>0.role`, `<beginning>0.content`.
    ///
    /// Names without an index after the prefix stay, and so do attributes that contradict others.
    pub fn take_list(&mut self, beginning: &str) -> Option<Vec<Value>> {
        let (from, preserves) = (self.from(beginning), self.preserves);
        let mut list = Map::new();
        for item in self.items[from..].iter_mut().take_while(|item| item.name.starts_with(beginning)) {
            let parts = &item.name[beginning.len()..];
            let is_place = parts.split('.').next().is_some_and(is_number);
            if item.is_taken || !is_place || parts.split('.').count() > PARTS_MAX {
                continue;
            }
            let Some(slot) = slot(&mut list, parts) else { continue };
            if preserves {
                *slot = item.value.clone();
            } else {
                item.is_taken = true;
                *slot = std::mem::take(&mut item.value);
            }
        }
        match lists(Value::Object(list)) {
            Value::Array(values) => Some(values),
            _ => None,
        }
    }

    /// Returns all attributes that were not taken.
    pub fn rest(self) -> impl Iterator<Item = (String, Value)> {
        self.items.into_iter().filter(|item| !item.is_taken).map(|item| (item.name, item.value))
    }
}

/// Returns the empty place at a path in nested objects, or `None` if another value is in the way.
fn slot<'a>(map: &'a mut Map<String, Value>, parts: &str) -> Option<&'a mut Value> {
    match parts.split_once('.') {
        Some((part, rest)) => match map.entry(part).or_insert_with(|| Value::Object(Map::new())) {
            Value::Object(within) => slot(within, rest),
            _ => None,
        },
        None => {
            let slot = map.entry(parts).or_insert(Value::Null);
            slot.is_null().then_some(slot)
        }
    }
}

/// Converts objects with numeric keys to lists in the order of the numbers.
///
/// The numbers are not indexes, so a large number needs no memory.
fn lists(value: Value) -> Value {
    let Value::Object(map) = value else { return value };
    if map.is_empty() || !map.keys().all(|key| is_number(key)) {
        return Value::Object(map.into_iter().map(|(key, value)| (key, lists(value))).collect());
    }
    let mut elements: Vec<(String, Value)> = map.into_iter().collect();
    elements.sort_by(|(one, _), (other, _)| one.len().cmp(&other.len()).then_with(|| one.cmp(other)));
    Value::Array(elements.into_iter().map(|(_, value)| lists(value)).collect())
}

/// Returns whether a part is a number without leading zeros, so that texts of one length sort as their numbers.
fn is_number(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) && (part == "0" || !part.starts_with('0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{AnyValue, any_value};
    use serde_json::json;

    fn attributes(pairs: &[(&str, &str)]) -> Attributes {
        let pair = |(name, value): &(&str, &str)| {
            let value = AnyValue { value: Some(any_value::Value::String((*value).to_owned())) };
            KeyValue { key: (*name).to_owned(), value: Some(value) }
        };
        Attributes::of(pairs.iter().map(pair).collect(), 4).expect("flat")
    }

    #[test]
    fn of_two_with_one_name_the_later_is_meant() {
        let attributes = attributes(&[("a", "1"), ("b", "2"), ("a", "3")]);
        assert_eq!(attributes.text("a"), Some("3"));
        let rest: Vec<_> = attributes.rest().map(|(name, _)| name).collect();
        assert_eq!(rest, ["a", "b"]);
    }

    #[test]
    fn what_is_taken_is_gone_unless_it_is_preserved() {
        let mut gone = attributes(&[("a", "1")]);
        assert_eq!((gone.take("a"), gone.take("a")), (Some(json!("1")), None));
        let mut kept = attributes(&[("a", "1")]);
        kept.preserves = true;
        assert_eq!((kept.take("a"), kept.take("a")), (Some(json!("1")), Some(json!("1"))));
    }

    #[test]
    fn parts_of_names_become_a_list_in_the_order_of_numbers() {
        let mut attributes = attributes(&[
            ("m.10.role", "c"),
            ("m.2.role", "b"),
            ("m.2.calls.0.name", "f"),
            ("m.name", "another"),
            ("m.0", "a"),
            ("m.0.role", "contradicts"),
            ("m.999999999999.role", "d"),
        ]);
        let list = attributes.take_list("m.").expect("a list");
        let expected = json!(["a", {"role": "b", "calls": [{"name": "f"}]}, {"role": "c"}, {"role": "d"}]);
        assert_eq!(Value::Array(list), expected);
        let rest: Vec<_> = attributes.rest().map(|(name, _)| name).collect();
        assert_eq!(rest, ["m.0.role", "m.name"]);
    }

    #[test]
    fn names_of_very_many_parts_are_no_structure() {
        let name = format!("m.0{}", ".x".repeat(400));
        let mut attributes = attributes(&[(&name, "a")]);
        assert_eq!(attributes.take_list("m."), None);
        assert_eq!(attributes.rest().count(), 1);
    }
}
