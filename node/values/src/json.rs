//! Values as JSON texts, and access to elements and members.

use std::borrow::Cow;
use std::fmt::{Display, Write as _};

use assay_storage_model::merge::{Picker, Step};
use serde_json::Value as Tree;

use super::Value;

/// Bytes that are checked at once for characters to escape.
const BLOCK_BYTES: usize = 32;

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
            Value::Boolean(boolean) => out.push_str(if *boolean { "true" } else { "false" }),
            Value::Integer(number) => put(out, number),
            Value::Unsigned(number) => put(out, number),
            Value::Float(number) => put(out, &Tree::from(*number)),
            Value::Xact(xact) => {
                out.push('"');
                put(out, xact);
                out.push('"');
            }
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
            Value::Text(_) | Value::Time(_) | Value::Stored(_) | Value::Interval(_) => {
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

    /// Parses the elements or members of an array or object.
    pub fn opened(&self) -> Cow<'_, Value<'a>> {
        match self {
            Value::Array(json) | Value::Object(json) => {
                Cow::Owned(serde_json::from_str(json).map_or(Value::Null, Value::of_tree))
            }
            _ => Cow::Borrowed(self),
        }
    }

    /// Parses the value of a JSON text completely; null if it is no JSON.
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

    /// Returns the rows of an unpivot: members with keys, or elements or members without keys. Other values have none.
    pub fn spread(&self, keyed: bool) -> Vec<(Option<String>, Value<'static>)> {
        match self.opened().into_owned().into_owned() {
            Value::Members(of) => of.into_iter().map(|(key, of)| (Some(key), of)).collect(),
            Value::List(of) if !keyed => of.into_iter().map(|of| (None, of)).collect(),
            _ => Vec::new(),
        }
    }

    /// Value at a path. The picker was made of the same steps.
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

fn put(out: &mut String, value: &impl Display) {
    write!(out, "{value}").expect("a String takes everything");
}

/// In quotes, and escaped as serde_json does it. Answers are made of this: it allocates nothing, and what needs no escape
/// is copied as it stands.
fn put_text(out: &mut String, text: &str) {
    out.reserve(text.len() + 2);
    out.push('"');
    let mut rest = text;
    while let Some(at) = first_escaped(rest.as_bytes()) {
        out.push_str(&rest[..at]);
        put_escape(out, rest.as_bytes()[at]);
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out.push('"');
}

/// Blocks are looked at as wholes, which compiles to a few instructions each; only one that has something is searched.
fn first_escaped(bytes: &[u8]) -> Option<usize> {
    let is_escaped = |byte: &u8| *byte < b' ' || matches!(*byte, b'"' | b'\\');
    let (blocks, _) = bytes.as_chunks::<BLOCK_BYTES>();
    let has_none = |block: &&[u8; BLOCK_BYTES]| !block.iter().fold(false, |found, byte| found | is_escaped(byte));
    let plain = blocks.iter().take_while(has_none).count() * BLOCK_BYTES;
    bytes[plain..].iter().position(is_escaped).map(|at| plain + at)
}

fn put_escape(out: &mut String, byte: u8) {
    match byte {
        b'"' => out.push_str("\\\""),
        b'\\' => out.push_str("\\\\"),
        b'\n' => out.push_str("\\n"),
        b'\r' => out.push_str("\\r"),
        b'\t' => out.push_str("\\t"),
        0x08 => out.push_str("\\b"),
        0x0c => out.push_str("\\f"),
        other => put(out, &format_args!("\\u{other:04x}")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str) {
        assert_eq!(Value::Text(text.into()).to_json(), Tree::from(text).to_string());
    }

    #[test]
    fn every_character_of_a_byte_is_escaped_as_serde_json_does_it() {
        for character in '\0'..='\u{ff}' {
            check(&character.to_string());
            check(&format!("{:BLOCK_BYTES$}{character}", ""));
        }
    }

    proptest! {
        #[test]
        fn texts_are_written_as_serde_json_does_it(text in "[ -~\\t\\néß\"\\\\]{0,200}", any: String) {
            check(&text);
            check(&any);
        }

        #[test]
        fn numbers_are_written_as_serde_json_does_it(whole: i64, unsigned: u64, float: f64) {
            prop_assert_eq!(Value::Integer(whole).to_json(), Tree::from(whole).to_string());
            prop_assert_eq!(Value::Unsigned(unsigned).to_json(), Tree::from(unsigned).to_string());
            prop_assert_eq!(Value::Float(float).to_json(), Tree::from(float).to_string());
            prop_assert_eq!(Value::Xact(unsigned).to_json(), Tree::from(unsigned.to_string()).to_string());
        }
    }
}
