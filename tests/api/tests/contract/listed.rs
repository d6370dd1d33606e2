//! Lists of known differences with their reasons. An unlisted difference is an error, and so is a listed one that does
//! not exist.

use std::path::PathBuf;

use assay_test_api::schema::Document;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub fn read<T: DeserializeOwned>(name: &str) -> T {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where this crate is");
    let path = PathBuf::from(folder).join("contract").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub fn contract() -> Document {
    Document::new(read::<Value>("openapi.json"))
}

/// Pattern of lines, in which `*` stands for anything, with the reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    pub what: String,
    pub why: String,
}

/// Returns unlisted differences, and listed ones that do not exist.
pub fn complaints(file: &str, found: &[String]) -> Vec<String> {
    let listed: Vec<Listed> = read(file);
    let unlisted = found.iter().filter(|line| !listed.iter().any(|one| matches(&one.what, line)));
    let mut complaints: Vec<String> =
        unlisted.map(|line| format!("{line} (contract/{file} does not list it)")).collect();
    for one in &listed {
        if one.why.is_empty() {
            complaints.push(format!("contract/{file}: `{}` has no reason", one.what));
        }
        if !found.iter().any(|line| matches(&one.what, line)) {
            complaints.push(format!("contract/{file}: `{}` is not so any more: take it out", one.what));
        }
    }
    complaints
}

/// Returns whether the line matches the pattern, in which `*` stands for anything.
pub fn matches(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[test]
fn a_star_stands_for_anything() {
    for (pattern, line, is) in [
        ("a", "a", true),
        ("a", "ab", false),
        ("a*", "abc", true),
        ("*c", "abc", true),
        ("a*c", "abc", true),
        ("a*b*c", "a1b2c", true),
        ("a*b*c", "a1c", false),
        ("*", "", true),
        ("ab*bc", "abc", false),
    ] {
        assert_eq!(matches(pattern, line), is, "{pattern} {line}");
    }
}
