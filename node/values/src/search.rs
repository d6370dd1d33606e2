//! MATCH: search for all of a query's words, whole and in any order (D-61).
//!
//! Most words are ASCII, and most texts have no escaped letters. Such a word is found in the raw text by its rarest letter,
//! and its neighbours tell whether it is whole. Other texts are split into words.

use std::collections::BTreeSet;

use assay_storage_model::tokens::{words_of_json, words_of_text};
use memchr::memmem;

use super::Value;

/// Letters by descending frequency; digits are rarer than most.
const LETTERS_BY_FREQUENCY: &[u8] = b"etaoinsrhldcumfpgwybvkxjqz0123456789";
/// The only letter beyond ASCII whose small letter is one of ASCII.
const KELVIN: &str = "\u{212a}";
/// Cost of comparing a word, in bytes that are only scanned.
const COMPARED_WORK: usize = 4;
/// A longer word is counted each time that it is compared.
const LONG_WORD_BYTES: usize = 64;

/// Whether to go on with a search, so many bytes being looked at next.
type GoesOn<'g> = &'g dyn Fn(usize) -> bool;

/// Searched words: several queries, one of which must be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    queries: Vec<BTreeSet<String>>,
    /// Prepared words of each query; none if one of them is not ASCII.
    sought: Vec<Option<Vec<Sought>>>,
}

/// A word of ASCII.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sought {
    word: Vec<u8>,
    /// Index of its rarest letter.
    rarest: usize,
}

impl Words {
    /// Reads the query from a text, or from an array of texts.
    pub fn of(query: &Value<'_>) -> Words {
        let words = |text: &str| {
            let mut words = BTreeSet::new();
            words_of_text(text, |word| {
                words.insert(word.to_owned());
            });
            words
        };
        let queries: Vec<BTreeSet<String>> = match &*query.opened() {
            Value::List(of) => {
                let texts = of.iter().filter_map(|one| match one {
                    Value::Text(text) => Some(words(text)),
                    _ => None,
                });
                texts.collect()
            }
            _ => query.to_text().map(|text| words(&text)).into_iter().collect(),
        };
        let sought = queries.iter().map(|query| query.iter().map(|word| Sought::of(word)).collect()).collect();
        Words { queries, sought }
    }

    /// Each of the queries, as the words that must all be there.
    pub fn queries(&self) -> &[BTreeSet<String>] {
        &self.queries
    }

    /// Whether one of the queries is found whole; an empty one never is. `goes_on` is told how much work lies ahead, in
    /// bytes that might be looked at meanwhile. Once it answers false the result says nothing.
    pub fn found_in(&self, value: &Value<'_>, goes_on: GoesOn<'_>) -> bool {
        match value {
            Value::Text(text) => self.found_in_text(text, goes_on),
            Value::Array(json) | Value::Object(json) => self.found_in_json(json, goes_on),
            Value::List(_) | Value::Members(_) => self.found_in_json(&value.to_json(), goes_on),
            other => other.to_text().is_some_and(|text| self.found_in_text(&text, goes_on)),
        }
    }

    fn found_in_text(&self, text: &str, goes_on: GoesOn<'_>) -> bool {
        let known = self.looked_for(text, |sought| goes_on(text.len()) && sought.is_in_text(text.as_bytes(), goes_on));
        known.unwrap_or_else(|| self.found(goes_on, |see| words_of_text(text, see)))
    }

    fn found_in_json(&self, json: &str, goes_on: GoesOn<'_>) -> bool {
        // What is escaped so may be a letter, and what is null is no word.
        let is_plain = memmem::find(json.as_bytes(), b"\\u").is_none();
        let is_word = |sought: &Sought| sought.word != b"null";
        let may = is_plain && self.sought.iter().flatten().flatten().all(is_word);
        let known = if may {
            self.looked_for(json, |sought| goes_on(json.len()) && sought.is_in_json(json.as_bytes(), goes_on))
        } else {
            None
        };
        known.unwrap_or_else(|| self.found(goes_on, |see| words_of_json(json.as_bytes(), see)))
    }

    /// None where the text has to be taken apart.
    fn looked_for(&self, text: &str, is_in: impl Fn(&Sought) -> bool) -> Option<bool> {
        let has_k = self.sought.iter().flatten().flatten().any(|sought| sought.word.contains(&b'k'));
        if has_k && memmem::find(text.as_bytes(), KELVIN.as_bytes()).is_some() {
            return None;
        }
        let mut found = false;
        for query in &self.sought {
            let words = query.as_ref()?;
            found |= !words.is_empty() && words.iter().all(&is_in);
        }
        Some(found)
    }

    fn found(&self, goes_on: GoesOn<'_>, words: impl FnOnce(&mut dyn FnMut(&str))) -> bool {
        // A place for each word of each query, in their order.
        let mut seen = vec![false; self.queries.iter().map(BTreeSet::len).sum()];
        let each = seen.len().saturating_mul(COMPARED_WORK);
        words(&mut |word: &str| {
            if !goes_on(each) {
                return;
            }
            for (place, wanted) in self.queries.iter().flatten().enumerate() {
                if wanted == word {
                    seen[place] = true;
                }
            }
        });
        let mut seen = seen.into_iter();
        self.queries.iter().any(|query| {
            let missing = seen.by_ref().take(query.len()).filter(|seen| !seen).count();
            !query.is_empty() && missing == 0
        })
    }
}

