//! Values at a path of many JSON texts, as JSON texts, without parsing more than the path needs.

use arrow_array::Array;
use assay_node_btql::values::{Value, picked_text};

use crate::builder::Texts;
use crate::column::Column;
use crate::prepared::{Call, Prepared};

/// Digits that always fit into a whole number of 64 bits.
const DIGITS: usize = 18;
/// Digits that a float reproduces exactly.
const FLOAT_DIGITS: usize = 15;

pub(super) fn picked(call: &Call, of: &Column) -> Option<Column> {
    let (Prepared::Picker(picker), Column::Json(texts)) = (&call.prepared, of) else { return None };
    let mut found = Texts::with_capacity(texts.len(), 0);
    let mut json = String::new();
    for text in texts {
        match text.and_then(|text| picked_text(text, picker)) {
            Some(text) if is_settled(text) => found.push(Some(text))?,
            Some(text) => match Value::read(text) {
                Value::Null => found.push(None)?,
                value => {
                    json.clear();
                    value.put_json(&mut json);
                    found.push(Some(&json))?;
                }
            },
            None => found.push(None)?,
        }
    }
    Some(Column::Json(found.finish()))
}

/// Whether the text is already what its value would be written as: 1.0 is read as 1, and null is none.
fn is_settled(json: &str) -> bool {
    match json.as_bytes() {
        [b'{' | b'[', ..] | b"true" | b"false" | b"0" => true,
        [b'"', inside @ .., b'"'] => !inside.contains(&b'\\'),
        [b'0'..=b'9', ..] => is_settled_number(json),
        _ => false,
    }
}

/// Whether the number is whole, or a fraction that a float reproduces without an exponent.
fn is_settled_number(json: &str) -> bool {
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let Some((whole, fraction)) = json.split_once('.') else {
        return !json.starts_with('0') && json.len() <= DIGITS && are_digits(json);
    };
    are_digits(whole)
        && are_digits(fraction)
        && json.len() <= FLOAT_DIGITS
        && !fraction.ends_with('0')
        && (whole != "0" || !fraction.starts_with('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_settled_is_written_as_it_is_read() {
        let texts =
            ["{}", "[1.0]", "true", "false", "null", "0", "-0", "-1", "7", "1.0", "1e2", "0.5", "123456789012345678"];
        let others = [
            "999999999999999999",
            "9999999999999999999",
            "99999999999999999999",
            r#""a""#,
            r#""\u0061""#,
            r#""é""#,
            r#""""#,
        ];
        for text in texts.into_iter().chain(others) {
            let value = Value::read(text);
            let is_same = !value.is_null() && value.to_json() == text;
            assert!(is_same || !is_settled(text), "{text}");
        }
        for number in (0..40_000).flat_map(|number| [f64::from(number) / 1e4, f64::from(number) * 1e7 / 3.0]) {
            for text in [format!("{number}"), format!("{number:.5}"), format!("{number:e}"), format!("{number:.0}")] {
                assert!(Value::read(&text).to_json() == text || !is_settled(&text), "{text}");
            }
        }
        for text in ["{}", "true", "0", "7", "0.7", "12.5", "999999999999999", r#""a""#, r#""é""#] {
            assert!(is_settled(text), "{text}");
        }
    }
}
