//! What a field may hold, checked before anything is stored. A refusal names the field and says what would be right.

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::error::RecordsError;

/// Levels of nesting within one field, the field's own object being the first.
pub const DEPTH_MAX: usize = 64;

#[derive(Debug)]
pub(crate) enum Shape {
    Text {
        bytes_min: usize,
        bytes_max: usize,
    },
    Uuid,
    Bool,
    /// One of these texts.
    Word(&'static [&'static str]),
    Texts {
        items_max: usize,
        bytes_max: usize,
    },
    /// Any JSON object.
    Open {
        bytes_max: usize,
    },
    /// An object of these members and of any others.
    Known {
        members: &'static [Member],
        bytes_max: usize,
    },
    /// An object of these members; others are dropped, as clients send many.
    Closed(&'static [Member]),
    List {
        of: &'static Shape,
        items_max: usize,
    },
    /// A closed object whose members depend on its `type`.
    Tagged(&'static [(&'static str, &'static [Member])]),
}

#[derive(Debug)]
pub(crate) struct Member {
    pub name: &'static str,
    pub shape: Shape,
    pub required: bool,
}

impl Member {
    pub const fn required(name: &'static str, shape: Shape) -> Member {
        Member { name, shape, required: true }
    }

    pub const fn optional(name: &'static str, shape: Shape) -> Member {
        Member { name, shape, required: false }
    }
}

/// The value as it is kept, or why it is refused. `path` is how the client wrote its way there.
pub(crate) fn take(shape: &Shape, path: &str, value: Value) -> Result<Value, RecordsError> {
    match (shape, value) {
        (Shape::Text { bytes_min, bytes_max }, Value::String(text)) => {
            check_text(path, &text, *bytes_min, *bytes_max)?;
            Ok(Value::String(text))
        }
        (Shape::Text { .. }, other) => wrong(path, "a text", &other),
        (Shape::Uuid, Value::String(text)) => match Uuid::parse_str(&text) {
            Ok(id) => Ok(Value::String(id.to_string())),
            Err(_) => wrong(path, "a UUID", &Value::String(text)),
        },
        (Shape::Uuid, other) => wrong(path, "a UUID", &other),
        (Shape::Bool, Value::Bool(truth)) => Ok(Value::Bool(truth)),
        (Shape::Bool, other) => wrong(path, "true or false", &other),
        (Shape::Word(words), value) => match value.as_str().filter(|text| words.contains(text)) {
            Some(_) => Ok(value),
            None => wrong(path, &format!("one of `{}`", words.join("`, `")), &value),
        },
        (Shape::Texts { items_max, bytes_max }, Value::Array(items)) => {
            check_count(path, items.len(), *items_max)?;
            let shape = Shape::Text { bytes_min: 0, bytes_max: *bytes_max };
            each(&shape, path, items)
        }
        (Shape::List { of, items_max }, Value::Array(items)) => {
            check_count(path, items.len(), *items_max)?;
            each(of, path, items)
        }
        (Shape::Texts { .. }, other) => wrong(path, "a list of texts", &other),
        (Shape::List { .. }, other) => wrong(path, "a list", &other),
        (Shape::Open { bytes_max }, Value::Object(fields)) => {
            let value = Value::Object(fields);
            check_open(path, &value, *bytes_max)?;
            Ok(value)
        }
        (Shape::Known { members, bytes_max }, Value::Object(fields)) => {
            let fields = known(members, path, fields)?;
            take(&Shape::Open { bytes_max: *bytes_max }, path, Value::Object(fields))
        }
        (Shape::Closed(members), Value::Object(fields)) => closed(members, path, fields).map(Value::Object),
        (Shape::Tagged(variants), Value::Object(fields)) => tagged(variants, path, fields),
        (Shape::Open { .. } | Shape::Known { .. } | Shape::Closed(_) | Shape::Tagged(_), other) => {
            wrong(path, "an object", &other)
        }
    }
}

fn each(shape: &Shape, path: &str, items: Vec<Value>) -> Result<Value, RecordsError> {
    let items = items.into_iter().enumerate().map(|(at, item)| take(shape, &format!("{path}[{at}]"), item));
    items.collect::<Result<Vec<_>, _>>().map(Value::Array)
}

fn known(members: &[Member], path: &str, mut fields: Map<String, Value>) -> Result<Map<String, Value>, RecordsError> {
    for Member { name, shape, .. } in members {
        if let Some(value) = fields.get_mut(*name).filter(|value| !value.is_null()) {
            *value = take(shape, &format!("{path}.{name}"), value.take())?;
        }
    }
    Ok(fields)
}

fn closed(members: &[Member], path: &str, mut fields: Map<String, Value>) -> Result<Map<String, Value>, RecordsError> {
    let mut kept = Map::new();
    for Member { name, shape, required } in members {
        let path = format!("{path}.{name}");
        match fields.remove(*name) {
            None | Some(Value::Null) if *required => {
                return Err(RecordsError::BadRequest(format!("`{path}` is missing")));
            }
            None => {}
            Some(Value::Null) => {
                kept.insert((*name).to_owned(), Value::Null);
            }
            Some(value) => {
                kept.insert((*name).to_owned(), take(shape, &path, value)?);
            }
        }
    }
    Ok(kept)
}

fn tagged(variants: &[(&str, &[Member])], path: &str, fields: Map<String, Value>) -> Result<Value, RecordsError> {
    let tag = fields.get("type").and_then(Value::as_str);
    let variant = variants.iter().find(|(name, _)| Some(*name) == tag);
    let Some((name, members)) = variant else {
        let names: Vec<_> = variants.iter().map(|(name, _)| *name).collect();
        let found = fields.get("type").unwrap_or(&Value::Null);
        return wrong(&format!("{path}.type"), &format!("one of `{}`", names.join("`, `")), found);
    };
    let mut kept = Map::from_iter([("type".to_owned(), Value::from(*name))]);
    kept.extend(closed(members, path, fields)?);
    Ok(Value::Object(kept))
}

fn check_text(path: &str, text: &str, bytes_min: usize, bytes_max: usize) -> Result<(), RecordsError> {
    if text.len() < bytes_min {
        return Err(RecordsError::BadRequest(format!("`{path}` is empty: it has at least {bytes_min} byte")));
    }
    if text.len() > bytes_max {
        let bytes = text.len();
        return Err(RecordsError::BadRequest(format!("`{path}` has {bytes} bytes: at most {bytes_max} are kept")));
    }
    Ok(())
}

fn check_count(path: &str, items: usize, items_max: usize) -> Result<(), RecordsError> {
    if items > items_max {
        return Err(RecordsError::BadRequest(format!("`{path}` has {items} items: at most {items_max} are kept")));
    }
    Ok(())
}

/// Asked again after a merge, which can make an object larger and deeper.
fn check_open(path: &str, value: &Value, bytes_max: usize) -> Result<(), RecordsError> {
    if !is_within(value, DEPTH_MAX) {
        let said = format!("`{path}` is nested deeper than {DEPTH_MAX} levels");
        return Err(RecordsError::BadRequest(said));
    }
    let bytes = value.to_string().len();
    if bytes > bytes_max {
        return Err(RecordsError::BadRequest(format!("`{path}` has {bytes} bytes: at most {bytes_max} are kept")));
    }
    Ok(())
}

fn is_within(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels > 0 && items.iter().all(|item| is_within(item, levels - 1)),
        Value::Object(fields) => levels > 0 && fields.values().all(|item| is_within(item, levels - 1)),
        _ => true,
    }
}

