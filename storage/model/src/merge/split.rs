//! Splits JSON text one level deep, without reading the values. The text was checked when it was prepared, so only its
//! structure is parsed; damaged text gives an error or odd slices, never a panic.

use std::borrow::Cow;

use super::MergeError;

/// One member of an object, as in the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member<'a> {
    /// Key with its quotes.
    pub key: &'a [u8],
    pub key_escaped: bool,
    pub value: &'a [u8],
    /// Start of the value in the object's text.
    pub value_at: usize,
}

impl<'a> Member<'a> {
    pub fn text(&self) -> Result<Cow<'a, str>, MergeError> {
        let refuse = |what| MergeError::Text { what, at: self.value_at };
        if self.key_escaped {
            return serde_json::from_slice(self.key).map(Cow::Owned).map_err(|_| refuse("a key with a bad escape"));
        }
        let inside = &self.key[1..self.key.len() - 1];
        std::str::from_utf8(inside).map(Cow::Borrowed).map_err(|_| refuse("a key that is not UTF-8"))
    }

    /// The key as it is, if nothing in it is escaped.
    pub fn plain_key(&self) -> Option<&'a [u8]> {
        (!self.key_escaped).then(|| &self.key[1..self.key.len() - 1])
    }

    pub fn has_key_of(&self, other: &Member<'_>) -> Result<bool, MergeError> {
        if self.key_escaped || other.key_escaped {
            return Ok(self.text()? == other.text()?);
        }
        Ok(self.key == other.key)
    }

    pub fn is_object(&self) -> bool {
        self.value.first() == Some(&b'{')
    }

    pub fn is_array(&self) -> bool {
        self.value.first() == Some(&b'[')
    }
}

/// A field's name and the JSON text of its value.
pub type DocField<'a> = (Cow<'a, str>, &'a [u8]);

/// The fields of a stored document in their order.
pub fn doc_fields(doc: &[u8]) -> Result<Vec<DocField<'_>>, MergeError> {
    members(doc)?.iter().map(|member| Ok((member.text()?, member.value))).collect()
}

/// The JSON text of one field of a stored document.
pub fn doc_field<'a>(doc: &'a [u8], name: &str) -> Result<Option<&'a [u8]>, MergeError> {
    let mut cursor = Cursor::opened(doc, b'{', "no object")?;
    while let Some(member) = cursor.next_member()? {
        if member.text()? == name {
            return Ok(Some(member.value));
        }
    }
    Ok(None)
}

/// The members of an object; nothing may follow it.
pub(super) fn members(object: &[u8]) -> Result<Vec<Member<'_>>, MergeError> {
    let mut cursor = Cursor::opened(object, b'{', "no object")?;
    let mut found = Vec::with_capacity(16);
    while let Some(member) = cursor.next_member()? {
        found.push(member);
    }
    cursor.expect_end()?;
    Ok(found)
}

/// The elements of an array; nothing may follow it.
pub(super) fn elements(array: &[u8]) -> Result<Vec<&[u8]>, MergeError> {
    let mut cursor = Cursor::opened(array, b'[', "no array")?;
    let mut found = Vec::new();
    while cursor.next_item(b']')? {
        found.push(cursor.value()?);
    }
    cursor.expect_end()?;
    Ok(found)
}

pub(super) struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
    first: bool,
}

impl<'a> Cursor<'a> {
    pub(super) fn opened(text: &'a [u8], bracket: u8, otherwise: &'static str) -> Result<Self, MergeError> {
        let mut cursor = Cursor { text, at: 0, first: true };
        cursor.skip_space();
        cursor.expect(bracket, otherwise)?;
        Ok(cursor)
    }

