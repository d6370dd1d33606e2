//! Words, as a search knows them: maximal runs of letters and digits, in lower case. Of a JSON text those of all keys and
//! all scalars but null; what is escaped counts as what it stands for.
//!
//! Whoever indexes and whoever searches use these, so that they never differ.

use std::borrow::Cow;

/// The words of a plain text, in order, each as often as it stands there.
pub fn words_of_text(text: &str, mut each: impl FnMut(&str)) {
    let mut word = Word::default();
    word.take(text, &mut each);
    word.end(&mut each);
}

/// The words of a JSON text. What is no JSON gives some words or none, never a panic.
pub fn words_of_json(json: &[u8], mut each: impl FnMut(&str)) {
    let mut word = Word::default();
    let mut rest = json;
    while let Some((&byte, after)) = rest.split_first() {
        if byte == b'"' {
            let content = string_content(after);
            rest = after.get(content.len() + 1..).unwrap_or_default();
            match unescaped(content) {
                Some(text) => word.take(&text, &mut each),
                None => word.take(&String::from_utf8_lossy(content), &mut each),
            }
            word.end(&mut each);
        } else {
            let scalar = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
            match &rest[..scalar] {
                b"" | b"null" => {}
                ascii => word.take(std::str::from_utf8(ascii).unwrap_or_default(), &mut each),
            }
            word.end(&mut each);
            rest = &rest[scalar.max(1)..];
        }
    }
}

/// From behind the opening quote to before the closing one.
fn string_content(text: &[u8]) -> &[u8] {
    let mut at = 0;
    while let Some(step) = memchr::memchr2(b'"', b'\\', &text[at..]) {
        at += step;
        if text[at] == b'"' {
            return &text[..at];
        }
        at = (at + 2).min(text.len());
    }
    text
}

fn unescaped(content: &[u8]) -> Option<Cow<'_, str>> {
    if memchr::memchr(b'\\', content).is_none() {
        return std::str::from_utf8(content).ok().map(Cow::Borrowed);
    }
    let quoted = [b"\"", content, b"\""].concat();
    serde_json::from_slice(&quoted).ok().map(Cow::Owned)
}

/// A word that may not have ended yet.
#[derive(Default)]
struct Word(String);

impl Word {
    fn take(&mut self, text: &str, each: &mut impl FnMut(&str)) {
        let mut rest = text.as_bytes();
        let mut taken = 0;
        while let Some(&byte) = rest.first() {
            if !byte.is_ascii() {
                return self.take_any(&text[taken..], each);
            }
            if byte.is_ascii_alphanumeric() {
                self.0.push(char::from(byte.to_ascii_lowercase()));
            } else {
                self.end(each);
            }
            (rest, taken) = (&rest[1..], taken + 1);
        }
    }

    /// Behind the first letter that is not of ASCII.
    fn take_any(&mut self, text: &str, each: &mut impl FnMut(&str)) {
        for letter in text.chars() {
            if letter.is_alphanumeric() { self.0.extend(letter.to_lowercase()) } else { self.end(each) }
        }
    }

    fn end(&mut self, each: &mut impl FnMut(&str)) {
        if !self.0.is_empty() {
            each(&self.0);
            self.0.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_text(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        words_of_text(text, |word| words.push(word.to_owned()));
        words
    }

    fn of_json(json: &str) -> Vec<String> {
        let mut words = Vec::new();
        words_of_json(json.as_bytes(), |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn words_are_runs_of_letters_and_digits_in_lower_case() {
        assert_eq!(of_text("Hello, WORLD-2! it's"), ["hello", "world", "2", "it", "s"]);
        assert_eq!(of_text("Straße ÜBER naïve 東京 x_y"), ["straße", "über", "naïve", "東京", "x", "y"]);
        assert_eq!(of_text(" .,"), [""; 0]);
        assert_eq!(of_text("aÉb ÉA"), ["aéb", "éa"]);
    }

    #[test]
    fn keys_and_scalars_of_json_have_words_and_escapes_are_what_they_stand_for() {
        let json = r#"{"Query":"password\nreset \u00e9t\u00E9 \"Q\"","hits":[3,-12.5e3,true,null],"a_b":{}}"#;
        let expected = ["query", "password", "reset", "été", "q", "hits", "3", "12", "5e3", "true", "a", "b"];
        assert_eq!(of_json(json), expected);
        assert_eq!(of_json(r#""only text""#), ["only", "text"]);
        assert_eq!(of_json("null"), [""; 0]);
    }

    #[test]
    fn what_is_no_json_is_no_panic() {
        for text in ["\"", "\"\\", "\"\\u12", "{\"a\":\"b", "\"\\ud800\"", "\u{fffd}", "]["] {
            of_json(text);
        }
        words_of_json(&[b'"', 0xff, b'a', b'"', 0xfe], |_| {});
    }
}
