//! Name of a blob: the BLAKE3 of its content, as 64 lower-case hex digits.

use std::fmt;

/// Names content by its hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobName(pub [u8; 32]);

impl BlobName {
    /// The name that `content` has.
    pub fn of(content: &[u8]) -> BlobName {
        BlobName(*blake3::hash(content).as_bytes())
    }

    /// Reads what `Display` writes, and nothing else.
    pub fn parse(text: &str) -> Option<BlobName> {
        let hash = blake3::Hash::from_hex(text).ok()?;
        let name = BlobName(*hash.as_bytes());
        // from_hex takes upper case too; a file has one name only.
        (name.to_string() == text).then_some(name)
    }
}

impl fmt::Display for BlobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for BlobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlobName({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_reads_back_and_has_one_spelling() {
        let name = BlobName::of(b"");
        let text = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
        assert_eq!(name.to_string(), text);
        assert_eq!(BlobName::parse(text), Some(name));
        for wrong in [&text.to_uppercase(), "", "af", &text[1..], &format!("{text}0"), &text.replace('a', "é")] {
            assert_eq!(BlobName::parse(wrong), None, "{wrong}");
        }
    }
}
