//! Top-level folders and required files of every area: a README that states what it owns and what it must never know,
//! and its decisions.

use std::fs;
use std::path::Path;

/// Folders and files at the top; the last four are those that cargo and licences look for there.
pub const TOP: [&str; 11] = [
    "Cargo.toml",
    "README.md",
    "chaos",
    "cluster",
    "docker",
    "node",
    "storage",
    "tests",
    "Cargo.lock",
    "LICENSE",
    "rust-toolchain.toml",
];

/// Areas with code; each has decisions.
pub const AREAS: [&str; 5] = ["chaos", "cluster", "node", "storage", "tests"];

/// Names at the top that are neither listed nor hidden nor ignored by git, and listed ones that are missing.
pub fn at_the_top(names: &[String], gitignore: &str) -> Vec<String> {
    let ignored: Vec<&str> = gitignore.lines().filter_map(|line| line.strip_prefix('/')).collect();
    let is_known = |name: &str| TOP.contains(&name) || name.starts_with('.') || ignored.contains(&name);
    let strange = names.iter().filter(|name| !is_known(name)).map(|name| format!("{name} has no place at the top"));
    let missing = TOP.iter().filter(|name| !names.iter().any(|found| found == *name));
    strange.chain(missing.map(|name| format!("{name} is missing at the top"))).collect()
}

/// Checks an area's README: a title, what it owns, what it must never know.
pub fn page(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    if !text.starts_with("# ") {
        found.push(format!("{path}: begins without a title"));
    }
    let text = text.to_lowercase();
    for word in ["owns", "never"] {
        if !text.contains(word) {
            found.push(format!("{path}: does not say what the area {word}"));
        }
    }
    found
}

/// Checks decision records: `NNNN-title.md`, numbered from 1 without a gap, with the choice and the reasons to
/// reconsider it.
pub fn decisions(folder: &str, files: &[(String, String)]) -> Vec<String> {
    let mut found = Vec::new();
    if files.is_empty() {
        found.push(format!("{folder}: no decision is written down"));
    }
    for (place, (name, text)) in files.iter().enumerate() {
        let number = format!("{:04}-", place + 1);
        if !name.starts_with(&number) || !name.ends_with(".md") {
            found.push(format!("{folder}/{name}: the next decision is called {number}<title>.md"));
        }
        let text = text.to_lowercase();
        for part in ["context", "choice", "change our mind"] {
            if !text.contains(part) {
                found.push(format!("{folder}/{name}: does not say its `{part}`"));
            }
        }
    }
    found
}

/// The Markdown files of a folder by name; none if it is not there.
pub fn markdown_in(folder: &Path) -> Vec<(String, String)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<(String, String)> = entries
        .map(|entry| {
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            (entry.file_name().to_string_lossy().into_owned(), text)
        })
        .collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_strange_name_and_a_missing_one_are_named() {
        let mut names = named(&TOP);
        names.extend(named(&[".ci", "target"]));
        assert!(at_the_top(&names, "/target\n").is_empty());
        assert_eq!(at_the_top(&names, ""), ["target has no place at the top"]);
        names.retain(|name| name != "docker" && name != "target");
        names.push("utils".into());
        assert_eq!(at_the_top(&names, ""), ["utils has no place at the top", "docker is missing at the top"]);
    }

    #[test]
    fn a_page_that_says_nothing_is_named() {
        assert!(page("x/README.md", "# X\nOwns files. Must never know HTTP.\n").is_empty());
        assert_eq!(page("x/README.md", "files\n").len(), 3);
    }

    #[test]
    fn decisions_are_numbered_and_whole() {
        let good = |name: &str| (name.to_owned(), "## Context\n## Choice\n## What would change our mind\n".to_owned());
        assert!(decisions("x", &[good("0001-a.md"), good("0002-b.md")]).is_empty());
        assert_eq!(decisions("x", &[]).len(), 1);
        assert_eq!(decisions("x", &[good("0002-b.md")]), ["x/0002-b.md: the next decision is called 0001-<title>.md"]);
        assert_eq!(decisions("x", &[("0001-a.md".into(), "So it is.".into())]).len(), 3);
    }
}
