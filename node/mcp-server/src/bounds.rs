//! Cuts of values, so that every answer has a bounded size.
//!
//! Sizes are those of the JSON text, because answers are JSON.

use std::io;

use serde_json::{Map, Value, json};

/// Upper bound of the structured content of an answer, and of its text.
///
/// The text is escaped again in the answer, which at most doubles it. An answer therefore stays below
/// [`RESULT_BYTES_MAX`](crate::RESULT_BYTES_MAX).
pub(crate) const CONTENT_BYTES_MAX: usize = 72 << 10;
/// Mark at the end of a value that was cut.
pub(crate) const CUT: &str = "…[cut]";

/// Writer that counts bytes.
struct Count(usize);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the number of bytes of a value as JSON.
pub(crate) fn json_len(value: &Value) -> usize {
    let mut count = Count(0);
    serde_json::to_writer(&mut count, value).map_or(usize::MAX, |()| count.0)
}

/// Returns the number of bytes of a character in a JSON text.
fn letter_len(letter: char) -> usize {
    match letter {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        letter => letter.len_utf8(),
    }
}

/// Cuts a text to `bytes_max` bytes of JSON. Very small bounds leave only the mark.
pub(crate) fn cut_text(text: &str, bytes_max: usize) -> (String, bool) {
    let quotes = 2;
    let whole = text.len() <= bytes_max && text.chars().map(letter_len).sum::<usize>() + quotes <= bytes_max;
    if whole {
        return (text.to_owned(), false);
    }
    let room = bytes_max.saturating_sub(CUT.len() + quotes);
    let mut used = 0;
    let end = text.char_indices().find(|(_, letter)| {
        used += letter_len(*letter);
        used > room
    });
    let kept = &text[..end.map_or(text.len(), |(at, _)| at)];
    (format!("{kept}{CUT}"), true)
}

/// Cuts a value to `bytes_max` bytes. A value that is not a text becomes the beginning of its JSON text.
pub(crate) fn cut(value: &Value, bytes_max: usize) -> (Value, bool) {
    if let Value::String(text) = value {
        let (text, was_cut) = cut_text(text, bytes_max);
        return (text.into(), was_cut);
    }
    if json_len(value) <= bytes_max {
        return (value.clone(), false);
    }
    (cut_text(&value.to_string(), bytes_max).0.into(), true)
}

/// Cuts each member of a row to `bytes_max` bytes. The flag becomes true if one was cut.
pub(crate) fn cut_members(row: &Value, bytes_max: usize, was_cut: &mut bool) -> Value {
    let Value::Object(members) = row else {
        let (row, is_shorter) = cut(row, bytes_max);
        *was_cut |= is_shorter;
        return row;
    };
    let cut_one = |(name, value): (&String, &Value)| {
        let (value, is_shorter) = cut(value, bytes_max);
        *was_cut |= is_shorter;
        (name.clone(), value)
    };
    Value::Object(members.iter().map(cut_one).collect::<Map<_, _>>())
}

/// Returns how many of the values fit into a list of `bytes_max` bytes.
pub(crate) fn fitting<'v>(values: impl IntoIterator<Item = &'v Value>, bytes_max: usize) -> usize {
    let mut used = 2;
    let fits = |value: &&Value| {
        used += json_len(value) + 1;
        used <= bytes_max
    };
    values.into_iter().take_while(fits).count()
}

/// Bounds of the parts of a value: bytes of a text, items of a list, and levels.
#[derive(Clone, Copy, Debug)]
struct PartBounds {
    text: usize,
    items: usize,
    depth: usize,
}

/// Bounds that are tried one after another, from generous to small.
const PARTS: [PartBounds; 6] = [
    PartBounds { text: 16 << 10, items: 1000, depth: 32 },
    PartBounds { text: 4 << 10, items: 200, depth: 16 },
    PartBounds { text: 1 << 10, items: 50, depth: 8 },
    PartBounds { text: 256, items: 20, depth: 5 },
    PartBounds { text: 96, items: 8, depth: 3 },
    PartBounds { text: 48, items: 3, depth: 2 },
];

/// Shrinks a value to `bytes_max` bytes: texts and lists become shorter, and deep parts become texts.
///
/// The members of the value itself stay, so that it still fits the schema of its tool.
pub(crate) fn shrink(value: &Value, bytes_max: usize) -> (Value, bool) {
    if json_len(value) <= bytes_max {
        return (value.clone(), false);
    }
    for bounds in PARTS {
        let smaller = shrunk(value, bounds, 0);
        if json_len(&smaller) <= bytes_max {
            return (smaller, true);
        }
    }
    (json!({}), true)
}

fn shrunk(value: &Value, bounds: PartBounds, depth: usize) -> Value {
    match value {
        Value::String(text) => cut_text(text, bounds.text).0.into(),
        Value::Array(_) | Value::Object(_) if depth > bounds.depth => cut(value, bounds.text).0,
        Value::Array(items) => items.iter().take(bounds.items).map(|item| shrunk(item, bounds, depth + 1)).collect(),
        Value::Object(members) => {
            let most = if depth == 0 { usize::MAX } else { bounds.items };
            let shorter =
                |(name, value): (&String, &Value)| (cut_text(name, bounds.text).0, shrunk(value, bounds, depth + 1));
            Value::Object(members.iter().take(most).map(shorter).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    use super::*;

    /// Returns any value, with texts that JSON escapes.
    pub fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,60}".prop_map(Value::from),
            "[\\u{0}-\\u{20}\"\\\\é漢]{0,600}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                vec(inner.clone(), 0..8).prop_map(Value::from),
                btree_map("[a-c\"]{0,4}", inner, 0..8).prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_cut_value_fits_and_one_that_fits_is_whole(value in values(), bytes_max in 12_usize..400) {
            let (shorter, was_cut) = cut(&value, bytes_max);
            prop_assert!(json_len(&shorter) <= bytes_max, "{shorter}");
            prop_assert_eq!(was_cut, json_len(&value) > bytes_max);
            if was_cut {
                prop_assert!(shorter.as_str().is_some_and(|text| text.ends_with(CUT)));
            } else {
                prop_assert_eq!(shorter, value);
            }
        }

        #[test]
        fn a_shrunk_value_fits_and_keeps_its_own_members(value in values(), bytes_max in 1500_usize..4000) {
            let value = json!({"first": value, "second": value});
            let (smaller, was_cut) = shrink(&value, bytes_max);
            prop_assert!(json_len(&smaller) <= bytes_max, "{smaller}");
            prop_assert_eq!(was_cut, json_len(&value) > bytes_max);
            let names: Vec<_> = smaller.as_object().expect("an object").keys().collect();
            prop_assert_eq!(names, ["first", "second"]);
        }

        #[test]
        fn the_values_that_fit_are_the_first(values in vec(values(), 0..6), bytes_max in 2_usize..2000) {
            let count = fitting(&values, bytes_max);
            prop_assert!(count == 0 || json_len(&json!(values[..count])) <= bytes_max);
            prop_assert!(count == values.len() || json_len(&json!(values[..count + 1])) + 1 > bytes_max);
        }
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut_text("héllo wörld", 200), ("héllo wörld".into(), false));
        assert_eq!(cut_text("ééééééééééé", 16), (format!("ééé{CUT}"), true));
        assert_eq!(cut_text("anything at all", 0), (CUT.into(), true));
    }
}
