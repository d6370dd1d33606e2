//! Shapes of JSON values: what a field of a record may be. A value is checked before anything is stored; an error names
//! the field and a valid value. [`json_schema`] describes shapes to clients.
//!
//! Knows neither records nor access, so that a new kind of record finds its fields' shapes here.

pub mod configurations;
pub mod json_schema;
pub mod list_patch;

use serde_json::{Map, Value};
use thiserror::Error;
use uuid::Uuid;

/// Value that does not fit its shape: what was expected where, and what was found.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ShapeError(pub String);

/// Levels of nesting within one field, the field's own object being the first.
pub const DEPTH_MAX: usize = 64;
/// Floats below are whole numbers of their own.
const WHOLE_FLOAT_MAX: f64 = 9_007_199_254_740_992.0;
/// Stands for no limit.
pub const MOST_NEGATIVE: f64 = f64::MIN;
pub const MOST_POSITIVE: f64 = f64::MAX;

/// What a value may be.
#[derive(Debug)]
pub enum Shape {
    Text {
        bytes_min: usize,
        bytes_max: usize,
    },
    /// A text that is never shown: it is encrypted before it is stored, see `sealed_values`.
    Secret {
        bytes_max: usize,
    },
    Uuid,
    Bool,
    Number {
        min: f64,
        max: f64,
    },
    /// A number without a fraction.
    Whole {
        min: i64,
        max: i64,
    },
    /// Anything that is not null.
    Any {
        bytes_max: usize,
    },
    /// An object of any members, each of this shape.
    Values {
        of: &'static Shape,
        items_max: usize,
    },
    /// The first of these that fits.
    Either(&'static [Shape]),
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
    /// A closed object whose members depend on the one of this name.
    Tagged(&'static str, &'static [(&'static str, &'static [Member])]),
    /// The same, with any other members beside them.
    TaggedOpen(&'static str, &'static [(&'static str, &'static [Member])]),
}

/// Member of an object.
#[derive(Debug)]
pub struct Member {
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
pub fn take(shape: &Shape, path: &str, value: Value) -> Result<Value, ShapeError> {
    match (shape, value) {
        (Shape::Text { bytes_min, bytes_max }, Value::String(text)) => {
            check_text(path, &text, *bytes_min, *bytes_max)?;
            Ok(Value::String(text))
        }
        (Shape::Secret { bytes_max }, Value::String(text)) => {
            check_text(path, &text, 0, *bytes_max)?;
            Ok(Value::String(text))
        }
        (Shape::Text { .. } | Shape::Secret { .. }, other) => wrong(path, "a string", &other),
        (Shape::Uuid, Value::String(text)) => match Uuid::parse_str(&text) {
            Ok(id) => Ok(Value::String(id.to_string())),
            Err(_) => wrong(path, "a UUID", &Value::String(text)),
        },
        (Shape::Uuid, other) => wrong(path, "a UUID", &other),
        (Shape::Bool, Value::Bool(truth)) => Ok(Value::Bool(truth)),
        (Shape::Bool, other) => wrong(path, "true or false", &other),
        (Shape::Number { min, max }, value) => number(path, *min, *max, value),
        (Shape::Whole { min, max }, value) => whole(path, *min, *max, &value),
        (Shape::Any { bytes_max }, value) => {
            check_open(path, &value, *bytes_max)?;
            Ok(value)
        }
        (Shape::Values { of, items_max }, Value::Object(fields)) => {
            check_count(path, fields.len(), *items_max)?;
            let fields = fields.into_iter().map(|(name, value)| {
                let value = take(of, &format!("{path}.{name}"), value)?;
                Ok((name, value))
            });
            fields.collect::<Result<Map<_, _>, _>>().map(Value::Object)
        }
        (Shape::Values { .. }, other) => wrong(path, "an object", &other),
        (Shape::Either(shapes), value) => either(shapes, path, &value),
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
        (Shape::Texts { .. }, other) => wrong(path, "a list of strings", &other),
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
        (Shape::Tagged(tag, variants), Value::Object(fields)) => tagged(tag, variants, path, fields),
        (Shape::TaggedOpen(tag, variants), Value::Object(fields)) => {
            known(variant(tag, variants, path, &fields)?.1, path, fields).map(Value::Object)
        }
        (
            Shape::Open { .. } | Shape::Known { .. } | Shape::Closed(_) | Shape::Tagged(..) | Shape::TaggedOpen(..),
            other,
        ) => wrong(path, "an object", &other),
    }
}

fn number(path: &str, min: f64, max: f64, value: Value) -> Result<Value, ShapeError> {
    let fits = value.as_f64().is_some_and(|number| (min..=max).contains(&number));
    if fits { Ok(value) } else { no_number(path, &format!("a number{}", range(min, max)), &value) }
}

/// Checks a whole number, also one in float notation.
fn whole(path: &str, min: i64, max: i64, value: &Value) -> Result<Value, ShapeError> {
    let of_float = |float: &f64| float.fract() == 0.0 && float.abs() < WHOLE_FLOAT_MAX;
    let whole = value.as_i64().or_else(|| value.as_f64().filter(of_float).map(|float| float as i64));
    match whole.filter(|whole| (min..=max).contains(whole)) {
        Some(whole) => Ok(whole.into()),
        None => no_number(path, &format!("a whole number{}", range(min as f64, max as f64)), value),
    }
}

fn each(shape: &Shape, path: &str, items: Vec<Value>) -> Result<Value, ShapeError> {
    let items = items.into_iter().enumerate().map(|(at, item)| take(shape, &format!("{path}[{at}]"), item));
    items.collect::<Result<Vec<_>, _>>().map(Value::Array)
}

fn known(members: &[Member], path: &str, mut fields: Map<String, Value>) -> Result<Map<String, Value>, ShapeError> {
    for Member { name, shape, required } in members {
        match fields.get_mut(*name).filter(|value| !value.is_null()) {
            Some(value) => *value = take(shape, &format!("{path}.{name}"), value.take())?,
            None if *required => return Err(ShapeError(format!("`{path}.{name}` is missing"))),
            None => {}
        }
    }
    Ok(fields)
}

fn closed(members: &[Member], path: &str, mut fields: Map<String, Value>) -> Result<Map<String, Value>, ShapeError> {
    let mut kept = Map::new();
    for Member { name, shape, required } in members {
        let path = format!("{path}.{name}");
        match fields.remove(*name) {
            None | Some(Value::Null) if *required => {
                return Err(ShapeError(format!("`{path}` is missing")));
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

/// Checks alternatives. If none matches, the error is that of the last one, which is the most general.
fn either(shapes: &[Shape], path: &str, value: &Value) -> Result<Value, ShapeError> {
    let mut refused = None;
    for shape in shapes {
        match take(shape, path, value.clone()) {
            Ok(value) => return Ok(value),
            Err(why) => refused = Some(why),
        }
    }
    Err(refused.unwrap_or_else(|| ShapeError(format!("`{path}` has no shape"))))
}

fn range(min: f64, max: f64) -> String {
    match (min > MOST_NEGATIVE, max < MOST_POSITIVE) {
        (true, true) => format!(" from {min} to {max}"),
        (true, false) => format!(" of {min} or more"),
        (false, true) => format!(" of {max} or less"),
        (false, false) => String::new(),
    }
}

fn tagged(
    tag: &str,
    variants: &[(&str, &[Member])],
    path: &str,
    fields: Map<String, Value>,
) -> Result<Value, ShapeError> {
    let (name, members) = variant(tag, variants, path, &fields)?;
    let mut kept = Map::from_iter([(tag.to_owned(), Value::from(name))]);
    kept.extend(closed(members, path, fields)?);
    Ok(Value::Object(kept))
}

/// Returns the variant that the tag selects, and its members.
fn variant<'v>(
    tag: &str,
    variants: &[(&'v str, &'v [Member])],
    path: &str,
    fields: &Map<String, Value>,
) -> Result<(&'v str, &'v [Member]), ShapeError> {
    let found = fields.get(tag).and_then(Value::as_str);
    if let Some(variant) = variants.iter().find(|(name, _)| Some(*name) == found) {
        return Ok(*variant);
    }
    let names: Vec<_> = variants.iter().map(|(name, _)| *name).collect();
    let found = fields.get(tag).unwrap_or(&Value::Null);
    wrong(&format!("{path}.{tag}"), &format!("one of `{}`", names.join("`, `")), found)
}

fn check_text(path: &str, text: &str, bytes_min: usize, bytes_max: usize) -> Result<(), ShapeError> {
    if text.len() < bytes_min {
        return Err(ShapeError(format!("`{path}` is empty: it must have at least {bytes_min} byte")));
    }
    if text.len() > bytes_max {
        let bytes = text.len();
        return Err(ShapeError(format!("`{path}` has {bytes} bytes: the maximum is {bytes_max}")));
    }
    Ok(())
}

fn check_count(path: &str, items: usize, items_max: usize) -> Result<(), ShapeError> {
    if items > items_max {
        return Err(ShapeError(format!("`{path}` has {items} items: the maximum is {items_max}")));
    }
    Ok(())
}

/// Checks an open object, again after a merge, which can make it larger and deeper.
fn check_open(path: &str, value: &Value, bytes_max: usize) -> Result<(), ShapeError> {
    if !is_within(value, DEPTH_MAX) {
        let said = format!("`{path}` is nested deeper than {DEPTH_MAX} levels");
        return Err(ShapeError(said));
    }
    let bytes = value.to_string().len();
    if bytes > bytes_max {
        return Err(ShapeError(format!("`{path}` has {bytes} bytes: the maximum is {bytes_max}")));
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

fn no_number<T>(path: &str, wanted: &str, found: &Value) -> Result<T, ShapeError> {
    match found {
        Value::Number(number) => Err(ShapeError(format!("`{path}` has to be {wanted}, not {number}"))),
        other => wrong(path, wanted, other),
    }
}

fn wrong<T>(path: &str, wanted: &str, found: &Value) -> Result<T, ShapeError> {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "another string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    Err(ShapeError(format!("`{path}` has to be {wanted}, not {found}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PAIR: Shape = Shape::Closed(&[
        Member::required("url", Shape::Text { bytes_min: 1, bytes_max: 5 }),
        Member::optional("on", Shape::Bool),
    ]);
    const EITHER: Shape = Shape::Tagged(
        "type",
        &[("a", &[Member::required("id", Shape::Uuid)]), ("b", &[Member::optional("kind", Shape::Word(&["x", "y"]))])],
    );
    const EITHER_OPEN: Shape = Shape::TaggedOpen("type", &[("a", &[Member::required("id", Shape::Uuid)])]);
    const SOME: Shape = Shape::Texts { items_max: 2, bytes_max: 3 };
    const OPEN: Shape = Shape::Open { bytes_max: 200 };
    const PAIRS: Shape = Shape::List { of: &PAIR, items_max: 2 };
    const SHARE: Shape = Shape::Number { min: 0.0, max: 1.0 };
    const COUNT: Shape = Shape::Whole { min: 1, max: 9 };
    const SHARES: Shape = Shape::Values { of: &SHARE, items_max: 2 };
    const ANY: Shape = Shape::Any { bytes_max: 10 };
    const TEXT_OR_PAIR: Shape = Shape::Either(&[Shape::Bool, PAIR]);

    #[test]
    fn what_fits_is_kept_and_unknown_members_are_dropped() {
        let id = "11111111-2222-4333-8444-55555555ABCD";
        let cases = [
            (&PAIR, json!({"url": "u", "other": 1}), json!({"url": "u"})),
            (&PAIR, json!({"on": null, "url": "u"}), json!({"url": "u", "on": null})),
            (&EITHER, json!({"type": "a", "id": id, "x": 1}), json!({"type": "a", "id": id.to_lowercase()})),
            (&EITHER, json!({"type": "b", "kind": "y"}), json!({"type": "b", "kind": "y"})),
            (
                &EITHER_OPEN,
                json!({"type": "a", "id": id, "x": 1}),
                json!({"type": "a", "id": id.to_lowercase(), "x": 1}),
            ),
            (&SOME, json!(["a", "b"]), json!(["a", "b"])),
            (&OPEN, json!({"a": {"b": [1, 2.5, null]}}), json!({"a": {"b": [1, 2.5, null]}})),
            (&PAIRS, json!([{"url": "u"}]), json!([{"url": "u"}])),
            (&SHARE, json!(0.5), json!(0.5)),
            (&SHARE, json!(1), json!(1)),
            (&COUNT, json!(9.0), json!(9)),
            (&SHARES, json!({"a": 0, "b": 1}), json!({"a": 0, "b": 1})),
            (&ANY, json!([1, "a"]), json!([1, "a"])),
            (&TEXT_OR_PAIR, json!(true), json!(true)),
            (&TEXT_OR_PAIR, json!({"url": "u", "x": 1}), json!({"url": "u"})),
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
            (&PAIR, json!({"url": ""}), "`f.url` is empty: it must have at least 1 byte"),
            (&PAIR, json!({"url": "123456"}), "`f.url` has 6 bytes: the maximum is 5"),
            (&PAIR, json!({"url": "u", "on": 1}), "`f.on` has to be true or false, not a number"),
            (&PAIR, json!([]), "`f` has to be an object, not a list"),
            (&EITHER, json!({"type": "c"}), "`f.type` has to be one of `a`, `b`, not another string"),
            (&EITHER, json!({}), "`f.type` has to be one of `a`, `b`, not null"),
            (&EITHER, json!({"type": "a", "id": "x"}), "`f.id` has to be a UUID, not another string"),
            (&EITHER, json!({"type": "b", "kind": "z"}), "`f.kind` has to be one of `x`, `y`, not another string"),
            (&EITHER_OPEN, json!({"type": "a"}), "`f.id` is missing"),
            (&EITHER_OPEN, json!({"type": "b"}), "`f.type` has to be one of `a`, not another string"),
            (&SOME, json!("a"), "`f` has to be a list of strings, not another string"),
            (&SOME, json!(["a", "b", "c"]), "`f` has 3 items: the maximum is 2"),
            (&SOME, json!(["a", 1]), "`f[1]` has to be a string, not a number"),
            (&SOME, json!(["abcd"]), "`f[0]` has 4 bytes: the maximum is 3"),
            (&PAIRS, json!([{"url": "u"}, {}]), "`f[1].url` is missing"),
            (&SHARE, json!(1.5), "`f` has to be a number from 0 to 1, not 1.5"),
            (&SHARE, json!("1"), "`f` has to be a number from 0 to 1, not another string"),
            (&COUNT, json!(1.5), "`f` has to be a whole number from 1 to 9, not 1.5"),
            (&COUNT, json!(10), "`f` has to be a whole number from 1 to 9, not 10"),
            (&SHARES, json!({"a": 2}), "`f.a` has to be a number from 0 to 1, not 2"),
            (&SHARES, json!({"a": 0, "b": 0, "c": 0}), "`f` has 3 items: the maximum is 2"),
            (&SHARES, json!([]), "`f` has to be an object, not a list"),
            (&ANY, json!("x".repeat(9)), "`f` has 11 bytes: the maximum is 10"),
            (&TEXT_OR_PAIR, json!({"url": 1}), "`f.url` has to be a string, not a number"),
            (&OPEN, json!({"a": "x".repeat(200)}), "`f` has 208 bytes: the maximum is 200"),
            (&OPEN, json!({"a": deep}), "`f` is nested deeper than 64 levels"),
        ];
        for (shape, value, said) in cases {
            assert_eq!(take(shape, "f", value), Err(ShapeError(said.to_owned())));
        }
    }
}
