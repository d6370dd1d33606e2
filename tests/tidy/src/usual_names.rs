//! Usual names: what a newcomer looks for is in a file or folder of that name.

/// Heading of the section of CONTRIBUTING that has the table of names.
pub const HEADING: &str = "## Where to find things";

/// Names that newcomers look for. Each has a row in the table of CONTRIBUTING.
pub const USUAL_NAMES: [&str; 20] = [
    "authentication",
    "authorization",
    "bootstrap",
    "backpressure",
    "graceful shutdown",
    "rate limiting",
    "key rotation",
    "retention",
    "import",
    "export",
    "async query jobs",
    "cursors",
    "fault injection",
    "response headers",
    "access log",
    "leader routing",
    "membership",
    "snapshot transfer",
    "compaction",
    "write path",
];

/// A name and the path that it leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsualName {
    pub name: String,
    pub path: String,
}

/// Reads the table `| name | path |` below [`HEADING`].
pub fn parse(contributing: &str) -> Vec<UsualName> {
    let section = contributing.split_once(HEADING).map_or("", |(_, after)| after);
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter_map(|line| line.trim().strip_prefix('|'));
    let cells = rows.map(|row| row.split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect());
    let named = cells.filter_map(|cells: Vec<String>| match cells.as_slice() {
        [name, path, ..] if path.contains('/') => Some(UsualName { name: name.clone(), path: path.clone() }),
        _ => None,
    });
    named.collect()
}

/// Complaints about names of [`USUAL_NAMES`] without exactly one row, and about rows of other names.
pub fn unlisted(names: &[UsualName]) -> Vec<String> {
    let mut complaints = Vec::new();
    for usual in USUAL_NAMES {
        let rows = names.iter().filter(|row| row.name == usual).count();
        if rows != 1 {
            complaints.push(format!("`{usual}`: CONTRIBUTING has {rows} rows below `{HEADING}`, and needs one"));
        }
    }
    for UsualName { name, .. } in names.iter().filter(|row| !USUAL_NAMES.contains(&row.name.as_str())) {
        complaints.push(format!("`{name}`: not one of the usual names: add it to tests/tidy/src/usual_names.rs"));
    }
    complaints
}

/// Complaints about paths that do not end in their name, with `_` for blanks, and about paths that are not there.
/// `files` are those of the repository.
pub fn misleading(names: &[UsualName], files: &[String]) -> Vec<String> {
    let mut complaints = Vec::new();
    for UsualName { name, path } in names {
        let last = path.rsplit('/').next().unwrap_or_default();
        let expected = name.replace(' ', "_");
        if last.strip_suffix(".rs").unwrap_or(last) != expected {
            complaints.push(format!("`{name}`: {path} is no file or folder `{expected}`"));
        }
        let folder = format!("{path}/");
        if !files.iter().any(|file| file == path || file.starts_with(&folder)) {
            complaints.push(format!("`{name}`: there is no {path}"));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_to_a_file_or_folder_of_that_name() {
        let text = format!(
            "# A\n\n{HEADING}\n\n| name | path |\n|---|---|\n| rate limiting | `a/rate_limiting.rs` |\n\
             | export | `a/other.rs` |\n| query import | `query/query_import` |\n| retention | `a/retention` |\n\n\
             ## B\n\n| c | `c/d` |\n"
        );
        let names = parse(&text);
        assert_eq!(
            names.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(),
            ["rate limiting", "export", "query import", "retention"]
        );
        let files = ["a/rate_limiting.rs", "a/other.rs", "a/retention/job.rs"].map(str::to_owned);
        let found = misleading(&names, &files);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("export") && found[1].contains("there is no query/query_import"), "{found:?}");
    }

    #[test]
    fn a_usual_name_has_exactly_one_row() {
        let row = |name: &str| UsualName { name: name.to_owned(), path: format!("a/{name}") };
        let all: Vec<_> = USUAL_NAMES.map(row).into();
        assert!(unlisted(&all).is_empty());
        assert_eq!(unlisted(&all[1..]).len(), 1, "one is missing");
        assert_eq!(unlisted(&[all.clone(), vec![row("import")]].concat()).len(), 1, "one is there twice");
        assert_eq!(unlisted(&[all, vec![row("weather")]].concat()).len(), 1, "one is not usual");
    }
}