    pub(super) fn next_member(&mut self) -> Result<Option<Member<'a>>, MergeError> {
        if !self.next_item(b'}')? {
            return Ok(None);
        }
        let start = self.at;
        self.expect(b'"', "no key")?;
        let key_escaped = self.skip_string()?;
        let key = &self.text[start..self.at];
        self.skip_space();
        self.expect(b':', "no colon after a key")?;
        self.skip_space();
        let value_at = self.at;
        Ok(Some(Member { key, key_escaped, value: self.value()?, value_at }))
    }

    /// Goes to the next item, over the comma before it, or past the closing bracket.
    fn next_item(&mut self, close: u8) -> Result<bool, MergeError> {
        self.skip_space();
        if self.peek() == Some(close) {
            self.at += 1;
            return Ok(false);
        }
        if !self.first {
            self.expect(b',', "no comma between two items")?;
            self.skip_space();
        }
        self.first = false;
        Ok(true)
    }

    fn value(&mut self) -> Result<&'a [u8], MergeError> {
        let start = self.at;
        match self.peek() {
            Some(b'"') => {
                self.at += 1;
                self.skip_string()?;
            }
            Some(b'{' | b'[') => self.skip_nested()?,
            _ => self.skip_scalar(),
        }
        if self.at == start {
            return Err(self.refuse("no value"));
        }
        Ok(&self.text[start..self.at])
    }

    /// Skips from behind an opening quote to behind the closing one; returns whether there were escapes.
    fn skip_string(&mut self) -> Result<bool, MergeError> {
        let mut escaped = false;
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let Some(step) = quote_or_backslash(rest) else {
                return Err(self.refuse("a string without an end"));
            };
            self.at += step + 1;
            if rest[step] == b'"' {
                return Ok(escaped);
            }
            escaped = true;
            self.at += 1;
        }
    }

    fn skip_nested(&mut self) -> Result<(), MergeError> {
        let mut open = 0_usize;
        loop {
            let Some(byte) = self.peek() else {
                return Err(self.refuse("a bracket without an end"));
            };
            self.at += 1;
            match byte {
                b'"' => {
                    self.skip_string()?;
                }
                b'{' | b'[' => open += 1,
                b'}' | b']' => open -= 1,
                _ => {}
            }
            if open == 0 {
                return Ok(());
            }
        }
    }

    fn skip_scalar(&mut self) {
        while let Some(byte) = self.peek()
            && !matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t')
        {
            self.at += 1;
        }
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8, otherwise: &'static str) -> Result<(), MergeError> {
        if self.peek() != Some(byte) {
            return Err(self.refuse(otherwise));
        }
        self.at += 1;
        Ok(())
    }

    fn expect_end(&mut self) -> Result<(), MergeError> {
        self.skip_space();
        if self.at == self.text.len() { Ok(()) } else { Err(self.refuse("text after the end")) }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn refuse(&self, what: &'static str) -> MergeError {
        MergeError::Text { what, at: self.at }
    }
}

/// Eight bytes at a time: most of a document is inside long strings.
fn quote_or_backslash(text: &[u8]) -> Option<usize> {
    let (words, tail) = text.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let hit = marks(word, b'"') | marks(word, b'\\');
        if hit != 0 {
            return Some(at * 8 + hit.trailing_zeros() as usize / 8);
        }
    }
    let found = tail.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
    Some(words.len() * 8 + found)
}

/// The high bit of each byte of `word` that equals `byte`; exact up to and with the lowest one.
fn marks(word: u64, byte: u8) -> u64 {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let zero_where_equal = word ^ (LOW * u64::from(byte));
    zero_where_equal.wrapping_sub(LOW) & !zero_where_equal & HIGH
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(doc: &str) -> Vec<(String, String)> {
        let fields = doc_fields(doc.as_bytes()).expect(doc);
        fields.into_iter().map(|(k, v)| (k.into_owned(), String::from_utf8_lossy(v).into_owned())).collect()
    }

    #[test]
    fn fields_come_in_order_with_their_text_as_it_stands() {
        let doc = r#" { "a" : [1, "]}"] , "b\"\u0041":{"c":"\\"},"d":-1.0e2 } "#;
        let want = [("a", r#"[1, "]}"]"#), ("b\"A", r#"{"c":"\\"}"#), ("d", "-1.0e2")];
        assert_eq!(fields(doc), want.map(|(k, v)| (k.to_owned(), v.to_owned())));
        assert_eq!(doc_field(doc.as_bytes(), "b\"A"), Ok(Some(br#"{"c":"\\"}"#.as_slice())));
        assert_eq!(doc_field(doc.as_bytes(), "e"), Ok(None));
        assert_eq!(fields("{}"), []);
    }

    #[test]
    fn every_cut_of_a_document_is_an_error() {
        let doc = r#"{"a":[1,{"b":"x\"y"}],"c":"0123456789\\","d":{}}"#;
        for end in 0..doc.len() {
            assert!(doc_fields(&doc.as_bytes()[..end]).is_err(), "{}", &doc[..end]);
        }
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        for text in ["", "[]", "1", "{} {}", "{\"a\"}", "{\"a\":}", "{a:1}", "{\"a\":1 \"b\":2}", "{,}", "{\"a\":1,}"] {
            assert!(doc_fields(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn quotes_are_found_at_every_place_of_a_word() {
        for length in 0..40 {
            for at in 0..length {
                for byte in [b'"', b'\\'] {
                    let mut text = vec![b'\x7f'; length];
                    text[at] = byte;
                    assert_eq!(quote_or_backslash(&text), Some(at));
                }
            }
            assert_eq!(quote_or_backslash(&vec![0xA2; length]), None);
        }
    }
}
