//! Names of objects: relative paths of plain segments.

use std::fmt;

use crate::error::StoreError;

/// Upper bound of a name.
pub const NAME_BYTES_MAX: usize = 255;

/// Name of an object: segments of lower-case letters, digits, `.`, `-` and `_`, separated by `/`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoredName(String);

impl StoredName {
    /// Checks a name. A segment does not begin with a dot, so a name cannot leave its store.
    pub fn new(name: impl Into<String>) -> Result<StoredName, StoreError> {
        let name = name.into();
        let is_allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'_');
        let is_segment = |part: &str| !part.is_empty() && !part.starts_with('.') && part.bytes().all(is_allowed);
        if name.len() > NAME_BYTES_MAX || !name.split('/').all(is_segment) {
            return Err(StoreError::Content(format!("`{name}` is no name of an object")));
        }
        Ok(StoredName(name))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the part behind the last `/`.
    pub fn last_segment(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }
}

impl fmt::Display for StoredName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_store() {
        for good in ["a", "content/ab/ab01", "groups/cat/log/0001-0002.x_1"] {
            assert_eq!(StoredName::new(good).expect("a name").as_str(), good);
        }
        for bad in ["", "/a", "a/", "a//b", "../a", "a/../b", "a/.b", "A", "a b", "a\\b", "a\0", &"a".repeat(256)] {
            assert!(StoredName::new(bad).is_err(), "{bad}");
        }
    }
}
