//! Text that shares the bytes of its log entry.

use std::borrow::Borrow;
use std::fmt;

use bytes::Bytes;
use bytestring::ByteString;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(ByteString);

impl Text {
    /// Returns a text that shares `whole`, of which `part` is a slice.
    pub fn within(whole: &Bytes, part: &str) -> Text {
        if part.is_empty() {
            return Text(ByteString::new());
        }
        let shared = whole.slice_ref(part.as_bytes());
        Text(ByteString::try_from(shared).expect("the bytes of a str"))
    }

    pub fn copied(text: &str) -> Text {
        Text(ByteString::from(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The hash and comparison are those of the text, so that maps can be searched with a `&str`.
impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
