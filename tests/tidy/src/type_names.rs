//! Names of types: each once in a crate, and none of the empty nouns.

use std::collections::BTreeMap;

use crate::functions::code_only;
use crate::workspace::{Crate, Source};

/// Nouns that need a subject in front of them to mean something: `QueryAnswer`, not `Answer`.
pub const EMPTY_NOUNS: [&str; 25] = [
    "Answer", "Asked", "Begun", "Came", "Carried", "Data", "Done", "Found", "Given", "Held", "Info", "Item", "Kept",
    "Known", "Made", "Place", "Said", "Seen", "Sent", "Shown", "Sight", "Standing", "Told", "Thing", "Wanted",
];

/// Definition of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Definition {
    name: String,
    /// Line number, from 1.
    line: usize,
}

/// Complaints about types of one name in a crate, and about empty nouns.
pub fn complaints(crates: &[Crate], sources: &[Source]) -> Vec<String> {
    let mut places: BTreeMap<(&str, String), Vec<String>> = BTreeMap::new();
    for source in sources {
        let Some(owner) = Crate::owner(crates, &source.path) else { continue };
        for Definition { name, line } in definitions(&source.text) {
            places.entry((&owner.name, name)).or_default().push(format!("{}:{line}", source.path));
        }
    }
    let mut complaints = Vec::new();
    for ((owner, name), places) in &places {
        if EMPTY_NOUNS.contains(&name.as_str()) {
            complaints.push(format!("{}: `{name}` says nothing alone: name its subject", places.join(", ")));
        } else if places.len() > 1 {
            complaints.push(format!("{owner} has {} types `{name}`: {}", places.len(), places.join(", ")));
        }
    }
    complaints
}

/// Types that a file defines. Associated types, aliases within functions, and names that a macro fills in are none.
fn definitions(text: &str) -> Vec<Definition> {
    let code = code_only(text);
    let mut found = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let indented = line.starts_with(char::is_whitespace);
        let mut words =
            line.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).filter(|word| !word.is_empty());
        let mut keyword = words.next();
        if keyword == Some("pub") {
            keyword = words.next();
            while matches!(keyword, Some("crate" | "super" | "in")) {
                keyword = words.next();
            }
        }
        let is_type = match keyword {
            Some("struct" | "enum" | "trait" | "union") => true,
            Some("type") => !indented,
            _ => false,
        };
        if is_type && let Some(name) = words.next().filter(|name| !name.starts_with('$')) {
            found.push(Definition { name: name.to_owned(), line: number + 1 });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.into(), text: text.into() }
    }

    fn crates() -> Vec<Crate> {
        let member = |folder: &str, name: &str| Crate::sample(folder, &format!("[package]\nname = \"{name}\""));
        vec![member("node", "assay"), member("node/http", "assay-http")]
    }

    #[test]
    fn a_name_that_two_types_of_a_crate_have_is_found() {
        let sources = [
            source("node/src/a.rs", "pub struct Request {\n}\n"),
            source("node/src/b.rs", "// struct Request\npub(crate) enum Request {}\n"),
            source("node/http/src/c.rs", "struct Request;\n"),
        ];
        let found = complaints(&crates(), &sources);
        assert_eq!(found, ["assay has 2 types `Request`: node/src/a.rs:1, node/src/b.rs:2"]);
    }

    #[test]
    fn a_name_that_a_macro_fills_in_is_none() {
        let text = "macro_rules! a {\n    () => { };\n    ($name:ident) => {\n        pub struct $name(u8);\n        pub struct $name;\n    };\n}\n";
        assert!(complaints(&crates(), &[source("node/src/a.rs", text)]).is_empty());
    }

    #[test]
    fn an_empty_noun_is_found_and_an_associated_type_is_none() {
        let sources = [source("node/src/a.rs", "impl Iterator for A {\n    type Item = u8;\n}\ntrait Told {}\n")];
        let found = complaints(&crates(), &sources);
        assert_eq!(found, ["node/src/a.rs:4: `Told` says nothing alone: name its subject"]);
    }
}
