//! Text kernels: patterns, words, case, length and concatenation.

use std::borrow::Cow;
use std::fmt::Write;

use arrow_array::{Array, BooleanArray, Int64Array, StringArray};
use arrow_buffer::BooleanBuffer;
use assay_node_btql::bound::Function;
use assay_node_btql::values::{Pattern, Value, Words};

use super::logic;
use crate::bounds::{COMPILE_WORK, Spent};
use crate::builder::Texts;
use crate::column::Column;
use crate::prepared::{Call, Prepared};
use crate::types::Type;

/// LIKE, MATCH and `~` with a prepared right side.
pub(super) fn matched(call: &Call, of: &Column, pattern: &Column, rows: usize, spent: &Spent<'_>) -> Option<Column> {
    if let (Prepared::Nothing, Function::Regex { any_case }) = (&call.prepared, &call.function) {
        return Some(Column::Bool(by_row(of, pattern, *any_case, rows, spent)));
    }
    if matches!(pattern, Column::Const(Value::Null)) {
        return Some(Column::Bool(logic::every(None, rows)));
    }
    Some(Column::Bool(match &call.prepared {
        Prepared::Like(like) => in_texts(of, |text| like.fits(text, &|work| spent.works(work)))?,
        Prepared::Regex(regex) => in_texts(of, |text| regex.fits(text, &|work| spent.works(work)))?,
        Prepared::Words(words) => in_words(of, words, spent)?,
        _ => return None,
    }))
}

/// Texts of a JSON column: the text itself, or the JSON text of another value (D-59).
fn in_texts(of: &Column, fits: impl Fn(&str) -> bool) -> Option<BooleanArray> {
    match of {
        Column::Text(texts) => Some(each(texts, fits)),
        Column::Json(texts) => {
            let found = |text: Cow<'_, str>| fits(&text);
            Some(texts.iter().map(|text| Value::read(text?).to_text().map(found)).collect())
        }
        _ => None,
    }
}

fn in_words(of: &Column, words: &Words, spent: &Spent<'_>) -> Option<BooleanArray> {
    let goes_on = |work| spent.works(work);
    match of {
        Column::Text(texts) => Some(each(texts, |text| words.found_in(&Value::Text(text.into()), &goes_on))),
        Column::Json(texts) => {
            let found = |text: &str| {
                let value = Value::read(text);
                (!value.is_null()).then(|| spent.works(text.len()) && words.found_in(&value, &goes_on))
            };
            Some(texts.iter().map(|text| found(text?)).collect())
        }
        _ => None,
    }
}

/// Tests each text; `fits` counts its own time.
fn each(texts: &StringArray, fits: impl Fn(&str) -> bool) -> BooleanArray {
    let fits = |row: usize| texts.is_valid(row) && fits(texts.value(row));
    BooleanArray::new(BooleanBuffer::collect_bool(texts.len(), fits), texts.nulls().cloned())
}

/// Matches patterns that differ by row; a repeated pattern is compiled once, an invalid one gives null.
fn by_row(of: &Column, pattern: &Column, any_case: bool, rows: usize, spent: &Spent<'_>) -> BooleanArray {
    let mut last: Option<(String, Option<Pattern>)> = None;
    let found = |row: usize| {
        let (of, pattern) = (of.value(row), pattern.value(row));
        let (of, pattern) = (of.to_text()?, pattern.to_text()?);
        if !spent.works(of.len()) {
            return None;
        }
        if last.as_ref().is_none_or(|(text, _)| *text != pattern) {
            if !spent.works(COMPILE_WORK) {
                return None;
            }
            let regex = Pattern::new(&pattern, any_case).ok();
            last = Some((pattern.into_owned(), regex));
        }
        let (_, regex) = last.as_ref()?;
        Some(regex.as_ref()?.fits(&of, &|work| spent.works(work)))
    };
    (0..rows).map(found).collect()
}

/// LENGTH of texts.
pub(crate) fn lengths(args: &[Column], _: Type, _: usize, _: &Spent<'_>) -> Option<Column> {
    let [Column::Text(texts)] = args else { return None };
    let count = |text: &str| if text.is_ascii() { text.len() } else { text.chars().count() };
    Some(Column::Int(texts.iter().map(|text| i64::try_from(count(text?)).ok()).collect::<Int64Array>()))
}

/// LOWER of texts.
pub(crate) fn lowered(args: &[Column], _: Type, _: usize, spent: &Spent<'_>) -> Option<Column> {
    of_each(args, spent, lower)
}

/// UPPER of texts.
pub(crate) fn uppered(args: &[Column], _: Type, _: usize, spent: &Spent<'_>) -> Option<Column> {
    of_each(args, spent, |text, to| to.push_str(&text.to_uppercase()))
}

fn lower(text: &str, to: &mut String) {
    if text.is_ascii() {
        to.push_str(text);
        to.make_ascii_lowercase();
    } else {
        to.push_str(&text.to_lowercase());
    }
}

fn of_each(args: &[Column], spent: &Spent<'_>, put: impl Fn(&str, &mut String)) -> Option<Column> {
    let [Column::Text(texts)] = args else { return None };
    if !spent.take(texts.values().len()) {
        return None;
    }
    let mut to = Texts::with_capacity(texts.len(), texts.values().len());
    let mut text = String::new();
    for of in texts {
        text.clear();
        let of = of.map(|of| put(of, &mut text));
        to.push(of.map(|()| text.as_str()))?;
    }
    Some(Column::Text(to.finish()))
}

/// Concatenates texts, whole numbers, keys and transactions.
pub(super) fn concat(args: &[Column], skips_nulls: bool, rows: usize, spent: &Spent<'_>) -> Option<Column> {
    let is_plain = |arg: &Column| {
        matches!(arg, Column::Text(_) | Column::Int(_) | Column::Const(_) | Column::Xact(_) | Column::Key(_))
    };
    if !args.iter().all(is_plain) {
        return None;
    }
    let mut to = Texts::default();
    let mut text = String::new();
    for row in 0..rows {
        if !skips_nulls && args.iter().any(|arg| !arg.is_valid(row)) {
            to.push(None)?;
            continue;
        }
        text.clear();
        for arg in args.iter().filter(|arg| arg.is_valid(row)) {
            put(arg, row, &mut text)?;
        }
        if !spent.take(text.len()) {
            return None;
        }
        to.push(Some(&text))?;
    }
    Some(Column::Text(to.finish()))
}

fn put(of: &Column, row: usize, to: &mut String) -> Option<()> {
    match of {
        Column::Text(texts) => to.push_str(texts.value(row)),
        Column::Int(ints) => write!(to, "{}", ints.value(row)).ok()?,
        _ => to.push_str(&of.value(row).to_text()?),
    }
    Some(())
}
