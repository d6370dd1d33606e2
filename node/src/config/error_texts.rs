//! Error texts about invalid settings, without the type names of the program.

use strsim::levenshtein;
use toml::Value;

/// Type names in errors of the parser, and their replacements.
const TYPES: [(&str, &str); 12] = [
    ("expected usize", "expected a whole number, 0 or more"),
    ("expected u64", "expected a whole number, 0 or more"),
    ("expected u32", "expected a whole number from 0 to 4294967295"),
    ("expected u16", "expected a whole number from 0 to 65535"),
    ("expected u8", "expected a whole number from 0 to 255"),
    ("expected f64", "expected a number"),
    ("expected a boolean", "expected true or false"),
    ("expected a string", "expected text"),
    ("expected path string", "expected a path"),
    ("expected a sequence", "expected a list"),
    ("expected a map", "expected a table"),
    ("expected struct ", "expected a table of "),
];

/// An error of the parser in plain words.
pub fn in_plain_words(said: &str) -> String {
    let said = said.lines().next().unwrap_or_default();
    TYPES.iter().fold(said.to_owned(), |said, (name, plain)| said.replace(name, plain))
}

/// Returns the name of the type of a value.
pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "text",
        Value::Integer(_) => "a whole number",
        Value::Float(_) => "a number",
        Value::Boolean(_) => "true or false",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "a list",
        Value::Table(_) => "a table",
    }
}

/// "there is no setting x; did you mean y?"
pub fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let nearest = known.map(|candidate| (levenshtein(name, candidate), candidate)).min();
    match nearest {
        Some((distance, nearest)) if distance <= name.len() / 2 => {
            format!("there is no setting `{name}`; did you mean `{nearest}`? `assay config` prints all of them")
        }
        _ => format!("there is no setting `{name}`; `assay config` prints all of them"),
    }
}
