//! Concatenation and pattern matching.

use assay_node_btql::bound::Function;
use assay_node_btql::values::{Like, Pattern, Value, Words};

use crate::bounds::{COMPILE_WORK, Spent};
use crate::prepared::{Call, Prepared};

pub(super) fn concat(args: &[Value<'_>], skips_nulls: bool, spent: &Spent<'_>) -> Value<'static> {
    if !skips_nulls && args.iter().any(Value::is_null) {
        return Value::Null;
    }
    let mut text = String::new();
    for part in args.iter().filter_map(Value::to_text) {
        if !spent.take(part.len()) {
            return Value::Null;
        }
        text.push_str(&part);
    }
    Value::Text(text.into())
}

pub(super) fn of_two(call: &Call, left: &Value<'_>, right: &Value<'_>, spent: &Spent<'_>) -> Value<'static> {
    use Function as F;
    if call.function == F::Match {
        return matched(call, left, right, spent);
    }
    let Some(text) = left.to_text() else { return Value::Null };
    spent.works(text.len());
    let Some(other) = right.to_text() else { return Value::Null };
    match &call.function {
        F::Like { any_case } => match &call.prepared {
            Prepared::Like(like) => Value::Boolean(like.fits(&text, &|work| spent.works(work))),
            _ => {
                spent.works(other.len());
                let like = Like::new(&other, *any_case);
                like.map_or(Value::Null, |like| Value::Boolean(like.fits(&text, &|work| spent.works(work))))
            }
        },
        F::Regex { any_case } => match &call.prepared {
            Prepared::Regex(regex) => Value::Boolean(regex.fits(&text, &|work| spent.works(work))),
            _ if !spent.works(COMPILE_WORK) => Value::Null,
            _ => {
                let regex = Pattern::new(&other, *any_case);
                regex.map_or(Value::Null, |regex| Value::Boolean(regex.fits(&text, &|work| spent.works(work))))
            }
        },
        _ => Value::Null,
    }
}

/// MATCH (D-61): whether every searched word is found; null if either side is.
fn matched(call: &Call, left: &Value<'_>, right: &Value<'_>, spent: &Spent<'_>) -> Value<'static> {
    if left.is_null() || right.is_null() {
        return Value::Null;
    }
    let goes_on = |work| spent.works(work);
    Value::Boolean(match &call.prepared {
        Prepared::Words(words) => words.found_in(left, &goes_on),
        _ => Words::of(right).found_in(left, &goes_on),
    })
}
