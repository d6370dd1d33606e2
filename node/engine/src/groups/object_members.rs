//! Iteration over the members of an object, without parsing below them.

use assay_node_btql::values::Value;
use assay_storage_model::merge::doc_fields;

/// Calls `see` for the members of an object in their order. Other values and damaged texts have no members.
pub(crate) fn each<'v>(object: &'v Value<'_>, mut see: impl FnMut(&str, Value<'v>)) {
    match object {
        Value::Object(json) => {
            for (key, text) in doc_fields(json.as_bytes()).unwrap_or_default() {
                see(&key, std::str::from_utf8(text).map_or(Value::Null, Value::read));
            }
        }
        Value::Members(of) => of.iter().for_each(|(key, member)| see(key, member.view())),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    fn seen(object: &Value<'_>) -> Vec<(String, String)> {
        let mut seen = Vec::new();
        each(object, |key, member| seen.push((key.to_owned(), member.to_json())));
        seen
    }

    #[test]
    fn members_come_in_order_whether_they_are_stored_or_computed() {
        let stored = Value::Object(Cow::Borrowed(r#"{"b":1.5,"a\n":[1,{"c":2}],"":null}"#));
        let expected = [("b", "1.5"), ("a\n", r#"[1,{"c":2}]"#), ("", "null")];
        assert_eq!(seen(&stored), expected.map(|(key, json)| (key.to_owned(), json.to_owned())));
        assert_eq!(seen(&stored.opened()), seen(&stored));
    }

    #[test]
    fn what_is_no_object_has_none() {
        for json in ["null", "1", "\"{}\"", "[{\"a\":1}]", "{}", "{\"a\":"] {
            assert!(seen(&Value::read(json)).is_empty(), "{json}");
        }
    }
}
