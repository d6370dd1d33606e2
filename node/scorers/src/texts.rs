//! Texts of JSON values, as the two autoevals packages write them.

use std::ops::RangeInclusive;

use serde_json::{Number, Value};

/// Package whose scores are computed. The two differ in a few values only (functions.md 6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutoevalsPackage {
    /// The npm package, which the hosted service runs: what the contract describes.
    TypeScript,
    /// The PyPI package.
    Python,
}

/// Order of the members of objects in a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemberOrder {
    AsGiven,
    Sorted,
}

/// Largest whole number up to which floats have every whole number.
const WHOLE_FLOAT_MAX: u64 = 1 << 53;
/// Decimal exponents that each package writes without scientific notation.
const PLAIN_EXPONENTS_TYPESCRIPT: RangeInclusive<i32> = -6..=20;
const PLAIN_EXPONENTS_PYTHON: RangeInclusive<i32> = -4..=15;

/// Returns a value as text: strings as they are. Others are JSON for TypeScript (F-51), and `str()` for Python.
pub(crate) fn plain_text(value: &Value, package: AutoevalsPackage) -> String {
    match (value, package) {
        (Value::String(text), _) => text.clone(),
        (_, AutoevalsPackage::TypeScript) => json_text(value, MemberOrder::AsGiven, package),
        (_, AutoevalsPackage::Python) => {
            let mut text = String::new();
            write_repr(value, &mut text);
            text
        }
    }
}

/// Returns the length of a text as the package's language counts it: in UTF-16 units, or in characters in Python.
pub(crate) fn text_length(text: &str, package: AutoevalsPackage) -> usize {
    match package {
        AutoevalsPackage::TypeScript => text.encode_utf16().count(),
        AutoevalsPackage::Python => text.chars().count(),
    }
}

/// Returns the compact JSON text of a value.
pub(crate) fn json_text(value: &Value, order: MemberOrder, package: AutoevalsPackage) -> String {
    let mut text = String::new();
    write_json(value, order, package, &mut text);
    text
}

fn write_json(value: &Value, order: MemberOrder, package: AutoevalsPackage, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(truth) => text.push_str(if *truth { "true" } else { "false" }),
        Value::Number(number) => text.push_str(&number_text(number, package)),
        Value::String(string) => write_json_string(string, package, text),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_json(item, order, package, text);
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            if order == MemberOrder::Sorted {
                members.sort_by_key(|(name, _)| *name);
            }
            text.push('{');
            for (index, (name, member)) in members.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_json_string(name, package, text);
                text.push(':');
                write_json(member, order, package, text);
            }
            text.push('}');
        }
    }
}

/// Writes a JSON string. Python escapes whatever is not ASCII.
fn write_json_string(string: &str, package: AutoevalsPackage, text: &mut String) {
    text.push('"');
    for character in string.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            control if control < ' ' => write_units(control, text),
            other if package == AutoevalsPackage::Python && other > '\u{7e}' => write_python_escape(other, text),
            other => text.push(other),
        }
    }
    text.push('"');
}

fn write_python_escape(character: char, text: &mut String) {
    // DEL is ASCII, and json.dumps leaves it as it is
    if character == '\u{7f}' { text.push(character) } else { write_units(character, text) }
}

fn write_units(character: char, text: &mut String) {
    for unit in character.encode_utf16(&mut [0; 2]) {
        text.push_str(&format!("\\u{unit:04x}"));
    }
}

/// Returns a number as the package's language prints it.
fn number_text(number: &Number, package: AutoevalsPackage) -> String {
    let is_exact = match package {
        AutoevalsPackage::Python => number.is_i64() || number.is_u64(),
        AutoevalsPackage::TypeScript => {
            number.as_i64().map(i64::unsigned_abs).or(number.as_u64()).is_some_and(|whole| whole <= WHOLE_FLOAT_MAX)
        }
    };
    if is_exact {
        return number.to_string();
    }
    let float = number.as_f64().expect("a number without arbitrary precision is a float");
    float_text(float, package)
}

/// Returns the shortest digits that read back as this float, in the notation of the package's language.
fn float_text(float: f64, package: AutoevalsPackage) -> String {
    if float == 0.0 {
        return match package {
            AutoevalsPackage::TypeScript => "0".to_owned(),
            AutoevalsPackage::Python => format!("{float:?}"),
        };
    }
    let (negative, digits, exponent) = shortest_digits(float);
    let plain_exponents = match package {
        AutoevalsPackage::TypeScript => PLAIN_EXPONENTS_TYPESCRIPT,
        AutoevalsPackage::Python => PLAIN_EXPONENTS_PYTHON,
    };
    let minus = if negative { "-" } else { "" };
    if plain_exponents.contains(&exponent) {
        let plain = plain_notation(&digits, exponent);
        let is_python_whole = package == AutoevalsPackage::Python && !plain.contains('.');
        return format!("{minus}{plain}{}", if is_python_whole { ".0" } else { "" });
    }
    let (first, rest) = digits.split_at(1);
    let mantissa = if rest.is_empty() { first.to_owned() } else { format!("{first}.{rest}") };
    let sign = if exponent < 0 { '-' } else { '+' };
    match package {
        AutoevalsPackage::TypeScript => format!("{minus}{mantissa}e{sign}{}", exponent.abs()),
        AutoevalsPackage::Python => format!("{minus}{mantissa}e{sign}{:02}", exponent.abs()),
    }
}

