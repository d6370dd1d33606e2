//! Usual names: what a newcomer looks for is in a file or folder of that name.

/// Heading of the section of CONTRIBUTING that has the table of names.
pub const HEADING: &str = "## Where to find things";

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

/// Complaints about paths that are not there, and about names whose words their path does not have. `files` are those of
/// the repository.
pub fn complaints(names: &[UsualName], files: &[String]) -> Vec<String> {
    let mut complaints = Vec::new();
    for UsualName { name, path } in names {
        let missing: Vec<_> = name.split(' ').filter(|word| !path.contains(&word.to_lowercase())).collect();
        if !missing.is_empty() {
            complaints.push(format!("`{name}`: {path} does not have {}", missing.join(", ")));
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
             | export | `a/other.rs` |\n| query import | `query/import` |\n\n## B\n\n| c | `c/d` |\n"
        );
        let names = parse(&text);
        assert_eq!(
            names.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(),
            ["rate limiting", "export", "query import"]
        );
        let files = ["a/rate_limiting.rs", "a/other.rs"].map(str::to_owned);
        let found = complaints(&names, &files);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("export") && found[1].contains("there is no query/import"), "{found:?}");
    }
}
