//! Finder of function boundaries: a tokenizer that skips comments, texts and characters, and matches braces.

/// One function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    /// Line number, from 1.
    pub line: usize,
    /// Lines from `fn` to the closing brace.
    pub lines: usize,
}

/// The code with every comment, text and character blanked out; lines stay where they are.
pub fn code_only(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = end_of_token(bytes, at);
        if end == at {
            code.push(bytes[at]);
            at += 1;
        } else {
            code.extend(bytes[at..end].iter().map(|byte| if *byte == b'\n' { b'\n' } else { b' ' }));
            at = end;
        }
    }
    String::from_utf8_lossy(&code).into_owned()
}

/// String literals as they are written, without quotes, each with its line number from 1. Raw strings are left out.
pub fn string_literals(text: &str) -> Vec<(usize, String)> {
    let bytes = text.as_bytes();
    let (mut found, mut at, mut line) = (Vec::new(), 0, 1);
    while at < bytes.len() {
        let end = end_of_token(bytes, at).max(at + 1);
        if bytes[at] == b'"' && end > at + 1 {
            found.push((line, String::from_utf8_lossy(&bytes[at + 1..end - 1]).into_owned()));
        }
        line += bytes[at..end].iter().filter(|byte| **byte == b'\n').count();
        at = end;
    }
    found
}

/// End of the comment, text or character that begins at `at`; `at` itself if none begins there.
fn end_of_token(bytes: &[u8], at: usize) -> usize {
    match &bytes[at..] {
        [b'/', b'/', ..] => end_of_line(bytes, at),
        [b'/', b'*', ..] => end_of_block(bytes, at),
        [b'"', ..] => end_of_text(bytes, at + 1),
        [b'r', rest @ ..] if !follows_name(bytes, at) && starts_raw(rest) => end_of_raw(bytes, at + 1),
        [b'b', b'r', rest @ ..] if !follows_name(bytes, at) && starts_raw(rest) => end_of_raw(bytes, at + 2),
        [b'\'', ..] => end_of_character(bytes, at),
        _ => at,
    }
}

fn follows_name(bytes: &[u8], at: usize) -> bool {
    at > 0 && is_name(bytes[at - 1])
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn end_of_line(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |length| at + length)
}

fn end_of_block(bytes: &[u8], at: usize) -> usize {
    let (mut depth, mut at) = (0, at);
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn end_of_text(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Returns whether a raw string starts behind the `r`: hashes, then a quote.
fn starts_raw(rest: &[u8]) -> bool {
    rest.iter().find(|byte| **byte != b'#') == Some(&b'"')
}

fn end_of_raw(bytes: &[u8], at: usize) -> usize {
    let hashes = bytes[at..].iter().take_while(|byte| **byte == b'#').count();
    let close: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
    let body = at + hashes + 1;
    let found = bytes[body..].windows(close.len()).position(|window| window == close);
    found.map_or(bytes.len(), |length| body + length + close.len())
}

/// A character ends at its quote; a lifetime is no character and ends where it begins.
fn end_of_character(bytes: &[u8], at: usize) -> usize {
    match &bytes[at + 1..] {
        [b'\\', rest @ ..] => {
            let quote = rest.iter().skip(1).position(|byte| *byte == b'\'');
            quote.map_or(bytes.len(), |length| at + 4 + length)
        }
        [first, b'\'', ..] if *first != b'\'' => at + 3,
        [first, ..] if !first.is_ascii() => {
            let quote = bytes[at + 1..].iter().take(5).position(|byte| *byte == b'\'');
            quote.map_or(at, |length| at + length + 2)
        }
        _ => at,
    }
}

/// Every function that has a body, inner ones too.
pub fn functions(text: &str) -> Vec<Function> {
    let code = code_only(text);
    let bytes = code.as_bytes();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        if follows_name(bytes, at) {
            continue;
        }
        let name: String = code[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let Some(end) = (!name.is_empty()).then(|| end_of_body(bytes, at)).flatten() else {
            continue;
        };
        let line = 1 + lines_in(&bytes[..at]);
        found.push(Function { name, line, lines: 1 + lines_in(&bytes[at..end]) });
    }
    found
}

/// Returns the end of the body that begins behind `at`; none for a declaration.
fn end_of_body(bytes: &[u8], at: usize) -> Option<usize> {
    let (mut depth, mut inside) = (0_i32, false);
    for (offset, byte) in bytes[at..].iter().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'{' => (depth, inside) = (depth + 1, true),
            b'}' => depth -= 1,
            b';' if depth == 0 && !inside => return None,
            _ => {}
        }
        if inside && depth == 0 {
            return Some(at + offset);
        }
    }
    None
}

fn lines_in(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, usize, usize)]) {
        let found: Vec<_> = functions(text).into_iter().map(|f| (f.name, f.line, f.lines)).collect();
        let expected: Vec<_> = expected.iter().map(|(name, line, lines)| (name.to_string(), *line, *lines)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn string_literals_are_found_with_their_lines() {
        let text = "// \"no\"\nf(\"a \\\n b\", '\"', r#\"raw\"#);\ng(\"c\\\"d\");\n";
        let found = string_literals(text);
        assert_eq!(found, [(2, "a \\\n b".to_owned()), (4, "c\\\"d".to_owned())]);
    }

    #[test]
    fn a_function_reaches_from_its_name_to_its_brace() {
        check(
            "fn one() {}\n\nfn two(\n    a: [u8; 3],\n) -> u8 {\n    if a { 1 } else { 2 }\n}\n",
            &[("one", 1, 1), ("two", 3, 5)],
        );
    }

    #[test]
    fn a_declaration_and_a_type_are_no_functions() {
        check("trait T {\n    fn a(&self);\n    fn b(&self) {\n    }\n}\ntype F = fn(u8) -> u8;\n", &[("b", 3, 2)]);
    }

    #[test]
    fn an_inner_function_counts_for_itself_and_for_the_outer_one() {
        check("fn outer() {\n    fn inner() {\n    }\n}\n", &[("outer", 1, 4), ("inner", 2, 2)]);
    }

    #[test]
    fn braces_in_texts_comments_and_characters_do_not_count() {
        let tricky = "fn a<'x>(c: &'x str) -> char {\n  // }\n  /* } /* } */ */\n  let _ = (\"}\\\"}\", r#\"}\"}\"#, b\"}\", br\"}\");\n  \
            let _ = ['}', '\\'', '\\u{7d}', 'ü', b'}'];\n  '{'\n}\nfn b() {}\n";
        check(tricky, &[("a", 1, 7), ("b", 8, 1)]);
    }

    #[test]
    fn what_is_blanked_keeps_its_lines() {
        let code = code_only("a \"x\ny\" b // c\nd /* e\nf */ g\n");
        assert_eq!(
            code.lines().map(|line| line.split_whitespace().collect::<String>()).collect::<Vec<_>>(),
            ["a", "b", "d", "g"]
        );
    }
}