/// Returns whether a float is negative, its digits without zeros at either end, and the exponent of the first digit.
///
/// Digits are those of serde_json, as of two equally short texts both languages take the even one, unlike Rust.
fn shortest_digits(float: f64) -> (bool, String, i32) {
    let text = Value::from(float).to_string();
    let (negative, text) = text.strip_prefix('-').map_or((false, text.as_str()), |rest| (true, rest));
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent: i32 = exponent.parse().expect("an exponent is a number");
    let all = format!("{whole}{fraction}");
    let from_first = all.trim_start_matches('0');
    let zeros = (all.len() - from_first.len()) as i32;
    (negative, from_first.trim_end_matches('0').to_owned(), exponent + whole.len() as i32 - 1 - zeros)
}

/// Returns digits whose first has this exponent, without scientific notation.
fn plain_notation(digits: &str, exponent: i32) -> String {
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or_default());
    if exponent < 0 {
        return format!("0.{}{digits}", zeros(-exponent - 1));
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        return format!("{digits}{}", zeros((whole - digits.len()) as i32));
    }
    let (whole, fraction) = digits.split_at(whole);
    format!("{whole}.{fraction}")
}

/// Writes what Python's `repr` writes.
fn write_repr(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("None"),
        Value::Bool(truth) => text.push_str(if *truth { "True" } else { "False" }),
        Value::Number(number) => text.push_str(&number_text(number, AutoevalsPackage::Python)),
        Value::String(string) => write_repr_string(string, text),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                write_repr(item, text);
            }
            text.push(']');
        }
        Value::Object(members) => {
            text.push('{');
            for (index, (name, member)) in members.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                write_repr_string(name, text);
                text.push_str(": ");
                write_repr(member, text);
            }
            text.push('}');
        }
    }
}

fn write_repr_string(string: &str, text: &mut String) {
    let quote = if string.contains('\'') && !string.contains('"') { '"' } else { '\'' };
    text.push(quote);
    for character in string.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            same if same == quote => text.extend(['\\', quote]),
            printed if is_printable(printed) => text.push(printed),
            other => match u32::from(other) {
                code @ ..=0xff => text.push_str(&format!("\\x{code:02x}")),
                code @ ..=0xffff => text.push_str(&format!("\\u{code:04x}")),
                code => text.push_str(&format!("\\U{code:08x}")),
            },
        }
    }
    text.push(quote);
}

/// Returns whether Python calls a character printable. Rust's table has the same Unicode categories.
fn is_printable(character: char) -> bool {
    // the quotes of Rust are escaped for another reason
    if character.is_ascii() {
        return (' '..='~').contains(&character);
    }
    // behind another character, a combining one is escaped only if it is not printable
    let behind = format!("a{character}");
    behind.escape_debug().nth(1) == Some(character)
}

#[cfg(test)]
mod tests {
    use AutoevalsPackage::{Python, TypeScript};
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_printed_as_in_each_language() {
        let cases = [
            ("1", "1", "1"),
            ("1.0", "1", "1.0"),
            ("-0.0", "0", "-0.0"),
            ("1.5", "1.5", "1.5"),
            ("0.0001", "0.0001", "0.0001"),
            ("0.00001", "0.00001", "1e-05"),
            ("0.000001", "0.000001", "1e-06"),
            ("0.00000012", "1.2e-7", "1.2e-07"),
            ("1e15", "1000000000000000", "1000000000000000.0"),
            ("1e16", "10000000000000000", "1e+16"),
            ("1.25e21", "1.25e+21", "1.25e+21"),
            ("-935137303989116.25", "-935137303989116.2", "-935137303989116.2"),
            ("-120.5", "-120.5", "-120.5"),
            ("9007199254740993", "9007199254740992", "9007199254740993"),
        ];
        for (number, typescript, python) in cases {
            let value: Value = serde_json::from_str(number).expect("a number");
            assert_eq!(plain_text(&value, TypeScript), typescript, "{number}");
            assert_eq!(plain_text(&value, Python), python, "{number}");
        }
    }

    #[test]
    fn other_values_are_json_for_typescript_and_repr_for_python() {
        let value = json!({"a'": [null, true, "x\"'\n\u{e9}\u{200b}\u{301}"]});
        assert_eq!(plain_text(&value, TypeScript), "{\"a'\":[null,true,\"x\\\"'\\n\u{e9}\u{200b}\u{301}\"]}");
        assert_eq!(plain_text(&value, Python), "{\"a'\": [None, True, 'x\"\\'\\n\u{e9}\\u200b\u{301}']}");
    }

    #[test]
    fn json_texts_of_python_are_ascii() {
        let value = json!({"b": "\u{1f600}\u{7f}", "a": "\u{e9}\u{1}"});
        assert_eq!(
            json_text(&value, MemberOrder::Sorted, Python),
            "{\"a\":\"\\u00e9\\u0001\",\"b\":\"\\ud83d\\ude00\u{7f}\"}"
        );
        assert_eq!(
            json_text(&value, MemberOrder::AsGiven, TypeScript),
            "{\"b\":\"\u{1f600}\u{7f}\",\"a\":\"\u{e9}\\u0001\"}"
        );
    }
}
