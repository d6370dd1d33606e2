//! Required beginning of every Rust file, and forbidden contents.

use crate::functions::code_only;
use crate::workspace::Source;

/// Forbidden texts in code, not in comments; each with its reason.
const FORBIDDEN: &[(&str, &str)] = &[
    ("todo!", "a stub that compiles is a promise nobody keeps"),
    ("unimplemented!", "a stub that compiles is a promise nobody keeps"),
    ("dbg!", "use tracing"),
    (".do_send(", "it drops the message when the mailbox is full"),
];

/// This folder's samples contain what is forbidden, in texts; its code may not either.
pub fn complaints(sources: &[Source]) -> Vec<String> {
    sources.iter().flat_map(of_source).collect()
}

fn of_source(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    let opening = source.text.lines().next().unwrap_or_default();
    if opening.strip_prefix("//! ").is_none_or(|said| said.trim().is_empty()) {
        found.push(format!("{}: begins without a `//!` line that says what it is", source.path));
    }
    let code = code_only(&source.text);
    for (number, line) in code.lines().enumerate() {
        for (word, why) in FORBIDDEN.iter().filter(|(word, _)| line.contains(word)) {
            found.push(format!("{}:{}: `{word}`: {why}", source.path, number + 1));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let found = complaints(&[Source { path: "a.rs".into(), text: text.into() }]);
        assert!(
            found.len() == expected.len() && found.iter().zip(expected).all(|(f, e)| f.starts_with(e)),
            "{found:?}"
        );
    }

    #[test]
    fn a_file_that_does_not_say_what_it_is_is_named() {
        check("//! What it is.\n", &[]);
        check("use std::fs;\n", &["a.rs: begins without"]);
        check("//!\n//! Late.\n", &["a.rs: begins without"]);
        check("", &["a.rs: begins without"]);
    }

    #[test]
    fn forbidden_words_are_named_with_their_line_but_not_in_remarks_and_texts() {
        check("//! X.\nfn f() {\n    todo!()\n}\n", &["a.rs:3: `todo!`"]);
        check("//! X.\nfn f() { addr.do_send(m); dbg!(1); unimplemented!() }\n", &["a.rs:2", "a.rs:2", "a.rs:2"]);
        check("//! X.\n// no todo! here\nconst A: &str = \"dbg!\";\n", &[]);
    }
}
