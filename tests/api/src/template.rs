//! Templates of requests: `${name}` in any text, and a few objects that generate long values.
//!
//! | written | sent |
//! |---|---|
//! | `"a ${name} b"` | the text of the variable in its place |
//! | `"${name}"` alone | the variable's value, of whatever type |
//! | `{"$repeat": ["ab", 3]}` | `"ababab"` |
//! | `{"$nested": [3, 1]}` | `[[[1]]]` |
//! | `{"$times": [2, {"id": "r${i}"}]}` | `[{"id": "r0"}, {"id": "r1"}]`, `${i}` counting |

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

pub type Variables = BTreeMap<String, Value>;

/// Limit on the output of `$repeat`, `$nested` and `$times`: enough for a body beyond the limit.
const MADE_MAX: u64 = 32 << 20;

/// The value with every hole filled.
pub fn filled(template: &Value, variables: &Variables) -> Result<Value> {
    Ok(match template {
        Value::String(text) => filled_text(text, variables)?,
        Value::Array(items) => items.iter().map(|item| filled(item, variables)).collect::<Result<_>>()?,
        Value::Object(members) => match made(members, variables)? {
            Some(value) => value,
            None => {
                let each = members.iter().map(|(name, value)| Ok((text(name, variables)?, filled(value, variables)?)));
                Value::Object(each.collect::<Result<_>>()?)
            }
        },
        other => other.clone(),
    })
}

/// Text with every hole filled by the text of its variable.
pub fn text(template: &str, variables: &Variables) -> Result<String> {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, behind) = after.split_once('}').with_context(|| format!("`{template}`: a hole without an end"))?;
        out.push_str(before);
        out.push_str(&as_text(variable(name, variables)?));
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

fn filled_text(template: &str, variables: &Variables) -> Result<Value> {
    let alone = template.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    match alone.filter(|name| !name.contains('}')) {
        Some(name) => Ok(variable(name, variables)?.clone()),
        None => Ok(Value::String(text(template, variables)?)),
    }
}

fn variable<'v>(name: &str, variables: &'v Variables) -> Result<&'v Value> {
    variables.get(name).with_context(|| format!("nothing is known as `{name}` yet"))
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the output of a generator object; none for any other object.
fn made(members: &Map<String, Value>, variables: &Variables) -> Result<Option<Value>> {
    let Some((name, arguments)) = members.iter().next().filter(|_| members.len() == 1) else {
        return Ok(None);
    };
    let arguments = arguments.as_array().map(Vec::as_slice).unwrap_or_default();
    Ok(Some(match (name.as_str(), arguments) {
        ("$repeat", [Value::String(piece), count]) => Value::String(piece.repeat(number(count)?)),
        ("$nested", [depth, innermost]) => {
            (0..number(depth)?).fold(innermost.clone(), |inside, _| Value::Array(vec![inside]))
        }
        ("$times", [count, item]) => {
            let mut variables = variables.clone();
            let mut one = |i: usize| {
                variables.insert("i".into(), Value::from(i));
                filled(item, &variables)
            };
            (0..number(count)?).map(&mut one).collect::<Result<_>>()?
        }
        ("$repeat" | "$nested" | "$times", _) => bail!("{name} has arguments it does not take"),
        _ => return Ok(None),
    }))
}

fn number(value: &Value) -> Result<usize> {
    let count = value.as_u64().filter(|count| *count <= MADE_MAX);
    Ok(usize::try_from(count.with_context(|| format!("{value} is no count up to {MADE_MAX}"))?)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(template: Value, expected: Value) {
        let variables = Variables::from([("n".into(), json!(7)), ("id".into(), json!("x-1"))]);
        assert_eq!(filled(&template, &variables).expect("fills"), expected);
    }

    #[test]
    fn holes_take_the_variables_text_or_alone_its_value() {
        check(
            json!({"a": "${n}", "b": "n=${n} id=${id}", "${id}": [null]}),
            json!({"a": 7, "b": "n=7 id=x-1", "x-1": [null]}),
        );
        check(json!("no ${ hole".replace("${ ", "$")), json!("no $hole"));
    }

    #[test]
    fn what_is_long_is_made() {
        check(json!({"$repeat": ["ab", 3]}), json!("ababab"));
        check(json!({"$nested": [3, 1]}), json!([[[1]]]));
        check(json!({"$times": [2, {"id": "${id}-${i}"}]}), json!([{"id": "x-1-0"}, {"id": "x-1-1"}]));
        check(json!({"$repeat": 1, "two": 2}), json!({"$repeat": 1, "two": 2}));
    }

    #[test]
    fn an_unknown_variable_is_an_error() {
        assert!(filled(&json!("${who}"), &Variables::new()).unwrap_err().to_string().contains("`who`"));
        assert!(filled(&json!({"$repeat": [1, 2]}), &Variables::new()).is_err());
    }
}
