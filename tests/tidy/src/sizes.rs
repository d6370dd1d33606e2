//! Size limits of files and functions. Longer ones are in `ratchet.txt` with their length, which may only shrink.

use std::collections::BTreeMap;

use crate::functions::functions;
use crate::workspace::Source;

pub const FILE_LINES_MAX: usize = 600;
pub const FUNCTION_LINES_MAX: usize = 70;

/// Returns what is too long: by `path` for a file, by `path::name` for a function; the longest one if a name occurs
/// twice.
pub fn too_long(sources: &[Source]) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for source in sources {
        let lines = source.text.lines().count();
        if lines > FILE_LINES_MAX {
            found.insert(source.path.clone(), lines);
        }
        for function in functions(&source.text).into_iter().filter(|function| function.lines > FUNCTION_LINES_MAX) {
            let longest = found.entry(format!("{}::{}", source.path, function.name)).or_default();
            *longest = function.lines.max(*longest);
        }
    }
    found
}

/// `name lines` a line; `#` begins a remark.
pub fn parse_ratchet(text: &str) -> Result<BTreeMap<String, usize>, String> {
    let mut known = BTreeMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (name, lines) = line.split_once(' ').ok_or_else(|| format!("ratchet.txt: `{line}` has no length"))?;
        let lines = lines.trim().parse().map_err(|_| format!("ratchet.txt: `{line}` has no length"))?;
        known.insert(name.to_owned(), lines);
    }
    Ok(known)
}

/// Returns what grew beyond its limit or its entry, and entries that are no longer needed or too generous.
pub fn complaints(found: &BTreeMap<String, usize>, known: &BTreeMap<String, usize>) -> Vec<String> {
    let mut complaints = Vec::new();
    for (name, lines) in found {
        let max = if name.contains("::") { FUNCTION_LINES_MAX } else { FILE_LINES_MAX };
        match known.get(name) {
            None => complaints.push(format!("{name} has {lines} lines, at most {max} are read with ease: split it")),
            Some(known) if lines > known => complaints.push(format!("{name} grew from {known} to {lines} lines")),
            Some(known) if lines < known => {
                complaints.push(format!("{name} shrank to {lines} lines: say so in tests/tidy/ratchet.txt"));
            }
            Some(_) => {}
        }
    }
    let gone = known.keys().filter(|name| !found.contains_key(*name));
    complaints.extend(gone.map(|name| format!("{name} is within its limit: take it out of tests/tidy/ratchet.txt")));
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, ratchet: &str, expected: &[&str]) {
        let sources = [Source { path: "a.rs".into(), text: text.into() }];
        assert_eq!(complaints(&too_long(&sources), &parse_ratchet(ratchet).expect("parses")), expected);
    }

    fn function(lines: usize) -> String {
        format!("fn f() {{\n{}}}\n", "    x();\n".repeat(lines - 2))
    }

    #[test]
    fn what_is_too_long_is_named_at_the_first_line_too_many() {
        check(&function(70), "", &[]);
        check(&function(71), "", &["a.rs::f has 71 lines, at most 70 are read with ease: split it"]);
        check(&"x\n".repeat(600), "", &[]);
        check(&"x\n".repeat(601), "", &["a.rs has 601 lines, at most 600 are read with ease: split it"]);
    }

    #[test]
    fn what_is_known_may_stay_and_shrink_but_not_grow() {
        check(&function(80), "# why\na.rs::f 80\n", &[]);
        check(&function(81), "a.rs::f 80", &["a.rs::f grew from 80 to 81 lines"]);
        check(&function(75), "a.rs::f 80", &["a.rs::f shrank to 75 lines: say so in tests/tidy/ratchet.txt"]);
        check(&function(9), "a.rs::f 80", &["a.rs::f is within its limit: take it out of tests/tidy/ratchet.txt"]);
    }

    #[test]
    fn an_entry_without_a_length_is_refused() {
        assert!(parse_ratchet("a.rs").is_err() && parse_ratchet("a.rs many").is_err());
    }
}
