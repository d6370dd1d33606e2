//! Paths of zip entries: their check and their normal form.

use crate::error::EntryProblem;
use crate::limits::{DEPTH_MAX, NAME_BYTES_MAX, PATH_BYTES_MAX};

/// Relative path without `.`, `..` and empty names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EntryPath {
    /// Names joined by `/`. The root of the bundle has none.
    text: String,
    is_directory: bool,
}

impl EntryPath {
    /// Checks the name of an entry. A directory ends with `/`.
    pub fn parse(name: &str) -> Result<EntryPath, EntryProblem> {
        if name.is_empty() {
            return Err(EntryProblem::NoName);
        }
        if name.len() > PATH_BYTES_MAX {
            return Err(EntryProblem::PathBytes { bytes: name.len() });
        }
        if name.contains('\0') {
            return Err(EntryProblem::Nul);
        }
        if name.contains('\\') {
            return Err(EntryProblem::Backslash);
        }
        if name.starts_with('/') {
            return Err(EntryProblem::Absolute);
        }
        if matches!(name.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic()) {
            return Err(EntryProblem::Drive);
        }
        let names: Vec<&str> = name.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
        if names.contains(&"..") {
            return Err(EntryProblem::Parent);
        }
        if let Some(long) = names.iter().find(|name| name.len() > NAME_BYTES_MAX) {
            return Err(EntryProblem::NameBytes { bytes: long.len() });
        }
        if names.len() > DEPTH_MAX {
            return Err(EntryProblem::Depth);
        }
        let is_directory = name.ends_with('/');
        if names.is_empty() && !is_directory {
            return Err(EntryProblem::NoName);
        }
        Ok(EntryPath { text: names.join("/"), is_directory })
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn is_directory(&self) -> bool {
        self.is_directory
    }

    /// Returns whether the path is the root of the bundle.
    pub fn is_root(&self) -> bool {
        self.text.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Component, Path};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_path_is_kept_in_normal_form() {
        for (name, path, is_directory) in [
            ("a.py", "a.py", false),
            ("a/b.py", "a/b.py", false),
            ("./a//./b.py", "a/b.py", false),
            ("a/", "a", true),
            ("a//", "a", true),
            ("./", "", true),
            ("..a/b..", "..a/b..", false),
            ("ab:c", "ab:c", false),
            ("ab/C:", "ab/C:", false),
            ("\u{e9}/\u{1f600}", "\u{e9}/\u{1f600}", false),
        ] {
            let parsed = EntryPath::parse(name).unwrap();
            assert_eq!((parsed.as_str(), parsed.is_directory()), (path, is_directory), "{name}");
            assert_eq!(parsed.is_root(), path.is_empty(), "{name}");
        }
    }

    #[test]
    fn a_path_out_of_the_bundle_is_refused() {
        for (name, problem) in [
            ("", EntryProblem::NoName),
            (".", EntryProblem::NoName),
            ("a\0b", EntryProblem::Nul),
            ("/etc/passwd", EntryProblem::Absolute),
            ("//a", EntryProblem::Absolute),
            ("C:/a", EntryProblem::Drive),
            ("c:a", EntryProblem::Drive),
            ("a\\b", EntryProblem::Backslash),
            ("\\a", EntryProblem::Backslash),
            ("..", EntryProblem::Parent),
            ("../a", EntryProblem::Parent),
            ("a/../b", EntryProblem::Parent),
            ("a/..", EntryProblem::Parent),
            ("a/../", EntryProblem::Parent),
        ] {
            assert_eq!(EntryPath::parse(name), Err(problem), "{name:?}");
        }
    }

    #[test]
    fn lengths_and_depth_have_limits() {
        let at_limit = "a".repeat(NAME_BYTES_MAX);
        assert!(EntryPath::parse(&at_limit).is_ok());
        assert_eq!(EntryPath::parse(&format!("b/{at_limit}a")), Err(EntryProblem::NameBytes { bytes: 256 }));
        let long = format!("{}a", "ab/".repeat(PATH_BYTES_MAX / 3 + 1));
        assert_eq!(EntryPath::parse(&long), Err(EntryProblem::PathBytes { bytes: long.len() }));
        let deepest = vec!["d"; DEPTH_MAX].join("/");
        assert!(EntryPath::parse(&deepest).is_ok());
        assert_eq!(EntryPath::parse(&format!("{deepest}/d")), Err(EntryProblem::Depth));
    }

    proptest! {
        #[test]
        fn an_accepted_path_has_only_normal_names_and_is_its_own_normal_form(name in "[./\\\\a:\\x00]{0,12}") {
            if let Ok(path) = EntryPath::parse(&name) {
                let mut components = Path::new(path.as_str()).components();
                prop_assert!(components.all(|part| matches!(part, Component::Normal(_))), "{:?}", path);
                if !path.is_root() {
                    let again = EntryPath::parse(path.as_str()).unwrap();
                    prop_assert_eq!(again.as_str(), path.as_str());
                }
            }
        }
    }
}
