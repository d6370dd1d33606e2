//! Canonical form of JSON texts: sorted members, no white space and one spelling of each string.
//!
//! Numbers keep their spelling. A parsed value would not suffice, because it loses that spelling and the digits of
//! large numbers.

use std::ops::Range;

use serde_json::Number;
use thiserror::Error;

/// Upper bound of the nesting, equal to that of `serde_json`.
const DEPTH_MAX: usize = 127;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CanonicalJsonError {
    #[error("the body is not valid JSON at byte {at}")]
    Invalid { at: usize },
    #[error("the body nests deeper than {DEPTH_MAX} levels at byte {at}")]
    TooDeep { at: usize },
}

/// Returns the canonical form. Members of the same name keep their order, because parsers differ in which one they use.
pub fn canonical_json(text: &[u8]) -> Result<Vec<u8>, CanonicalJsonError> {
    let text = str::from_utf8(text).map_err(|error| CanonicalJsonError::Invalid { at: error.valid_up_to() })?;
    let mut writer = CanonicalWriter { text, at: 0, written: Vec::with_capacity(text.len()) };
    writer.value(0)?;
    writer.skip_blanks();
    if writer.at < text.len() {
        return Err(writer.invalid());
    }
    Ok(writer.written)
}

struct CanonicalWriter<'a> {
    text: &'a str,
    at: usize,
    written: Vec<u8>,
}

/// Position of a member in the output: the end of its name, and its whole range without a comma.
struct MemberRange {
    name_end: usize,
    whole: Range<usize>,
}

