//! Kinds of bundles, and the keys under which unpacked bundles are cached.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Digits of the hash of a bundle's content.
const HASH_DIGITS: usize = 64;

/// Kind of a bundle, which tells its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BundleKind {
    /// One CommonJS text, usually compressed with gzip.
    Node,
    /// Zip of a directory for `sys.path`.
    Python,
}

/// Text that names no kind of bundle.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there are no bundles of the runtime {0:?}; the runtimes are `node` and `python`")]
pub struct InvalidBundleKind(String);

/// Hash of the stored bytes of a bundle, as lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BundleHash(String);

/// Text that is no hash of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the hash of a bundle has {HASH_DIGITS} lower-case hexadecimal digits, and this text of {bytes} bytes has not")]
pub struct InvalidBundleHash {
    bytes: usize,
}

/// Key of an unpacked bundle. The kind belongs to it, because each kind unpacks the same bytes differently.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BundleKey {
    pub kind: BundleKind,
    pub hash: BundleHash,
}

impl BundleKind {
    /// Returns the name of the runtime that executes the bundle.
    pub fn as_str(self) -> &'static str {
        match self {
            BundleKind::Node => "node",
            BundleKind::Python => "python",
        }
    }
}

impl fmt::Display for BundleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for BundleKind {
    type Err = InvalidBundleKind;

    fn from_str(text: &str) -> Result<BundleKind, InvalidBundleKind> {
        let kinds = [BundleKind::Node, BundleKind::Python];
        kinds.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| InvalidBundleKind(text.to_owned()))
    }
}

impl FromStr for BundleHash {
    type Err = InvalidBundleHash;

    fn from_str(text: &str) -> Result<BundleHash, InvalidBundleHash> {
        let is_hash = text.len() == HASH_DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_hash.then(|| BundleHash(text.to_owned())).ok_or(InvalidBundleHash { bytes: text.len() })
    }
}

impl fmt::Display for BundleHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl BundleKey {
    pub fn new(kind: BundleKind, hash: BundleHash) -> BundleKey {
        BundleKey { kind, hash }
    }

    /// Returns the name of the directory with the unpacked bundle.
    pub(crate) fn directory_name(&self) -> String {
        format!("{}-{}", self.kind, self.hash)
    }

    /// Reads the name of a directory. Returns `None` if no key has this name.
    pub(crate) fn parse(directory_name: &str) -> Option<BundleKey> {
        let (kind, hash) = directory_name.split_once('-')?;
        Some(BundleKey { kind: kind.parse().ok()?, hash: hash.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_has_64_lower_case_hexadecimal_digits() {
        let digits = "0123456789abcdef".repeat(4);
        assert_eq!(digits.parse::<BundleHash>().unwrap().to_string(), digits);
        let wrong = [
            digits[1..].to_owned(),
            format!("{digits}0"),
            digits.to_uppercase(),
            format!("../{}", &digits[3..]),
            format!("{}\u{e9}", &digits[2..]),
            String::new(),
        ];
        for text in wrong {
            assert_eq!(text.parse::<BundleHash>(), Err(InvalidBundleHash { bytes: text.len() }), "{text}");
        }
    }

    #[test]
    fn a_key_is_read_from_the_name_of_its_directory() {
        for kind in [BundleKind::Node, BundleKind::Python] {
            let key = BundleKey::new(kind, "ab".repeat(32).parse().unwrap());
            assert_eq!(BundleKey::parse(&key.directory_name()), Some(key));
        }
        let hash = "ab".repeat(32);
        for name in [hash.clone(), format!("ruby-{hash}"), format!("node-{hash}.tmp"), "node-".to_owned()] {
            assert_eq!(BundleKey::parse(&name), None, "{name}");
        }
    }

    #[test]
    fn the_error_of_a_kind_names_the_valid_ones() {
        let error = "browser".parse::<BundleKind>().unwrap_err().to_string();
        assert!(error.contains("\"browser\"") && error.contains("`node` and `python`"), "{error}");
    }
}
