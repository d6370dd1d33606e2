//! Entries of functions of arrays, objects and JSON texts (btql.md, section 11.3).

use assay_node_btql::ast::Type as CastType;
use assay_node_btql::bound::JsonFunction;
use assay_node_btql::values::Value;
use assay_storage_model::merge::{Picker, Step};

use super::{Evaluate, FunctionEntry, PreparedCall};
use crate::result_types::{first, json, text};
use crate::scalar::cast;
use crate::types::{Type, ValueType};

pub(super) fn entry(of: JsonFunction) -> FunctionEntry {
    use JsonFunction as F;
    match of {
        F::JsonExtract => FunctionEntry::new(json, Evaluate::Two(json_extract)).with_preparation(prepared_extract),
        F::ObjectKeys => FunctionEntry::new(json, Evaluate::One(object_keys)),
        F::ToJson => FunctionEntry::new(as_json, Evaluate::One(to_json)),
        F::TypeOf => FunctionEntry::new(text, Evaluate::One(|of| Value::Text(type_of(of).into()))),
    }
}

/// Member of exactly that name, of an object or of the JSON text of one (D-70).
fn json_extract(of: &Value<'_>, key: &Value<'_>) -> Value<'static> {
    let Value::Text(key) = key else { return Value::Null };
    let steps = [Step::Key(key.to_string())];
    extracted(of, &steps, &Picker::new([steps.as_slice()]))
}

/// Prepares a constant key.
fn prepared_extract(constants: &[Option<&Value<'_>>]) -> Option<PreparedCall> {
    let [_, Some(Value::Text(key))] = constants else { return None };
    let steps = [Step::Key(key.to_string())];
    let picker = Picker::new([steps.as_slice()]);
    Some(PreparedCall(Box::new(move |args, _| args.first().map_or(Value::Null, |of| extracted(of, &steps, &picker)))))
}

fn extracted(of: &Value<'_>, steps: &[Step], picker: &Picker) -> Value<'static> {
    match of {
        Value::Text(text) => Value::parsed(text).stepped(steps, picker),
        other => other.stepped(steps, picker),
    }
}

fn object_keys(of: &Value<'_>) -> Value<'static> {
    match &*of.opened() {
        Value::Members(of) => Value::List(of.iter().map(|(key, _)| Value::Text(key.clone().into())).collect()),
        _ => Value::Null,
    }
}

/// Type of TO_JSON: what has no type in JSON is shown as a text.
fn as_json(args: &[ValueType], _: Option<&Value<'_>>) -> ValueType {
    let first = first(args, None);
    match first.ty {
        Type::Time | Type::Created | Type::Xact | Type::Key | Type::Interval => ValueType::of(Type::Text),
        _ => first,
    }
}

fn to_json(of: &Value<'_>) -> Value<'static> {
    match of {
        Value::Time(_) | Value::Stored(_) | Value::Xact(_) | Value::Interval(_) => cast(of, CastType::Text, 0),
        Value::List(_) => Value::Array(of.to_json().into()),
        Value::Members(_) => Value::Object(of.to_json().into()),
        other => other.clone().into_owned(),
    }
}

/// Name of a value's type, as `infer` reports it (D-85).
fn type_of(of: &Value<'_>) -> &'static str {
    match of {
        Value::Null => "null",
        Value::Boolean(_) => "boolean",
        Value::Integer(_) | Value::Unsigned(_) | Value::Float(_) => "number",
        Value::Text(_) | Value::Time(_) | Value::Stored(_) | Value::Xact(_) | Value::Interval(_) => "string",
        Value::Array(_) | Value::List(_) => "array",
        Value::Object(_) | Value::Members(_) => "object",
    }
}