impl CanonicalWriter<'_> {
    fn invalid(&self) -> CanonicalJsonError {
        CanonicalJsonError::Invalid { at: self.at }
    }

    fn next(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.next(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Skips blanks and consumes the given byte if it is next.
    fn takes(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        let is_next = self.next() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn value(&mut self, depth: usize) -> Result<(), CanonicalJsonError> {
        if depth > DEPTH_MAX {
            return Err(CanonicalJsonError::TooDeep { at: self.at });
        }
        self.skip_blanks();
        match self.next() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        }
    }

    fn array(&mut self, depth: usize) -> Result<(), CanonicalJsonError> {
        self.at += 1;
        self.written.push(b'[');
        if !self.takes(b']') {
            loop {
                self.value(depth + 1)?;
                if self.takes(b']') {
                    break;
                }
                if !self.takes(b',') {
                    return Err(self.invalid());
                }
                self.written.push(b',');
            }
        }
        self.written.push(b']');
        Ok(())
    }

    fn object(&mut self, depth: usize) -> Result<(), CanonicalJsonError> {
        self.at += 1;
        self.written.push(b'{');
        let mut members = Vec::new();
        if !self.takes(b'}') {
            loop {
                members.push(self.member(depth)?);
                if self.takes(b'}') {
                    break;
                }
                if !self.takes(b',') {
                    return Err(self.invalid());
                }
                self.written.push(b',');
            }
        }
        self.sort(&mut members);
        self.written.push(b'}');
        Ok(())
    }

    fn member(&mut self, depth: usize) -> Result<MemberRange, CanonicalJsonError> {
        let start = self.written.len();
        self.skip_blanks();
        if self.next() != Some(b'"') {
            return Err(self.invalid());
        }
        self.string()?;
        let name_end = self.written.len();
        if !self.takes(b':') {
            return Err(self.invalid());
        }
        self.written.push(b':');
        self.value(depth + 1)?;
        Ok(MemberRange { name_end, whole: start..self.written.len() })
    }

    /// Sorts the members that were written last by name.
    fn sort(&mut self, members: &mut [MemberRange]) {
        let Some(start) = members.first().map(|first| first.whole.start) else { return };
        let name = |member: &MemberRange| &self.written[member.whole.start..member.name_end];
        if members.is_sorted_by(|one, other| name(one) <= name(other)) {
            return;
        }
        members.sort_by(|one, other| name(one).cmp(name(other)));
        let mut sorted = Vec::with_capacity(self.written.len() - start);
        for member in members {
            if !sorted.is_empty() {
                sorted.push(b',');
            }
            sorted.extend_from_slice(&self.written[member.whole.clone()]);
        }
        self.written.truncate(start);
        self.written.append(&mut sorted);
    }

    fn string(&mut self) -> Result<(), CanonicalJsonError> {
        let (start, bytes) = (self.at, self.text.as_bytes());
        let (mut end, mut is_escaped) = (start + 1, false);
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => {
                    is_escaped = true;
                    end += 2;
                }
                Some(0..0x20) | None => return Err(self.invalid()),
                Some(_) => end += 1,
            }
        }
        let spelled = bytes.get(start..=end).ok_or_else(|| self.invalid())?;
        if is_escaped {
            let parsed: String = serde_json::from_slice(spelled).map_err(|_| self.invalid())?;
            let written = serde_json::to_writer(&mut self.written, &parsed);
            written.expect("a text is written to memory");
        } else {
            self.written.extend_from_slice(spelled);
        }
        self.at = end + 1;
        Ok(())
    }

    fn number(&mut self) -> Result<(), CanonicalJsonError> {
        let rest = &self.text.as_bytes()[self.at..];
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let length = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        let spelled = &rest[..length];
        serde_json::from_slice::<Number>(spelled).map_err(|_| self.invalid())?;
        self.written.extend_from_slice(spelled);
        self.at += length;
        Ok(())
    }

    fn word(&mut self) -> Result<(), CanonicalJsonError> {
        let rest = &self.text.as_bytes()[self.at..];
        let words: [&[u8]; 3] = [b"true", b"false", b"null"];
        let word = words.into_iter().find(|word| rest.starts_with(word)).ok_or_else(|| self.invalid())?;
        self.written.extend_from_slice(word);
        self.at += word.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;

    fn canonical(text: &str) -> String {
        String::from_utf8(canonical_json(text.as_bytes()).expect(text)).expect("is text")
    }

    #[test]
    fn one_meaning_has_one_form() {
        for (text, form) in [
            (r#" { "b" : 1 , "a" : [ ] } "#, r#"{"a":[],"b":1}"#),
            (r#"{"a":{"d":null,"c":true},"B":false}"#, r#"{"B":false,"a":{"c":true,"d":null}}"#),
            (r#"{"\u0061":"\u00e9\/\n\u0001"}"#, "{\"a\":\"é/\\n\\u0001\"}"),
            (r#"["\ud83d\ude00","😀"]"#, r#"["😀","😀"]"#),
            (r#"{"":{},"a":[{"z":1,"y":2},3]}"#, r#"{"":{},"a":[{"y":2,"z":1},3]}"#),
        ] {
            assert_eq!(canonical(text), form, "{text}");
        }
    }

    #[test]
    fn numbers_stay_as_they_are_spelled() {
        let text = "[0,-0,0.0,1.0,1e0,1E+2,12345678901234567890123,0.1000000000000000000001]";
        assert_eq!(canonical(text), text);
    }

    #[test]
    fn members_of_one_name_keep_their_order() {
        assert_eq!(canonical(r#"{"b":0,"a":2,"a":1}"#), r#"{"a":2,"a":1,"b":0}"#);
    }

    #[test]
    fn an_invalid_text_has_no_form() {
        let texts = [
            "",
            " ",
            "{",
            "[1,]",
            "[1 2]",
            "{\"a\"}",
            "{\"a\":}",
            "{a:1}",
            "{\"a\":1,}",
            "01",
            "1.",
            "-",
            "1e999",
            "+1",
            "nul",
            "truefalse",
            "\"",
            "\"\\",
            "\"\\q\"",
            "\"\\ud800\"",
            "\"\n\"",
            "1 1",
            "[1]]",
        ];
        for text in texts {
            assert!(matches!(canonical_json(text.as_bytes()), Err(CanonicalJsonError::Invalid { .. })), "{text}");
        }
        assert_eq!(canonical_json(b"[\"\xff\"]"), Err(CanonicalJsonError::Invalid { at: 2 }));
    }

    #[test]
    fn nesting_has_a_limit() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(canonical_json(nested(DEPTH_MAX + 1).as_bytes()).is_ok());
        for depth in [DEPTH_MAX + 2, 1_000_000] {
            let refused = canonical_json(nested(depth).as_bytes());
            assert_eq!(refused, Err(CanonicalJsonError::TooDeep { at: DEPTH_MAX + 1 }));
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            // Zeros of both signs are equal but have different spellings.
            any::<f64>().prop_filter("is JSON", |number| number.is_normal()).prop_map(|number| json!(number)),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec(("[a-c\"\\\\é]{0,3}", inner), 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    /// Returns a value with the members of all objects in reverse order.
    fn reversed(value: &Value) -> Value {
        match value {
            Value::Array(values) => values.iter().map(reversed).collect(),
            Value::Object(members) => {
                let members = members.iter().rev().map(|(name, value)| (name.clone(), reversed(value)));
                Value::Object(members.collect::<Map<_, _>>())
            }
            other => other.clone(),
        }
    }

    /// Returns a text with some characters of its strings escaped.
    fn escaped(text: &str) -> String {
        text.chars()
            .map(|letter| match letter {
                'é' => "\\u00E9".to_owned(),
                other => other.to_string(),
            })
            .collect()
    }

    proptest! {
        #[test]
        fn order_blanks_and_escapes_do_not_count(value in value()) {
            let form = canonical(&value.to_string());
            prop_assert_eq!(&serde_json::from_str::<Value>(&form).expect("is JSON"), &value);
            prop_assert_eq!(&canonical(&form), &form);
            prop_assert_eq!(&canonical(&reversed(&value).to_string()), &form);
            prop_assert_eq!(&canonical(&serde_json::to_string_pretty(&value).expect("is JSON")), &form);
            prop_assert_eq!(&canonical(&escaped(&value.to_string())), &form);
        }

        #[test]
        fn different_values_have_different_forms(one in value(), other in value()) {
            prop_assert_eq!(one == other, canonical(&one.to_string()) == canonical(&other.to_string()));
        }

        #[test]
        fn what_has_a_form_is_json(text in "[\\[\\]{}:,\"\\\\ 0-9eE.+-aut]{0,12}") {
            if let Ok(form) = canonical_json(text.as_bytes()) {
                let parsed: Value = serde_json::from_str(&text).expect("the form was made");
                prop_assert_eq!(serde_json::from_slice::<Value>(&form).expect("is JSON"), parsed);
            }
        }
    }
}
