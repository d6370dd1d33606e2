//! Words of a search: maximal runs of letters and digits, in lower case. For a JSON text these are the words of all
//! keys and of all scalars but null, with escapes decoded.
//!
//! Indexing and searching share these functions, so that they never differ.

/// Class of each byte: itself in lower case, or one of the two below.
const CLASSES: [u8; 256] = {
    let mut classes = [NONE; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            letter @ (b'a'..=b'z' | b'0'..=b'9') => letter,
            capital @ b'A'..=b'Z' => capital.to_ascii_lowercase(),
            0x80.. => BEYOND,
            _ => NONE,
        };
        byte += 1;
    }
    classes
};
/// Byte outside of words.
const NONE: u8 = 0;
/// Part of a letter that is not of ASCII, which may be in a word.
const BEYOND: u8 = 1;

/// Passes the words of a plain text, in order, with repetitions.
pub fn words_of_text(text: &str, mut each: impl FnMut(&str)) {
    words_in(text, &mut String::new(), &mut each);
}

/// The words of a JSON text. What is no JSON gives some words or none, never a panic.
pub fn words_of_json(json: &[u8], mut each: impl FnMut(&str)) {
    let mut lowered = String::new();
    let mut rest = json;
    while let Some((&byte, after)) = rest.split_first() {
        if byte == b'"' {
            let content = string_content(after);
            rest = after.get(content.len() + 1..).unwrap_or_default();
            words_of_string(content, &mut lowered, &mut each);
        } else {
            let scalar = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
            match &rest[..scalar] {
                b"" | b"null" => {}
                ascii => words_in(std::str::from_utf8(ascii).unwrap_or_default(), &mut lowered, &mut each),
            }
            rest = &rest[scalar.max(1)..];
        }
    }
}

/// Passes the words between the quotes of a JSON string.
fn words_of_string(content: &[u8], lowered: &mut String, each: &mut impl FnMut(&str)) {
    let Ok(text) = std::str::from_utf8(content) else {
        return words_in(&String::from_utf8_lossy(content), lowered, each);
    };
    let mut rest = text;
    // Whatever else is escaped parts words, as what it stands for does.
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        if rest.as_bytes().get(at + 1) == Some(&b'u') {
            let quoted = ["\"", rest, "\""].concat();
            return match serde_json::from_str::<String>(&quoted) {
                Ok(unescaped) => words_in(&unescaped, lowered, each),
                Err(_) => words_in(rest, lowered, each),
            };
        }
        words_in(&rest[..at], lowered, each);
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    words_in(rest, lowered, each);
}

/// Returns the content of a string, from behind the opening quote to before the closing one.
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

/// Passes the words of a text; `lowered` is a buffer for words that are not in lower case.
fn words_in(text: &str, lowered: &mut String, each: &mut impl FnMut(&str)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let mut same = true;
        let class = loop {
            let class = bytes.get(at).map_or(NONE, |byte| CLASSES[usize::from(*byte)]);
            if class <= BEYOND {
                break class;
            }
            same &= class == bytes[at];
            at += 1;
        };
        if class == BEYOND {
            at = start + any_word(&text[start..], lowered, each);
            continue;
        }
        match &text[start..at] {
            "" => {}
            word if same => each(word),
            word => {
                lowered.clear();
                lowered.push_str(word);
                lowered.make_ascii_lowercase();
                each(lowered);
            }
        }
        at += 1;
    }
}

/// Passes the word at the beginning of a text, including letters beyond ASCII, or a replacement character. Returns its
/// bytes.
fn any_word(text: &str, lowered: &mut String, each: &mut impl FnMut(&str)) -> usize {
    lowered.clear();
    let letters = text.char_indices().take_while(|(_, letter)| letter.is_alphanumeric());
    let end = letters.map(|(at, letter)| {
        lowered.extend(letter.to_lowercase());
        at + letter.len_utf8()
    });
    match end.last() {
        Some(end) => {
            each(lowered);
            end
        }
        None => text.chars().next().map_or(1, char::len_utf8),
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
