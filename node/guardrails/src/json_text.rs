//! JSON within texts, such as the arguments of tool calls: its texts are changed, all else stays as it was written.

use serde::de::IgnoredAny;

/// Levels of JSON within texts of JSON.
pub const NESTED_TEXTS_MAX: usize = 4;

/// Whether a text is a JSON object or array.
pub(crate) fn is_json(text: &str) -> bool {
    let begins = text.trim_ascii_start().as_bytes().first().is_some_and(|first| matches!(first, b'{' | b'['));
    begins && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Changes the texts of a valid JSON text, except names of members. Returns the whole; none if nothing was changed.
pub(crate) fn with_texts<E>(
    json: &str,
    mut change: impl FnMut(&str) -> Result<Option<String>, E>,
) -> Result<Option<String>, E> {
    let (mut changed, mut copied, mut position) = (String::new(), 0, 0);
    while let Some(quote) = json[position..].find('"') {
        let start = position + quote;
        let end = token_end(json, start);
        position = end;
        let is_name = json[end..].trim_ascii_start().starts_with(':');
        if is_name {
            continue;
        }
        let token = &json[start..end];
        let replaced =
            if token.contains('\\') { change(&decoded(token))? } else { change(&token[1..token.len() - 1])? };
        if let Some(replaced) = replaced {
            changed.push_str(&json[copied..start]);
            changed.push_str(&serde_json::Value::from(replaced).to_string());
            copied = end;
        }
    }
    if copied == 0 {
        return Ok(None);
    }
    changed.push_str(&json[copied..]);
    Ok(Some(changed))
}

/// Returns the text of a token. JSON may have halves of surrogate pairs in it, which no text has: they are replaced.
fn decoded(token: &str) -> String {
    let decoded = serde_json::from_str(token);
    decoded.or_else(|_| serde_json::from_str(&without_surrogates(token))).unwrap_or_default()
}

fn without_surrogates(token: &str) -> String {
    let (mut clean, mut rest) = (String::with_capacity(token.len()), token);
    while let Some(escape) = rest.find('\\') {
        let (before, from_escape) = rest.split_at(escape);
        clean.push_str(before);
        let code = from_escape.strip_prefix("\\u").and_then(|code| code.get(..4));
        let code = code.and_then(|code| u16::from_str_radix(code, 16).ok());
        let length = if code.is_some() { 6 } else { 2 };
        let (escape, behind) = from_escape.split_at(length.min(from_escape.len()));
        let is_surrogate = code.is_some_and(|code| (0xD800..0xE000).contains(&code));
        clean.push_str(if is_surrogate { "\\ufffd" } else { escape });
        rest = behind;
    }
    clean.push_str(rest);
    clean
}

/// Returns the end of the text token that begins here.
fn token_end(json: &str, start: usize) -> usize {
    let mut escaped = false;
    let inside = json.as_bytes()[start + 1..].iter().position(|byte| match (escaped, byte) {
        (true, _) => {
            escaped = false;
            false
        }
        (false, b'\\') => {
            escaped = true;
            false
        }
        (false, byte) => *byte == b'"',
    });
    inside.map_or(json.len(), |length| start + 1 + length + 1)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn texts_are_changed_and_all_else_stays_as_written() {
        let upper = |text: &str| -> Result<_, Infallible> {
            Ok((text != text.to_uppercase()).then(|| format!("{}\"", text.to_uppercase())))
        };
        let cases = [
            ("{}", None),
            (r#"{"a": 1.50, "a": "B"}"#, None),
            (
                r#" {"a" : "b", "n": 12345678901234567890123, "x": ["c\n", "D"]}"#,
                Some(r#" {"a" : "B\"", "n": 12345678901234567890123, "x": ["C\n\"", "D"]}"#),
            ),
            (r#"["\ud800 a\ud83d\ude00\u0062"]"#, Some("[\"\u{fffd} A\u{fffd}\u{fffd}B\\\"\"]")),
            (r#"["\"q\\", "é"]"#, Some(r#"["\"Q\\\"", "É\""]"#)),
        ];
        for (json, expected) in cases {
            assert!(is_json(json), "{json}");
            assert_eq!(with_texts(json, upper), Ok(expected.map(str::to_owned)), "{json}");
        }
        for other in ["", "a", "\"a\"", "1", "{", "[1] x", "{'a': 1}"] {
            assert!(!is_json(other), "{other}");
        }
    }
}
