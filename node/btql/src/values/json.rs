//! Values as JSON texts, and what is inside of arrays and objects.

use std::borrow::Cow;

use assay_storage_model::merge::{Picker, Step};
use serde_json::Value as Tree;

use super::Value;

impl<'a> Value<'a> {
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.put_json(&mut out);
        out
    }

    /// Appends its JSON text; arrays and objects that are stored as they are.
    pub fn put_json(&self, out: &mut String) {
        match self {
            Value::Null => out.push_str("null"),
            Value::Array(json) | Value::Object(json) => out.push_str(json),
            Value::Unsigned(number) => out.push_str(&number.to_string()),
            Value::Float(number) => out.push_str(&Tree::from(*number).to_string()),
            Value::List(of) => {
                out.push('[');
                for (number, element) in of.iter().enumerate() {
                    out.push_str(if number > 0 { "," } else { "" });
                    element.put_json(out);
                }
                out.push(']');
            }
            Value::Members(of) => {
                out.push('{');
                for (number, (key, member)) in of.iter().enumerate() {
                    out.push_str(if number > 0 { "," } else { "" });
                    put_text(out, key);
                    out.push(':');
                    member.put_json(out);
                }
                out.push('}');
            }
            Value::Boolean(_) | Value::Integer(_) => out.push_str(&self.to_text().unwrap_or_default()),
            Value::Text(_) | Value::Time(_) | Value::Stored(_) | Value::Xact(_) | Value::Interval(_) => {
                put_text(out, &self.to_text().unwrap_or_default());
            }
        }
    }

    /// Read through and through; of what is damaged, null.
    pub(super) fn of_tree(tree: Tree) -> Value<'static> {
        match tree {
            Tree::Null => Value::Null,
            Tree::Bool(boolean) => Value::Boolean(boolean),
            Tree::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(whole), _) => Value::Integer(whole),
                (None, Some(whole)) => Value::Unsigned(whole),
                (None, None) => number.as_f64().map_or(Value::Null, Value::float),
            },
            Tree::String(text) => Value::Text(Cow::Owned(text)),
            Tree::Array(of) => Value::List(of.into_iter().map(Value::of_tree).collect()),
            Tree::Object(of) => Value::Members(of.into_iter().map(|(key, of)| (key, Value::of_tree(of))).collect()),
        }
    }

    /// With what is in it read as well, if it is an array or an object.
    pub fn opened(&self) -> Cow<'_, Value<'a>> {
        match self {
            Value::Array(json) | Value::Object(json) => {
                Cow::Owned(serde_json::from_str(json).map_or(Value::Null, Value::of_tree))
            }
            _ => Cow::Borrowed(self),
        }
    }

    /// Of a text that is JSON what it says, all of it; null otherwise.
    pub fn parsed(text: &str) -> Value<'static> {
        serde_json::from_str::<Tree>(text).map_or(Value::Null, Value::of_whole_tree)
    }

    /// A scalar as it is, and the text of anything else as it is then written.
    fn of_whole_tree(tree: Tree) -> Value<'static> {
        match tree {
            Tree::Array(_) => Value::Array(Cow::Owned(tree.to_string())),
            Tree::Object(_) => Value::Object(Cow::Owned(tree.to_string())),
            scalar => Value::of_tree(scalar),
        }
    }

    /// What an unpivot makes of it: its members with their keys, or where those are not asked for, its elements or members
    /// alone. Of anything else nothing.
    pub fn spread(&self, keyed: bool) -> Vec<(Option<String>, Value<'static>)> {
        match self.opened().into_owned().into_owned() {
            Value::Members(of) => of.into_iter().map(|(key, of)| (Some(key), of)).collect(),
            Value::List(of) if !keyed => of.into_iter().map(|of| (None, of)).collect(),
            _ => Vec::new(),
        }
    }

    /// What steps lead to. The picker knows the same steps.
    pub fn stepped(&self, steps: &[Step], picker: &Picker) -> Value<'static> {
        match (self, steps) {
            (Value::Array(json) | Value::Object(json), _) => picked(json, picker).into_owned(),
            (of, []) => of.clone().into_owned(),
            (Value::List(of), [Step::Index(index), rest @ ..]) => {
                let place = if *index < 0 { index.checked_add_unsigned(of.len() as u64) } else { Some(*index) };
                let found = place.and_then(|place| of.get(usize::try_from(place).ok()?));
                found.map_or(Value::Null, |found| found.stepped(rest, &Picker::new([rest])))
            }
            (Value::Members(of), [Step::Key(key), rest @ ..]) => {
                let found = of.iter().find(|(name, _)| name == key);
                found.map_or(Value::Null, |(_, found)| found.stepped(rest, &Picker::new([rest])))
            }
            _ => Value::Null,
        }
    }
}

/// The value at the picker's only path.
fn picked<'j>(json: &'j str, picker: &Picker) -> Value<'j> {
    picked_text(json, picker).map_or(Value::Null, Value::read)
}

/// The JSON text of that value.
pub fn picked_text<'j>(json: &'j str, picker: &Picker) -> Option<&'j str> {
    let mut found = [None];
    if picker.paths() != 1 || picker.pick(json.as_bytes(), &mut found).is_err() {
        return None;
    }
    std::str::from_utf8(found[0]?).ok()
}

fn put_text(out: &mut String, text: &str) {
    out.push_str(&Tree::from(text).to_string());
}
