//! Search for texts in the files of a directory, in one walk over their bytes.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// Reserves space and holds nothing.
const EMPTY: &str = "BALLAST";
/// The first bytes of a text, by which it is looked for.
const HEAD: usize = 8;

/// Texts of at least eight bytes.
#[derive(Clone, Debug)]
pub struct Texts {
    by_head: HashMap<u64, Vec<String>>,
}

impl Texts {
    pub fn new<'t>(texts: impl IntoIterator<Item = &'t str>) -> Texts {
        let mut by_head: HashMap<u64, Vec<String>> = HashMap::new();
        for text in texts {
            let head = text.as_bytes().first_chunk::<HEAD>().expect("a text to be looked for is long enough");
            by_head.entry(u64::from_be_bytes(*head)).or_default().push(text.to_owned());
        }
        Texts { by_head }
    }

    /// Returns the texts that occur in these bytes.
    pub fn within(&self, bytes: &[u8]) -> BTreeSet<&str> {
        let (mut found, mut head) = (BTreeSet::new(), 0_u64);
        for (at, byte) in bytes.iter().enumerate() {
            head = head << 8 | u64::from(*byte);
            let Some(texts) = self.by_head.get(&head).filter(|_| at + 1 >= HEAD) else { continue };
            let rest = &bytes[at + 1 - HEAD..];
            found.extend(texts.iter().filter(|text| rest.starts_with(text.as_bytes())).map(String::as_str));
        }
        found
    }

    /// The same of all files below a directory, as `file: text`. What goes while it is looked for has gone.
    pub fn below(&self, dir: &Path) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for file in files_below(dir) {
            let Ok(bytes) = std::fs::read(&file) else { continue };
            found.extend(self.within(&bytes).into_iter().map(|text| format!("{}: {text}", file.display())));
        }
        found
    }
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files.extend(files_below(&entry.path())),
            Ok(kind) if kind.is_file() && entry.file_name() != EMPTY => files.push(entry.path()),
            _ => {}
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_wherever_it_stands() {
        let texts = Texts::new(["needle-in-hay", "needle-in-straw", "\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}x"]);
        let found = |bytes: &[u8]| texts.within(bytes).len();
        assert_eq!(found(b"needle-in-hay"), 1);
        assert_eq!(found(b"..needle-in-straw.needle-in-hay"), 2);
        assert_eq!(found(b"needle-in-ha"), 0);
        assert_eq!(found(b"\0\0\0\0\0\0\0x"), 0);
        assert_eq!(found(b"\0\0\0\0\0\0\0\0x"), 1);
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("sub")).expect("makes");
        std::fs::write(dir.path().join("sub/a"), "a needle-in-hay").expect("writes");
        std::fs::write(dir.path().join(EMPTY), "a needle-in-straw").expect("writes");
        let found: Vec<_> = texts.below(dir.path()).into_iter().collect();
        assert_eq!(found, [format!("{}: needle-in-hay", dir.path().join("sub/a").display())]);
    }
}
