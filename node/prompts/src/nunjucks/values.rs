//! JSON values within nunjucks templates, and their texts.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use minijinja::value::{DynObject, Enumerator, Object, ObjectRepr, Value as TemplateValue, ValueKind};
use minijinja::{Error, ErrorKind};
use serde_json::{Map, Number, Value};

use crate::template::RENDERED_BYTES_MAX;
use crate::text::{display_text, float_text, indented_json_text, json_text};

/// Levels of lists and objects that are printed.
const PRINTED_DEPTH_MAX: usize = 128;
/// Values in one printed list or object. Each takes two bytes or more.
const PRINTED_VALUES_MAX: usize = RENDERED_BYTES_MAX / 2;

/// A list of JSON.
struct JsonList(Vec<TemplateValue>);

/// An object of JSON, whose members keep their order.
struct JsonMembers {
    members: Vec<(TemplateValue, TemplateValue)>,
    places: HashMap<String, usize>,
}

/// Returns the value as templates see it.
pub(super) fn template_value(json: &Value) -> TemplateValue {
    match json {
        Value::Null => TemplateValue::from(()),
        Value::Bool(truth) => TemplateValue::from(*truth),
        Value::Number(number) => template_number(number),
        Value::String(text) => TemplateValue::from(text.as_str()),
        Value::Array(items) => TemplateValue::from_object(JsonList(items.iter().map(template_value).collect())),
        Value::Object(members) => {
            let places = members.keys().enumerate().map(|(place, name)| (name.clone(), place)).collect();
            let members = members.iter().map(|(name, value)| (name.as_str().into(), template_value(value))).collect();
            TemplateValue::from_object(JsonMembers { members, places })
        }
    }
}

fn template_number(number: &Number) -> TemplateValue {
    match (number.as_i64(), number.as_u64(), number.as_f64()) {
        (Some(whole), _, _) => whole.into(),
        (None, Some(whole), _) => whole.into(),
        (None, None, float) => float.unwrap_or(f64::NAN).into(),
    }
}

/// Returns the text of a value in a template.
pub(super) fn text_of(value: &TemplateValue) -> Result<String, Error> {
    if let Some(text) = value.as_str() {
        return Ok(text.to_owned());
    }
    let mut left = PRINTED_VALUES_MAX;
    Ok(display_text(&json(value, 0, &mut left)?))
}

/// Returns the JSON text of a value in a template, over several lines if it is indented by some blanks.
pub(super) fn json_text_of(value: &TemplateValue, blanks: Option<usize>) -> Result<String, Error> {
    let mut left = PRINTED_VALUES_MAX;
    let json = json(value, 0, &mut left)?;
    Ok(match blanks {
        None | Some(0) => json_text(&json),
        Some(blanks) => indented_json_text(&json, blanks),
    })
}

/// Returns a value of a template as JSON; none if it has none.
pub(super) fn json_of(value: &TemplateValue) -> Option<Value> {
    json(value, 0, &mut { PRINTED_VALUES_MAX }).ok()
}

fn json(value: &TemplateValue, depth: usize, left: &mut usize) -> Result<Value, Error> {
    *left = left.checked_sub(1).filter(|_| depth <= PRINTED_DEPTH_MAX).ok_or_else(too_large)?;
    Ok(match value.kind() {
        ValueKind::Undefined | ValueKind::None => Value::Null,
        ValueKind::Bool => Value::Bool(value.is_true()),
        ValueKind::Number => json_number(value),
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default();
            // copies of one text count, as they are printed
            *left = left.checked_sub(text.len() / 2).ok_or_else(too_large)?;
            Value::String(text.to_owned())
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let mut items = Vec::new();
            for item in value.try_iter()? {
                items.push(json(&item, depth + 1, left)?);
            }
            Value::Array(items)
        }
        ValueKind::Map => {
            let mut members = Map::new();
            for (name, member) in value.as_object().and_then(DynObject::try_iter_pairs).into_iter().flatten() {
                members.insert(text_of(&name)?, json(&member, depth + 1, left)?);
            }
            Value::Object(members)
        }
        other => return Err(Error::new(ErrorKind::InvalidOperation, format!("a {other} value has no text"))),
    })
}

fn json_number(value: &TemplateValue) -> Value {
    if let Some(whole) = value.as_i64().filter(|_| value.is_integer()) {
        return whole.into();
    }
    if let Some(whole) = u64::try_from(value.clone()).ok().filter(|_| value.is_integer()) {
        return whole.into();
    }
    let float = f64::try_from(value.clone()).unwrap_or(f64::NAN);
    Number::from_f64(float).map_or_else(|| Value::String(float_text(float)), Value::Number)
}

fn too_large() -> Error {
    Error::new(ErrorKind::InvalidOperation, "the value is too large, or nests too deep, to be printed")
}

impl Object for JsonList {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &TemplateValue) -> Option<TemplateValue> {
        match key.as_str() {
            Some("length") => Some(self.0.len().into()),
            Some(_) => None,
            None => self.0.get(key.as_usize()?).cloned(),
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.0.len())
    }
}

impl Object for JsonMembers {
    fn get_value(self: &Arc<Self>, key: &TemplateValue) -> Option<TemplateValue> {
        let place = *self.places.get(key.as_str()?)?;
        self.members.get(place).map(|(_, value)| value.clone())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.members.iter().map(|(name, _)| name.clone()).collect())
    }

    /// In JavaScript, an object is true, also without members.
    fn is_true(self: &Arc<Self>) -> bool {
        true
    }
}

impl fmt::Debug for JsonList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of {}", self.0.len())
    }
}

impl fmt::Debug for JsonMembers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object of {} members", self.members.len())
    }
}
