//! Verdict on an attempt: whether it was held, and whether its answer names what held it.

use serde_json::Value;

use crate::attempt::Attempt;

/// Characters of an answer that a line of the report shows.
const SHOWN_MAX: usize = 110;

/// Answer of the server to the last call of an attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptAnswer {
    pub status: u16,
    pub body: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing was reached, and the answer names why.
    Held(String),
    /// Nothing was reached, but the answer does not name why.
    Unnamed(String),
    /// The function reached what it must not reach.
    Escaped(String),
}

/// Judges an answer. `secrets` are texts that no answer may contain.
pub fn judge(attempt: &Attempt, answer: &AttemptAnswer, secrets: &[String]) -> Verdict {
    let text = format!("{} {}", answer.status, answer.body);
    if let Some(secret) = secrets.iter().find(|secret| text.contains(*secret)) {
        return Verdict::Escaped(format!("the answer contains the secret {secret}"));
    }
    if let Some(reached) = reached(&answer.body) {
        return Verdict::Escaped(shortened(&reached));
    }
    let unescaped = text.replace("\\\"", "\"");
    match attempt.names.iter().find(|name| unescaped.contains(*name)) {
        Some(name) => Verdict::Held(around(&unescaped, name)),
        None => Verdict::Unnamed(shortened(&text)),
    }
}

/// Returns what a function says that it has reached.
fn reached(body: &str) -> Option<String> {
    let value: Value = serde_json::from_str(body).ok()?;
    let escaped = value.get("escaped")?;
    let is_nothing = match escaped {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(true) | Value::Object(_) => false,
    };
    (!is_nothing).then(|| escaped.to_string())
}

/// Returns the part of a text around a word.
fn around(text: &str, word: &str) -> String {
    let start = text.find(word).unwrap_or_default();
    let before = text[..start].char_indices().rev().nth(40).map_or(0, |(at, _)| at);
    shortened(&text[before..])
}

fn shortened(text: &str) -> String {
    let line: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if line.chars().count() <= SHOWN_MAX { line } else { line.chars().take(SHOWN_MAX).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::Language;

    fn attempt(names: &[&str]) -> Attempt {
        Attempt {
            name: "x".into(),
            language: Language::Python,
            code: "x".into(),
            upload: None,
            act: None,
            steps: Vec::new(),
            alone: false,
            knows_code: false,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            gap: None,
        }
    }

    fn verdict(status: u16, body: &str) -> Verdict {
        judge(
            &attempt(&["Permission denied", "more than 5 seconds"]),
            &AttemptAnswer { status, body: body.into() },
            &["s3cret".into()],
        )
    }

    #[test]
    fn a_secret_in_the_answer_is_an_escape_whatever_the_function_says() {
        assert!(matches!(verdict(200, r#"{"refused": "Permission denied s3cret"}"#), Verdict::Escaped(_)));
        assert!(matches!(verdict(500, r#"{"Message": "s3cret"}"#), Verdict::Escaped(_)));
    }

    #[test]
    fn what_a_function_reached_is_an_escape() {
        for (escaped, is_escape) in [("true", true), ("[\"x\"]", true), ("1", true), ("[]", false), ("null", false)] {
            let body = format!(r#"{{"escaped": {escaped}, "refused": "Permission denied"}}"#);
            assert_eq!(matches!(verdict(200, &body), Verdict::Escaped(_)), is_escape, "{body}");
        }
    }

    #[test]
    fn an_answer_has_to_name_what_held() {
        assert!(matches!(verdict(500, r#"{"Message": "the function ran for more than 5 seconds"}"#), Verdict::Held(_)));
        assert!(matches!(verdict(500, r#"{"Message": "internal error"}"#), Verdict::Unnamed(_)));
        assert!(matches!(verdict(200, "1"), Verdict::Unnamed(_)));
    }
}
