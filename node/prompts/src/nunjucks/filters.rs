//! Filters of nunjucks templates. Those that take texts take any value, as in JavaScript, and bound what they make.

use minijinja::value::Value as TemplateValue;
use minijinja::{Environment, Error, ErrorKind, State};

use super::values::{json_text_of, text_of};
use crate::template::RENDERED_BYTES_MAX;
use crate::text::prefix;

/// Filters of the engine that nunjucks lacks and that could multiply values, and those that are replaced below.
const REMOVED_FILTERS: [&str; 10] =
    ["attr", "batch", "chain", "format", "lines", "map", "pprint", "slice", "title", "zip"];
/// Functions of the engine that nunjucks lacks.
const REMOVED_FUNCTIONS: [&str; 3] = ["debug", "dict", "namespace"];
/// Bytes of a text that are worth one unit of fuel, as the engine has it.
const BYTES_PER_FUEL: usize = 64;
/// Characters that `truncate` keeps.
const TRUNCATED_CHARS: usize = 255;

pub(super) fn install(environment: &mut Environment<'static>) {
    REMOVED_FILTERS.iter().for_each(|name| environment.remove_filter(name));
    REMOVED_FUNCTIONS.iter().for_each(|name| environment.remove_global(name));
    environment.add_filter("upper", |state: &State, value: &TemplateValue| Ok(text(state, value)?.to_uppercase()));
    environment.add_filter("lower", |state: &State, value: &TemplateValue| Ok(text(state, value)?.to_lowercase()));
    environment.add_filter("capitalize", |state: &State, value: &TemplateValue| Ok(capitalized(&text(state, value)?)));
    environment.add_filter("title", |state: &State, value: &TemplateValue| {
        Ok(text(state, value)?.split(' ').map(capitalized).collect::<Vec<_>>().join(" "))
    });
    environment.add_filter("trim", |state: &State, value: &TemplateValue| Ok(text(state, value)?.trim().to_owned()));
    environment.add_filter("string", text);
    environment.add_filter("safe", |value: &TemplateValue| value.clone());
    for name in ["escape", "e"] {
        environment.add_filter(name, |state: &State, value: &TemplateValue| escaped(&text(state, value)?));
    }
    for name in ["dump", "tojson"] {
        environment.add_filter(name, |state: &State, value: &TemplateValue, blanks: Option<usize>| {
            charged(state, json_text_of(value, blanks)?)
        });
    }
    environment.add_filter("wordcount", |state: &State, value: &TemplateValue| {
        Ok::<usize, Error>(text(state, value)?.split_whitespace().count())
    });
    environment.add_filter("split", |state: &State, value: &TemplateValue, separator: Option<&str>| {
        split(&text(state, value)?, separator)
    });
    environment.add_filter("join", join);
    environment.add_filter("replace", replace);
    environment.add_filter("indent", indent);
    environment.add_filter("truncate", truncate);
}

/// Returns the text of a value, and charges for it.
fn text(state: &State, value: &TemplateValue) -> Result<String, Error> {
    charged(state, text_of(value)?)
}

fn charged(state: &State, text: String) -> Result<String, Error> {
    state.consume_fuel((text.len() / BYTES_PER_FUEL) as u64)?;
    Ok(text)
}

fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(characters.as_str().to_lowercase().chars()).collect()
}

fn escaped(text: &str) -> Result<String, Error> {
    let mut escaped = text.to_owned();
    for (sign, entity) in [("&", "&amp;"), ("\"", "&quot;"), ("'", "&#39;"), ("<", "&lt;"), (">", "&gt;")] {
        escaped = replaced(&escaped, sign, entity, usize::MAX)?;
    }
    Ok(escaped)
}

fn split(text: &str, separator: Option<&str>) -> Result<Vec<String>, Error> {
    Ok(match separator.filter(|separator| !separator.is_empty()) {
        Some(separator) => text.split(separator).map(str::to_owned).collect(),
        None => text.split_whitespace().map(str::to_owned).collect(),
    })
}

/// Joins the items of a list, or the member of this name of each.
fn join(
    state: &State,
    list: &TemplateValue,
    separator: Option<&TemplateValue>,
    member: Option<&TemplateValue>,
) -> Result<String, Error> {
    let separator = separator.map_or(Ok(String::new()), text_of)?;
    let mut joined = String::new();
    for (index, item) in list.try_iter()?.enumerate() {
        let item = match member {
            Some(member) => item.get_item(member)?,
            None => item,
        };
        if index > 0 {
            joined.push_str(&separator);
        }
        joined.push_str(&text(state, &item)?);
        state.consume_fuel(1 + (separator.len() / BYTES_PER_FUEL) as u64)?;
        check_length(joined.len())?;
    }
    Ok(joined)
}

fn replace(
    state: &State,
    value: &TemplateValue,
    from: &TemplateValue,
    to: &TemplateValue,
    count: Option<usize>,
) -> Result<String, Error> {
    replaced(&text(state, value)?, &text(state, from)?, &text(state, to)?, count.unwrap_or(usize::MAX))
}

fn replaced(text: &str, from: &str, to: &str, count: usize) -> Result<String, Error> {
    let found = match from.is_empty() {
        true => text.chars().count() + 1,
        false => text.matches(from).count(),
    };
    check_length(found.min(count).saturating_mul(to.len()).saturating_add(text.len()))?;
    Ok(text.replacen(from, to, count))
}

/// Indents all lines but the first, and the first one too if asked.
fn indent(state: &State, value: &TemplateValue, width: Option<usize>, first: Option<bool>) -> Result<String, Error> {
    let (text, width) = (text(state, value)?, width.unwrap_or(4));
    let lines = text.matches('\n').count() + 1;
    check_length(lines.saturating_mul(width).saturating_add(text.len()))?;
    let blanks = " ".repeat(width);
    let indented = text.split('\n').enumerate().map(|(index, line)| match index > 0 || first == Some(true) {
        true => format!("{blanks}{line}"),
        false => line.to_owned(),
    });
    Ok(indented.collect::<Vec<_>>().join("\n"))
}

/// Cuts a text at the end of a word, or anywhere if `is_hard`.
fn truncate(
    state: &State,
    value: &TemplateValue,
    length: Option<usize>,
    is_hard: Option<bool>,
    end: Option<&str>,
) -> Result<String, Error> {
    let (text, length) = (text(state, value)?, length.unwrap_or(TRUNCATED_CHARS));
    let kept = prefix(&text, length);
    if kept.len() == text.len() {
        return Ok(text);
    }
    let word_end = kept.rfind(' ').filter(|_| is_hard != Some(true)).unwrap_or(kept.len());
    Ok(format!("{}{}", &kept[..word_end], end.unwrap_or("...")))
}

fn check_length(bytes: usize) -> Result<(), Error> {
    match bytes > RENDERED_BYTES_MAX {
        true => Err(Error::new(ErrorKind::InvalidOperation, "the filter makes a text that is too long")),
        false => Ok(()),
    }
}
