//! One build of large libraries: a crate built alone and the whole workspace must request the same features, or each
//! library is built twice.

use std::collections::{BTreeMap, BTreeSet};

/// Libraries whose features must agree, by the start of their name.
pub const LARGE: &[&str] =
    &["arrow", "bytes ", "parquet", "serde ", "serde_json", "tokio ", "uuid ", "zstd", "bincode", "openraft"];

/// Package (`name vX`) to features, from the lines of `cargo tree --prefix none --format "{p}|{f}"`.
pub fn parse_tree(lines: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in lines.lines() {
        let line = line.trim().trim_end_matches(" (*)");
        if let Some((package, features)) = line.split_once('|') {
            let features = features.split(',').filter(|feature| !feature.is_empty()).map(str::to_owned);
            found.entry(package.to_owned()).or_default().extend(features);
        }
    }
    found
}

/// Returns features of a large library that the workspace requests and this crate alone does not.
pub fn complaints(
    name: &str,
    alone: &BTreeMap<String, BTreeSet<String>>,
    workspace: &BTreeMap<String, BTreeSet<String>>,
) -> Vec<String> {
    let large = alone.iter().filter(|(package, _)| LARGE.iter().any(|large| package.starts_with(large)));
    let differing = large.filter_map(|(package, features)| {
        let asked = workspace.get(package)?;
        let (more, fewer) = (join(asked.difference(features)), join(features.difference(asked)));
        (asked != features).then(|| {
            format!(
                "{package} is built twice: the workspace asks [{more}] more and [{fewer}] less of it than {name} alone"
            )
        })
    });
    differing.collect()
}

fn join<'a>(features: impl Iterator<Item = &'a String>) -> String {
    features.map(String::as_str).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_that_only_the_workspace_asks_for_is_named() {
        let alone = parse_tree("assay-storage-log v0.1.0 (/x)|\nbytes v1.12.1|std\nitoa v1.0.0|\nbytes v1.12.1| (*)\n");
        let same = parse_tree("bytes v1.12.1|std\nitoa v1.0.0|more\n");
        assert!(complaints("x", &alone, &same).is_empty(), "small libraries may differ");
        let more = parse_tree("bytes v1.12.1|std,serde\n");
        assert_eq!(
            complaints("x", &alone, &more),
            ["bytes v1.12.1 is built twice: the workspace asks [serde] more and [] less of it than x alone"]
        );
        assert_eq!(complaints("x", &more, &alone).len(), 1);
    }
}