impl Sought {
    /// None of what is not of ASCII.
    fn of(word: &str) -> Option<Sought> {
        let frequency = |byte: &u8| LETTERS_BY_FREQUENCY.iter().position(|letter| letter == byte);
        let ranked = word.bytes().map(|byte| frequency(&byte)).collect::<Option<Vec<_>>>()?;
        let rarest = (0..ranked.len()).max_by_key(|place| ranked[*place])?;
        Some(Sought { word: word.as_bytes().to_vec(), rarest })
    }

    fn is_in_text(&self, text: &[u8], goes_on: GoesOn<'_>) -> bool {
        self.places(text, goes_on)
            .any(|start| !ends_in_word(&text[..start]) && !begins_in_word(&text[start + self.word.len()..]))
    }

    fn is_in_json(&self, json: &[u8], goes_on: GoesOn<'_>) -> bool {
        let is_whole = |start: usize| {
            let before = &json[..start];
            // The letter of an escape is before the word, and not of it; one that begins the word is none of its own.
            let is_parted = !ends_in_word(before) || ends_in_escape(before);
            let begins_escaped = before.last() == Some(&b'\\') && is_escaping(before);
            is_parted && !begins_escaped && !begins_in_word(&json[start + self.word.len()..])
        };
        // Behind the backslash of an escape a letter is the escape's, and the word may begin with the next.
        self.places(json, goes_on).any(is_whole)
    }

    /// Positions of the word's letters, whole word or not.
    fn places<'t>(&'t self, text: &'t [u8], goes_on: GoesOn<'t>) -> impl Iterator<Item = usize> + 't {
        let letter = self.word[self.rarest];
        let is_long = self.word.len() > LONG_WORD_BYTES;
        memchr::memchr2_iter(letter, letter.to_ascii_uppercase(), text).filter_map(move |found| {
            if is_long && !goes_on(self.word.len()) {
                return None;
            }
            let start = found.checked_sub(self.rarest)?;
            let stands = text.get(start..start + self.word.len())?;
            stands.eq_ignore_ascii_case(&self.word).then_some(start)
        })
    }
}

/// Whether a word may go on behind this.
fn ends_in_word(text: &[u8]) -> bool {
    match text.last() {
        None => false,
        Some(byte) if byte.is_ascii() => byte.is_ascii_alphanumeric(),
        Some(_) => {
            let start = text.iter().rposition(|byte| *byte & 0xc0 != 0x80).unwrap_or(0);
            str::from_utf8(&text[start..]).is_ok_and(|last| last.chars().next_back().is_some_and(char::is_alphanumeric))
        }
    }
}

fn begins_in_word(text: &[u8]) -> bool {
    match text.first() {
        None => false,
        Some(byte) if byte.is_ascii() => byte.is_ascii_alphanumeric(),
        Some(_) => {
            let end = text.iter().skip(1).position(|byte| *byte & 0xc0 != 0x80).map_or(text.len(), |more| more + 1);
            str::from_utf8(&text[..end]).is_ok_and(|first| first.chars().next().is_some_and(char::is_alphanumeric))
        }
    }
}

/// Whether the last byte is the letter of an escape such as `\n`.
fn ends_in_escape(json: &[u8]) -> bool {
    json.split_last().is_some_and(|(_, before)| before.last() == Some(&b'\\') && is_escaping(before))
}

/// Whether the backslash at the end escapes what follows, and is not escaped itself.
fn is_escaping(json: &[u8]) -> bool {
    json.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_words_of_a_query_must_be_there() {
        for (value, query, expected) in [
            (r#"{"query":"password reset"}"#, "\"password\"", true),
            (r#"{"query":"password reset"}"#, "\"pass\"", false),
            (r#"{"query":"password reset"}"#, "\"RESET, password!\"", true),
            (r#"{"query":"password reset"}"#, "\"query\"", true),
            (r#"{"query":"password reset"}"#, r#"["nothing","reset"]"#, true),
            ("\"value-added\"", "\"value\"", true),
            ("\"anything\"", "\"\"", false),
            ("\"anything\"", "\" - \"", false),
            ("12.5", "\"12\"", true),
            ("null", "\"null\"", false),
        ] {
            let words = Words::of(&Value::read(query));
            assert_eq!(words.found_in(&Value::read(value), &|_| true), expected, "{value} match {query}");
        }
    }

    /// Words as they stand in texts of every kind, found by their letters and by taking the texts apart.
    #[test]
    fn looking_for_a_word_finds_what_taking_texts_apart_does() {
        let words = ["new", "n", "ew", "k", "null", "12", "e5", "news", "kéy", "true"];
        let texts = [
            "new",
            "a new one",
            "news",
            "anew",
            "NEW!",
            "\nnew",
            "\\new",
            "\\\\new",
            "\\\\\\new",
            "n\\new",
            "\u{212a}",
            "new\u{e9}",
            "\u{e9}new",
            "\u{2014}new\u{2014}",
            "1e5",
            "12.5",
            "a\"new\"b",
            "\\u006eew",
            "null",
            "x null",
            "kéy",
            "KÉY",
            "",
            "ne",
            "\t12\r",
            "true",
            "\u{307}new\u{307}",
        ];
        for word in words {
            let sought = Words::of(&Value::Text(word.into()));
            for text in texts {
                let apart = sought.found(&|_| true, |see| words_of_text(text, see));
                assert_eq!(sought.found_in(&Value::Text(text.into()), &|_| true), apart, "{word:?} in {text:?}");
                for json in [
                    serde_json::json!([text]).to_string(),
                    serde_json::json!({"k": null, text: [12, true, null, 1e5]}).to_string(),
                ] {
                    let apart = sought.found(&|_| true, |see| words_of_json(json.as_bytes(), see));
                    assert_eq!(sought.found_in(&Value::read(&json), &|_| true), apart, "{word:?} in {json}");
                }
            }
        }
    }
}