fn wrong<T>(path: &str, wanted: &str, found: &Value) -> Result<T, RecordsError> {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "another text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    Err(RecordsError::BadRequest(format!("`{path}` has to be {wanted}, not {found}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PAIR: Shape = Shape::Closed(&[
        Member::required("url", Shape::Text { bytes_min: 1, bytes_max: 5 }),
        Member::optional("on", Shape::Bool),
    ]);
    const EITHER: Shape = Shape::Tagged(&[
        ("a", &[Member::required("id", Shape::Uuid)]),
        ("b", &[Member::optional("kind", Shape::Word(&["x", "y"]))]),
    ]);
    const SOME: Shape = Shape::Texts { items_max: 2, bytes_max: 3 };
    const OPEN: Shape = Shape::Open { bytes_max: 200 };
    const PAIRS: Shape = Shape::List { of: &PAIR, items_max: 2 };

    #[test]
    fn what_fits_is_kept_and_unknown_members_are_dropped() {
        let id = "11111111-2222-4333-8444-55555555ABCD";
        let cases = [
            (&PAIR, json!({"url": "u", "other": 1}), json!({"url": "u"})),
            (&PAIR, json!({"on": null, "url": "u"}), json!({"url": "u", "on": null})),
            (&EITHER, json!({"type": "a", "id": id, "x": 1}), json!({"type": "a", "id": id.to_lowercase()})),
            (&EITHER, json!({"type": "b", "kind": "y"}), json!({"type": "b", "kind": "y"})),
            (&SOME, json!(["a", "b"]), json!(["a", "b"])),
            (&OPEN, json!({"a": {"b": [1, 2.5, null]}}), json!({"a": {"b": [1, 2.5, null]}})),
            (&PAIRS, json!([{"url": "u"}]), json!([{"url": "u"}])),
        ];
        for (shape, value, kept) in cases {
            assert_eq!(take(shape, "f", value), Ok(kept));
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        let deep = (0..DEPTH_MAX).fold(json!(1), |inner, _| json!([inner]));
        let cases = [
            (&PAIR, json!({}), "`f.url` is missing"),
            (&PAIR, json!({"url": null}), "`f.url` is missing"),
            (&PAIR, json!({"url": ""}), "`f.url` is empty: it has at least 1 byte"),
            (&PAIR, json!({"url": "123456"}), "`f.url` has 6 bytes: at most 5 are kept"),
            (&PAIR, json!({"url": "u", "on": 1}), "`f.on` has to be true or false, not a number"),
            (&PAIR, json!([]), "`f` has to be an object, not a list"),
            (&EITHER, json!({"type": "c"}), "`f.type` has to be one of `a`, `b`, not another text"),
            (&EITHER, json!({}), "`f.type` has to be one of `a`, `b`, not null"),
            (&EITHER, json!({"type": "a", "id": "x"}), "`f.id` has to be a UUID, not another text"),
            (&EITHER, json!({"type": "b", "kind": "z"}), "`f.kind` has to be one of `x`, `y`, not another text"),
            (&SOME, json!("a"), "`f` has to be a list of texts, not another text"),
            (&SOME, json!(["a", "b", "c"]), "`f` has 3 items: at most 2 are kept"),
            (&SOME, json!(["a", 1]), "`f[1]` has to be a text, not a number"),
            (&SOME, json!(["abcd"]), "`f[0]` has 4 bytes: at most 3 are kept"),
            (&PAIRS, json!([{"url": "u"}, {}]), "`f[1].url` is missing"),
            (&OPEN, json!({"a": "x".repeat(200)}), "`f` has 208 bytes: at most 200 are kept"),
            (&OPEN, json!({"a": deep}), "`f` is nested deeper than 64 levels"),
        ];
        for (shape, value, said) in cases {
            assert_eq!(take(shape, "f", value), Err(RecordsError::BadRequest(said.to_owned())));
        }
    }
}
