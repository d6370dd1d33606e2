//! Tree of the names in a bundle, which finds duplicates, conflicts and too many of them.

use std::collections::HashMap;

use crate::error::{BundleRefusal, EntryProblem};
use crate::limits::BundleLimits;
use crate::unpack::entry_path::EntryPath;

/// Names of the bundle. A directory has a number, and the root has the number 0.
#[derive(Debug)]
pub(super) struct NameTree {
    names: Vec<HashMap<Box<str>, TreeNode>>,
    /// Paths of the directories except for the root, parents before children.
    directories: Vec<String>,
    files: u64,
    files_max: u64,
    directories_max: u64,
}

#[derive(Clone, Copy, Debug)]
enum TreeNode {
    File,
    Directory {
        number: usize,
        /// An entry of its own names the directory, not only the paths of other entries.
        is_entry: bool,
    },
}

impl NameTree {
    pub fn new(limits: &BundleLimits) -> NameTree {
        NameTree {
            names: vec![HashMap::new()],
            directories: Vec::new(),
            files: 0,
            files_max: limits.files,
            directories_max: limits.directories,
        }
    }

    /// Adds the entry of a file or directory, and the directories that its path implies.
    pub fn add(&mut self, path: &EntryPath) -> Result<(), BundleRefusal> {
        if path.is_root() {
            return Ok(());
        }
        let refuse = |problem| Err(BundleRefusal::entry(path.as_str(), problem));
        let (parent, name) = path.as_str().rsplit_once('/').unwrap_or(("", path.as_str()));
        let mut number = 0;
        let mut end = 0;
        for part in parent.split('/').filter(|part| !part.is_empty()) {
            // The names are joined by one byte each.
            end += part.len() + usize::from(end > 0);
            number = match self.names[number].get(part) {
                Some(TreeNode::Directory { number, .. }) => *number,
                Some(TreeNode::File) => return refuse(EntryProblem::FileAndDirectory),
                None => self.add_directory(number, part, &parent[..end], false)?,
            };
        }
        match (self.names[number].get_mut(name), path.is_directory()) {
            (None, true) => self.add_directory(number, name, path.as_str(), true).map(|_| ()),
            (None, false) => self.add_file(number, name),
            (Some(TreeNode::Directory { is_entry: is_entry @ false, .. }), true) => {
                *is_entry = true;
                Ok(())
            }
            (Some(TreeNode::Directory { .. }), true) | (Some(TreeNode::File), false) => refuse(EntryProblem::Duplicate),
            (Some(_), _) => refuse(EntryProblem::FileAndDirectory),
        }
    }

    /// Returns the paths of the directories except for the root, parents before children.
    pub fn into_directories(self) -> Vec<String> {
        self.directories
    }

    fn add_file(&mut self, parent: usize, name: &str) -> Result<(), BundleRefusal> {
        if self.files == self.files_max {
            return Err(BundleRefusal::Files { max: self.files_max });
        }
        self.files += 1;
        self.names[parent].insert(name.into(), TreeNode::File);
        Ok(())
    }

    fn add_directory(&mut self, parent: usize, name: &str, path: &str, is_entry: bool) -> Result<usize, BundleRefusal> {
        if self.directories.len() as u64 == self.directories_max {
            return Err(BundleRefusal::Directories { max: self.directories_max });
        }
        let number = self.names.len();
        self.names.push(HashMap::new());
        self.directories.push(path.to_owned());
        self.names[parent].insert(name.into(), TreeNode::Directory { number, is_entry });
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: BundleLimits = BundleLimits { stored_bytes: 0, unpacked_bytes: 0, files: 3, directories: 4 };

    fn directories(names: &[&str]) -> Result<Vec<String>, BundleRefusal> {
        let mut tree = NameTree::new(&LIMITS);
        names.iter().try_for_each(|name| tree.add(&EntryPath::parse(name).unwrap()))?;
        Ok(tree.into_directories())
    }

    #[test]
    fn parents_come_before_children_whoever_names_them() {
        assert_eq!(directories(&["a/b/c.py", "a/", "d/", "./", "a/b/"]).unwrap(), ["a", "a/b", "d"]);
        assert_eq!(directories(&["c.py"]).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_path_that_occurs_twice_is_refused_also_in_another_form() {
        for names in [["a", "a"], ["a/b", "./a//b"], ["a/", "a//"], ["a/b/", "a/./b/"]] {
            let refused = directories(&names).unwrap_err();
            assert!(matches!(refused, BundleRefusal::Entry { problem: EntryProblem::Duplicate, .. }), "{names:?}");
        }
    }

    #[test]
    fn a_path_is_either_a_file_or_a_directory() {
        for names in [["a", "a/"], ["a/", "a"], ["a", "a/b"], ["a/b", "a"], ["a/b", "a/b/c/d"]] {
            let refused = directories(&names).unwrap_err();
            let expected = BundleRefusal::entry(names[1].trim_end_matches('/'), EntryProblem::FileAndDirectory);
            assert_eq!(refused, expected, "{names:?}");
        }
    }

    #[test]
    fn files_and_implied_directories_are_counted() {
        assert!(directories(&["a", "b", "c"]).is_ok());
        assert_eq!(directories(&["a", "b", "c", "d"]), Err(BundleRefusal::Files { max: 3 }));
        assert!(directories(&["a/b/c/d/"]).is_ok());
        assert_eq!(directories(&["a/b/c/d/e"]).unwrap().len(), 4);
        assert_eq!(directories(&["a/b/c/d/e/f"]), Err(BundleRefusal::Directories { max: 4 }));
    }
}
