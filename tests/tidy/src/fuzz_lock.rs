//! The lock file of the fuzzers' workspace, which no build of the main workspace brings up to date.

use std::collections::BTreeSet;

use toml::{Table, Value};

use crate::workspace::Crate;

/// Tables of a manifest that a lock file resolves for a crate of another workspace.
const RESOLVED: [&str; 2] = ["dependencies", "build-dependencies"];

/// Returns crates whose dependencies in the lock file differ from those in their manifests.
pub fn complaints(lock: &Table, workspace: &Table, crates: &[Crate]) -> Vec<String> {
    let packages = lock["package"].as_array().expect("a list of packages").iter();
    let named = packages.filter_map(|package| {
        let name = package["name"].as_str().expect("a name");
        crates.iter().find(|member| member.name == name).map(|member| (member, package))
    });
    let differing = named.filter(|(member, package)| locked(package) != declared(member, workspace));
    let lines = differing.map(|(member, _)| {
        format!(
            "tests/fuzz/Cargo.lock has other dependencies for {} than {}/Cargo.toml: run `cargo metadata` in tests/fuzz",
            member.name, member.folder
        )
    });
    lines.collect()
}

/// Returns names of dependencies in a lock file; a version follows the name of a library that has several.
fn locked(package: &Value) -> BTreeSet<String> {
    let names = package.get("dependencies").and_then(Value::as_array).into_iter().flatten();
    let names = names.filter_map(|name| name.as_str()?.split(' ').next());
    names.map(str::to_owned).collect()
}

fn declared(member: &Crate, workspace: &Table) -> BTreeSet<String> {
    let resolved = member.dependencies().into_iter().filter(|(table, ..)| RESOLVED.contains(table));
    resolved.map(|(_, name, _)| package_of(name, workspace)).collect()
}

/// Returns the package that a dependency of the workspace stands for.
fn package_of(name: &str, workspace: &Table) -> String {
    let top = &workspace["workspace"]["dependencies"];
    let package = top.get(name).and_then(|value| value.get("package")).and_then(Value::as_str);
    package.unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKSPACE: &str = "[workspace.dependencies]\nbytes = \"1\"\nserde = \"1\"\nstore = { package = \"sled\" }\n";
    const LOG: &str = "[package]\nname = \"assay-storage-log\"\n[dependencies]\nbytes.workspace = true\n\
        store.workspace = true\n[dev-dependencies]\nserde.workspace = true\n";

    fn found(lock: &str) -> Vec<String> {
        let table = |text: &str| text.parse::<Table>().expect("TOML");
        complaints(&table(lock), &table(WORKSPACE), &[Crate::sample("storage/log", LOG)])
    }

    #[test]
    fn a_lock_file_with_the_dependencies_of_a_manifest_passes() {
        let lock = "[[package]]\nname = \"bytes\"\n[[package]]\nname = \"assay-storage-log\"\ndependencies = [\"bytes 1.2.3\", \"sled\"]\n";
        assert!(found(lock).is_empty());
    }

    #[test]
    fn a_missing_and_a_removed_dependency_are_named() {
        for dependencies in ["[\"bytes\"]", "[\"bytes\", \"sled\", \"serde\"]", "[]"] {
            let lock = format!("[[package]]\nname = \"assay-storage-log\"\ndependencies = {dependencies}\n");
            let found = found(&lock);
            assert_eq!(found.len(), 1, "{dependencies}");
            assert!(found[0].contains("assay-storage-log"), "{found:?}");
        }
    }
}
