//! The repository as read from disk: its crates with their manifests, and its Rust sources.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use toml::Table;

/// Folders of other tools' output, which no repository has.
const OUTPUT_FOLDERS: [&str; 2] = ["target", "node_modules"];

#[derive(Debug)]
pub struct Workspace {
    pub root: PathBuf,
    pub manifest: Table,
    pub crates: Vec<Crate>,
}

/// One member of the workspace.
#[derive(Debug)]
pub struct Crate {
    pub name: String,
    /// Folder, from the root, with `/`.
    pub folder: String,
    pub manifest: Table,
}

/// One Rust file.
#[derive(Debug)]
pub struct Source {
    /// Path from the root, with `/`.
    pub path: String,
    pub text: String,
}

impl Workspace {
    /// Returns the repository whose tests run. Located at run time: clones that share a target directory share the
    /// binary too.
    pub fn this() -> Workspace {
        let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where this crate is");
        let root = Path::new(&folder).join("../..");
        Workspace::read(&root.canonicalize().expect("the repository is above this crate"))
    }

    /// # Panics
    /// Panics if a manifest is missing or not TOML: then cargo would not have come this far.
    pub fn read(root: &Path) -> Workspace {
        let manifest = read_manifest(&root.join("Cargo.toml"));
        let members = manifest["workspace"]["members"].as_array().expect("a list of members").iter();
        let folders = members.map(|member| member.as_str().expect("members are texts").to_owned());
        let crates = folders.map(|folder| Crate::new(&folder, read_manifest(&root.join(&folder).join("Cargo.toml"))));
        Workspace { root: root.to_owned(), crates: crates.collect(), manifest }
    }

    pub fn read_text(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Every Rust file of every member; files in folders of other members are theirs.
    pub fn sources(&self) -> Vec<Source> {
        let mut paths = BTreeSet::new();
        for member in &self.crates {
            rust_files(&self.root.join(&member.folder), &mut paths);
        }
        let source = |path: PathBuf| {
            let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let path = path.strip_prefix(&self.root).expect("found below the root");
            Source { path: path.to_string_lossy().replace('\\', "/"), text }
        };
        paths.into_iter().map(source).collect()
    }
}

impl Crate {
    pub fn new(folder: &str, manifest: Table) -> Crate {
        let name = manifest["package"]["name"].as_str().expect("a name").to_owned();
        Crate { name, folder: folder.to_owned(), manifest }
    }

    /// Returns the crate of a file: the member whose folder is the longest that the file is in.
    pub fn owner<'c>(crates: &'c [Crate], path: &str) -> Option<&'c Crate> {
        let is_in = |member: &&Crate| path.strip_prefix(&member.folder).is_some_and(|rest| rest.starts_with('/'));
        crates.iter().filter(is_in).max_by_key(|member| member.folder.len())
    }

    /// Sample of a crate from the text of a manifest, for the checks' own tests.
    pub fn sample(folder: &str, manifest: &str) -> Crate {
        Crate::new(folder, manifest.parse().expect("TOML"))
    }

    /// Returns name and declaration of every dependency, with its table.
    pub fn dependencies(&self) -> Vec<(&'static str, &str, &toml::Value)> {
        let mut found = Vec::new();
        for table in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let declared = self.manifest.get(table).and_then(toml::Value::as_table);
            found.extend(declared.into_iter().flatten().map(|(name, value)| (table, name.as_str(), value)));
        }
        found
    }
}

fn read_manifest(path: &Path) -> Table {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn rust_files(folder: &Path, found: &mut BTreeSet<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("a folder that can be listed").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !OUTPUT_FOLDERS.contains(&name.as_str()) && !name.starts_with('.') {
            rust_files(&path, found);
        } else if name.ends_with(".rs") {
            found.insert(path);
        }
    }
}
