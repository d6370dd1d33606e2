//! Size limits of crates, without their tests, and of folders.

use std::collections::BTreeMap;

use crate::workspace::{Crate, Source};

/// Lines of a product crate without its tests: as much as one person knows by heart.
pub const CRATE_LINES_MAX: usize = 8_000;
pub const FOLDER_FILES_MAX: usize = 24;

/// Areas whose crates are test harnesses. They are divided into folders and may be larger.
const HARNESSES: [&str; 2] = ["chaos", "tests/"];
const TEST_MODULE: &str = "#[cfg(test)]\nmod ";

/// Returns the product crates with more than [`CRATE_LINES_MAX`] lines.
pub fn large_crates(crates: &[Crate], sources: &[Source]) -> Vec<String> {
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    for source in sources {
        if let Some(owner) = Crate::owner(crates, &source.path).filter(|owner| is_product(owner)) {
            *lines.entry(&owner.name).or_default() += product_lines(owner, source);
        }
    }
    let large = lines.into_iter().filter(|(_, lines)| *lines > CRATE_LINES_MAX);
    let complaint = |(name, lines)| {
        format!(
            "{name} has {lines} lines without its tests, at most {CRATE_LINES_MAX} are allowed: split it by subject"
        )
    };
    large.map(complaint).collect()
}

/// Returns the folders with more than [`FOLDER_FILES_MAX`] files.
pub fn full_folders(sources: &[Source]) -> Vec<String> {
    let mut files: BTreeMap<&str, usize> = BTreeMap::new();
    for (folder, _) in sources.iter().filter_map(|source| source.path.rsplit_once('/')) {
        *files.entry(folder).or_default() += 1;
    }
    let full = files.into_iter().filter(|(_, files)| *files > FOLDER_FILES_MAX);
    full.map(|(folder, files)| {
        format!(
            "{folder} has {files} files, at most {FOLDER_FILES_MAX} are allowed: put some into a folder of their own"
        )
    })
    .collect()
}

fn is_product(member: &Crate) -> bool {
    !HARNESSES.iter().any(|area| member.folder.starts_with(area))
}

/// Lines of a file of the crate without its test modules; none for a file of tests.
fn product_lines(owner: &Crate, source: &Source) -> usize {
    let path = source.path.strip_prefix(&owner.folder).unwrap_or_default();
    if !path.starts_with("/src/") || path.contains("/tests/") || path.ends_with("tests.rs") {
        return 0;
    }
    without_test_modules(&source.text).matches('\n').count()
}

/// The text without its modules of tests at the top level, whether their content is here or in a file of its own.
fn without_test_modules(text: &str) -> String {
    let mut text = text.to_owned();
    while let Some(begin) = text.find(TEST_MODULE) {
        let rest = &text[begin..];
        let declaration = rest.find(";\n").filter(|end| !rest[..*end].contains('{'));
        let end = declaration.map(|end| end + 2).or_else(|| rest.find("\n}\n").map(|end| end + 3));
        text.replace_range(begin..begin + end.unwrap_or(rest.len()), "");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULE: &str = "#[cfg(test)]\nmod tests {\n    fn a() {\n    }\n}\n";

    fn source(path: &str, lines: usize, rest: &str) -> Source {
        Source { path: path.into(), text: "a();\n".repeat(lines) + rest }
    }

    fn check(sources: &[Source], expected: &[&str]) {
        let member = |folder: &str, name: &str| Crate::sample(folder, &format!("[package]\nname = \"{name}\""));
        let crates = [member("node", "assay"), member("node/http", "assay-http"), member("chaos", "assay-chaos")];
        assert_eq!(large_crates(&crates, sources), expected);
    }

    #[test]
    fn a_crate_is_too_large_at_the_first_line_too_many() {
        let part = || source("node/http/src/a.rs", 5_000, "");
        let other = |lines| source("node/http/src/b/c.rs", lines, "");
        check(&[part(), other(3_000)], &[]);
        let large = "assay-http has 8001 lines without its tests, at most 8000 are allowed: split it by subject";
        check(&[part(), other(3_001)], &[large]);
    }

    #[test]
    fn tests_and_harnesses_do_not_count() {
        check(&[source("node/src/a.rs", 8_000, MODULE)], &[]);
        check(&[source("node/src/a.rs", 8_000, "#[cfg(test)]\nmod tests;\n")], &[]);
        for path in ["node/tests/a.rs", "node/src/a/tests.rs", "node/src/a/tests/b.rs", "chaos/src/a.rs"] {
            check(&[source(path, 9_000, "")], &[]);
        }
        assert_eq!(without_test_modules(&format!("a\n{MODULE}b\n#[cfg(test)]\nmod c;\nd\n")), "a\nb\nd\n");
    }

    #[test]
    fn a_folder_is_too_full_at_the_first_file_too_many() {
        let files = |count: usize| -> Vec<Source> { (0..count).map(|n| source(&format!("a/{n}.rs"), 1, "")).collect() };
        assert!(full_folders(&files(24)).is_empty());
        assert_eq!(
            full_folders(&files(25)),
            ["a has 25 files, at most 24 are allowed: put some into a folder of their own"]
        );
    }
}
