//! Patterns of a project: compiled within bounds, and searched for in time that is linear in the text.
//!
//! A search that looks for all matches may begin anew at each of them and read to the end of the text each time. So a
//! search sees a window only. Windows overlap, and one grows while a match ends at its end.

use std::ops::Range;

use regex_automata::Input;
use regex_automata::meta::{self, Regex};
use regex_automata::util::syntax;

/// Bytes that a compiled pattern may take.
pub const COMPILED_BYTES_MAX: usize = 64 << 10;
/// Longest match that is certain to be found. A longer one is found if a beginning of it matches too.
pub const SURE_MATCH_BYTES_MAX: usize = WINDOW_BYTES / 2;
/// Matches of one pattern in one text. Behind the last of them the rest of the text counts as one match more.
pub const MATCHES_MAX: usize = 10_000;
/// Bytes that a search sees at once.
const WINDOW_BYTES: usize = 4 << 10;
/// Bytes of the automaton that is built while searching.
const AUTOMATON_BYTES_MAX: usize = 256 << 10;

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct RulePattern {
    regex: Regex,
}

impl RulePattern {
    /// Compiles a pattern. The error says what is wrong with it.
    pub(crate) fn new(text: &str, case_insensitive: bool) -> Result<RulePattern, String> {
        let config = meta::Config::new()
            .nfa_size_limit(Some(COMPILED_BYTES_MAX))
            .onepass_size_limit(Some(COMPILED_BYTES_MAX))
            .hybrid_cache_capacity(AUTOMATON_BYTES_MAX);
        let syntax = syntax::Config::new().case_insensitive(case_insensitive);
        let regex = Regex::builder().configure(config).syntax(syntax).build(text).map_err(|error| {
            if error.size_limit().is_some() {
                return format!(
                    "it takes more than {COMPILED_BYTES_MAX} bytes compiled: use smaller repetitions, and ASCII classes such \
                     as [0-9a-z] in place of \\w"
                );
            }
            // The library draws the pattern and a caret; the last line says what is wrong.
            let drawn = error.syntax_error().map_or_else(|| error.to_string(), ToString::to_string);
            let why = drawn.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!("it is no valid pattern: {why}")
        })?;
        let pattern = RulePattern { regex };
        if pattern.regex.is_match("") {
            return Err("it matches the empty text, so it would be found everywhere".to_owned());
        }
        Ok(pattern)
    }

    /// Returns the next match at or behind a position.
    pub(crate) fn find(&self, text: &str, from: usize) -> Option<Range<usize>> {
        let mut start = from;
        while start < text.len() {
            let end = boundary(text, start + WINDOW_BYTES);
            match self.find_within(text, start..end) {
                Some(found) => return Some(self.whole(text, found, end)),
                None if end == text.len() => return None,
                None => start = boundary(text, end - SURE_MATCH_BYTES_MAX),
            }
        }
        None
    }

    /// Takes more of the text into a match that ends where its window does. Each window is as long as the match before
    /// it, so that the work is that of reading the match a few times.
    fn whole(&self, text: &str, found: Range<usize>, window_end: usize) -> Range<usize> {
        let (mut found, mut window_end) = (found, window_end);
        while found.end == window_end && window_end < text.len() {
            window_end = boundary(text, window_end + found.len().max(WINDOW_BYTES));
            found = self.find_within(text, found.start..window_end).unwrap_or(found);
        }
        found
    }

    /// Returns a match that is not empty. What is around the range counts for `\b` and its kin.
    fn find_within(&self, text: &str, range: Range<usize>) -> Option<Range<usize>> {
        let mut start = range.start;
        // An empty match is possible between words. Each costs a search, which ends at once there.
        while start <= range.end {
            let found = self.regex.find(Input::new(text).range(start..range.end))?.range();
            if !found.is_empty() {
                return Some(found);
            }
            start = boundary(text, found.end + 1);
        }
        None
    }
}

/// Returns the first position at or behind this one that is between two characters.
fn boundary(text: &str, position: usize) -> usize {
    text.ceil_char_boundary(position)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(pattern: &RulePattern, text: &str) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        while let Some(range) = pattern.find(text, found.last().map_or(0, |last| last.end)) {
            found.push(range);
        }
        found
    }

    #[test]
    fn invalid_and_large_patterns_are_refused() {
        let cases = [
            ("(", "it is no valid pattern"),
            ("a*", "it matches the empty text"),
            ("[a-z]{9000}", "it takes more than 65536 bytes compiled"),
        ];
        for (text, expected) in cases {
            let error = RulePattern::new(text, false).expect_err(text);
            assert!(error.starts_with(expected), "{text}: {error}");
        }
        assert!(RulePattern::new(r"\bTICKET-\d+\b", true).is_ok());
    }

    #[test]
    fn matches_across_windows_are_found_whole() {
        let pattern = RulePattern::new("key-[a-z0-9]+", false).expect("a pattern");
        for before in [0, 10, WINDOW_BYTES - 6, WINDOW_BYTES - 2, WINDOW_BYTES, 3 * WINDOW_BYTES + 5] {
            for length in [1, 100, SURE_MATCH_BYTES_MAX, 10 * WINDOW_BYTES] {
                let text = format!("{}key-{} key-a", " ".repeat(before), "x".repeat(length));
                let first = before..before + 4 + length;
                assert_eq!(all(&pattern, &text), [first.clone(), first.end + 1..first.end + 6], "{before} {length}");
            }
        }
    }

    #[test]
    fn empty_matches_are_passed_over() {
        let pattern = RulePattern::new(r"\b(?:x+|\b)", false).expect("only between words it is empty");
        assert_eq!(all(&pattern, "a xx é x"), [2..4, 8..9]);
    }

    #[test]
    fn work_is_bounded_where_each_match_would_read_to_the_end() {
        let pattern = RulePattern::new(".*[^A-Z]x|[A-Z]", false).expect("a pattern");
        let text = "A".repeat(200_000);
        let mut from = 0;
        for _ in 0..1000 {
            from = pattern.find(&text, from).expect("a letter").end;
        }
        assert_eq!(from, 1000);
    }

    proptest! {
        #[test]
        fn short_texts_are_searched_as_by_the_library(text in "[abé -]{0,60}", number in 0..4usize) {
            let source = ["ab+", "a|ab", "[^a]b", r"\bé+"][number];
            let pattern = RulePattern::new(source, false).expect("a pattern");
            let expected: Vec<_> = pattern.regex.find_iter(&text).map(|found| found.range()).collect();
            prop_assert_eq!(all(&pattern, &text), expected);
        }
    }
}
