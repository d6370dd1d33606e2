//! Entries of functions of texts (btql.md, section 11.2). They take the text of any value: for JSON the compact text
//! (D-59).

use assay_node_btql::bound::TextFunction;
use assay_node_btql::values::{Extractor, Value};

use super::levenshtein::levenshtein;
use super::{Evaluate, FunctionEntry, PreparedCall};
use crate::bounds::{COMPILE_WORK, Spent};
use crate::kernels;
use crate::result_types::{boolean, count, float, text};
use crate::scalar::truncated;

pub(super) fn entry(of: TextFunction) -> FunctionEntry {
    use TextFunction as F;
    match of {
        F::Lower => FunctionEntry::new(text, Evaluate::One(|of| changed(of, str::to_lowercase)))
            .with_kernel(kernels::texts::lowered),
        F::Upper => FunctionEntry::new(text, Evaluate::One(|of| changed(of, str::to_uppercase)))
            .with_kernel(kernels::texts::uppered),
        F::Length => FunctionEntry::new(count, Evaluate::One(length)).with_kernel(kernels::texts::lengths),
        F::Substring => FunctionEntry::new(text, Evaluate::All(|_, args, _| or_null(substring(args)))),
        F::Trim => FunctionEntry::new(text, Evaluate::One(|of| changed(of, |text| text.trim().to_owned()))),
        F::Replace => {
            FunctionEntry::new(text, Evaluate::All(|_, args, spent| or_null(replace(args, spent)))).that_takes_memory()
        }
        F::SplitPart => FunctionEntry::new(text, Evaluate::All(|_, args, _| or_null(split_part(args)))),
        F::StartsWith => FunctionEntry::new(
            boolean,
            Evaluate::All(|_, args, spent| of_two(args, spent, |text, start| Value::Boolean(text.starts_with(start)))),
        ),
        F::EndsWith => FunctionEntry::new(
            boolean,
            Evaluate::All(|_, args, spent| of_two(args, spent, |text, end| Value::Boolean(text.ends_with(end)))),
        ),
        F::Left => FunctionEntry::new(text, Evaluate::All(|_, args, spent| part(args, spent, left))),
        F::Right => FunctionEntry::new(text, Evaluate::All(|_, args, spent| part(args, spent, right))),
        F::Levenshtein => FunctionEntry::new(
            count,
            Evaluate::All(|_, args, spent| {
                let edits = |one: &str, other: &str| levenshtein(one, other, spent);
                of_two(args, spent, |one, other| {
                    edits(one, other).map_or(Value::Null, |edits| Value::whole(edits as i128))
                })
            }),
        ),
        F::Similarity => FunctionEntry::new(
            float,
            Evaluate::All(|_, args, spent| {
                of_two(args, spent, |one, other| similarity(one, other, spent).map_or(Value::Null, Value::float))
            }),
        ),
        F::RegexpExtract => {
            FunctionEntry::new(text, Evaluate::All(|_, args, spent| or_null(regexp_extract(args, spent))))
                .with_preparation(prepared_regexp)
        }
    }
}

fn or_null(text: Option<String>) -> Value<'static> {
    text.map_or(Value::Null, |text| Value::Text(text.into()))
}

fn changed(of: &Value<'_>, change: impl Fn(&str) -> String) -> Value<'static> {
    or_null(of.to_text().map(|text| change(&text)))
}

/// Evaluates a function of two texts; the first one counts as read.
fn of_two(args: &[Value<'_>], spent: &Spent<'_>, of: impl Fn(&str, &str) -> Value<'static>) -> Value<'static> {
    let [left, right] = args else { return Value::Null };
    let Some(left) = left.to_text() else { return Value::Null };
    spent.works(left.len());
    right.to_text().map_or(Value::Null, |right| of(&left, &right))
}

/// LENGTH (D-69).
fn length(of: &Value<'_>) -> Value<'static> {
    let length = match &*of.opened() {
        Value::List(of) => of.len(),
        Value::Members(of) => of.len(),
        text @ (Value::Text(_) | Value::Time(_) | Value::Stored(_) | Value::Xact(_)) => {
            text.to_text().map_or(0, |text| text.chars().count())
        }
        _ => return Value::Null,
    };
    Value::whole(length as i128)
}

/// REPLACE. The result may be as long as the product of two texts, so its size is counted first.
fn replace(args: &[Value<'_>], spent: &Spent<'_>) -> Option<String> {
    let [text, from, to] = args else { return None };
    let (text, from, to) = (text.to_text()?, from.to_text()?, to.to_text()?);
    if from.is_empty() {
        return Some(text.into_owned());
    }
    let longer = to.len().saturating_sub(from.len());
    let more = if longer == 0 { 0 } else { text.matches(&*from).count().saturating_mul(longer) };
    spent.take(text.len().saturating_add(more)).then(|| text.replace(&*from, &to))
}

/// SUBSTRING: characters from a position counted from one, up to a length or the end.
fn substring(args: &[Value<'_>]) -> Option<String> {
    let (text, start) = (args.first()?.to_text()?, truncated(args.get(1)?)?);
    let many =
        args.get(2).map(|many| truncated(many).filter(|many| *many >= 0)).map_or(Some(None), |many| many.map(Some))?;
    let end = many.map(|many| start + many);
    let is_within = |place: i128| place >= start && end.is_none_or(|end| place < end);
    Some(text.chars().zip(1..).filter(|(_, place)| is_within(*place)).map(|(char, _)| char).collect())
}

/// Evaluates a function that cuts a text at a number of characters.
fn part(args: &[Value<'_>], spent: &Spent<'_>, cut: fn(&str, i128) -> &str) -> Value<'static> {
    let [text, many] = args else { return Value::Null };
    let Some(text) = text.to_text() else { return Value::Null };
    spent.works(text.len());
    or_null(truncated(many).map(|many| cut(&text, many).to_owned()))
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
fn split_part(args: &[Value<'_>]) -> Option<String> {
    let [text, separator, number] = args else { return None };
    let (text, separator, number) = (text.to_text()?, separator.to_text()?, truncated(number)?);
    let parts: Vec<&str> = if separator.is_empty() { vec![&*text] } else { text.split(&*separator).collect() };
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

/// REGEXP_EXTRACT with a pattern of the row, which is compiled for it; none of what is no pattern.
fn regexp_extract(args: &[Value<'_>], spent: &Spent<'_>) -> Option<String> {
    let pattern = args.get(1)?.to_text()?;
    if !spent.works(COMPILE_WORK) {
        return None;
    }
    extracted(args, &Extractor::new(&pattern).ok()?, spent)
}

/// Prepares a constant pattern.
fn prepared_regexp(constants: &[Option<&Value<'_>>]) -> Option<PreparedCall> {
    let pattern = (*constants.get(1)?)?.to_text()?;
    let extractor = Extractor::new(&pattern).ok()?;
    Some(PreparedCall(Box::new(move |args, spent| or_null(extracted(args, &extractor, spent)))))
}

fn extracted(args: &[Value<'_>], extractor: &Extractor, spent: &Spent<'_>) -> Option<String> {
    let text = args.first()?.to_text()?;
    let group = args.get(2).map_or(Some(0), truncated)?;
    spent.works(text.len());
    extractor.find(&text, usize::try_from(group).ok()?, &|work| spent.works(work)).map(str::to_owned)
}
