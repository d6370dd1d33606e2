//! Texts of queries without their literals, for logs and lists of running queries.

use crate::lex::{Lexed, Token, lex};

/// Upper bound of the bytes of a text without literals.
pub const NORMALIZED_BYTES_MAX: usize = 2000;
/// Mark in the place of a literal.
const LITERAL: &str = "?";
/// Mark at the end of a text that was cut.
const CUT: &str = "...";
/// Text of a query that cannot be read.
const UNREADABLE: &str = "(unreadable)";

/// Returns a query in SQL or clauses without its literals, comments and line breaks.
///
/// Literals are data of customers. Each text and number becomes `?`, and so does a list of them. Names in double quotes
/// look like texts and are replaced, too.
pub fn without_literals(text: &str) -> String {
    let Ok(tokens) = lex(text) else { return UNREADABLE.to_owned() };
    let mut pieces: Vec<(&str, bool)> = Vec::new();
    let mut end = 0;
    for Lexed { token, start, end: ends } in &tokens {
        let piece = match token {
            Token::Text(_) | Token::Double(_) | Token::Number(_) => LITERAL,
            Token::Word(_) | Token::Name(_) | Token::Symbol(_) => &text[*start..*ends],
            Token::End => break,
        };
        let follows_blank = *start > end && !pieces.is_empty();
        end = *ends;
        if piece == LITERAL && matches!(pieces.as_slice(), [.., (LITERAL, _), (",", _)]) {
            pieces.pop();
        } else {
            pieces.push((piece, follows_blank));
        }
    }
    let mut found = String::new();
    for (piece, follows_blank) in pieces {
        found.push_str(if follows_blank { " " } else { "" });
        found.push_str(piece);
        if found.len() > NORMALIZED_BYTES_MAX {
            found.truncate(found.floor_char_boundary(NORMALIZED_BYTES_MAX - CUT.len()));
            found.push_str(CUT);
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn literals_become_marks_and_names_stay() {
        for (query, expected) in [
            (
                "SELECT input.`a b`, 1 FROM project_logs('secret')  WHERE metadata.user = 'Ann''s' -- her mail\n LIMIT 10",
                "SELECT input.`a b`, ? FROM project_logs(?) WHERE metadata.user = ? LIMIT ?",
            ),
            (
                "select: * | from: dataset(\"id\") | filter: x IN (1, 2.5 , 'c') AND y[0] > -3 /* why */",
                "select: * | from: dataset(?) | filter: x IN (?) AND y[?] > -?",
            ),
            ("SELECT coalesce(a, 1, b, 2, 3)", "SELECT coalesce(a, ?, b, ?)"),
            ("SELECT 'open", UNREADABLE),
            ("", ""),
        ] {
            assert_eq!(without_literals(query), expected, "{query}");
        }
    }

    #[test]
    fn a_long_text_is_cut() {
        let long = format!("SELECT {}", "ä, ".repeat(2000));
        let found = without_literals(&long);
        assert!(found.len() <= NORMALIZED_BYTES_MAX && found.ends_with(CUT), "{found}");
    }

    proptest! {
        #[test]
        fn no_literal_is_in_the_text(secret in "[a-z]{6}X[0-9]{4}", number in 100_000_u32..999_999) {
            let query = format!(
                "SELECT a FROM project_logs('{secret}') WHERE b = \"{secret}\" AND c LIKE '%{secret}%' AND d > {number} \
                 -- {secret}\n/* {secret} */ LIMIT {number}"
            );
            let found = without_literals(&query);
            prop_assert!(!found.contains(&secret) && !found.contains(&number.to_string()), "{}", found);
        }

        #[test]
        fn any_text_has_a_form_of_bounded_size(text in "\\PC{0,400}") {
            prop_assert!(without_literals(&text).len() <= NORMALIZED_BYTES_MAX);
        }
    }
}
