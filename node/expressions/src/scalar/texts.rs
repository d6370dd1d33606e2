//! Text functions (btql.md, section 11.2) and pattern matching.

use assay_node_btql::bound::Function;
use assay_node_btql::values::{Like, Pattern, Value, Words};

use super::levenshtein::levenshtein;
use super::numbers::truncated;
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
    if let F::Left | F::Right = call.function {
        let Some(many) = truncated(right) else { return Value::Null };
        let part = if call.function == F::Left { self::left(&text, many) } else { self::right(&text, many) };
        return Value::Text(part.to_owned().into());
    }
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
        F::StartsWith => Value::Boolean(text.starts_with(&*other)),
        F::EndsWith => Value::Boolean(text.ends_with(&*other)),
        F::Levenshtein => levenshtein(&text, &other, spent).map_or(Value::Null, |edits| Value::whole(edits as i128)),
        F::Similarity => similarity(&text, &other, spent).map_or(Value::Null, Value::float),
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

pub(super) fn of_three(function: &Function, args: &[Value<'_>], spent: &Spent<'_>) -> Value<'static> {
    let text = |number: usize| args.get(number).and_then(Value::to_text);
    let whole = |number: usize| args.get(number).and_then(truncated);
    let made = match function {
        Function::Replace => (|| {
            let (text, from, to) = (text(0)?, text(1)?, text(2)?);
            replace(&text, &from, &to, spent)
        })(),
        Function::SplitPart => (|| split_part(&text(0)?, &text(1)?, whole(2)?))(),
        _ if args.len() == 3 => (|| substring(&text(0)?, whole(1)?, Some(whole(2)?)))(),
        _ => (|| substring(&text(0)?, whole(1)?, None))(),
    };
    made.map_or(Value::Null, |text| Value::Text(text.into()))
}

/// REPLACE. The result may be as long as the product of two texts, so its size is counted first.
fn replace(text: &str, from: &str, to: &str, spent: &Spent<'_>) -> Option<String> {
    if from.is_empty() {
        return Some(text.to_owned());
    }
    let longer = to.len().saturating_sub(from.len());
    let more = if longer == 0 { 0 } else { text.matches(from).count().saturating_mul(longer) };
    spent.take(text.len().saturating_add(more)).then(|| text.replace(from, to))
}

/// SUBSTRING: characters from a position counted from one, up to a length or the end.
fn substring(text: &str, start: i128, many: Option<i128>) -> Option<String> {
    if many.is_some_and(|many| many < 0) {
        return None;
    }
    let end = many.map(|many| start + many);
    let is_within = |place: i128| place >= start && end.is_none_or(|end| place < end);
    Some(text.chars().zip(1..).filter(|(_, place)| is_within(*place)).map(|(char, _)| char).collect())
}

/// LEFT: the first characters; with a negative count, all but the last ones.
fn left(text: &str, many: i128) -> &str {
    let many = if many < 0 { text.chars().count() as i128 + many } else { many };
    &text[..place(text, many)]
}

/// RIGHT: the last characters; with a negative count, all but the first ones.
fn right(text: &str, many: i128) -> &str {
    let before = if many < 0 { -many } else { text.chars().count() as i128 - many };
    &text[place(text, before)..]
}

/// Byte offset of the character at an index.
fn place(text: &str, before: i128) -> usize {
    let before = usize::try_from(before.max(0)).unwrap_or(usize::MAX);
    text.char_indices().nth(before).map_or(text.len(), |(place, _)| place)
}

/// SPLIT_PART: the part between separators, counted from one, or from the end if negative.
fn split_part(text: &str, separator: &str, number: i128) -> Option<String> {
    let parts: Vec<&str> = if separator.is_empty() { vec![text] } else { text.split(separator).collect() };
    let place = match number {
        0 => return None,
        1.. => number - 1,
        _ => parts.len() as i128 + number,
    };
    let part = usize::try_from(place).ok().and_then(|place| parts.get(place));
    Some(part.map_or_else(String::new, |part| (*part).to_owned()))
}

/// Similarity of two texts: 1 for equal texts, 0 for texts with nothing in common.
fn similarity(left: &str, right: &str, spent: &Spent<'_>) -> Option<f64> {
    let longest = left.chars().count().max(right.chars().count());
    let edits = levenshtein(left, right, spent)?;
    Some(if longest == 0 { 1.0 } else { 1.0 - edits as f64 / longest as f64 })
}
