//! Checks that `dist` matches its manifest, and was built from the current sources.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

const FOLDERS: [&str; 2] = ["app", "scripts"];
const SINGLE: [&str; 6] =
    ["index.html", "package.json", "package-lock.json", ".npmrc", "tsconfig.json", "vite.config.ts"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn hex(hash: impl AsRef<[u8]>) -> String {
    hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn manifest() -> Value {
    let text = fs::read_to_string(root().join("dist/manifest.json")).expect("a manifest");
    serde_json::from_str(&text).expect("JSON")
}

/// Adds the paths of all files below a folder, relative to the root.
fn add_files(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            add_files(&path, found);
        } else {
            let path = path.strip_prefix(root()).expect("below the root");
            found.insert(path.to_str().expect("UTF-8").to_owned());
        }
    }
}

/// Returns the hash of the sources, as `scripts/manifest.mjs` computes it.
fn sources() -> String {
    let mut paths = BTreeSet::new();
    FOLDERS.iter().for_each(|folder| add_files(&root().join(folder), &mut paths));
    paths.extend(SINGLE.iter().filter(|path| root().join(path).exists()).map(|path| (*path).to_owned()));
    paths.retain(|path| !path.ends_with(".test.ts") && !path.ends_with(".test.tsx"));
    let mut hasher = Sha256::new();
    for path in &paths {
        let content = fs::read(root().join(path)).expect("a file");
        hasher.update(format!("{path}\0{}\0", content.len()));
        hasher.update(&content);
    }
    hex(hasher.finalize())
}

#[test]
fn the_output_was_built_from_these_sources() {
    assert_eq!(
        manifest()["sources"].as_str(),
        Some(sources().as_str()),
        "the sources changed after the last build: run `npm run build` in node/console, and commit dist"
    );
}

#[test]
fn the_manifest_lists_every_file_with_its_hash() {
    let mut found = BTreeSet::new();
    add_files(&root().join("dist"), &mut found);
    let manifest = manifest();
    let listed = manifest["files"].as_object().expect("files");
    let named: BTreeSet<String> =
        listed.keys().map(|path| format!("dist/{path}")).chain(["dist/manifest.json".to_owned()]).collect();
    assert_eq!(found, named);
    for (path, hash) in listed {
        let content = fs::read(root().join("dist").join(path)).expect("a file");
        assert_eq!(hash.as_str(), Some(hex(Sha256::digest(&content)).as_str()), "{path}");
    }
}

/// Checks that the output never executes text as code, and never contacts another server.
#[test]
fn the_output_runs_no_texts_and_names_no_other_server() {
    let mut found = BTreeSet::new();
    add_files(&root().join("dist/assets"), &mut found);
    // These are XML namespaces, and a base URL that no request uses.
    let harmless = ["http://www.w3.org/", "http://console.invalid"];
    for path in found {
        let text = String::from_utf8(fs::read(root().join(&path)).expect("a file")).expect("UTF-8");
        for code in ["eval(", "new Function", "document.write", "insertAdjacentHTML", "@import"] {
            assert!(!text.contains(code), "{path}: {code}");
        }
        for (at, _) in text.match_indices("http://").chain(text.match_indices("https://")) {
            let address: String = text[at..].chars().take(60).collect();
            let has_host = address
                .split("://")
                .nth(1)
                .is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_alphanumeric()));
            assert!(!has_host || harmless.iter().any(|known| address.starts_with(known)), "{path}: {address}");
        }
    }
}
