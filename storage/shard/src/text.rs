//! A text that shares the bytes of the log entry it came in.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};

use bytes::Bytes;

/// UTF-8 by construction.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text(Bytes);

impl Text {
    /// Shares `whole`, of which `part` is a slice.
    pub fn within(whole: &Bytes, part: &str) -> Text {
        if part.is_empty() { Text(Bytes::new()) } else { Text(whole.slice_ref(part.as_bytes())) }
    }

    pub fn copied(text: &str) -> Text {
        Text(Bytes::copy_from_slice(text.as_bytes()))
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("made from a str")
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
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
